//! Handing a due job to a worker.
//!
//! Not a command: what is claimed is found by looking at the queue, not named by a key. The
//! store finds candidates, [`crate::schedule`] chooses among them, and this decides what
//! follows for each.

use super::{Change, Job, Lease, Pause, Status};
use crate::canon::Json;
use crate::changes::Changes;
use crate::definition::{Definitions, Moment};
use crate::name::WorkerId;
use crate::time::Micros;
use crate::told::Told;

/// What follows for the job; `None` if it is not claimable (any more).
pub fn claim(job: &Job, payload: &Json, worker: &WorkerId, defs: &Definitions, now: Micros) -> Option<Changes> {
    if !job.claimable(now) {
        return None;
    }
    let kind = defs.pinned(&job.org, &job.kind)?;
    let from = job.status.state();
    // Going on after a pause for a tool or a person is the same execution; everything else
    // begins one.
    let resumed = matches!(job.status, Status::AwaitingTool { pause: Pause::Tool, .. } | Status::AwaitingUser { .. });
    let lease = Lease { worker: worker.clone(), until: now.plus(kind.lease) };
    let mut next = job.moved(Status::Executing { lease }).ok()?;
    next.token += 1;
    next.attempts += u32::from(!resumed);
    if !resumed && let Some(aside) = &mut next.aside {
        // What an earlier execution worked on is not what this one does.
        (aside.context, aside.progress) = Default::default();
    }
    next.started_at = job.started_at.or(Some(now.max(job.head.at)));
    let told = Told::none().and("from", from.as_str()).and("token", &next.token).and("worker", worker);
    let changes = if resumed {
        next.tells("job.resumed", told)
    } else {
        let mut changes = next.tells("job.started", told).and(next.sinks(defs, Some(payload), Moment::Started));
        for note in &mut changes.notes {
            note.waited = Some(now.since(job.status.due_at().unwrap_or(now)));
        }
        changes
    };
    Some(changes.job(Change::Put(next)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::bench_top::{BenchTop, LEASE, NOW, defs, worker};
    use crate::job::settle::Outcome;
    use crate::time::Span;
    use serde_json::json;

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
        let ask = |job: &Job, now| claim(job, &Json::of(&json!({})), &worker(), &defs(), now).is_some();
        assert!(!ask(&job, Micros(NOW.0 - 1)));
        job.status = Status::AwaitingTool { pause: Pause::Tool, due_at: None };
        assert!(!ask(&job, NOW));
        job.status = Status::AwaitingUser { due_at: None };
        assert!(!ask(&job, NOW));
        let claimed = top.claim();
        assert!(!ask(&claimed, NOW));
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
