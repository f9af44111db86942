//! What must hold after every single commit.

use super::aging::Aging;
use super::kinds;
use super::room::Room;
use super::rows;
use super::watch::{Violation, Watch};
use crate::replay::Replay;
use anyhow::{Result, ensure};
use baton_core::doc;
use baton_core::rules::Rules;
use baton_core::webhook::DELIVER;
use baton_core::{Digest, JobId};
use baton_store::{Disk, JobRecord};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

pub(super) struct Checker {
    disk: Disk,
    seen: Mutex<Seen>,
    violation: Violation,
}

/// Counted from the history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Letters {
    pub wanted: u64,
    pub sent: u64,
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
    room: Room,
    aging: Aging,
    /// Jobs that a client was told exist.
    promised: BTreeSet<JobId>,
    /// What an endpoint was to be told, and what was sent to it.
    letters: Letters,
    /// Keys that open nothing any more.
    revoked: BTreeSet<String>,
    jobs: BTreeSet<JobId>,
    /// As they were when they were first seen to have ended.
    ended: BTreeMap<JobId, JobRecord>,
}

impl Checker {
    pub fn new(disk: Disk, rules: Rules) -> Self {
        let seen = Seen {
            writes: 0,
            pos: 0,
            hashes: Vec::new(),
            happened: BTreeMap::new(),
            replay: Replay::new(kinds::limits),
            room: Room::new(rules),
            aging: Aging::new(rules),
            promised: BTreeSet::new(),
            letters: Letters::default(),
            revoked: BTreeSet::new(),
            jobs: BTreeSet::new(),
            ended: BTreeMap::new(),
        };
        Self { disk, seen: Mutex::new(seen), violation: Violation::none() }
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn letters(&self) -> Letters {
        self.seen().letters
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

    /// Resolves when something was violated.
    pub async fn violated(&self) -> String {
        self.violation.found().await
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
        self.seen().happened(what, times);
    }

    fn promise(&self, job: JobId) {
        self.seen().promised.insert(job);
    }
}

impl Seen {
    fn happened(&mut self, what: &str, times: u64) {
        if times > 0 {
            *self.happened.entry(what.to_owned()).or_default() += times;
        }
    }

    fn events(&mut self, disk: &Disk) -> Result<()> {
        let (events, pos) = disk.history(self.pos)?;
        for event in &events {
            let job = JobId(event.subject);
            let before = self.replay.life(job).cloned();
            self.replay.step(event)?;
            if let Some(after) = self.replay.life(job) {
                self.room.step(event, after)?;
                self.aging.step(event, before.as_ref(), after);
            }
            let delivery = event.data.value()["type"] == DELIVER;
            self.letters.wanted += u64::from(event.kind == "job.completed" && !delivery);
            self.letters.sent += u64::from(event.kind == "job.queued" && delivery);
            self.hashes.push(event.hash);
            let reason = event.data.value()["reason"].as_str().map(|reason| format!("{}: {reason}", event.kind));
            self.happened(reason.as_ref().unwrap_or(&event.kind), 1);
        }
        self.pos = pos;
        Ok(())
    }

    fn rows(&mut self, disk: &Disk) -> Result<()> {
        let jobs = disk.jobs()?;
        for (key, doc) in disk.docs(doc::Class::Key)? {
            ensure!(doc.flag || !self.revoked.contains(&key), "{key} was revoked and opens something again");
            if doc.flag {
                self.revoked.insert(key);
            }
        }
        rows::check(&jobs, &rows::cases(disk)?, &disk.timers()?)?;
        let went_first = self.aging.check(&jobs)?;
        self.happened("an aged job went first", went_first);
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
