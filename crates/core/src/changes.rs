//! What a decision asks to be written: a struct of per-domain parts, each applied by its own
//! code in each store, never one enum of everything.

use crate::event::{Event, Note};
use crate::id::JobId;
use crate::{definition, doc, job, ledger, run, seal, sink, timer};

#[derive(Clone, Debug, Default)]
pub struct Changes {
    pub events: Vec<Event>,
    pub jobs: Vec<job::Change>,
    pub timers: Vec<timer::Change>,
    pub definitions: Vec<definition::Change>,
    pub seals: Vec<seal::Seal>,
    pub docs: Vec<doc::Change>,
    pub sinks: Vec<sink::Row>,
    /// Message ids with the jobs they stand for.
    pub messages: Vec<(String, JobId)>,
    pub pruned: Vec<job::prune::Pruned>,
    pub notes: Vec<Note>,
    pub runs: Vec<run::Change>,
    pub agents: Vec<run::Agent>,
    /// What has ended of runs.
    pub records: Vec<run::record::Record>,
    pub postings: Vec<ledger::Posting>,
}

impl Changes {
    pub fn none() -> Self {
        Self::default()
    }

    #[must_use]
    pub fn event(mut self, event: Event) -> Self {
        self.events.push(event);
        self
    }

    #[must_use]
    pub fn job(mut self, change: job::Change) -> Self {
        self.jobs.push(change);
        self
    }

    #[must_use]
    pub fn doc(mut self, change: doc::Change) -> Self {
        self.docs.push(change);
        self
    }

    /// Both, in the order of happening.
    #[must_use]
    pub fn and(mut self, after: Self) -> Self {
        self.events.extend(after.events);
        self.jobs.extend(after.jobs);
        self.timers.extend(after.timers);
        self.definitions.extend(after.definitions);
        self.seals.extend(after.seals);
        self.docs.extend(after.docs);
        self.sinks.extend(after.sinks);
        self.messages.extend(after.messages);
        self.pruned.extend(after.pruned);
        self.notes.extend(after.notes);
        self.runs.extend(after.runs);
        self.agents.extend(after.agents);
        self.records.extend(after.records);
        self.postings.extend(after.postings);
        self
    }

    #[must_use]
    pub fn timer(mut self, change: timer::Change) -> Self {
        self.timers.push(change);
        self
    }
}
