//! Jobs on the wire: one shape on every route, the state in the words of that route.

use crate::Object;
use crate::priority::Priority;
use crate::shape::Shape;
use crate::state::JobState;
use crate::time::Time;
use baton_core::canon::Json;
use baton_core::id::DocId;
use baton_core::job::cancel::{INTERRUPT_TIMEOUT, SHUTDOWN_TIMEOUT};
use baton_core::job::enqueue::Enqueued;
use baton_core::job::{self, Cold, Ending, Failure, Pause, Status};
use baton_core::name::SessionId;
use baton_core::{JobId, ProjectId, TypeName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A job as it is shown. The fields down to `running_context` are the orchestrator's contract;
/// those after it are Baton's own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Job", description = "A job as it is shown.")]
pub struct Job<S = JobState> {
    #[schemars(with = "Shape<JobId>")]
    pub id: JobId,
    #[serde(rename = "type")]
    #[schemars(with = "Shape<TypeName>")]
    pub kind: TypeName,
    pub version: u32,
    #[schemars(with = "Shape<ProjectId>")]
    pub project_id: ProjectId,
    #[schemars(with = "Option<Shape<SessionId>>")]
    pub source_session_id: Option<SessionId>,
    pub priority: Priority,
    pub state: S,
    pub dedupe_key: Option<String>,
    pub payload: Object,
    pub result: Option<Object>,
    /// `code: message` if it failed; the reason if its cancellation had to be forced.
    pub error: Option<String>,
    pub attempts: u32,
    pub max_attempts: u32,
    pub created_at: Time,
    pub started_at: Option<Time>,
    pub completed_at: Option<Time>,
    pub cancel_requested_at: Option<Time>,
    pub running_context: RunningContext,

    pub priority_number: i32,
    /// Failures reported; crashes are not among them.
    pub failures: u32,
    pub max_failures: u32,
    pub lane: String,
    pub waiting_for: Option<WaitingFor>,
    /// It can be handed out from then on.
    pub due_at: Option<Time>,
    pub progress: Option<Progress>,
    /// What a person is asked, while nobody has answered.
    pub question: Option<Value>,
    pub cancel_reason: Option<String>,
    /// Why it is tried again, or was: `code: message`.
    pub last_error: Option<String>,
    /// The failed job that this one repeats.
    #[schemars(with = "Option<Shape<JobId>>")]
    pub requeued_from: Option<JobId>,
    /// The job that repeats this one.
    #[schemars(with = "Option<Shape<JobId>>")]
    pub requeued_as: Option<JobId>,
    /// The schedule that made it.
    #[schemars(with = "Option<Shape<DocId>>")]
    pub schedule_id: Option<DocId>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunningContext {
    pub thread_id: Option<String>,
    pub turn_id: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WaitingFor {
    /// The moment of its next attempt.
    Retry,
    /// Something outside, which will wake it.
    Tool,
    /// Somebody's answer.
    Person,
}

impl WaitingFor {
    const fn of(status: &Status) -> Option<Self> {
        match status {
            Status::AwaitingTool { pause: Pause::Retry, .. } => Some(Self::Retry),
            Status::AwaitingTool { pause: Pause::Tool, .. } => Some(Self::Tool),
            Status::AwaitingUser { due_at: None } => Some(Self::Person),
            // Answered: it waits for its turn, like any other.
            Status::AwaitingUser { due_at: Some(_) }
            | Status::Queued { .. }
            | Status::Executing { .. }
            | Status::Ended { .. } => None,
        }
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::Tool => "tool",
            Self::Person => "person",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Progress {
    pub percent: Option<u8>,
    pub note: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "{J}List")]
pub struct JobList<J = Job> {
    /// Newest first.
    pub jobs: Vec<J>,
    /// Where older ones go on; null at the end.
    pub next_cursor: Option<String>,
}

/// What a job left behind, if it ended.
#[derive(Clone, Copy, Debug, Default)]
pub struct Left<'a> {
    pub result: Option<&'a Json>,
    pub error: Option<&'a Failure>,
    /// Why it was cancelled, if it was.
    pub cancelled: Option<&'a str>,
    /// The job that repeats it.
    pub requeued_as: Option<JobId>,
}

impl<'a> From<Option<&'a Ending>> for Left<'a> {
    fn from(ending: Option<&'a Ending>) -> Self {
        match ending {
            None => Self::default(),
            Some(Ending::Result(result)) => Self { result: Some(result), ..Self::default() },
            Some(Ending::Error(failure)) => Self { error: Some(failure), ..Self::default() },
            Some(Ending::Cancelled(reason)) => Self { cancelled: Some(reason), ..Self::default() },
        }
    }
}

impl Job {
    /// The job that stands for a request, as it stood right after its commit.
    pub fn taken(out: &Enqueued) -> Self {
        Self::with(&out.job, &out.cold, out.ending.as_ref().into())
    }

    pub fn with(job: &job::Job, cold: &Cold, left: Left<'_>) -> Self {
        Self::shown(job, cold, left, job.status.state().into())
    }
}

impl<S> Job<S> {
    pub(crate) fn shown(job: &job::Job, cold: &Cold, left: Left<'_>, state: S) -> Self {
        let ended = match job.status {
            Status::Ended { at, .. } => Some(Time(at)),
            _ => None,
        };
        let aside = job.aside.as_deref().cloned().unwrap_or_default();
        let waiting_for = WaitingFor::of(&job.status);
        let requested = aside.cancel;
        let cancel_reason = left.cancelled.map(str::to_owned);
        Self {
            id: job.id,
            kind: job.kind.name.clone(),
            version: job.kind.version,
            project_id: job.project.clone(),
            source_session_id: cold.source_session.clone(),
            priority: Priority::of(job.priority),
            state,
            dedupe_key: cold.dedupe_key.clone(),
            payload: object(&cold.payload),
            result: left.result.map(object),
            error: error(&left),
            attempts: job.attempts,
            max_attempts: job.max_attempts,
            created_at: Time(job.created_at),
            started_at: job.started_at.map(Time),
            completed_at: ended,
            cancel_requested_at: requested.as_ref().map(|request| Time(request.at)),
            running_context: RunningContext { thread_id: aside.context.thread, turn_id: aside.context.turn },
            priority_number: job.priority,
            failures: job.failures,
            max_failures: job.max_failures,
            lane: job.lane.key.as_str().to_owned(),
            waiting_for,
            due_at: job.status.due_at().map(Time),
            progress: aside.progress.map(|progress| Progress { percent: progress.percent, note: progress.note }),
            question: aside.question.filter(|_| waiting_for == Some(WaitingFor::Person)),
            cancel_reason: cancel_reason.or_else(|| requested.map(|request| request.reason)),
            last_error: aside.last_failure.map(|last| format!("{}: {}", last.code, last.message)),
            requeued_from: cold.requeued_from,
            requeued_as: left.requeued_as,
            schedule_id: cold.schedule,
        }
    }
}

/// Being cancelled on request is no error; having to be forced is.
fn error(left: &Left<'_>) -> Option<String> {
    match (left.error, left.cancelled) {
        (Some(failure), _) => Some(format!("{}: {}", failure.code, failure.message)),
        (None, Some(reason @ (INTERRUPT_TIMEOUT | SHUTDOWN_TIMEOUT))) => Some(reason.to_owned()),
        (None, _) => None,
    }
}

/// The contract says object; anything else that a handler returned stands under `value`.
pub(crate) fn object(json: &Json) -> Object {
    match json.value() {
        Value::Object(object) => object,
        other => Object::from_iter([("value".to_owned(), other)]),
    }
}

#[cfg(test)]
mod tests;
