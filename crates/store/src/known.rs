//! The definitions that decisions are made with: those of this binary, and those that were registered.
//!
//! What is registered is learned in the moment of its commit, or when the store is opened. Of what another node
//! registered a node hears soon, and at the latest when it meets a job or an order that it cannot understand.

use crate::ports::Shapes;
use baton_core::World;
use baton_core::command::Reads;
use baton_core::definition::{Class, Definitions, Entry, JobType};
use baton_core::{OrgId, TypeName};
use serde_json::Value;
use std::sync::{Arc, PoisonError, RwLock};

pub(crate) struct Known {
    now: RwLock<Arc<Definitions>>,
    shapes: Option<Arc<dyn Shapes>>,
}

/// A version as it is stored.
pub(crate) struct Stored {
    pub org: OrgId,
    pub name: TypeName,
    pub version: u32,
    pub body: String,
}

impl Known {
    pub fn new(base: Arc<Definitions>, shapes: Option<Arc<dyn Shapes>>) -> Self {
        Self { now: RwLock::new(base), shapes }
    }

    pub fn get(&self) -> Arc<Definitions> {
        self.now.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A body that this binary cannot read stays unknown: a newer one wrote it.
    pub fn learn(&self, stored: impl IntoIterator<Item = Stored>) {
        let before = self.get();
        let new = stored.into_iter().filter(|s| !before.knows(&s.org, &s.name, s.version));
        let entries: Vec<(OrgId, Entry)> = new.filter_map(|s| Some((s.org.clone(), self.entry(&s)?))).collect();
        if entries.is_empty() {
            return;
        }
        let mut now = self.now.write().unwrap_or_else(PoisonError::into_inner);
        let all = Arc::make_mut(&mut now);
        for (org, entry) in entries {
            all.learn(&org, entry);
        }
    }

    /// A type of everybody's that workers serve from now on.
    pub fn declare(&self, job_type: JobType) {
        let entry = self.entry_of(job_type);
        let mut now = self.now.write().unwrap_or_else(PoisonError::into_inner);
        Arc::make_mut(&mut now).declare(entry);
    }

    /// What a group that was committed has registered.
    pub fn learn_from(&self, world: &World) {
        let types = world.version_writes().iter().filter(|(_, change)| change.key.class == Class::JobType);
        self.learn(types.map(|(org, change)| Stored {
            org: org.clone(),
            name: change.key.name.clone(),
            version: change.version,
            body: change.body.as_str().to_owned(),
        }));
    }

    fn entry(&self, stored: &Stored) -> Option<Entry> {
        let job_type: JobType = match serde_json::from_str(&stored.body) {
            Ok(job_type) => job_type,
            Err(e) => {
                let Stored { org, name, version, .. } = stored;
                tracing::warn!(%org, %name, version, %e, "a registered job type cannot be read; jobs of it wait");
                return None;
            }
        };
        Some(self.entry_of(job_type))
    }

    fn entry_of(&self, job_type: JobType) -> Entry {
        let shape = |schema: &Option<Value>| Some(self.shapes.as_ref()?.of(schema.as_ref()?));
        let (payload, result) = (shape(&job_type.payload_schema), shape(&job_type.result_schema));
        Entry { payload, result, ..Entry::plain(job_type) }
    }
}

/// Whether a group has met something that is registered, but not known: a job's kind, or an order's type.
pub(crate) fn puzzled<'a>(
    world: &World,
    reads: impl Iterator<Item = (&'a OrgId, &'a Reads)>,
    defs: &Definitions,
) -> bool {
    for (org, reads) in reads {
        let view = world.view(org);
        let kinds = reads.jobs.iter().chain(&reads.records).filter_map(|id| view.job(*id));
        if kinds.filter(|job| !job.is_ended()).any(|job| defs.entry(org, &job.kind).is_none()) {
            return true;
        }
        let newer = |key: &baton_core::definition::Key| {
            let versions = view.definition(key).map(|known| known.versions.keys());
            versions.is_some_and(|mut versions| versions.any(|version| !defs.knows(org, &key.name, *version)))
        };
        if reads.definitions.iter().any(newer) {
            return true;
        }
    }
    false
}
