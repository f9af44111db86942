//! The HTTP API on a real port, on both databases. One program: what all files share is compiled once.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "these are tests")]

#[macro_use]
mod support;

mod acts;
mod credits;
mod door;
mod full;
mod history;
mod idempotency;
mod intake;
mod job_types;
mod jobs;
mod lanes;
mod lists;
mod live;
mod login;
mod malformed;
mod openapi;
mod refusals;
mod remote_tools;
mod run_lists;
mod runs;
mod schedules;
mod traces;
mod webhooks;
mod why;
mod words;
mod workers;
