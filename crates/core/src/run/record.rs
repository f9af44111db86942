//! What has ended, as it is kept: appended in the commit that ended it, never touched again.

use super::Fault;
use super::state::{State, StepState, TaskState};
use crate::canon::Json;
use crate::credits::Credits;
use crate::id::{AgentId, RunId};
use crate::time::Micros;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    Step(StepRecord),
    Task(TaskRecord),
    Attempt(AttemptRecord),
}

/// One step of one attempt of its task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepRecord {
    pub run: RunId,
    pub agent: AgentId,
    /// Counts the steps of the agent that have ended.
    pub n: u32,
    pub at: StepAt,
    pub state: StepState,
    pub ended_at: Micros,
    pub more: StepMore,
    pub result: Option<Json>,
}

/// Where a step stands in its agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct StepAt {
    pub agent_attempt: u32,
    pub task: u32,
    pub task_attempt: u32,
    pub step: u32,
}

/// What nobody searches for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepMore {
    pub attempts: u32,
    pub started_at: Micros,
    pub charged: Credits,
    /// The last call was cut off, so what it cost is what was set aside for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Fault>,
    /// It was not done again: the result of an earlier record stands.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub carried: bool,
}

/// One task of one attempt of its agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskRecord {
    #[serde(skip, default = "super::no_run")]
    pub run: RunId,
    #[serde(skip, default = "no_agent")]
    pub agent: AgentId,
    /// Counts the tasks of the agent that have ended.
    pub n: u32,
    pub agent_attempt: u32,
    pub task: u32,
    pub attempts: u32,
    pub state: TaskState,
    pub started_at: Micros,
    pub ended_at: Micros,
    pub charged: Credits,
    pub steps: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Fault>,
}

pub(super) const fn no_agent() -> AgentId {
    AgentId(uuid::Uuid::nil())
}

/// One attempt of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptRecord {
    #[serde(skip, default = "super::no_run")]
    pub run: RunId,
    pub attempt: u32,
    pub state: State,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queued_at: Option<Micros>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Micros>,
    pub ended_at: Micros,
    pub reserved: Credits,
    pub charged: Credits,
    pub refunded: Credits,
    pub counts: super::Counts,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Fault>,
}
