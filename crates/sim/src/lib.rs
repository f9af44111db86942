//! The proving ground: what shows that Baton keeps its promises, and that we would notice if
//! it did not.
//!
//! - [`conformance`]: one suite of store behaviours, run on every database.
//! - [`crash`]: stories that are killed before and after every commit, and must still end well.
//! - [`chaos`]: requests that no decent client sends, for servers to survive.
//! - [`simulation`]: random workloads, faults and clocks on virtual time, repeatable by seed.
//! - [`lab`]: stores to experiment on, with faults on request.
//! - [`open_lane`]: job types for experiments that are not about lanes.
//! - [`queue_types`]: job types for experiments that are about the queue.
//! - [`stage`]: engines on the databases of a lab.
//! - [`replay`]: what a history says about jobs and lanes.
//! - [`hold`]: somebody else who holds on to a row.
//! - [`schema`] and [`seed`]: a database and chances of one's own, for the tests of all crates.

pub mod answers;
pub mod chaos;
pub mod conformance;
pub mod crash;
pub mod endpoints;
pub mod hold;
pub mod lab;
pub mod open_lane;
pub mod queue_types;
pub mod replay;
pub mod run_lab;
pub mod schema;
pub mod script;
pub mod seed;
pub mod simulation;
pub mod stage;
