//! Aging: beside a background job that has waited for too long, a lane starts no more than so many
//! interactive jobs in a row.
//!
//! A commit decides its claims last, over what was ready before it. So whoever still waits after a
//! commit, and was not touched by it, could have gone instead of an interactive job that took a slot
//! of its lane: all of it can be seen in the rows, and the moment of the claim in the lease.
//!
//! Not looked at, because it would not be sound:
//! - lanes without a row: whoever asks remembers their bursts, and forgets them when it dies. The
//!   same goes for what is promised across lanes. The tests of `core::schedule` are about both;
//! - interactive jobs that go on in a slot which they have kept: nobody could have had it instead;
//! - a lane in which the same commit touched somebody who waited: that may have been the one which
//!   was to go;
//! - among those that stand in the order of their arrival, all but the first: clocks that differ let
//!   a later one seem older.

use crate::replay::Life;
use anyhow::{Result, ensure};
use baton_core::event::Recorded;
use baton_core::job::{BACKGROUND, Job, State};
use baton_core::rules::Rules;
use baton_core::schedule::Class;
use baton_core::{JobId, Micros};
use baton_store::JobRecord;
use std::collections::{BTreeMap, BTreeSet};

pub(super) struct Aging {
    rules: Rules,
    /// Jobs in the order of their arrival.
    arrived: BTreeMap<JobId, usize>,
    /// Interactive jobs that a lane has started in a row beside one that had waited for too long.
    in_a_row: BTreeMap<String, u32>,
    commit: Commit,
}

/// What happened since the rows were last looked at.
#[derive(Default)]
struct Commit {
    touched: BTreeSet<JobId>,
    /// Lanes in which somebody who waited was touched, by name.
    disturbed: BTreeSet<String>,
    starts: Vec<Start>,
}

struct Start {
    job: JobId,
    lane: String,
    /// It did not have one before.
    takes_slot: bool,
}

impl Aging {
    pub fn new(rules: Rules) -> Self {
        Self { rules, arrived: BTreeMap::new(), in_a_row: BTreeMap::new(), commit: Commit::default() }
    }

    /// An event of a job, and how the job stood before and after it.
    pub fn step(&mut self, event: &Recorded, before: Option<&Life>, after: &Life) {
        let job = JobId(event.subject);
        self.commit.touched.insert(job);
        let arrivals = self.arrived.len();
        self.arrived.entry(job).or_insert(arrivals);
        match (event.kind.as_str(), before) {
            ("job.started" | "job.resumed", Some(before)) => {
                self.commit.starts.push(Start { job, lane: after.lane.clone(), takes_slot: !before.holds_slot });
            }
            (_, Some(before)) if before.state != State::Executing => {
                self.commit.disturbed.insert(after.lane.clone());
            }
            _ => {}
        }
    }

    /// All rows after a commit. How often somebody who had waited for too long went first.
    pub fn check(&mut self, jobs: &[JobRecord]) -> Result<u64> {
        let commit = std::mem::take(&mut self.commit);
        let live = jobs.iter().map(|record| &record.job).filter(|job| !job.is_ended()).collect::<Vec<_>>();
        let mut went_first = 0;
        for Start { job, lane, takes_slot } in commit.starts {
            let started = live.iter().find(|live| live.id == job).filter(|job| job.lane.kept);
            let Some((job, now)) = started.and_then(|job| Some((*job, claimed_at(job)?))) else {
                self.in_a_row.remove(&lane);
                continue;
            };
            let behind =
                live.iter().filter(|other| other.lane.key.as_str() == lane && !commit.touched.contains(&other.id));
            let behind = behind.filter(|other| other.status.waits()).copied();
            if job.class() == Class::Background {
                let used_up = self.in_a_row.remove(&lane).is_some_and(|row| row == self.rules.burst);
                let mut interactive = behind.filter(|other| other.class() == Class::Interactive);
                went_first += u64::from(used_up && interactive.any(|other| is_due(other, now)));
                continue;
            }
            if !takes_slot || commit.disturbed.contains(&lane) {
                continue;
            }
            if let Some(aged) = self.aged(behind, now) {
                let row = self.in_a_row.entry(lane).or_default();
                *row += 1;
                ensure!(
                    *row <= self.rules.burst,
                    "{row} interactive jobs in a row go before {aged:?}, the last: {job:?}"
                );
            }
        }
        // What a lane remembers may go when nobody is left in it.
        self.in_a_row.retain(|lane, _| live.iter().any(|job| job.lane.key.as_str() == lane));
        Ok(went_first)
    }

    /// Somebody of a lane who has waited for too long and could have gone.
    fn aged<'a>(&self, behind: impl Iterator<Item = &'a Job>, now: Micros) -> Option<&'a Job> {
        let waiting = behind.filter(|job| job.class() == Class::Background);
        let (by_arrival, own_order): (Vec<_>, Vec<_>) =
            waiting.partition(|job| job.priority == BACKGROUND && job.since == job.created_at);
        let first = by_arrival.into_iter().min_by_key(|job| self.arrived.get(&job.id));
        own_order.into_iter().chain(first).find(|job| is_due(job, now) && now.since(job.since) > self.rules.aging)
    }
}

fn is_due(job: &Job, now: Micros) -> bool {
    job.status.due_at().is_some_and(|due| due <= now)
}

/// When a job was handed out that was not beaten for since.
fn claimed_at(job: &Job) -> Option<Micros> {
    let lease = super::kinds::lease(job.kind.name.as_str());
    Some(Micros(job.status.lease()?.until.0 - lease.0))
}
