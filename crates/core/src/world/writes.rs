//! What became of the world's rows, and so what must be written.

use super::{AgentWrite, Entry, JobWrite, Message, Sunk, World};
use crate::canon::Json;
use crate::definition::{self, Definition};
use crate::doc::{self, Doc};
use crate::event::{Note, Recorded};
use crate::id::{JobId, RunId};
use crate::job::prune::Pruned;
use crate::job::{Cold, Job};
use crate::lane::{self, LaneKey};
use crate::ledger::Posting;
use crate::name::OrgId;
use crate::run::Run;
use crate::run::record::Record;
use crate::seal::Seal;
use crate::time::Micros;
use crate::{dedupe, once, sink, timer};
use std::sync::Arc;

impl World {
    pub fn is_clean(&self) -> bool {
        self.events.is_empty()
            && self.new_seals.is_empty()
            && self.versions.is_empty()
            && !self.jobs.values().any(|e| e.touched)
            && !self.timers.values().any(|e| e.touched)
            && !self.onces.values().any(|e| e.touched)
            && !self.lanes.values().any(|e| e.touched)
            && !self.messages.values().any(|e| e.touched)
            && !self.docs.values().any(|e| e.touched)
            && self.sinks.is_empty()
            && !self.runs.values().any(|e| e.touched)
            && !self.agents.values().any(|e| e.touched)
            && self.records.is_empty()
            && self.postings.is_empty()
    }

    /// Whether nobody stood for this job's dedupe key when it was looked at. Where others write at the
    /// same time, that must still be so when the job is written.
    pub fn found_free(&self, job: &Job) -> bool {
        let key = job.dedupe.as_ref().map(|text| dedupe::Key { kind: job.kind.name.clone(), text: text.clone() });
        key.is_some_and(|key| self.free_keys.contains(&(job.org.clone(), key)))
    }

    /// New jobs last, in the order they came: one may take over a key that another gives up.
    pub fn job_writes(&self) -> impl Iterator<Item = JobWrite<'_>> {
        let created = self.created.iter().filter_map(|(org, id)| {
            let job = self.job(org, *id)?;
            Some(JobWrite::Insert(job, self.colds.get(org, id)?, self.endings.get(org, id)))
        });
        let touched = self.jobs.iter().filter(|(_, _, e)| e.touched && e.found).filter_map(|(org, id, e)| {
            let job = e.now.as_ref()?;
            let ending = if job.is_ended() { self.endings.get(org, id) } else { None };
            Some(match ending {
                Some(ending) => JobWrite::End(job, ending),
                None => JobWrite::Update(job),
            })
        });
        touched.chain(created)
    }

    /// Whether a job that was there before is to be written.
    pub fn changes_job(&self, org: &OrgId, id: JobId) -> bool {
        self.jobs.get(org, &id).is_some_and(|e| e.touched && e.found)
    }

    /// The jobs that were there before, as they are now, once nothing else is wanted of any; and new ones that are held.
    pub fn take_changed_jobs(&mut self) -> impl Iterator<Item = Arc<Job>> + use<> {
        let held = |e: &Entry<Arc<Job>>| e.now.as_ref().is_some_and(|job| job.status.lease().is_some());
        let jobs = std::mem::take(&mut self.jobs).into_values();
        jobs.filter(move |e| e.touched && (e.found || held(e))).filter_map(|e| e.now)
    }

    /// New jobs that have not ended, in the order they came.
    pub fn newborn(&self) -> impl Iterator<Item = (&Arc<Job>, &Cold)> {
        let alive = self.created.iter().filter(|(org, id)| !self.endings.contains(org, id));
        alive.filter_map(|(org, id)| Some((self.jobs.get(org, id)?.now.as_ref()?, self.colds.get(org, id)?)))
    }

    pub fn definition_writes(&self) -> impl Iterator<Item = (&OrgId, &definition::Key, &Definition)> {
        let touched = self.definitions.iter().filter(|(_, e)| e.touched);
        touched.filter_map(|((org, key), e)| Some((org, key, e.now.as_ref()?)))
    }

    pub fn version_writes(&self) -> &[(OrgId, definition::Change)] {
        &self.versions
    }

    /// `None` is a timer to delete.
    pub fn timer_writes(&self) -> impl Iterator<Item = (&OrgId, &timer::Key, Option<Micros>)> {
        self.timers.iter().filter(|(_, e)| e.touched).map(|((org, key), e)| (org, key, e.now))
    }

    pub fn once_writes(&self) -> impl Iterator<Item = (&once::Key, &once::Record)> {
        self.onces.iter().filter(|(_, e)| e.touched).filter_map(|(key, e)| Some((key, e.now.as_ref()?)))
    }

    /// Jobs that were there before and have another payload now.
    pub fn payload_writes(&self) -> impl Iterator<Item = (&OrgId, JobId, &Json)> {
        let created = |org: &OrgId, id: &JobId| self.created.iter().any(|(of, new)| new == id && of == org);
        let old = self.repaid.iter().filter(move |(org, id, ())| !created(org, id));
        old.filter_map(|(org, id, ())| Some((org, *id, self.payloads.get(org, id)?)))
    }

    pub fn lane_writes(&self) -> impl Iterator<Item = (&OrgId, &LaneKey, &lane::Row)> {
        let touched = self.lanes.iter().filter(|(_, _, e)| e.touched);
        touched.filter_map(|(org, key, e)| Some((org, key, e.now.as_ref()?)))
    }

    /// A lane as it is to be written, if it is.
    pub fn lane_write(&self, org: &OrgId, key: &LaneKey) -> Option<&lane::Row> {
        self.lanes.get(org, key).filter(|entry| entry.touched)?.now.as_ref()
    }

    /// Lanes that had no row before.
    pub fn lane_is_new(&self, org: &OrgId, key: &LaneKey) -> bool {
        self.lanes.get(org, key).is_some_and(|entry| !entry.found)
    }

    /// By how much the number of those who wait has changed.
    pub const fn crowd_delta(&self) -> i64 {
        self.crowd_delta
    }

    pub fn doc_writes(&self) -> impl Iterator<Item = (&OrgId, &doc::Key, &Doc)> {
        let touched = self.docs.iter().filter(|(_, e)| e.touched);
        touched.filter_map(|((org, key), e)| Some((org, key, e.now.as_ref()?)))
    }

    /// Whether the run was there before, and what it is now.
    pub fn run_writes(&self) -> impl Iterator<Item = (bool, &Run)> {
        self.runs.values().filter(|e| e.touched).filter_map(|e| Some((e.found, e.now.as_ref()?)))
    }

    pub fn agent_writes(&self) -> impl Iterator<Item = AgentWrite<'_>> {
        self.agents.values().filter(|e| e.touched).filter_map(|e| {
            let agent = e.now.as_ref()?;
            Some(AgentWrite { found: e.found, moved: self.moved.contains(&agent.id), agent })
        })
    }

    /// New runs: their documents and their plans.
    pub fn plan_writes(&self) -> &[(OrgId, RunId, Json, Json)] {
        &self.plans
    }

    pub fn record_writes(&self) -> &[(OrgId, Record)] {
        &self.records
    }

    pub fn posting_writes(&self) -> &[(OrgId, Posting)] {
        &self.postings
    }

    pub fn message_writes(&self) -> impl Iterator<Item = (&OrgId, &str, Message)> {
        let touched = self.messages.iter().filter(|(_, e)| e.touched);
        touched.filter_map(|((org, id), e)| Some((org, id.as_str(), e.now?)))
    }

    pub fn sink_writes(&self) -> impl Iterator<Item = (&OrgId, &sink::Key, &Sunk)> {
        self.sinks.iter().map(|((org, key), row)| (org, key, row))
    }

    pub fn prune_writes(&self) -> &[(OrgId, Pruned)] {
        &self.pruned
    }

    /// For logs and counters, once it is committed.
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    pub fn seal_writes(&self) -> &[Seal] {
        &self.new_seals
    }

    pub fn events(&self) -> &[Recorded] {
        &self.events
    }
}
