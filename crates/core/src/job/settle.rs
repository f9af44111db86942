//! What a worker says when its handler has ended: done, failed, parked or given back.

use super::{Change, End, Ending, Failure, Fence, Job, Pause, Status};
use crate::canon::Json;
use crate::changes::Changes;
use crate::command::{Command, Ctx, Decision, Reads, Refusal};
use crate::id::JobId;
use crate::limits;
use crate::name::OrgId;
use crate::time::Micros;
use crate::world::View;
use serde_json::json;

#[derive(Clone, Debug)]
pub struct Settle {
    pub fence: Fence,
    pub outcome: Outcome,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Done(Json),
    Failed(Failure),
    /// Wait without holding a worker. If something woke the job after `seen`, it is due at once.
    Park {
        until: Option<Micros>,
        seen: i64,
    },
    /// Not finished, and nobody's fault: the node stops, for instance.
    Release,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    Now,
    /// This very lease was settled before: a repeated call, not an error.
    Already,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettleError {
    #[error("job {0} does not exist")]
    NotFound(JobId),
    #[error("the lease on job {job} with token {token} is no longer held; the outcome was discarded")]
    LeaseLost { job: JobId, token: i64 },
}

impl Refusal for SettleError {
    fn code(&self) -> &'static str {
        match self {
            Self::NotFound(_) => "job_not_found",
            Self::LeaseLost { .. } => "lease_lost",
        }
    }
}

impl Command for Settle {
    type Out = Settled;
    type No = SettleError;

    fn org(&self) -> &OrgId {
        &self.fence.org
    }

    fn reads(&self) -> Reads {
        Reads::job(self.fence.job)
    }

    fn decide(&self, view: &View<'_>, cx: &mut Ctx<'_>) -> Decision<Settled, SettleError> {
        let Some(job) = view.job(self.fence.job) else {
            return Decision::Refused(SettleError::NotFound(self.fence.job));
        };
        let lost = || SettleError::LeaseLost { job: job.id, token: self.fence.token };
        // Everybody else who ends a lease raises the token, so it was this very lease.
        if job.token == self.fence.token && job.token > 0 && job.status.lease().is_none() {
            return Decision::Done(Settled::Already, Changes::none());
        }
        if !job.held_by(&self.fence) {
            return Decision::Refused(lost());
        }
        match self.changes(job, cx.now) {
            Ok(changes) => Decision::Done(Settled::Now, changes),
            // The table allows every outcome from `executing`; should it ever not, refuse.
            Err(_) => Decision::Refused(lost()),
        }
    }
}

impl Settle {
    fn changes(&self, job: &Job, now: Micros) -> Result<Changes, super::state::IllegalMove> {
        match &self.outcome {
            Outcome::Done(result) if result.len() > limits::RESULT_BYTES => {
                let message =
                    format!("the result has {} bytes; at most {} are kept", result.len(), limits::RESULT_BYTES);
                fail(job, now, Failure::new("result_too_large", &message))
            }
            Outcome::Done(result) => job.ended(
                End::Completed,
                now,
                Ending::Result(result.clone()),
                "job.completed",
                json!({ "result_sha256": result.digest(), "token": job.token }),
            ),
            Outcome::Failed(failure) => fail(job, now, failure.clone()),
            Outcome::Park { until, seen } => {
                let due_at = if job.wakes == *seen { *until } else { Some(now) };
                let next = job.moved(Status::AwaitingTool { pause: Pause::Tool, due_at })?;
                let event = next.event("job.parked", json!({ "due_at": due_at, "token": job.token }));
                Ok(Changes::none().event(event).job(Change::Put(next)))
            }
            Outcome::Release => {
                let next = job.moved(Status::AwaitingTool { pause: Pause::Retry, due_at: Some(now) })?;
                let event = next.event("job.released", json!({ "reason": "given_back", "token": job.token }));
                Ok(Changes::none().event(event).job(Change::Put(next)))
            }
        }
    }
}

/// Fails a job from outside its lease. Raising the token fences whoever still holds it.
pub(super) fn fail_outside(job: &Job, now: Micros, failure: Failure) -> Result<Changes, super::state::IllegalMove> {
    let fenced = Job { token: job.token + 1, ..job.clone() };
    fail(&fenced, now, failure)
}

fn fail(job: &Job, now: Micros, failure: Failure) -> Result<Changes, super::state::IllegalMove> {
    let reason = json!({ "reason": failure.code });
    job.ended(End::Failed, now, Ending::Error(failure), "job.failed", reason)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::State;
    use crate::job::bench_top::{BenchTop, NOW, done};
    use crate::time::Span;

    #[test]
    fn a_done_job_is_completed_and_saying_so_twice_is_fine() {
        let mut top = BenchTop::new();
        top.enqueue();
        let job = top.claim();
        assert_eq!(top.settle(&job, done()), Settled::Now);
        assert_eq!(top.settle(&job, done()), Settled::Already);
        assert_eq!(top.latest().status.state(), State::Completed);
        assert_eq!(top.kinds(), ["job.queued", "job.started", "job.completed"]);
    }

    #[test]
    fn a_late_worker_is_refused_in_every_state() {
        let mut top = BenchTop::new();
        top.enqueue();
        let first = top.claim();
        top.settle(&first, Outcome::Release);
        let late = Settle { fence: first.fence().unwrap(), outcome: done() };
        assert_eq!(top.done(&late), Settled::Already, "it has spoken before");
        assert!(!top.latest().is_ended());
        let second = top.claim();
        assert_eq!(top.refuse(&late).code(), "lease_lost");
        top.settle(&second, done());
        assert_eq!(top.refuse(&late).code(), "lease_lost");
        let mut stolen = Settle { fence: second.fence().unwrap(), outcome: done() };
        stolen.fence.job = crate::id::JobId(uuid::Uuid::from_u128(5));
        assert_eq!(top.refuse(&stolen).code(), "job_not_found");
    }

    #[test]
    fn another_workers_name_does_not_open_the_fence() {
        let mut top = BenchTop::new();
        top.enqueue();
        let mut fence = top.claim().fence().unwrap();
        fence.worker = "node_other".parse().unwrap();
        assert_eq!(top.refuse(&Settle { fence, outcome: done() }).code(), "lease_lost");
    }

    #[test]
    fn parking_after_a_wake_up_that_was_not_seen_is_due_at_once() {
        let mut top = BenchTop::new();
        top.enqueue();
        let job = top.claim();
        let id = job.id;
        top.done(&crate::job::wake::Wake { org: job.org.clone(), job: id });
        top.settle(&job, Outcome::Park { until: None, seen: 0 });
        assert_eq!(top.latest().status.due_at(), Some(NOW));
        let job = top.claim();
        top.settle(&job, Outcome::Park { until: Some(NOW.plus(Span::secs(9))), seen: 1 });
        assert_eq!(top.latest().status.due_at(), Some(NOW.plus(Span::secs(9))));
    }

    #[test]
    fn a_result_that_is_too_large_fails_the_job() {
        let mut top = BenchTop::new();
        top.enqueue();
        let job = top.claim();
        top.settle(&job, Outcome::Done(Json::of(&json!("x".repeat(limits::RESULT_BYTES)))));
        assert_eq!(top.latest().status.state(), State::Failed);
        assert!(top.texts().contains("result_too_large"));
    }
}
