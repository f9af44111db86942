//! Job types with the code that runs them, registered in one place.

use crate::builtin;
use baton_core::Micros;
use baton_core::canon::Json;
use baton_core::definition::{Definitions, JobType};
use baton_core::job::{Failure, Job, Kind};
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

/// What a handler sees of the job it runs.
#[derive(Clone, Debug)]
pub struct JobCx {
    /// As it stood when it was claimed, with its lease.
    pub job: Job,
    /// When it was claimed. Handlers have no other clock.
    pub at: Micros,
}

/// How a handler ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Done(Json),
    Failed(Failure),
    /// Wait without holding a worker: until a moment, until woken, or both. `seen` is the count
    /// of wake-ups the handler knew of (`cx.job.wakes`): a later one makes the job due at once.
    Park {
        until: Option<Micros>,
        seen: i64,
    },
}

pub type Running = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// Runs jobs of one type. May be run again after a crash: it never has to be deterministic, but
/// what it does outside must bear repeating.
pub trait Handler: Send + Sync + 'static {
    fn run(&self, cx: JobCx, payload: Json) -> Running;
}

impl<F, Fut> Handler for F
where
    F: Fn(JobCx, Json) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Outcome> + Send + 'static,
{
    fn run(&self, cx: JobCx, payload: Json) -> Running {
        Box::pin(self(cx, payload))
    }
}

#[derive(Clone, Default)]
pub struct Registry {
    entries: BTreeMap<Kind, (JobType, Arc<dyn Handler>)>,
}

impl Registry {
    pub fn empty() -> Self {
        Self::default()
    }

    /// What every Baton can run.
    pub fn builtin() -> Self {
        let mut all = Self::empty();
        all.add(builtin::noop(), builtin::run_noop);
        all.add(builtin::echo(), builtin::run_echo);
        all
    }

    pub fn add(&mut self, kind: JobType, handler: impl Handler) {
        self.entries.insert(kind.kind(), (kind, Arc::new(handler)));
    }

    pub fn definitions(&self) -> Definitions {
        Definitions::of(self.entries.values().map(|(kind, _)| kind.clone()))
    }

    pub fn kinds(&self) -> Vec<Kind> {
        self.entries.keys().cloned().collect()
    }

    pub fn handler(&self, kind: &Kind) -> Option<Arc<dyn Handler>> {
        self.entries.get(kind).map(|(_, handler)| handler.clone())
    }
}
