//! Taking a job in: received and queued in one commit.

use super::{Change, Cold, Job, Status};
use crate::canon::Json;
use crate::changes::Changes;
use crate::command::{Command, Ctx, Decision, Reads, Refusal};
use crate::event::Head;
use crate::limits;
use crate::name::{OrgId, ProjectId, SessionId, TypeName};
use crate::time::Micros;
use crate::timer;
use crate::world::View;
use serde_json::json;

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
}

/// The accepted job, as it stands right after the commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Enqueued {
    pub job: Job,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EnqueueError {
    #[error("no job type is called {name}; known types: {known}")]
    UnknownType { name: TypeName, known: String },
    #[error("the payload has {bytes} bytes as canonical JSON; at most {max} are accepted")]
    PayloadTooLarge { bytes: usize, max: usize },
    #[error("{what} is more than a year ahead")]
    TooFarAhead { what: &'static str },
    #[error("the deadline is already over")]
    DeadlinePast,
}

impl Refusal for EnqueueError {
    fn code(&self) -> &'static str {
        match self {
            Self::UnknownType { .. } => "unknown_job_type",
            Self::PayloadTooLarge { .. } => "payload_too_large",
            Self::TooFarAhead { .. } | Self::DeadlinePast => "invalid_time",
        }
    }
}

impl Command for Enqueue {
    type Out = Enqueued;
    type No = EnqueueError;

    fn org(&self) -> &OrgId {
        &self.org
    }

    fn reads(&self) -> Reads {
        Reads::none()
    }

    fn decide(&self, _: &View<'_>, cx: &mut Ctx<'_>) -> Decision<Enqueued, EnqueueError> {
        let Some(kind) = cx.defs.newest(&self.kind) else {
            let known = cx.defs.job_types().map(|t| t.name.as_str()).collect::<Vec<_>>().join(", ");
            return Decision::Refused(EnqueueError::UnknownType { name: self.kind.clone(), known });
        };
        if self.payload.len() > limits::PAYLOAD_BYTES {
            let bytes = self.payload.len();
            return Decision::Refused(EnqueueError::PayloadTooLarge { bytes, max: limits::PAYLOAD_BYTES });
        }
        let horizon = cx.now.plus(limits::AHEAD);
        for (what, at) in [("the start", self.not_before), ("the deadline", self.deadline)] {
            if at.is_some_and(|at| at > horizon) {
                return Decision::Refused(EnqueueError::TooFarAhead { what });
            }
        }
        if self.deadline.is_some_and(|at| at <= cx.now) {
            return Decision::Refused(EnqueueError::DeadlinePast);
        }
        let job = Job {
            org: self.org.clone(),
            id: cx.ids.job(),
            project: self.project.clone(),
            kind: kind.kind(),
            priority: self.priority.unwrap_or(kind.priority),
            status: Status::Queued { due_at: self.not_before.map_or(cx.now, |at| at.max(cx.now)) },
            attempts: 0,
            max_attempts: kind.max_attempts,
            token: 0,
            wakes: 0,
            created_at: cx.now,
            started_at: None,
            has_deadline: self.deadline.is_some(),
            head: Head::NONE,
        };
        let cold = Cold {
            payload: self.payload.clone(),
            source_session: self.source_session.clone(),
            deadline_at: self.deadline,
        };
        let mut changes = Changes::none().event(job.event(
            "job.queued",
            json!({
                "from": "received",
                "payload_sha256": self.payload.digest(),
                "session": self.source_session,
                "version": job.kind.version,
            }),
        ));
        if let Some(at) = self.deadline {
            changes = changes.timer(timer::Change::Set { key: job.deadline_timer(), at });
        }
        let changes = changes.job(Change::Create(job.clone(), cold));
        Decision::Done(Enqueued { job }, changes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::bench_top::{BenchTop, NOW, enqueue};
    use crate::time::Span;

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
