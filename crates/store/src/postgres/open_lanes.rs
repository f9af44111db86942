//! Lanes in which jobs of this node have just moved, as its last commit left them, with who comes next in each: see `trusted`.
//!
//! Whoever comes into a lane that counts, or goes, writes the lane's row. So while that is as it was left, nobody has come in
//! who should go before those who are kept here. Only who was there already and has come due since (a delayed job, one that was
//! answered) is missing, until the next turn sees it: as if it had come due a moment later.

use super::doubts::Doubts;
use super::open_jobs::{Key, LeftBy, Open};
use crate::group::Ask;
use crate::hand_out::Candidate;
use baton_core::job::Kind;
use baton_core::lane;
use baton_core::schedule::LaneId;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Jobs kept in memory that come next in some lane. With more, all are forgotten, and are read again.
const KEPT: usize = 4_096;
/// Of one lane. With more, nothing is kept of it.
pub(super) const NEXT_MAX: usize = 64;
/// Payloads that are kept with them: see the statement that reads them.
pub(super) const PAYLOAD_MAX: usize = 4_096;

#[derive(Clone)]
pub(super) struct OpenLane {
    pub row: lane::Row,
    pub left_by: LeftBy,
    pub next: Next,
}

/// Who comes next in a lane.
#[derive(Clone)]
pub(super) struct Next {
    /// For whoever asks for these.
    pub kinds: Arc<[Kind]>,
    /// So many jobs of the lane may end at once, and enough are known to follow.
    pub enough_for: usize,
    pub jobs: Arc<[(Candidate, LeftBy)]>,
}

#[derive(Default)]
pub(super) struct OpenLanes(Mutex<Known>);

#[derive(Default)]
struct Known {
    lanes: BTreeMap<LaneId, OpenLane>,
    /// Jobs that come next, in all of them.
    jobs: usize,
    /// Somebody else may move jobs in the same lanes all the time.
    doubts: Doubts,
}

impl OpenLanes {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The lanes of these jobs, which may end, if it is known of all of them who could follow.
    pub fn of(&self, jobs: &BTreeMap<Key, Open>, asks: &[(Ask, usize)]) -> Option<BTreeMap<LaneId, OpenLane>> {
        let mut moving: BTreeMap<LaneId, usize> = BTreeMap::new();
        for ((_, org), open) in jobs.iter().filter(|(_, open)| open.job.lane.kept) {
            *moving.entry((org.clone(), open.job.lane.key.clone())).or_default() += 1;
        }
        let mut known = self.known();
        let mut lanes = BTreeMap::new();
        let mut asked_for: Option<&Arc<[Kind]>> = None;
        for (id, count) in &moving {
            let lane = known.lanes.get(id)?;
            if !asks.is_empty() {
                let same = asked_for.is_some_and(|kinds| Arc::ptr_eq(kinds, &lane.next.kinds))
                    || asks.iter().all(|(ask, _)| ask.kinds[..] == lane.next.kinds[..]);
                if lane.next.enough_for < *count || !same {
                    return None;
                }
                asked_for = Some(&lane.next.kinds);
            }
            lanes.insert(id.clone(), lane.clone());
        }
        // Jobs whose lanes do not count are trusted always: nobody else has anything to do with them.
        (lanes.is_empty() || !known.doubts.rests()).then_some(lanes)
    }

    /// After a commit that has left some like this, and has touched some of which nothing is known any more.
    pub fn learn<'l>(&self, left: impl Iterator<Item = (LaneId, OpenLane)>, touched: impl Iterator<Item = &'l LaneId>) {
        let mut known = self.known();
        touched.for_each(|id| known.remove(id));
        for (id, lane) in left {
            known.remove(&id);
            if known.jobs + lane.next.jobs.len() > KEPT || known.lanes.len() >= KEPT {
                known.lanes.clear();
                known.jobs = 0;
            }
            known.jobs += lane.next.jobs.len();
            known.lanes.insert(id, lane);
        }
    }

    /// Whether it is worth seeing who comes next.
    pub fn pays(&self) -> bool {
        !self.known().doubts.are_strong()
    }

    /// Another server may answer next.
    pub fn forget(&self) {
        *self.known() = Known::default();
    }

    /// What came of trusting lanes.
    pub fn trusted(&self, held: bool) {
        self.known().doubts.tried(held);
    }
}

impl Known {
    fn remove(&mut self, id: &LaneId) {
        if let Some(gone) = self.lanes.remove(id) {
            self.jobs -= gone.next.jobs.len();
        }
    }
}
