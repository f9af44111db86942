//! Taking a job back from a worker that is gone.

use super::beat::UNKNOWN_LEASE;
use super::{Change, Failure, Fence, Job, Pause, Scene, Status, settle};
use crate::command::{Command, Ctx, Decision, Reads, Refusal};
use crate::definition::Definitions;
use crate::name::OrgId;
use crate::time::Micros;
use crate::world::View;
use serde_json::json;

#[derive(Clone, Debug)]
pub struct Recover {
    pub fence: Fence,
    pub why: Why,
    /// Since when there has been somebody to beat to. A worker outside could not beat before that, so its lease
    /// does not run out sooner than one lease after it.
    pub heard_since: Option<Micros>,
}

impl Recover {
    pub const fn new(fence: Fence, why: Why) -> Self {
        Self { fence, why, heard_since: None }
    }

    /// Whether a worker outside has not had its time to beat yet.
    fn too_soon(&self, job: &Job, cx: &Ctx<'_>) -> bool {
        let Some(since) = self.heard_since.filter(|_| self.fence.worker.is_outside()) else { return false };
        let lease = cx.defs.pinned(&job.org, &job.kind).map_or(UNKNOWN_LEASE, |kind| kind.lease);
        since.plus(lease) > cx.now
    }
}

/// How we know that the worker is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Its lease ran out; checked again against the time of the commit.
    LeaseExpired,
    /// The process that held it is dead: its data directory is ours.
    NodeGone,
}

impl Why {
    const fn as_str(self) -> &'static str {
        match self {
            Self::LeaseExpired => "lease_expired",
            Self::NodeGone => "node_gone",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovered {
    Requeued,
    /// No attempts were left.
    Failed,
    /// It was to end anyway.
    Cancelled,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecoverError {
    #[error("the lease changed hands, was extended or has ended since it was looked at")]
    Gone,
}

impl Refusal for RecoverError {
    fn code(&self) -> &'static str {
        "lease_gone"
    }
}

impl Command for Recover {
    type Out = Recovered;
    type No = RecoverError;

    fn org(&self) -> &OrgId {
        &self.fence.org
    }

    fn reads(&self, _: &Definitions) -> Reads {
        Reads::job(self.fence.job)
    }

    fn decide(&self, view: &View<'_>, cx: &mut Ctx<'_>) -> Decision<Recovered, RecoverError> {
        let Some(job) = view.job(self.fence.job).filter(|job| job.held_by(&self.fence)) else {
            return Decision::Refused(RecoverError::Gone);
        };
        let alive = job.status.lease().is_some_and(|lease| lease.until > cx.now);
        if self.why == Why::LeaseExpired && (alive || self.too_soon(job, cx)) {
            return Decision::Refused(RecoverError::Gone);
        }
        let scene = Scene { defs: cx.defs, payload: view.payload(job.id), now: cx.now };
        // Nobody is left to interrupt what somebody wanted to end.
        if let Some(request) = job.cancel_requested() {
            return match scene.cancel(&job.fenced(), &request.reason) {
                Ok(changes) => Decision::Done(Recovered::Cancelled, changes),
                Err(_) => Decision::Refused(RecoverError::Gone),
            };
        }
        if job.attempts >= job.max_attempts {
            let message = format!("the worker was lost in attempt {} of {}", job.attempts, job.max_attempts);
            return match settle::fail_outside(job, Failure::new("recovery_attempts_exhausted", &message), scene) {
                Ok(changes) => Decision::Done(Recovered::Failed, changes),
                Err(_) => Decision::Refused(RecoverError::Gone),
            };
        }
        match job.moved(Status::AwaitingTool { pause: Pause::Retry, due_at: Some(cx.now) }) {
            Ok(mut next) => {
                // Whoever still believes to hold it is fenced from here on.
                next.token += 1;
                let data = json!({ "reason": self.why.as_str(), "token": job.token, "worker": self.fence.worker });
                Decision::Done(Recovered::Requeued, next.tells("job.recovered", data).job(Change::Put(next)))
            }
            Err(_) => Decision::Refused(RecoverError::Gone),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::bench_top::{BenchTop, LEASE, NOW, done};
    use crate::job::{State, settle::Settle};
    use crate::time::Span;

    #[test]
    fn an_expired_lease_is_taken_back_and_the_late_worker_is_fenced() {
        let mut top = BenchTop::new();
        top.enqueue();
        let job = top.claim();
        let fence = job.fence().unwrap();
        let expired = Recover::new(fence.clone(), Why::LeaseExpired);
        assert_eq!(top.refuse(&expired).code(), "lease_gone", "still alive");
        top.now = NOW.plus(LEASE);
        assert_eq!(top.done(&expired), Recovered::Requeued);
        assert_eq!(top.refuse(&expired), RecoverError::Gone, "only once");
        assert_eq!(top.refuse(&Settle { fence, outcome: done() }).code(), "lease_lost");
        assert_eq!(top.claim().attempts, 2);
    }

    #[test]
    fn a_worker_outside_has_its_time_to_beat_after_an_outage() {
        let mut top = BenchTop::new();
        top.enqueue();
        let latest = top.latest();
        let outside: crate::name::WorkerId = "key_0193a1b2c3d47001800000000000002e/w".parse().unwrap();
        let payload = crate::job::bench_top::payload();
        let changes = crate::job::claim::claim(&latest, &payload, &outside, &top.defs, NOW).unwrap();
        top.world.apply(&latest.org, &crate::command::Actor::Engine, NOW, changes);
        let job = top.latest();
        // The server was away for an hour.
        let back = NOW.plus(Span::secs(3_600));
        let expired = Recover { heard_since: Some(back), ..Recover::new(job.fence().unwrap(), Why::LeaseExpired) };
        top.now = back.plus(Span::secs(29));
        assert_eq!(top.refuse(&expired).code(), "lease_gone");
        top.now = back.plus(LEASE);
        assert_eq!(top.done(&expired), Recovered::Requeued);
    }

    #[test]
    fn a_dead_nodes_job_is_taken_back_before_its_lease_ends_until_attempts_run_out() {
        let mut top = BenchTop::new();
        top.enqueue();
        for attempt in 1..=3 {
            let job = top.claim();
            assert_eq!(job.attempts, attempt);
            let gone = Recover::new(job.fence().unwrap(), Why::NodeGone);
            let expected = if attempt == 3 { Recovered::Failed } else { Recovered::Requeued };
            assert_eq!(top.done(&gone), expected);
            top.now = top.now.plus(Span::secs(1));
        }
        assert_eq!(top.latest().status.state(), State::Failed);
        assert!(top.texts().contains("recovery_attempts_exhausted"));
    }
}
