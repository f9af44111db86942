//! The keeper: a process between the server and a program, so that nothing of the program is left.
//!
//! It adopts every descendant that loses its parent, whatever group or session that has moved to
//! (it is a *subreaper*), and kills them all when the program ends, when it is told to stop, or when
//! the server is gone: then the socket to the server is closed, however the server died. The system's
//! own signal for the death of a parent is sent when a *thread* ends, so it is not used for this.
//!
//! Invariants
//! - One thread. What it waits for is bounded, but for the program itself, which the server bounds.
//! - The program has of the server's files nothing but its stdout and stderr.
//! - It reports once nothing is left, or says that something is.
//!
//! Elsewhere: when to stop ([`super::Processes`]), what an end means (`verdict`).

#[cfg(target_os = "linux")]
mod keep;
#[cfg(target_os = "linux")]
mod launch;
#[cfg(target_os = "linux")]
mod sweep;

use std::process::ExitCode;

/// The first argument of a process that is to be a keeper.
pub const ARGUMENT: &str = "__keep";

/// The first thing that the binary does: if it was started to be a keeper, it is one until it ends.
pub fn keeper() -> Option<ExitCode> {
    let asked = std::env::args_os().nth(1).is_some_and(|first| first == ARGUMENT);
    asked.then(run)
}

#[cfg(target_os = "linux")]
fn run() -> ExitCode {
    match keep::keep() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Without a system that lets a process adopt orphans, no program is run.
#[cfg(not(target_os = "linux"))]
fn run() -> ExitCode {
    ExitCode::FAILURE
}
