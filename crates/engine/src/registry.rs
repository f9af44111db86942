//! Job types with the code that runs them, registered in one place.

use crate::builtin;
use crate::definition::{self, JobDefinition};
use crate::job_cx::JobCx;
use crate::run::{Toolbox, Worker};
use crate::webhook::Deliver;
use baton_core::Micros;
use baton_core::TypeName;
use baton_core::canon::Json;
use baton_core::definition::{Definitions, Entry, JobType};
use baton_core::job::{Context, Failure, Kind};
use baton_core::plan::Tools;
use baton_core::rules::Rules;
use baton_core::run::{AGENT_JOB, agent_job_type};
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

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
    /// Wait for a person's answer, which the next run finds in its context.
    Ask(Json),
    /// Not finished, and nobody's fault: somebody else, or a later life, goes on with it.
    GiveBack,
}

pub type Running = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// Runs jobs of one type. May be run again after a crash: it never has to be deterministic, but
/// what it does outside must bear repeating.
pub trait Handler: Send + Sync + 'static {
    fn run(&self, cx: JobCx, payload: Json) -> Running;

    /// Somebody wants the job to end: interrupts what it works on outside. The job itself hears
    /// through [`JobCx::cancelled`].
    fn interrupt(&self, context: Context) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let _ = context;
        Box::pin(std::future::ready(()))
    }
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

/// The type of jobs that work on agents.
pub(crate) fn agent_type() -> JobType {
    let name = AGENT_JOB.parse::<TypeName>().unwrap_or_else(|e| unreachable!("{AGENT_JOB}: {e}"));
    agent_job_type(name)
}

#[derive(Clone, Default)]
pub struct Registry {
    known: Option<Arc<Tools>>,
    entries: BTreeMap<Kind, (Entry, Arc<dyn Handler>)>,
    /// Types that workers outside serve, for everybody.
    declared: BTreeMap<TypeName, JobType>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is a job type {0} already")]
pub struct TypeTaken(pub TypeName);

impl Registry {
    pub fn empty() -> Self {
        Self::default()
    }

    /// What every Baton can run.
    pub fn builtin() -> Self {
        let mut all = Self::empty();
        builtin::register(&mut all);
        all
    }

    /// A job type with nothing but a handler. Its schemas are not checked.
    pub fn add(&mut self, job_type: JobType, handler: impl Handler) {
        self.insert(Entry::plain(job_type), Arc::new(handler));
    }

    /// A typed job type with its hooks and schemas.
    pub fn define(&mut self, definition: impl JobDefinition) {
        let (entry, handler) = definition::parts(definition);
        self.insert(entry, handler);
    }

    fn insert(&mut self, entry: Entry, handler: Arc<dyn Handler>) {
        self.entries.insert(entry.job_type.kind(), (entry, handler));
    }

    /// A type that workers outside serve. Its version is counted when it is registered.
    pub fn declare(&mut self, job_type: JobType) -> Result<(), TypeTaken> {
        let name = &job_type.name;
        if self.declared.contains_key(name) || self.entries.keys().any(|kind| kind.name == *name) {
            return Err(TypeTaken(name.clone()));
        }
        self.declared.insert(name.clone(), job_type);
        Ok(())
    }

    pub(crate) fn declared(&self) -> impl Iterator<Item = &JobType> {
        self.declared.values()
    }

    /// Works on the agents of runs, with these tools.
    pub fn work(&mut self, toolbox: Toolbox) {
        self.known = Some(Arc::new(toolbox.known().clone()));
        // Their names begin as no other's do.
        self.declared.extend(toolbox.remote().map(|kind| (kind.name.clone(), kind.clone())));
        self.add(agent_type(), Worker::new(toolbox));
    }

    /// The tools that run documents may name; nothing if agents are not worked on here.
    pub fn tools(&self) -> Option<Arc<Tools>> {
        self.known.clone()
    }

    /// Tells webhooks what happens, with this.
    pub fn deliver(&mut self, deliver: Deliver) {
        self.add(baton_core::webhook::job_type(), deliver);
    }

    pub(crate) fn delivers(&self) -> bool {
        self.entries.contains_key(&baton_core::webhook::job_type().kind())
    }

    pub fn definitions(&self, rules: Rules) -> Definitions {
        Definitions::with(self.entries.values().map(|(entry, _)| entry.clone()), rules)
    }

    /// The same with types whose handlers come later.
    pub fn definitions_with(&self, rules: Rules, more: impl IntoIterator<Item = JobType>) -> Definitions {
        let more = more.into_iter().map(Entry::plain);
        Definitions::with(self.entries.values().map(|(entry, _)| entry.clone()).chain(more), rules)
    }

    pub fn job_types(&self) -> impl Iterator<Item = &JobType> {
        self.entries.values().map(|(entry, _)| &entry.job_type)
    }

    /// Whether only the engine asks for jobs of this type.
    pub fn is_internal(&self, kind: &Kind) -> bool {
        self.entries.get(kind).is_some_and(|(entry, _)| entry.job_type.internal)
    }

    pub fn kinds(&self) -> Vec<Kind> {
        self.entries.keys().cloned().collect()
    }

    pub fn handler(&self, kind: &Kind) -> Option<Arc<dyn Handler>> {
        self.entries.get(kind).map(|(_, handler)| handler.clone())
    }
}
