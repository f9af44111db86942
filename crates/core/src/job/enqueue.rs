//! Taking a job in: received and queued in one commit.

use super::intake::{self, Intake};
use super::{Cold, Ending, Job};
use crate::canon::Json;
use crate::command::{Command, Ctx, Decision, Reads, Refusal};
use crate::definition::Definitions;
use crate::id::{DocId, JobId};
use crate::lane;
use crate::limits;
use crate::name::{OrgId, ProjectId, SessionId, TypeName};
use crate::time::{Micros, Span};
use crate::world::View;

#[derive(Clone, Debug)]
pub struct Enqueue {
    pub org: OrgId,
    pub project: ProjectId,
    pub kind: TypeName,
    pub payload: Json,
    /// The type's own, unless given.
    pub priority: Option<i32>,
    pub source_session: Option<SessionId>,
    /// Not claimable before this moment.
    pub not_before: Option<Micros>,
    /// Failed with `deadline_exceeded` if it has not ended by then.
    pub deadline: Option<Micros>,
    /// The same message again, within a day, is the same job.
    pub message_id: Option<String>,
    pub origin: Origin,
    /// Where it waits; as its type says, unless given.
    pub lane: Option<lane::Place>,
    /// It may be begun once only: nobody can say what an execution did that was cut off.
    pub once: bool,
}

impl Enqueue {
    /// Due at once, from outside.
    pub const fn new(org: OrgId, project: ProjectId, kind: TypeName, payload: Json) -> Self {
        Self {
            org,
            project,
            kind,
            payload,
            priority: None,
            source_session: None,
            not_before: None,
            deadline: None,
            message_id: None,
            origin: Origin::Outside,
            lane: None,
            once: false,
        }
    }
}

/// Who asks for the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    Outside,
    /// Somebody outside, as a repetition of a failed job.
    Requeue(JobId),
    Schedule(DocId),
    /// The engine for itself: never refused for want of room.
    Engine,
}

impl Origin {
    /// Somebody besides the engine thought of it.
    pub const fn is_new(self) -> bool {
        matches!(self, Self::Outside | Self::Schedule(_))
    }

    pub const fn is_outside(self) -> bool {
        matches!(self, Self::Outside | Self::Requeue(_))
    }
}

/// What became of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    Enqueued,
    /// One of the same key has not ended.
    AlreadyQueued,
    /// One of the same key was done before.
    Dropped,
    /// One of the same key waits, and has taken the payload in.
    Merged,
    /// One of the same key already runs, so this is another job.
    FollowUp,
    /// The same message was enqueued before.
    SameMessage,
}

impl How {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Enqueued => "enqueued",
            Self::AlreadyQueued => "already_queued",
            Self::Dropped => "dropped",
            Self::Merged => "merged",
            Self::FollowUp => "follow_up",
            Self::SameMessage => "same_message",
        }
    }

    pub const fn is_new(self) -> bool {
        matches!(self, Self::Enqueued | Self::FollowUp)
    }
}

/// The job that stands for the request, as the request leaves it: somebody may have it in hand by the very commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Enqueued {
    pub job: Job,
    pub cold: Cold,
    pub ending: Option<Ending>,
    pub how: How,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EnqueueError {
    #[error("no job type is called {name}; known types: {known}")]
    UnknownType { name: TypeName, known: String },
    #[error("the payload has {bytes} bytes as canonical JSON; at most {max} are accepted")]
    PayloadTooLarge { bytes: usize, max: usize },
    #[error("the payload does not fit its job type: {detail}")]
    InvalidPayload { detail: String },
    #[error("{what} is more than a year ahead")]
    TooFarAhead { what: &'static str },
    #[error("the deadline is already over")]
    DeadlinePast,
    #[error("the deadline is before the job may start")]
    DeadlineBeforeStart,
    #[error("a message id has 1 to 255 characters, and no NUL among them")]
    BadMessageId,
    #[error("this message was enqueued before as {job}, which has ended and is no longer kept")]
    MessageForgotten { job: JobId },
    /// Which one is not told: whoever asks may not be allowed to see it.
    #[error("this message id stands for a job of another type in this project")]
    MessageOfAnotherType,
    #[error("{what} has no room: {waiting} jobs wait{}, at most {limit} may", beside(*own))]
    QueueFull {
        what: String,
        limit: u32,
        waiting: u32,
        /// Jobs of the same request that would come before it.
        own: u32,
    },
    #[error("the queue is switched off")]
    Disabled,
}

fn beside(own: u32) -> String {
    if own == 0 { String::new() } else { format!(" and {own} of this request would, too") }
}

impl EnqueueError {
    /// After how long it is worth asking again, if it is: the longer the queue, the later.
    pub fn retry_after(&self) -> Option<Span> {
        match self {
            // No waiting helps a request that is too large by itself.
            Self::QueueFull { limit, own, .. } if own >= limit => None,
            Self::QueueFull { waiting, .. } => {
                let span = Span::millis(50 * i64::from(*waiting));
                Some(span.clamp(limits::FULL_RETRY, limits::FULL_RETRY_MAX))
            }
            _ => None,
        }
    }
}

impl Refusal for EnqueueError {
    fn code(&self) -> &'static str {
        match self {
            Self::UnknownType { .. } => "unknown_job_type",
            Self::PayloadTooLarge { .. } => "payload_too_large",
            Self::InvalidPayload { .. } => "invalid_payload",
            Self::TooFarAhead { .. } | Self::DeadlinePast | Self::DeadlineBeforeStart => "invalid_time",
            Self::BadMessageId => "invalid_message_id",
            Self::MessageForgotten { .. } | Self::MessageOfAnotherType => "duplicate_message",
            Self::QueueFull { .. } => "queue_full",
            Self::Disabled => "queue_disabled",
        }
    }
}

impl Command for Enqueue {
    type Out = Enqueued;
    type No = EnqueueError;

    fn org(&self) -> &OrgId {
        &self.org
    }

    fn reads(&self, defs: &Definitions) -> Reads {
        intake::reads(self, defs)
    }

    fn decide(&self, view: &View<'_>, cx: &mut Ctx<'_>) -> Decision<Enqueued, EnqueueError> {
        let mut intake = Intake::new(*view, cx.defs);
        match intake.take(self, cx) {
            Ok(out) => Decision::Done(out, intake.finish()),
            Err(no) => Decision::Refused(no),
        }
    }

    fn brings_in(&self, such: &dyn Fn(&TypeName) -> bool) -> bool {
        such(&self.kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Status;
    use crate::job::bench_top::{BenchTop, NOW, enqueue};
    use serde_json::json;

    #[test]
    fn an_enqueued_job_is_due_at_once_and_has_one_event() {
        let mut top = BenchTop::new();
        let job = top.enqueue();
        assert_eq!(job.status, Status::Queued { due_at: NOW });
        assert_eq!(top.kinds(), ["job.queued"]);
        assert!(!top.texts().contains("secret-payload"), "events carry digests, not payloads");
    }

    #[test]
    fn refusals_say_what_is_wrong_and_write_nothing() {
        let mut top = BenchTop::new();
        let unknown = Enqueue { kind: "moon".parse().unwrap(), ..enqueue() };
        assert_eq!(top.refuse(&unknown).code(), "unknown_job_type");
        let large = Enqueue { payload: Json::of(&json!("x".repeat(limits::PAYLOAD_BYTES))), ..enqueue() };
        assert_eq!(top.refuse(&large).code(), "payload_too_large");
        let past = Enqueue { deadline: Some(NOW), ..enqueue() };
        assert_eq!(top.refuse(&past), EnqueueError::DeadlinePast);
        let far = Enqueue { not_before: Some(NOW.plus(limits::AHEAD).plus(Span(1))), ..enqueue() };
        assert_eq!(top.refuse(&far), EnqueueError::TooFarAhead { what: "the start" });
        assert!(top.kinds().is_empty());
    }

    #[test]
    fn a_delayed_job_is_due_later_and_a_past_moment_means_now() {
        let mut top = BenchTop::new();
        let later = NOW.plus(Span::secs(5));
        let job = top.done(&Enqueue { not_before: Some(later), ..enqueue() }).job;
        assert_eq!(job.status.due_at(), Some(later));
        let job = top.done(&Enqueue { not_before: Some(Micros(1)), ..enqueue() }).job;
        assert_eq!(job.status.due_at(), Some(NOW));
    }
}
