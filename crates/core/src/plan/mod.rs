//! What a run is going to do: agents, their tasks, the steps of each.
//!
//! A [`Plan`] is what became of a run document once everything in it was checked and every default
//! was filled in. It never changes: a run pins it, by its digest.
//!
//! Invariants (of every plan that was compiled)
//! - At least one agent, one task in each, one step in each of those.
//! - `after` names earlier or later siblings by their place and has no cycles; whatever a step's input
//!   names comes before it.
//! - Every number is within its limit; every tool was known, and so were its price and effect.

pub mod builtin;
mod compile;
mod document;
mod graph;
pub mod input;
mod near;
pub mod problem;
mod read;
pub mod reference;
mod tools;

pub use compile::{Compiled, check, compile};
pub use document::{AgentDoc, Document, LimitsDoc, PlanDoc, Priority, StepDoc, TaskDoc};
pub use input::Input;
pub use problem::Problem;
pub use tools::{NameTaken, Tool, Tools};

use crate::credits::Credits;
use crate::name::{PlanName, ToolName};
use crate::time::Span;
use serde::{Deserialize, Serialize};

/// What a failure of a part does to the whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailureMode {
    /// The whole fails too, at once.
    #[default]
    FailFast,
    /// The part is skipped and the whole goes on.
    Continue,
    /// The whole begins again, while its attempts last.
    Retry,
}

/// What calling a tool twice would do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Nothing in the world changes.
    Pure,
    /// It is given a key, and does the same thing once for each.
    Idempotent,
    /// It may happen twice: never repeated without asking.
    Unsafe,
}

impl Effect {
    /// Whether a promise of this one covers a tool that is like the other: it may be feared more, never less.
    pub const fn covers(self, other: Self) -> bool {
        self as u8 >= other as u8
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pure => "pure",
            Self::Idempotent => "idempotent",
            Self::Unsafe => "unsafe",
        }
    }
}

/// How the tasks of an agent go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskOrder {
    #[default]
    Sequential,
    Parallel,
    Dag,
}

/// How the steps of a task go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepOrder {
    #[default]
    Sequential,
    Parallel,
}

/// Who does a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Doer {
    /// A tool that the operator declared, called from here.
    Tool,
    /// The same, called by workers outside.
    Remote,
    /// Waits for a while.
    Sleep,
    /// Waits for a signal, or a deadline.
    Wait,
    /// Asks people.
    Ask,
}

impl Doer {
    /// Whether a tool is called at all.
    pub const fn calls(self) -> bool {
        matches!(self, Self::Tool | Self::Remote)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    pub failure_mode: FailureMode,
    /// How often the whole run is attempted.
    pub max_attempts: u32,
    /// Failures of steps, tasks, agents and the run that may be tried again, all together.
    pub failure_budget: u32,
    /// Agents that work at the same time.
    pub max_agents: u32,
    /// How long an attempt may wait and run.
    pub timeout: Span,
    /// How long the run may stay paused.
    pub paused_for: Span,
    pub agents: Vec<AgentPlan>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentPlan {
    pub name: PlanName,
    pub subtask: String,
    pub failure_mode: FailureMode,
    pub attempts: u32,
    pub timeout: Span,
    pub order: TaskOrder,
    /// Tasks at the same time; 1 if they go one after the other.
    pub width: u32,
    pub tasks: Vec<TaskPlan>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskPlan {
    pub name: PlanName,
    pub failure_mode: FailureMode,
    pub attempts: u32,
    pub timeout: Span,
    pub order: StepOrder,
    /// Steps at the same time; 1 if they go one after the other.
    pub width: u32,
    /// Tasks of the same agent that must have ended before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<u32>,
    pub steps: Vec<StepPlan>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepPlan {
    pub name: PlanName,
    pub tool: ToolName,
    pub doer: Doer,
    /// As it was written: what it names is filled in when the step begins.
    pub input: serde_json::Value,
    pub effect: Effect,
    /// An unsafe step that completed is done again when its task is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repeat: bool,
    pub timeout: Span,
    pub attempts: u32,
    /// Of each call.
    pub price: Credits,
    /// Steps of the same task that must have ended before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<u32>,
}

impl Plan {
    /// What one attempt costs if every call that may be repeated at the level of steps is.
    /// `None` if that is more than anybody can have.
    pub fn estimate(&self) -> Option<Credits> {
        self.agents.iter().try_fold(Credits::ZERO, |sum, agent| sum.plus(agent.estimate()?))
    }

    pub fn step(&self, agent: u32, task: u32, step: u32) -> Option<&StepPlan> {
        self.agents.get(agent as usize)?.tasks.get(task as usize)?.steps.get(step as usize)
    }
}

impl AgentPlan {
    pub fn estimate(&self) -> Option<Credits> {
        let steps = self.tasks.iter().flat_map(|task| &task.steps);
        steps.into_iter().try_fold(Credits::ZERO, |sum, step| sum.plus(step.price.times(step.attempts)?))
    }
}
