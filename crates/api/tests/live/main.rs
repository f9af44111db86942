//! Hearing what happens, over sockets and streams, on a real port.
#![allow(clippy::unwrap_used, reason = "this is a test")]

mod ears;
mod ends;
mod filters;
mod isolation;
mod nodes;
mod orchestrator;
mod refusals;
mod resume;
#[path = "../support/mod.rs"]
mod support;
