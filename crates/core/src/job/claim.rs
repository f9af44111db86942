//! Handing a due job to a worker.
//!
//! Not a command: what is claimed is found by looking at the queue, not named by a key. The
//! store finds candidates, [`crate::schedule`] chooses among them, and this decides what
//! follows for each.

use super::{Change, Job, Lease, Status};
use crate::changes::Changes;
use crate::name::WorkerId;
use crate::time::{Micros, Span};
use serde_json::json;

/// The claimed job and its changes; `None` if it is not claimable (any more).
pub fn claim(job: &Job, worker: &WorkerId, lease: Span, now: Micros) -> Option<(Job, Changes)> {
    if !job.claimable(now) {
        return None;
    }
    let from = job.status.state();
    // Going on after a pause for a tool is the same execution; everything else begins one.
    let resumed = matches!(job.status, Status::AwaitingTool { pause: super::Pause::Tool, .. });
    let lease = Lease { worker: worker.clone(), until: now.plus(lease) };
    let mut next = job.moved(Status::Executing { lease }).ok()?;
    next.token += 1;
    next.attempts += u32::from(!resumed);
    next.started_at = job.started_at.or(Some(now.max(job.head.at)));
    let kind = if resumed { "job.resumed" } else { "job.started" };
    let event = next.event(kind, json!({ "from": from.as_str(), "token": next.token, "worker": worker }));
    let changes = Changes::none().event(event).job(Change::Put(next.clone()));
    Some((next, changes))
}

#[cfg(test)]
mod tests {
    use crate::job::bench_top::{BenchTop, LEASE, NOW, worker};
    use crate::job::settle::Outcome;
    use crate::job::{Status, claim::claim};
    use crate::time::{Micros, Span};

    #[test]
    fn a_claim_leases_the_job_and_counts_an_attempt() {
        let mut top = BenchTop::new();
        top.enqueue();
        let job = top.claim();
        assert_eq!((job.attempts, job.token, job.started_at), (1, 1, Some(NOW)));
        assert_eq!(job.status.lease().unwrap().until, NOW.plus(LEASE));
        assert_eq!(top.kinds(), ["job.queued", "job.started"]);
    }

    #[test]
    fn only_a_due_job_can_be_claimed() {
        let mut top = BenchTop::new();
        let mut job = top.enqueue();
        assert!(claim(&job, &worker(), LEASE, Micros(NOW.0 - 1)).is_none());
        job.status = Status::AwaitingTool { pause: crate::job::Pause::Tool, due_at: None };
        assert!(claim(&job, &worker(), LEASE, NOW).is_none());
        let claimed = top.claim();
        assert!(claim(&claimed, &worker(), LEASE, NOW).is_none());
    }

    #[test]
    fn going_on_after_a_tool_is_not_a_new_attempt_but_a_new_token() {
        let mut top = BenchTop::new();
        top.enqueue();
        let job = top.claim();
        top.settle(&job, Outcome::Park { until: Some(NOW.plus(Span::secs(1))), seen: 0 });
        top.now = NOW.plus(Span::secs(1));
        let again = top.claim();
        assert_eq!((again.attempts, again.token), (1, 2));
        assert_eq!(again.started_at, Some(NOW));
    }
}
