//! The real binary, from outside. One program: what all files share is compiled once.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "these are tests")]

#[macro_use]
mod support;

mod access;
mod canary;
mod cli;
mod doctor;
mod examples;
mod fleet;
mod kill;
mod kill_runs;
mod malformed;
mod queue;
mod restart;
mod runs;
mod server;
mod tls;
