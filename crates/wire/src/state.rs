//! The states of a job as the orchestrator routes name them.

use baton_core::job::state::Face;
use serde::{Deserialize, Serialize};
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JobState {
    Queued,
    Running,
    Completed,
    Failed,
    #[serde(alias = "cancelled")]
    Canceled,
}

impl JobState {
    pub const fn is_ended(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Canceled)
    }
}

impl From<Face> for JobState {
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

impl fmt::Display for JobState {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_of_canceled_are_read() {
        assert_eq!(serde_json::from_str::<JobState>("\"cancelled\"").unwrap(), JobState::Canceled);
        assert_eq!(serde_json::to_string(&JobState::Canceled).unwrap(), "\"canceled\"");
    }
}
