//! What happens: the worker pool, leases, timers, recovery and sealing. The only crate that
//! owns time and tasks.
//!
//! The engine acts on what was committed and feeds the outcome back as the next command. It
//! holds no truth: killed anywhere, the next start goes on from what the store says.
//!
//! Invariants
//! - Nothing acts on an uncommitted decision.
//! - A handler whose lease is lost is stopped, and what it says later is discarded by its fence.
//! - Every loop has a poll behind its signal: a lost wake-up costs a moment, nothing else.
//!
//! Elsewhere: every rule (`baton-core`), committing (`baton-store`).

pub mod audit;
mod beater;
pub mod builtin;
mod clock;
mod crew;
pub mod definition;
mod engine;
mod entropy;
mod held;
mod job_cx;
pub mod node;
mod observer;
mod options;
mod pool;
mod pruner;
mod purger;
mod recovery;
pub mod registry;
pub mod remote;
pub mod run;
pub mod seal_memory;
mod sealer;
mod shape;
mod sweeper;
mod timers;
pub mod webhook;

pub use clock::SystemClock;
pub use definition::{Done, JobDefinition};
pub use engine::{Engine, NotReady, StartError};
pub use entropy::OsEntropy;
pub use job_cx::{JobCx, SayError};
pub use observer::Chronicler;
pub use options::Options;
pub use registry::{Handler, Outcome, Registry};
pub use shape::{JsonShapes, check_schema};
