//! What must hold after every single commit.

use super::kinds;
use super::rows;
use crate::replay::Replay;
use anyhow::{Result, ensure};
use baton_core::{Digest, JobId};
use baton_store::{Disk, JobRecord};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

pub(super) struct Checker {
    disk: Disk,
    seen: Mutex<Seen>,
    violation: watch::Sender<Option<String>>,
}

/// What was there when the disk was last looked at.
struct Seen {
    /// Nothing was written since this count, and so nothing is to be verified again.
    writes: u64,
    /// How far the history was read.
    pos: i64,
    /// Of all events, also those that were forgotten since.
    hashes: Vec<Digest>,
    happened: BTreeMap<String, u64>,
    replay: Replay,
    /// Jobs that a client was told exist.
    promised: BTreeSet<JobId>,
    jobs: BTreeSet<JobId>,
    /// As they were when they were first seen to have ended.
    ended: BTreeMap<JobId, JobRecord>,
}

impl Checker {
    pub fn new(disk: Disk) -> Self {
        let seen = Seen {
            writes: 0,
            pos: 0,
            hashes: Vec::new(),
            happened: BTreeMap::new(),
            replay: Replay::new(kinds::limits),
            promised: BTreeSet::new(),
            jobs: BTreeSet::new(),
            ended: BTreeMap::new(),
        };
        Self { disk, seen: Mutex::new(seen), violation: watch::Sender::new(None) }
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn promise(&self, job: JobId) {
        self.seen().promised.insert(job);
    }

    /// Every job that has ended, as it ended.
    pub fn ended(&self) -> BTreeMap<JobId, JobRecord> {
        self.seen().ended.clone()
    }

    /// A digest over all events, and how often each kind of thing happened.
    pub fn story(&self) -> (Digest, BTreeMap<String, u64>) {
        let seen = self.seen();
        let text: Vec<u8> = seen.hashes.iter().flat_map(|hash| hash.0).collect();
        (Digest::of(&[&text]), seen.happened.clone())
    }

    /// Checks, and keeps the first violation for [`Self::violated`].
    pub fn note(&self) {
        if let Err(e) = self.check() {
            self.violate(format!("{e:?}"));
        }
    }

    pub fn violate(&self, text: String) {
        self.violation.send_if_modified(|first| {
            let news = first.is_none();
            if news {
                *first = Some(text);
            }
            news
        });
    }

    /// Resolves when something was violated.
    pub async fn violated(&self) -> String {
        let mut violation = self.violation.subscribe();
        match violation.wait_for(Option::is_some).await {
            Ok(text) => text.clone().unwrap_or_default(),
            // We hold the sender, so it cannot be gone.
            Err(_) => std::future::pending().await,
        }
    }

    pub fn check(&self) -> Result<()> {
        let seen = &mut *self.seen();
        let writes = self.disk.writes();
        if writes != seen.writes {
            seen.writes = writes;
            // Chains, heads, states, and counters against counts.
            let report = self.disk.audit(None)?;
            ensure!(report.is_clean(), "the audit finds {:?}", report.violations);
            seen.events(&self.disk)?;
            seen.rows(&self.disk)?;
        }
        let lost = seen.promised.difference(&seen.jobs).next();
        ensure!(lost.is_none(), "{lost:?} was promised and is lost");
        Ok(())
    }
}

impl Seen {
    fn events(&mut self, disk: &Disk) -> Result<()> {
        let (events, pos) = disk.history(self.pos)?;
        for event in &events {
            self.replay.step(event)?;
            self.hashes.push(event.hash);
            let reason = event.data.value()["reason"].as_str().map(|reason| format!("{}: {reason}", event.kind));
            *self.happened.entry(reason.unwrap_or_else(|| event.kind.clone())).or_default() += 1;
        }
        self.pos = pos;
        Ok(())
    }

    fn rows(&mut self, disk: &Disk) -> Result<()> {
        let jobs = disk.jobs()?;
        rows::check(&jobs, &disk.timers()?)?;
        let mut there = BTreeSet::new();
        for record in jobs {
            let id = record.job.id;
            there.insert(id);
            match self.ended.get(&id) {
                Some(before) => ensure!(
                    before.job == record.job
                        && before.cold == record.cold
                        && before.result == record.result
                        && before.error == record.error,
                    "{before:?} had ended and is now {record:?}"
                ),
                None if record.job.is_ended() => drop(self.ended.insert(id, record)),
                None => {}
            }
        }
        // Only what has ended is ever forgotten.
        let lost = self.jobs.iter().find(|id| !there.contains(id) && !self.ended.contains_key(id));
        ensure!(lost.is_none(), "{lost:?} is gone");
        self.jobs.append(&mut there);
        Ok(())
    }
}
