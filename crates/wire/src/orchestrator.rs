//! Jobs as the orchestrator's routes show them: the same fields, the states in their words.

use crate::job::{Job, Left};
use crate::state::JobState;
use baton_core::job::state::Face;
use baton_core::job::{self, Cold};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The outer face of a job's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OrchestratorState {
    Queued,
    Running,
    Completed,
    Failed,
    #[serde(alias = "cancelled")]
    Canceled,
}

impl From<Face> for OrchestratorState {
    fn from(face: Face) -> Self {
        match face {
            Face::Queued => Self::Queued,
            Face::Running => Self::Running,
            Face::Completed => Self::Completed,
            Face::Failed => Self::Failed,
            Face::Canceled => Self::Canceled,
        }
    }
}

impl fmt::Display for OrchestratorState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Queued => Face::Queued.as_str(),
            Self::Running => Face::Running.as_str(),
            Self::Completed => Face::Completed.as_str(),
            Self::Failed => Face::Failed.as_str(),
            Self::Canceled => Face::Canceled.as_str(),
        })
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OrchestratorJob {
    #[serde(flatten)]
    pub job: Job<OrchestratorState>,
    /// The state in Baton's own words, as the history has it.
    pub phase: JobState,
}

impl OrchestratorJob {
    pub fn with(job: &job::Job, cold: &Cold, left: Left<'_>) -> Self {
        let phase = job.status.state().into();
        Self { job: Job::shown(job, cold, left, job.status.face().into()), phase }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_of_canceled_are_read() {
        assert_eq!(serde_json::from_str::<OrchestratorState>("\"cancelled\"").unwrap(), OrchestratorState::Canceled);
        assert_eq!(serde_json::to_string(&OrchestratorState::Canceled).unwrap(), "\"canceled\"");
        assert_eq!(OrchestratorState::Canceled.to_string(), "canceled");
    }
}
