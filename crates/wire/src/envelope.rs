//! What goes over a socket: one thing that happened, addressed to whom it concerns.
//!
//! Of jobs a socket speaks the orchestrator's six types, with the states in the orchestrator's words;
//! of everything else the history's own kinds. Addresses stand on the envelope, so that nobody has
//! to open a payload to know whom it is for.

use crate::Object;
use crate::job::Progress;
use crate::orchestrator::OrchestratorState;
use crate::shape::Shape;
use baton_core::JobId;
use baton_core::job::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Envelope {
    /// One of the orchestrator's types, the kind of an event, or [`LISTENING`].
    #[serde(rename = "type")]
    pub kind: String,
    /// The chat session that it belongs to.
    pub thread_id: Option<String>,
    pub project_id: Option<String>,
    /// Listening goes on after this one with `after`.
    pub position: String,
    pub payload: Value,
}

/// The type of an envelope that tells nothing but where one stands.
pub const LISTENING: &str = "listening";

/// The orchestrator's types: what can be heard of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum JobNews {
    Queued,
    Started,
    Progress,
    Completed,
    Failed,
    Canceled,
}

impl JobNews {
    pub const ALL: [Self; 6] =
        [Self::Queued, Self::Started, Self::Progress, Self::Completed, Self::Failed, Self::Canceled];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "orchestrator_job_queued",
            Self::Started => "orchestrator_job_started",
            Self::Progress => "orchestrator_job_progress",
            Self::Completed => "orchestrator_job_completed",
            Self::Failed => "orchestrator_job_failed",
            Self::Canceled => "orchestrator_job_canceled",
        }
    }

    /// The state that a job is in from then on.
    pub const fn state(self) -> OrchestratorState {
        match self {
            Self::Queued => OrchestratorState::Queued,
            Self::Started | Self::Progress => OrchestratorState::Running,
            Self::Completed => OrchestratorState::Completed,
            Self::Failed => OrchestratorState::Failed,
            Self::Canceled => OrchestratorState::Canceled,
        }
    }

    pub const fn is_end(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Canceled)
    }

    /// What an event of a job is to the orchestrator: nothing if the job's outer face stays as it is.
    /// Whatever puts a job back among those that wait says that it is queued, not only its beginning.
    pub fn of(kind: &str, data: &Value) -> Option<Self> {
        match kind {
            "job.queued" | "job.retry_scheduled" | "job.released" | "job.recovered" | "job.asked" => Some(Self::Queued),
            "job.started" => Some(Self::Started),
            // After a person's answer it had been queued; after a tool's it had been running all along.
            "job.resumed" => (data["from"] == State::AwaitingUserConfirmation.as_str()).then_some(Self::Started),
            "job.progress" => Some(Self::Progress),
            "job.completed" => Some(Self::Completed),
            "job.failed" => Some(Self::Failed),
            "job.cancelled" => Some(Self::Canceled),
            _ => None,
        }
    }
}

/// What the orchestrator's types carry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobPayload {
    #[schemars(with = "Shape<JobId>")]
    pub job_id: JobId,
    pub project_id: String,
    pub job_type: String,
    pub state: OrchestratorState,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_session_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Object>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel_reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    /// What the history calls it.
    pub event: String,
    pub attempt: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_type_says_the_state_that_its_name_says() {
        let said = JobNews::ALL.map(|news| format!("{} {}", news.as_str(), news.state()));
        let expected = [
            "orchestrator_job_queued queued",
            "orchestrator_job_started running",
            "orchestrator_job_progress running",
            "orchestrator_job_completed completed",
            "orchestrator_job_failed failed",
            "orchestrator_job_canceled canceled",
        ];
        assert_eq!(said, expected);
    }

    #[test]
    fn going_on_is_a_start_only_after_a_person_was_waited_for() {
        let resumed = |from: State| JobNews::of("job.resumed", &json!({ "from": from.as_str() }));
        assert_eq!(resumed(State::AwaitingUserConfirmation), Some(JobNews::Started));
        assert_eq!(resumed(State::AwaitingTool), None);
        for silent in ["job.parked", "job.woken", "job.merged", "job.confirmed", "job.cancel_requested", "lane.paused"]
        {
            assert_eq!(JobNews::of(silent, &json!({})), None, "{silent}");
        }
    }

    #[test]
    fn a_payload_leaves_out_what_there_is_not() {
        let payload = JobPayload {
            job_id: "job_0193a1b2c3d47001800000000000002a".parse().unwrap(),
            project_id: "p".to_owned(),
            job_type: "echo".to_owned(),
            state: OrchestratorState::Queued,
            source_session_id: None,
            result: None,
            error: None,
            cancel_reason: None,
            progress: None,
            event: "job.queued".to_owned(),
            attempt: 0,
        };
        let said = serde_json::to_value(&payload).unwrap();
        let expected = json!({
            "jobId": "job_0193a1b2c3d47001800000000000002a", "projectId": "p", "jobType": "echo",
            "state": "queued", "event": "job.queued", "attempt": 0,
        });
        assert_eq!(said, expected);
    }
}
