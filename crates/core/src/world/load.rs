//! Filling the world: the store says what it found, and what it looked for and did not find.

use super::{Entry, Message, World};
use crate::canon::Json;
use crate::command::Reads;
use crate::definition::{self, Definition};
use crate::doc::{self, Doc};
use crate::id::{AgentId, JobId, RunId};
use crate::job::{Cold, Ending, Job};
use crate::lane::{self, LaneKey};
use crate::name::OrgId;
use crate::run::{Agent, Run};
use crate::seal::SealHead;
use crate::time::Micros;
use crate::{dedupe, once, timer};
use std::collections::BTreeSet;
use std::sync::Arc;

impl World {
    pub fn load_job(&mut self, org: &OrgId, id: JobId, row: Option<impl Into<Arc<Job>>>) {
        self.jobs.or_insert_with(org, id, || Entry::loaded(row.map(Into::into)));
    }

    pub fn load_definition(&mut self, org: &OrgId, key: definition::Key, row: Option<Definition>) {
        self.definitions.entry((org.clone(), key)).or_insert_with(|| Entry::loaded(row));
    }

    pub fn load_timer(&mut self, org: &OrgId, key: timer::Key, at: Option<Micros>) {
        self.timers.entry((org.clone(), key)).or_insert_with(|| Entry::loaded(at));
    }

    pub fn load_seal(&mut self, org: &OrgId, row: Option<SealHead>) {
        self.seals.entry((org.clone(), ())).or_insert_with(|| Entry::loaded(row));
    }

    pub fn load_once(&mut self, key: once::Key, row: Option<once::Record>) {
        self.onces.entry(key).or_insert_with(|| Entry::loaded(row));
    }

    pub fn load_doc(&mut self, org: &OrgId, key: doc::Key, row: Option<Doc>) {
        self.docs.entry((org.clone(), key)).or_insert_with(|| Entry::loaded(row));
    }

    pub fn load_run(&mut self, org: &OrgId, id: RunId, row: Option<Run>) {
        self.runs.entry((org.clone(), id)).or_insert_with(|| Entry::loaded(row));
    }

    pub fn load_agent(&mut self, org: &OrgId, id: AgentId, row: Option<Agent>) {
        self.agents.entry((org.clone(), id)).or_insert_with(|| Entry::loaded(row));
    }

    pub fn load_lane(&mut self, org: &OrgId, key: &LaneKey, row: Option<lane::Row>) {
        self.lanes.or_insert_with(org, key.clone(), || Entry::loaded(row));
    }

    /// Whoever holds the key, or did when it completed. Its job must be loaded too.
    pub fn load_dedupe(&mut self, org: &OrgId, key: dedupe::Key, holder: Option<JobId>) {
        let key = (org.clone(), key);
        if holder.is_none() && !self.dedupes.contains_key(&key) {
            self.free_keys.insert(key.clone());
        }
        self.dedupes.entry(key).or_insert(holder);
    }

    pub fn load_message(&mut self, org: &OrgId, id: String, row: Option<Message>) {
        self.messages.entry((org.clone(), id)).or_insert_with(|| Entry::loaded(row));
    }

    pub fn load_requeued(&mut self, org: &OrgId, id: JobId, into: Option<JobId>) {
        self.requeued.or_insert_with(org, id, || into);
    }

    pub fn load_crowd(&mut self, waiting: i64) {
        self.crowd.get_or_insert(waiting);
    }

    /// All that is known of a job beside its hot part.
    pub fn load_record(&mut self, org: &OrgId, id: JobId, cold: Cold, ending: Option<Ending>) {
        if let Some(ending) = ending {
            self.endings.or_insert_with(org, id, || ending);
        }
        self.colds.or_insert_with(org, id, || cold);
    }

    pub fn load_payload(&mut self, org: &OrgId, id: JobId, payload: Json) {
        self.payloads.or_insert_with(org, id, || payload);
    }

    /// What was asked for and is not loaded by now is known not to exist.
    pub fn load_nothing(&mut self, org: &OrgId, reads: &Reads) {
        for key in &reads.definitions {
            self.load_definition(org, key.clone(), None);
        }
        for key in &reads.docs {
            self.load_doc(org, key.clone(), None);
        }
        for id in &reads.runs {
            self.load_run(org, *id, None);
        }
        for id in &reads.agents {
            self.load_agent(org, *id, None);
        }
        for id in reads.jobs.iter().chain(&reads.records) {
            self.load_job(org, *id, None::<Job>);
        }
        for key in &reads.dedupes {
            self.load_dedupe(org, key.clone(), None);
        }
        for id in &reads.messages {
            self.load_message(org, id.clone(), None);
        }
        for id in &reads.requeued {
            self.load_requeued(org, *id, None);
        }
        for key in &reads.lanes {
            self.load_lane(org, key, None);
        }
        for key in &reads.timers {
            self.load_timer(org, *key, None);
        }
        if reads.crowd > 0 {
            self.load_crowd(0);
        }
        if reads.seal {
            self.load_seal(org, None);
        }
    }

    pub fn lane(&self, org: &OrgId, key: &LaneKey) -> Option<&lane::Row> {
        self.lanes.get(org, key).and_then(|entry| entry.now.as_ref())
    }

    /// If it was looked for: what was found.
    pub fn known_lane(&self, org: &OrgId, key: &LaneKey) -> Option<Option<&lane::Row>> {
        self.lanes.get(org, key).map(|entry| entry.now.as_ref())
    }

    /// Whether it was looked for, found or not.
    pub fn knows_lane(&self, org: &OrgId, key: &LaneKey) -> bool {
        self.lanes.contains(org, key)
    }

    /// The payload that a command has given a job meanwhile.
    pub fn new_payload(&self, org: &OrgId, id: JobId) -> Option<&Json> {
        if self.repaid.is_empty() {
            return None;
        }
        self.repaid.contains(org, &id).then(|| self.payloads.get(org, &id))?
    }

    /// Every lane that was loaded so far.
    pub fn lanes(&self) -> impl Iterator<Item = (&OrgId, &LaneKey)> {
        self.lanes.iter().map(|(org, key, _)| (org, key))
    }

    /// What a lane remembers of the jobs that were handed out.
    pub fn set_burst(&mut self, org: &OrgId, key: &LaneKey, burst: u32) {
        if let Some(entry) = self.lanes.get_mut(org, key)
            && let Some(row) = &mut entry.now
            && row.burst != burst
        {
            row.burst = burst;
            entry.touched = true;
        }
    }

    /// What of `reads` is not loaded yet.
    pub fn missing(&self, org: &OrgId, reads: &Reads) -> Reads {
        let has_job = |id: &JobId| self.jobs.contains(org, id);
        let has_def = |key: &definition::Key| self.definitions.contains_key(&(org.clone(), key.clone()));
        let has_timer = |key: &timer::Key| self.timers.contains_key(&(org.clone(), *key));
        let has_record = |id: &JobId| {
            let entry = self.jobs.get(org, id);
            entry.is_some_and(|e| e.now.is_none()) || self.colds.contains(org, id)
        };
        Reads {
            definitions: reads.definitions.iter().filter(|k| !has_def(k)).cloned().collect(),
            docs: reads
                .docs
                .iter()
                .filter(|k| !self.docs.contains_key(&(org.clone(), (*k).clone())))
                .cloned()
                .collect(),
            runs: reads.runs.iter().filter(|id| !self.runs.contains_key(&(org.clone(), **id))).copied().collect(),
            agents: reads.agents.iter().filter(|id| !self.agents.contains_key(&(org.clone(), **id))).copied().collect(),
            crowd: if self.crowd.is_none() { reads.crowd } else { 0 },
            jobs: reads.jobs.iter().filter(|id| !has_job(id)).copied().collect(),
            records: reads.records.iter().filter(|id| !has_record(id)).copied().collect(),
            dedupes: (reads.dedupes.iter())
                .filter(|k| !self.dedupes.contains_key(&(org.clone(), (*k).clone())))
                .cloned()
                .collect(),
            messages: (reads.messages.iter())
                .filter(|id| !self.messages.contains_key(&(org.clone(), (*id).clone())))
                .cloned()
                .collect(),
            requeued: (reads.requeued.iter()).filter(|id| !self.requeued.contains(org, id)).copied().collect(),
            lanes: (reads.lanes.iter()).filter(|k| !self.lanes.contains(org, k)).cloned().collect(),
            seal: reads.seal && !self.seals.contains_key(&(org.clone(), ())),
            timers: reads.timers.iter().filter(|k| !has_timer(k)).copied().collect::<BTreeSet<_>>(),
        }
    }
}
