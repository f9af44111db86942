//! Jobs that workers of this node hold, as its last commit left them: see `trusted`.

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

    /// As it is sent.
    pub const fn number(self) -> i32 {
        self.0
    }
}

pub(super) type Key = (JobId, OrgId);

#[derive(Clone)]
pub(super) struct Open {
    pub job: Arc<Job>,
    pub left_by: LeftBy,
}

#[derive(Default)]
pub(super) struct OpenJobs(Mutex<BTreeMap<Key, Open>>);

impl OpenJobs {
    /// Those of a group's jobs that are kept.
    pub fn of(&self, plan: &Plan) -> BTreeMap<Key, Open> {
        let open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let keys = plan.reads.iter().flat_map(|(org, reads)| reads.jobs.iter().map(move |id| (*id, org.clone())));
        keys.filter_map(|key| open.get(&key).map(|job| (key, job.clone()))).collect()
    }

    /// After a commit.
    pub fn learn(&self, mut world: World, left_by: Option<LeftBy>) {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for job in world.take_changed_jobs() {
            let key = (job.id, job.org.clone());
            match left_by {
                Some(left_by) if job.status.lease().is_some() => {
                    if open.len() >= KEPT && !open.contains_key(&key) {
                        open.clear();
                    }
                    open.insert(key, Open { job, left_by });
                }
                _ => drop(open.remove(&key)),
            }
        }
    }

    /// Another server may answer next, which knows other transactions by the same numbers.
    pub fn forget_all(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// They are not as they were left, or were only looked at.
    pub fn forget<'k>(&self, keys: impl Iterator<Item = &'k Key>) {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        keys.for_each(|key| drop(open.remove(key)));
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
