//! The states of a job in Baton's own words. The orchestrator's routes have others
//! ([`crate::OrchestratorState`]).

use baton_core::job::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// In the order of the lifecycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    Received,
    Queued,
    Executing,
    AwaitingTool,
    AwaitingUserConfirmation,
    Completed,
    Failed,
    #[serde(alias = "canceled")]
    Cancelled,
}

impl JobState {
    pub const fn is_ended(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }

    const fn state(self) -> State {
        match self {
            Self::Received => State::Received,
            Self::Queued => State::Queued,
            Self::Executing => State::Executing,
            Self::AwaitingTool => State::AwaitingTool,
            Self::AwaitingUserConfirmation => State::AwaitingUserConfirmation,
            Self::Completed => State::Completed,
            Self::Failed => State::Failed,
            Self::Cancelled => State::Cancelled,
        }
    }
}

impl From<State> for JobState {
    fn from(state: State) -> Self {
        match state {
            State::Received => Self::Received,
            State::Queued => Self::Queued,
            State::Executing => Self::Executing,
            State::AwaitingTool => Self::AwaitingTool,
            State::AwaitingUserConfirmation => Self::AwaitingUserConfirmation,
            State::Completed => Self::Completed,
            State::Failed => Self::Failed,
            State::Cancelled => Self::Cancelled,
        }
    }
}

impl fmt::Display for JobState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.state().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_written_as_core_names_it_and_read_back() {
        for state in State::ALL {
            let said = JobState::from(state);
            let text = serde_json::to_string(&said).unwrap();
            assert_eq!(text, format!("\"{state}\""));
            assert_eq!(said.to_string(), state.as_str());
            assert_eq!(serde_json::from_str::<JobState>(&text).unwrap(), said);
            assert_eq!(said.is_ended(), state.is_ended());
        }
        assert_eq!(serde_json::from_str::<JobState>("\"canceled\"").unwrap(), JobState::Cancelled);
    }
}
