//! Runs: working on agents.
//!
//! An agent is a job. Whoever claims it takes the agent, makes the calls that it is told to make, says
//! what came of them and is told what is next: one commit per step. While nothing is in flight the job is
//! parked, so an agent that waits is rows and no task.
//!
//! Elsewhere: what is next, and what a failure does (`baton_core::run`).

mod control;
pub(crate) mod lost;
mod plans;
mod process;
mod remote;
mod results;
mod toolbox;
mod work;

pub use process::ProcessTool;
pub use toolbox::{BadTool, Called, Tool, ToolCall, ToolFailure, Toolbox};
pub use work::Worker;
