//! What must hold after every single commit.

use super::super::watch::{Violation, Watch};
use crate::replay::Replay;
use anyhow::{Context, Result, ensure};
use baton_core::event::Recorded;
use baton_core::run::State;
use baton_core::{Digest, JobId, RunId};
use baton_store::{Disk, JobRecord};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

pub(super) struct Checker {
    disk: Disk,
    seen: Mutex<Seen>,
    violation: Violation,
}

/// What was there when the disk was last looked at.
struct Seen {
    /// Nothing was written since this count, and so nothing is to be verified again.
    writes: u64,
    /// How far the history was read.
    pos: i64,
    hashes: Vec<Digest>,
    happened: BTreeMap<String, u64>,
    replay: Replay,
    /// Where each run stands, as its own events tell it.
    runs: BTreeMap<RunId, State>,
}

impl Checker {
    pub fn new(disk: Disk) -> Self {
        let seen = Seen {
            writes: 0,
            pos: 0,
            hashes: Vec::new(),
            happened: BTreeMap::new(),
            // Limits of lanes stand on the rows here: see `lanes`.
            replay: Replay::new(|_| None),
            runs: BTreeMap::new(),
        };
        Self { disk, seen: Mutex::new(seen), violation: Violation::none() }
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A digest over all events, and how often each kind of thing happened.
    pub fn story(&self) -> (Digest, BTreeMap<String, u64>) {
        let seen = self.seen();
        let text: Vec<u8> = seen.hashes.iter().flat_map(|hash| hash.0).collect();
        (Digest::of(&[&text]), seen.happened.clone())
    }

    /// How the history says that runs stand.
    pub fn runs(&self) -> BTreeMap<RunId, State> {
        self.seen().runs.clone()
    }

    /// Resolves when something was violated.
    pub async fn violated(&self) -> String {
        self.violation.found().await
    }

    pub fn check(&self) -> Result<()> {
        let seen = &mut *self.seen();
        let writes = self.disk.writes();
        if writes == seen.writes {
            return Ok(());
        }
        seen.writes = writes;
        let report = self.disk.audit(None)?;
        ensure!(report.is_clean(), "the audit finds {:?}", report.violations);
        let (events, pos) = self.disk.history(seen.pos)?;
        for event in &events {
            seen.event(event)?;
        }
        seen.pos = pos;
        lanes(&self.disk.jobs()?)
    }
}

impl Watch for Checker {
    fn note(&self) {
        if let Err(e) = self.check() {
            self.violate(format!("{e:?}"));
        }
    }

    fn violate(&self, text: String) {
        self.violation.set(text);
    }

    fn happened(&self, what: &str, times: u64) {
        *self.seen().happened.entry(what.to_owned()).or_default() += times;
    }

    /// Nobody is promised jobs here: runs make their own.
    fn promise(&self, _: JobId) {}
}

impl Seen {
    fn event(&mut self, event: &Recorded) -> Result<()> {
        self.replay.step(event)?;
        if event.kind.starts_with("run.") {
            self.moved(event).with_context(|| format!("{} of run {}", event.kind, event.subject))?;
        }
        self.hashes.push(event.hash);
        let reason = event.data.value()["reason"].as_str().map(|reason| format!("{}: {reason}", event.kind));
        *self.happened.entry(reason.unwrap_or_else(|| event.kind.clone())).or_default() += 1;
        Ok(())
    }

    /// A run moves along its table only, and says so.
    fn moved(&mut self, event: &Recorded) -> Result<()> {
        let run = RunId(event.subject);
        let to = event.data.value()["state"].as_str().and_then(State::parse).context("an event names the state")?;
        match self.runs.insert(run, to) {
            None => ensure!(event.kind == "run.created" && to == State::Created, "it begins in the middle"),
            Some(from) => {
                ensure!(from != to || event.kind == "run.deleted", "it became {to}, which it was");
                from.check(to)?;
            }
        }
        Ok(())
    }
}

/// No lane is over its limit, whatever its row says.
fn lanes(jobs: &[JobRecord]) -> Result<()> {
    let mut running: BTreeMap<_, u32> = BTreeMap::new();
    for JobRecord { job, .. } in jobs.iter().filter(|record| record.job.status.holds_slot()) {
        let held = running.entry((&job.org, &job.lane.key)).or_default();
        *held += 1;
        ensure!(job.lane.max.is_none_or(|max| *held <= max), "{held} jobs hold slots of {}", job.lane.key);
    }
    Ok(())
}
