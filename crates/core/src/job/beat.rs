//! Heartbeats: a worker says what it still holds and hears what it has lost.

use super::{Change, Fence, Status};
use crate::changes::Changes;
use crate::command::{Command, Ctx, Decision, Never, Reads};
use crate::definition::Definitions;
use crate::name::OrgId;
use crate::time::Span;
use crate::world::View;

/// What a worker hears when it beats.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Beaten {
    /// The fences that no longer hold.
    pub lost: Vec<Fence>,
    /// Those that hold, but somebody wants the job to end.
    pub cancelled: Vec<Fence>,
}

/// Extends leases of one org. Extending writes no event: nothing happened.
#[derive(Clone, Debug)]
pub struct Beat {
    pub org: OrgId,
    /// At most [`crate::limits::JOBS_PER_COMMAND`].
    pub held: Vec<Fence>,
    /// From now.
    pub lease: Span,
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
        for fence in &self.held {
            match view.job(fence.job) {
                Some(job) if job.held_by(fence) => {
                    if job.cancel_requested().is_some() {
                        beaten.cancelled.push(fence.clone());
                    }
                    let mut next = job.clone();
                    if let Status::Executing { lease } = &mut next.status {
                        // A clock that jumped back must not shorten what was promised.
                        lease.until = lease.until.max(cx.now.plus(self.lease));
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
    use crate::job::bench_top::{BenchTop, LEASE, NOW, done};

    #[test]
    fn a_beat_extends_what_is_held_and_names_what_is_lost() {
        let mut top = BenchTop::new();
        top.enqueue();
        let job = top.claim();
        let fence = job.fence().unwrap();
        top.now = NOW.plus(Span::secs(3));
        let beat = Beat { org: job.org.clone(), held: vec![fence.clone()], lease: LEASE };
        assert_eq!(top.done(&beat), Beaten::default());
        assert_eq!(top.latest().status.lease().unwrap().until, top.now.plus(LEASE));
        assert_eq!(top.kinds().len(), 2, "no event for a beat");
        top.settle(&job, done());
        assert_eq!(top.done(&beat).lost, [fence]);
    }
}
