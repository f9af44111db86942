//! Jobs that workers of this node hold, as its last commit left them: trusted when they are loaded, and checked when they
//! are written.
//!
//! A job that was handed out is settled next, by the same node as a rule. It need not be locked and read again for that: the
//! server marks each state of a row with the transaction that made it, and a row that is not as it was left is not written,
//! so the group is run anew, without trust.
//!
//! Invariants
//! - Whatever was decided over a job that was trusted is written to its row in the same commit, or decided anew: a refusal
//!   rests on rows that were locked.
//! - Only jobs whose lanes do not count are trusted. Those of others are locked before their lanes, by all nodes alike.
//! - A row that somebody else holds is waited for when other rows are held already, and so only for a moment: whoever waits
//!   in a circle gives up, and locks in the order that all keep to.

use crate::group::Plan;
use baton_core::job::Job;
use baton_core::{JobId, OrgId, World};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Jobs kept in memory, of half a kilobyte or so each. With more, all are forgotten, and are read again.
const KEPT: usize = 8_192;

/// The transaction that has left a row as it is, as the row says it: the lower half of its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LeftBy(i32);

impl LeftBy {
    /// A transaction by its full number, as text.
    pub fn transaction(xid: &str) -> Option<Self> {
        let bytes = xid.parse::<u64>().ok()?.to_le_bytes();
        Some(Self(i32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])))
    }
}

type Key = (JobId, OrgId);

#[derive(Clone)]
struct Open {
    job: Arc<Job>,
    left_by: LeftBy,
}

#[derive(Default)]
pub(super) struct OpenJobs(Mutex<BTreeMap<Key, Open>>);

impl OpenJobs {
    /// Those of a group's jobs that need not be read. None where jobs are looked for by more than their ids, or are only
    /// looked at, as is usual where agents are taken.
    pub fn trust(&self, plan: &Plan) -> Trusted {
        let by_id = plan.reads.values().all(|reads| {
            let no_other = reads.dedupes.is_empty() && reads.messages.is_empty() && reads.requeued.is_empty();
            no_other && reads.records.is_empty() && reads.runs.is_empty() && reads.agents.is_empty()
        });
        let mut trusted = Trusted::default();
        if by_id {
            let open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            for key in plan.reads.iter().flat_map(|(org, reads)| reads.jobs.iter().map(move |id| (*id, org.clone()))) {
                if let Some(job) = open.get(&key) {
                    trusted.0.insert(key, job.clone());
                }
            }
        }
        trusted
    }

    /// After a commit.
    pub fn learn(&self, mut world: World, left_by: Option<LeftBy>) {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for job in world.take_changed_jobs() {
            let key = (job.id, job.org.clone());
            match left_by {
                Some(left_by) if job.status.lease().is_some() && !job.lane.kept => {
                    if open.len() >= KEPT && !open.contains_key(&key) {
                        open.clear();
                    }
                    open.insert(key, Open { job, left_by });
                }
                _ => drop(open.remove(&key)),
            }
        }
    }

    /// They are not as they were left, or were only looked at.
    pub fn forget(&self, trusted: &Trusted) {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        trusted.0.keys().for_each(|key| drop(open.remove(key)));
    }
}

/// What a group believes of its jobs.
#[derive(Default)]
pub(super) struct Trusted(BTreeMap<Key, Open>);

impl Trusted {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn has(&self, org: &OrgId, id: JobId) -> bool {
        !self.0.is_empty() && self.0.contains_key(&(id, org.clone()))
    }

    pub fn load(&self, world: &mut World) {
        for ((id, org), open) in &self.0 {
            world.load_job(org, *id, Some(open.job.clone()));
        }
    }

    /// Whether all of them are to be written, and so are looked at after all.
    pub fn are_written(&self, world: &World) -> bool {
        self.0.keys().all(|(id, org)| world.changes_job(org, *id))
    }

    /// What the row of a job must say, if it was not looked at.
    pub fn left_by(&self, job: &Job) -> Option<i32> {
        if self.0.is_empty() {
            return None;
        }
        self.0.get(&(job.id, job.org.clone())).map(|open| open.left_by.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_says_the_lower_half_of_a_number() {
        assert_eq!(LeftBy::transaction("741"), Some(LeftBy(741)));
        assert_eq!(LeftBy::transaction("4294967299"), Some(LeftBy(3)));
        assert_eq!(LeftBy::transaction("4294967295"), Some(LeftBy(-1)));
        assert_eq!(LeftBy::transaction("-1"), None);
    }
}
