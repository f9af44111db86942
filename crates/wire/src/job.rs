//! Jobs on the wire: one shape on every route.

use crate::Object;
use crate::time::Time;
use baton_core::canon::Json;
use baton_core::job::state::Face;
use baton_core::job::{self, Cold, Failure, Status};
use baton_core::name::SessionId;
use baton_core::{JobId, ProjectId, TypeName};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;

/// A job as the orchestrator routes show it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Job {
    pub id: JobId,
    #[serde(rename = "type")]
    pub kind: TypeName,
    pub version: u32,
    pub project_id: ProjectId,
    pub source_session_id: Option<SessionId>,
    pub priority: Priority,
    pub state: JobState,
    pub dedupe_key: Option<String>,
    pub payload: Object,
    pub result: Option<Object>,
    /// `code: message`, if it ended badly.
    pub error: Option<String>,
    pub attempts: u32,
    pub max_attempts: u32,
    pub created_at: Time,
    pub started_at: Option<Time>,
    pub completed_at: Option<Time>,
    pub cancel_requested_at: Option<Time>,
    pub running_context: RunningContext,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunningContext {
    pub thread_id: Option<String>,
    pub turn_id: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JobList {
    /// Newest first.
    pub jobs: Vec<Job>,
    /// Where older ones go on; null at the end.
    pub next_cursor: Option<String>,
}

/// A request to enqueue a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "an object with the fields of a job")]
pub struct NewJob {
    #[serde(rename = "type")]
    pub kind: TypeName,
    pub project_id: ProjectId,
    #[serde(default)]
    pub payload: Object,
    /// The type's own, unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_session_id: Option<SessionId>,
    /// Not started before this moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Time>,
    /// Failed if it has not ended by then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Time>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", try_from = "String")]
pub enum Priority {
    Interactive,
    Background,
}

impl Priority {
    /// Everything from [`job::BACKGROUND`] on counts as background.
    pub const fn of(priority: i32) -> Self {
        if priority >= job::BACKGROUND { Self::Background } else { Self::Interactive }
    }

    pub const fn number(self) -> i32 {
        match self {
            Self::Interactive => job::INTERACTIVE,
            Self::Background => job::BACKGROUND,
        }
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Interactive => "interactive",
            Self::Background => "background",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a priority is interactive or background")]
pub struct BadPriority;

impl TryFrom<String> for Priority {
    type Error = BadPriority;

    fn try_from(text: String) -> Result<Self, BadPriority> {
        [Self::Interactive, Self::Background].into_iter().find(|p| p.as_str() == text).ok_or(BadPriority)
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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

/// What a job left behind, if it ended.
#[derive(Clone, Copy, Debug, Default)]
pub struct Left<'a> {
    pub result: Option<&'a Json>,
    pub error: Option<&'a Failure>,
}

impl Job {
    /// A job that has not ended.
    pub fn open(job: &job::Job, cold: &Cold) -> Self {
        Self::with(job, cold, Left::default())
    }

    pub fn with(job: &job::Job, cold: &Cold, left: Left<'_>) -> Self {
        let pause = match job.status {
            Status::AwaitingTool { pause, .. } => Some(pause),
            _ => None,
        };
        let ended = match job.status {
            Status::Ended { at, .. } => Some(Time(at)),
            _ => None,
        };
        Self {
            id: job.id,
            kind: job.kind.name.clone(),
            version: job.kind.version,
            project_id: job.project.clone(),
            source_session_id: cold.source_session.clone(),
            priority: Priority::of(job.priority),
            state: Face::of(job.status.state(), pause).into(),
            dedupe_key: None,
            payload: object(&cold.payload),
            result: left.result.map(object),
            error: left.error.map(|failure| format!("{}: {}", failure.code, failure.message)),
            attempts: job.attempts,
            max_attempts: job.max_attempts,
            created_at: Time(job.created_at),
            started_at: job.started_at.map(Time),
            completed_at: ended,
            cancel_requested_at: None,
            running_context: RunningContext::default(),
        }
    }
}

/// The contract says object; anything else that a handler returned stands under `value`.
fn object(json: &Json) -> Object {
    match json.value() {
        Value::Object(object) => object,
        other => Object::from_iter([("value".to_owned(), other)]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_core::event::Head;
    use baton_core::job::{End, Kind, Lease, Pause};
    use baton_core::{Micros, OrgId};
    use serde_json::json;

    const AT: Micros = Micros(1_700_000_000_000_000);

    fn job(status: Status) -> job::Job {
        job::Job {
            org: OrgId::default(),
            id: "job_018bcfe568007001800000000000002a".parse().unwrap(),
            project: "shop".parse().unwrap(),
            kind: Kind { name: "echo".parse().unwrap(), version: 3 },
            priority: 200,
            status,
            attempts: 1,
            max_attempts: 2,
            token: 1,
            wakes: 0,
            created_at: AT,
            started_at: Some(AT),
            has_deadline: false,
            head: Head::NONE,
        }
    }

    fn cold() -> Cold {
        Cold {
            payload: Json::of(&json!({ "b": 1, "a": [true] })),
            source_session: Some("s-1".parse().unwrap()),
            deadline_at: None,
        }
    }

    #[test]
    fn an_ended_job_has_every_field_of_the_contract_and_no_other() {
        let ended = job(Status::Ended { how: End::Completed, at: AT });
        let result = Json::of(&json!({ "ok": 1 }));
        let shown = Job::with(&ended, &cold(), Left { result: Some(&result), error: None });
        let expected = json!({
            "id": "job_018bcfe568007001800000000000002a",
            "type": "echo",
            "version": 3,
            "projectId": "shop",
            "sourceSessionId": "s-1",
            "priority": "background",
            "state": "completed",
            "dedupeKey": null,
            "payload": { "a": [true], "b": 1 },
            "result": { "ok": 1 },
            "error": null,
            "attempts": 1,
            "maxAttempts": 2,
            "createdAt": "2023-11-14T22:13:20.000000Z",
            "startedAt": "2023-11-14T22:13:20.000000Z",
            "completedAt": "2023-11-14T22:13:20.000000Z",
            "cancelRequestedAt": null,
            "runningContext": { "threadId": null, "turnId": null },
        });
        assert_eq!(serde_json::to_value(&shown).unwrap(), expected);
        assert_eq!(serde_json::from_value::<Job>(expected).unwrap(), shown);
    }

    #[test]
    fn the_state_shown_is_the_outer_face_of_the_one_kept() {
        let lease = Lease { worker: "n".parse().unwrap(), until: AT };
        let face = |status| Job::open(&job(status), &cold()).state;
        assert_eq!(face(Status::Queued { due_at: AT }), JobState::Queued);
        assert_eq!(face(Status::Executing { lease }), JobState::Running);
        assert_eq!(face(Status::AwaitingTool { pause: Pause::Tool, due_at: None }), JobState::Running);
        assert_eq!(face(Status::AwaitingTool { pause: Pause::Retry, due_at: None }), JobState::Queued);
        assert_eq!(face(Status::Ended { how: End::Cancelled, at: AT }), JobState::Canceled);
    }

    #[test]
    fn a_failure_is_its_code_and_its_message() {
        let failure = Failure::new("boom", "it broke");
        let failed = job(Status::Ended { how: End::Failed, at: AT });
        let shown = Job::with(&failed, &cold(), Left { result: None, error: Some(&failure) });
        assert_eq!(shown.error.as_deref(), Some("boom: it broke"));
    }

    #[test]
    fn a_result_that_is_no_object_stands_under_value() {
        assert_eq!(Value::Object(object(&Json::of(&json!([1, 2])))), json!({ "value": [1, 2] }));
    }

    #[test]
    fn a_request_with_an_unknown_field_is_refused() {
        let parse = |value: Value| serde_json::from_value::<NewJob>(value);
        let plain = parse(json!({ "type": "echo", "projectId": "p" })).unwrap();
        assert!(plain.payload.is_empty());
        assert!(parse(json!({ "type": "echo", "projectId": "p", "colour": 1 })).is_err());
        assert!(parse(json!({ "type": "echo", "projectId": "p", "payload": [] })).is_err());
        assert!(parse(json!({ "type": "echo", "projectId": "a/b" })).is_err());
        assert!(parse(json!({ "type": "echo", "projectId": "p", "priority": "high" })).is_err());
        assert!(parse(json!({ "type": "echo", "projectId": "p", "priority": "background" })).is_ok());
    }

    #[test]
    fn both_spellings_of_canceled_are_read() {
        assert_eq!(serde_json::from_str::<JobState>("\"cancelled\"").unwrap(), JobState::Canceled);
        assert_eq!(serde_json::to_string(&JobState::Canceled).unwrap(), "\"canceled\"");
    }

    #[test]
    fn priorities_from_two_hundred_on_are_background() {
        assert_eq!(
            [100, 199, 200, 900].map(Priority::of).map(Priority::as_str),
            ["interactive", "interactive", "background", "background"]
        );
    }
}
