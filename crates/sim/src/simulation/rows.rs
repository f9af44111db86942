//! What must hold over the rows of all jobs at once.

use super::kinds;
use crate::answers::open_decision;
use anyhow::{Context, Result, ensure};
use baton_core::decision::Case;
use baton_core::dedupe::Mode;
use baton_core::doc;
use baton_core::id::DecisionId;
use baton_core::job::{End, Job, Status};
use baton_core::timer;
use baton_store::{Disk, JobRecord};
use std::collections::{BTreeMap, BTreeSet};

/// All decisions by their ids.
pub(super) type Cases = BTreeMap<DecisionId, Case>;

pub(super) fn cases(disk: &Disk) -> Result<Cases> {
    let read = |(key, doc): (String, doc::Doc)| {
        let case = Case::of(&doc).with_context(|| format!("{key} cannot be read"))?;
        ensure!(doc.flag == case.closed.is_none(), "{key} is flagged wrongly");
        Ok((key.parse()?, case))
    };
    disk.docs(doc::Class::Decision)?.into_iter().map(read).collect()
}

pub(super) fn check(jobs: &[JobRecord], cases: &Cases, timers: &[timer::Key]) -> Result<()> {
    for JobRecord { job, .. } in jobs {
        ensure!(job.attempts <= job.max_attempts, "{job:?} was begun too often");
        ensure!(job.failures <= job.max_failures && job.failures <= job.attempts, "{job:?} failed too often");
    }
    clocks(jobs, cases, timers)?;
    decisions(jobs, cases)?;
    lanes(jobs)?;
    keys(jobs)
}

/// A job has the timers that it needs, and none when it has ended.
fn clocks(jobs: &[JobRecord], cases: &Cases, timers: &[timer::Key]) -> Result<()> {
    let set: BTreeSet<_> = timers.iter().filter(|key| key.kind != timer::Kind::Schedule).copied().collect();
    let mut needed = BTreeSet::new();
    for JobRecord { job, .. } in jobs.iter().filter(|record| !record.job.is_ended()) {
        needed.extend(job.has_deadline.then(|| job.deadline_timer()));
        needed.extend(job.cancel_requested().map(|_| job.cancel_timer()));
    }
    let counting =
        cases.iter().filter(|(_, case)| case.closed.is_none() && case.deadline_at.is_some() && !case.overdue);
    needed.extend(counting.map(|(id, _)| Case::timer(*id)));
    ensure!(set == needed, "{set:?} are set, {needed:?} are needed");
    Ok(())
}

/// A decision is open exactly as long as its job waits for it.
fn decisions(jobs: &[JobRecord], cases: &Cases) -> Result<()> {
    let open: BTreeSet<_> = cases.iter().filter(|(_, case)| case.closed.is_none()).map(|(id, _)| *id).collect();
    let waited_for: BTreeSet<_> = jobs.iter().filter_map(|record| open_decision(&record.job)).collect();
    ensure!(open == waited_for, "{open:?} are open, {waited_for:?} are waited for");
    Ok(())
}

/// No lane is over its limit, whatever its row says.
fn lanes(jobs: &[JobRecord]) -> Result<()> {
    let mut running: BTreeMap<_, u32> = BTreeMap::new();
    for JobRecord { job, .. } in jobs.iter().filter(|record| record.job.lane.kept && record.job.status.holds_slot()) {
        let held = running.entry((&job.org, &job.lane.key)).or_default();
        *held += 1;
        let limit = kinds::limits(job.lane.key.as_str());
        ensure!(limit == job.lane.max, "{job:?} does not know the limit of its lane");
        ensure!(limit.is_none_or(|limit| *held <= limit), "{held} jobs hold slots of {}", job.lane.key);
    }
    Ok(())
}

/// One job stands for a key, and as long as it does there is no other.
fn keys(jobs: &[JobRecord]) -> Result<()> {
    let mut holders: BTreeMap<_, &Job> = BTreeMap::new();
    let mut standing: BTreeMap<_, &Job> = BTreeMap::new();
    for JobRecord { job, cold, .. } in jobs {
        if let Some(key) = &job.dedupe {
            let before = holders.insert((&job.org, &job.kind.name, key), job);
            ensure!(before.is_none(), "{before:?} and {job:?} hold one key");
        }
        let stands = match kinds::mode(job.kind.name.as_str()) {
            Mode::SingleFlight => !job.is_ended(),
            Mode::Once => true,
            Mode::DropDuplicate => !job.is_ended() || matches!(job.status, Status::Ended { how: End::Completed, .. }),
            // A follow-up stands beside the one it follows.
            Mode::MergeDuplicate | Mode::None => false,
        };
        if let Some(key) = cold.dedupe_key.as_ref().filter(|_| stands) {
            let before = standing.insert((&job.org, &job.kind.name, key), job);
            ensure!(before.is_none(), "{before:?} and {job:?} are duplicates");
        }
    }
    Ok(())
}
