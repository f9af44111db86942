//! What a group believes of its jobs and their lanes without looking: what this node's last commit left, checked when it is
//! written.
//!
//! A job that was handed out is settled next, by the same node as a rule, and the next one of its lane follows. None of it need
//! be locked and read again for that: the server marks each state of a row with the transaction that made it, and a row that
//! is not as it was left is not written, so the group is run anew, without trust. A group of which all is known is one statement.
//!
//! Invariants
//! - Whatever was decided over a job that was trusted is written to its row in the same commit, or decided anew: a refusal
//!   rests on rows that were locked.
//! - Lanes that count are trusted only with all that a group sees. What is written of them is checked as well, and so is each
//!   job that is handed out, and that the lane is not paused.
//! - A row that somebody else holds is waited for when other rows are held already, and so only for a moment: whoever waits
//!   in a circle gives up, and locks in the order that all keep to.

use super::Shared;
use super::open_jobs::{Key, LeftBy, Open};
use super::open_lanes::OpenLane;
use crate::group::{Ask, Plan};
use crate::hand_out::Found;
use baton_core::definition::Definitions;
use baton_core::job::Job;
use baton_core::lane::LaneKey;
use baton_core::schedule::LaneId;
use baton_core::world::JobWrite;
use baton_core::{JobId, Micros, OrgId, World};
use std::collections::BTreeMap;

#[derive(Default)]
pub(super) struct Trusted {
    jobs: BTreeMap<Key, Open>,
    lanes: BTreeMap<LaneId, OpenLane>,
    /// Nothing else is to be seen: what time it is, by what was heard last.
    whole: Option<Micros>,
}

impl Trusted {
    /// None where jobs are looked for by more than their ids, or are only looked at, as is usual where agents are taken.
    pub fn of(shared: &Shared, plan: &Plan, defs: &Definitions) -> Self {
        let by_id = plan.reads.values().all(|reads| {
            let no_other = reads.dedupes.is_empty() && reads.messages.is_empty() && reads.requeued.is_empty();
            no_other && reads.records.is_empty() && reads.runs.is_empty() && reads.agents.is_empty()
        });
        let mut jobs = if by_id { shared.open_jobs.of(plan) } else { BTreeMap::new() };
        let known = is_known(plan, &jobs, defs).then(|| shared.open_lanes.of(&jobs, &plan.asks)).flatten();
        if let (Some(lanes), Some(now)) = (known, shared.heard.now()) {
            return Self { jobs, lanes, whole: Some(Micros(now.0 + shared.shift())) };
        }
        jobs.retain(|_, open| !open.job.lane.kept);
        Self { jobs, ..Self::default() }
    }

    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// When a group is decided that has nothing else to see.
    pub const fn whole(&self) -> Option<Micros> {
        self.whole
    }

    pub fn has(&self, org: &OrgId, id: JobId) -> bool {
        !self.jobs.is_empty() && self.jobs.contains_key(&(id, org.clone()))
    }

    pub fn load(&self, world: &mut World) {
        for ((id, org), open) in &self.jobs {
            world.load_job(org, *id, Some(open.job.clone()));
        }
        for ((org, key), lane) in &self.lanes {
            world.load_lane(org, key, Some(lane.row.clone()));
        }
    }

    /// What those who ask for successors would be shown.
    pub fn found(&self, asks: &[(Ask, usize)]) -> Vec<Found> {
        let heads = |lane: &OpenLane| lane.next.jobs.iter().map(|(head, _)| head.clone()).collect();
        let lanes = || self.lanes.iter().map(|(id, lane)| (id.clone(), heads(lane))).collect();
        asks.iter().map(|_| Found { lanes: lanes(), ..Found::default() }).collect()
    }

    /// Whether all of them are to be written, and so are looked at after all. A lane that gets a new job is written with it,
    /// by a statement that does not look.
    pub fn are_written(&self, world: &World) -> bool {
        let makes = || world.job_writes().any(|write| matches!(write, JobWrite::Insert(..)));
        self.jobs.keys().all(|(id, org)| world.changes_job(org, *id)) && (self.whole.is_none() || !makes())
    }

    /// By what transaction the row of a job must have been left, if it was not looked at.
    pub fn left_by(&self, job: &Job) -> Option<i32> {
        if self.jobs.is_empty() {
            return None;
        }
        let handed_out = || {
            let lane = self.lanes.get(&(job.org.clone(), job.lane.key.clone()))?;
            lane.next.jobs.iter().find(|(head, _)| head.job.id == job.id).map(|(_, left_by)| *left_by)
        };
        let open = self.jobs.get(&(job.id, job.org.clone())).map(|open| open.left_by);
        open.or_else(handed_out).map(LeftBy::number)
    }

    /// The same of a lane.
    pub fn lane_left_by(&self, org: &OrgId, key: &LaneKey) -> Option<i32> {
        if self.lanes.is_empty() {
            return None;
        }
        self.lanes.get(&(org.clone(), key.clone())).map(|lane| lane.left_by.number())
    }

    /// It was right, or they are forgotten.
    pub fn held(&self, shared: &Shared, held: bool) {
        if !self.lanes.is_empty() {
            shared.open_lanes.trusted(held);
        }
        if !held {
            shared.open_jobs.forget(self.jobs.keys());
            shared.open_lanes.learn(std::iter::empty(), self.lanes.keys());
        }
    }
}

/// Whether these jobs, and who follows them, are all that there is to see.
fn is_known(plan: &Plan, jobs: &BTreeMap<Key, Open>, defs: &Definitions) -> bool {
    let all: usize = plan.reads.values().map(|reads| reads.jobs.len()).sum();
    !jobs.is_empty()
        && jobs.len() == all
        && plan.onces.is_empty()
        && !plan.brings_in
        && plan.reads.values().all(|reads| reads.are_jobs())
        && plan.asks.iter().all(|(ask, _)| !ask.is_everywhere())
        && !jobs.values().any(|open| defs.wants_payload(&open.job.org, &open.job.kind))
}
