//! Heartbeats: a worker says what it still holds and hears what it has lost.

use super::{Change, Fence, Job, Scene, Status, settle};
use crate::changes::Changes;
use crate::command::{Command, Ctx, Decision, Never, Reads};
use crate::definition::Definitions;
use crate::id::JobId;
use crate::name::OrgId;
use crate::time::{Micros, Span};
use crate::world::View;
use std::collections::{BTreeMap, BTreeSet};

/// How long a lease lasts whose type is not known here.
pub(super) const UNKNOWN_LEASE: Span = Span::secs(30);

/// What a worker hears when it beats.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Beaten {
    /// The fences that no longer hold.
    pub lost: Vec<Fence>,
    /// Those that hold, but somebody wants the job to end.
    pub cancelled: Vec<Fence>,
}

/// Extends leases of one org, each by what its type says, from now. Extending writes no event: nothing happened.
#[derive(Clone, Debug)]
pub struct Beat {
    pub org: OrgId,
    /// At most [`crate::limits::JOBS_PER_COMMAND`].
    pub held: Vec<Fence>,
    /// When these executions have taken too long. Those of this node are watched where they run.
    pub ends: BTreeMap<JobId, Micros>,
}

impl Beat {
    pub const fn of(org: OrgId, held: Vec<Fence>) -> Self {
        Self { org, held, ends: BTreeMap::new() }
    }

    /// What becomes of a job that has taken too long, although its worker is alive.
    fn timed_out(&self, job: &Job, view: &View<'_>, cx: &mut Ctx<'_>) -> Option<Changes> {
        self.ends.get(&job.id).filter(|end| **end <= cx.now)?;
        let scene = Scene { defs: cx.defs, payload: view.payload(job.id), now: cx.now };
        if let Some(request) = job.cancel_requested() {
            return scene.cancel(&job.fenced(), &request.reason).ok();
        }
        settle::timed_out(job, scene, cx.rng).ok()
    }
}

impl Command for Beat {
    type Out = Beaten;
    type No = Never;

    fn org(&self) -> &OrgId {
        &self.org
    }

    fn reads(&self, _: &Definitions) -> Reads {
        Reads::jobs(self.held.iter().map(|f| f.job))
    }

    fn decide(&self, view: &View<'_>, cx: &mut Ctx<'_>) -> Decision<Beaten, Never> {
        let mut changes = Changes::none();
        let mut beaten = Beaten::default();
        // Said twice is said once.
        for fence in self.held.iter().collect::<BTreeSet<_>>() {
            match view.job(fence.job) {
                Some(job) if job.held_by(fence) => {
                    if let Some(failed) = self.timed_out(job, view, cx) {
                        changes = changes.and(failed);
                        beaten.lost.push(fence.clone());
                        continue;
                    }
                    if job.cancel_requested().is_some() {
                        beaten.cancelled.push(fence.clone());
                    }
                    // Of a type that nobody knows here any more, somebody who does will look soon.
                    let lease_for = cx.defs.pinned(&job.org, &job.kind).map_or(UNKNOWN_LEASE, |kind| kind.lease);
                    let mut next = job.clone();
                    if let Status::Executing { lease } = &mut next.status {
                        // A clock that jumped back must not shorten what was promised.
                        lease.until = lease.until.max(cx.now.plus(lease_for));
                    }
                    changes.jobs.push(Change::Put(next));
                }
                _ => beaten.lost.push(fence.clone()),
            }
        }
        Decision::Done(beaten, changes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Refusal as _;
    use crate::job::bench_top::{BenchTop, LEASE, NOW, done};

    #[test]
    fn a_beat_extends_what_is_held_and_names_what_is_lost() {
        let mut top = BenchTop::new();
        top.enqueue();
        let job = top.claim();
        let fence = job.fence().unwrap();
        top.now = NOW.plus(Span::secs(3));
        let beat = Beat::of(job.org.clone(), vec![fence.clone()]);
        assert_eq!(top.done(&beat), Beaten::default());
        assert_eq!(top.latest().status.lease().unwrap().until, top.now.plus(LEASE));
        assert_eq!(top.kinds().len(), 2, "no event for a beat");
        top.settle(&job, done());
        assert_eq!(top.done(&beat).lost, [fence]);
    }

    #[test]
    fn a_job_that_takes_too_long_fails_at_a_beat_and_its_worker_has_lost_it() {
        let mut top = BenchTop::new();
        top.enqueue();
        let job = top.claim();
        let fence = job.fence().unwrap();
        let ends = BTreeMap::from([(job.id, NOW.plus(Span::secs(9)))]);
        let beat = Beat { ends, ..Beat::of(job.org.clone(), vec![fence.clone()]) };
        assert_eq!(top.done(&beat), Beaten::default());
        top.now = NOW.plus(Span::secs(9));
        let twice = Beat { held: vec![fence.clone(), fence.clone()], ..beat };
        assert_eq!(top.done(&twice).lost, std::slice::from_ref(&fence));
        assert_eq!((top.latest().failures, top.kinds().last().copied()), (1, Some("job.retry_scheduled")));
        assert_eq!(top.refuse(&settle::Settle { fence, outcome: done() }).code(), "lease_lost");
        assert!(!top.latest().is_ended(), "what it says later is not heard");
    }
}
