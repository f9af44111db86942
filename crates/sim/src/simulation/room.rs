//! Room: nobody from outside is taken in where as many wait as may.
//!
//! Counted from what the history says, event by event, not from the counters that decide. What was
//! taken in may come back to those who wait when it is tried again; only at the door is there a limit.

use super::kinds;
use crate::replay::Life;
use anyhow::{Result, ensure};
use baton_core::JobId;
use baton_core::command::Actor;
use baton_core::event::Recorded;
use baton_core::rules::Rules;
use std::collections::{BTreeMap, BTreeSet};

pub(super) struct Room {
    rules: Rules,
    /// Who came from outside; what schedules make finds room anyway.
    outside: BTreeSet<JobId>,
    /// Those of them who wait, by lane.
    waiting: BTreeMap<String, BTreeSet<JobId>>,
}

impl Room {
    pub const fn new(rules: Rules) -> Self {
        Self { rules, outside: BTreeSet::new(), waiting: BTreeMap::new() }
    }

    /// An event of a job, and how the job stands after it.
    pub fn step(&mut self, event: &Recorded, life: &Life) -> Result<()> {
        let job = JobId(event.subject);
        if event.kind == "job.queued" && event.actor == Actor::Api.to_string() {
            self.at_the_door(&life.lane)?;
            self.outside.insert(job);
        }
        let lane = self.waiting.entry(life.lane.clone()).or_default();
        if life.waits() && self.outside.contains(&job) {
            lane.insert(job);
        } else {
            lane.remove(&job);
        }
        Ok(())
    }

    fn at_the_door(&self, lane: &str) -> Result<()> {
        let waiting = self.waiting.get(lane).map_or(0, BTreeSet::len);
        let depth = kinds::depth(lane, &self.rules);
        ensure!(depth.is_none_or(|depth| waiting < depth as usize), "{waiting} wait in {lane}, and one more is let in");
        if kinds::is_project(lane) {
            let all: usize =
                self.waiting.iter().filter(|(lane, _)| kinds::is_project(lane)).map(|(_, w)| w.len()).sum();
            ensure!(all < self.rules.max_global as usize, "{all} wait in all projects, and one more is let in");
        }
        Ok(())
    }
}
