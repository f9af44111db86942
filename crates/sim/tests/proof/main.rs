//! What is promised, proved on both databases. One program: it is linked once.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "these are tests")]

mod bites;
mod conformance;
mod contract;
mod crash_points;
mod engine;
mod fleet;
mod leases;
mod queue;
mod runs;
mod simulation;
mod simulation_runs;
