//! What every measurement needs: a store as in production, job types that do nothing, and ears.

use anyhow::{Context, Result};
use baton_core::command::Actor;
use baton_core::definition::JobType;
use baton_core::event::Note;
use baton_core::job::batch::Batch;
use baton_core::job::enqueue::Enqueue;
use baton_core::lane::{Limit, Rule};
use baton_core::rules::Rules;
use baton_core::{JobId, Json, OrgId};
use baton_engine::{JobCx, OsEntropy, Outcome, Registry, SystemClock};
use baton_sim::lab::{Lab, name};
use baton_store::{Backend, Observer, OpenOptions, Store};
use serde_json::json;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;
use tokio::time::Instant;

/// How the jobs of a backlog stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// All in one lane without a limit.
    Open,
    /// In the lanes of a thousand projects, one at a time each.
    Lanes,
    /// In the lane of one project.
    Serial,
}

impl Shape {
    pub const ALL: [Self; 3] = [Self::Open, Self::Lanes, Self::Serial];

    pub const fn word(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Lanes => "lanes",
            Self::Serial => "serial",
        }
    }

    pub const fn text(self) -> &'static str {
        match self {
            Self::Open => "a lane without limit",
            Self::Lanes => "1,000 lanes of one",
            Self::Serial => "one lane of one",
        }
    }

    const fn projects(self) -> usize {
        match self {
            Self::Lanes => 1_000,
            Self::Open | Self::Serial => 1,
        }
    }

    fn rule(self) -> Rule {
        match self {
            Self::Open => Rule::Own { key: name("open"), limit: Limit::None, depth: None },
            Self::Lanes | Self::Serial => Rule::Project,
        }
    }
}

/// What the handlers saw, and what the store says became of jobs.
#[derive(Clone)]
pub struct Ears {
    pub ran: Arc<Mutex<Vec<(JobId, Instant)>>>,
    /// Jobs that run now, by project.
    running: Arc<Vec<AtomicU32>>,
    pub overfull: Arc<AtomicUsize>,
    pub completed: Arc<AtomicUsize>,
    pub wanted: Arc<AtomicUsize>,
    pub all: Arc<Notify>,
}

impl Ears {
    pub fn new() -> Self {
        Self {
            ran: Arc::default(),
            running: Arc::new((0..1_000).map(|_| AtomicU32::new(0)).collect()),
            overfull: Arc::default(),
            completed: Arc::default(),
            wanted: Arc::new(AtomicUsize::new(usize::MAX)),
            all: Arc::default(),
        }
    }

    pub fn ran(&self) -> MutexGuard<'_, Vec<(JobId, Instant)>> {
        self.ran.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for Ears {
    fn committed(&self, notes: &[Note]) {
        let ended = notes.iter().filter(|note| note.what == "job.completed").count();
        let completed = self.completed.fetch_add(ended, Ordering::SeqCst) + ended;
        if completed >= self.wanted.load(Ordering::SeqCst) {
            self.all.notify_one();
        }
    }
}

/// A type whose handler does nothing but say that it ran.
pub fn registry(shape: Shape, ears: &Ears) -> Registry {
    let mut registry = Registry::empty();
    let kind = JobType { lane: shape.rule(), ..JobType::new(name("work"), 1, "") };
    let (ears, limited) = (ears.clone(), shape != Shape::Open);
    let done = Json::of(&json!({}));
    registry.add(kind, move |cx: JobCx, _: Json| {
        let project = cx.job.project.as_str()[1..].parse().unwrap_or(0);
        let running = &ears.running[project];
        if running.fetch_add(1, Ordering::SeqCst) > 0 && limited {
            ears.overfull.fetch_add(1, Ordering::SeqCst);
        }
        ears.ran().push((cx.job.id, Instant::now()));
        running.fetch_sub(1, Ordering::SeqCst);
        std::future::ready(Outcome::Done(done.clone()))
    });
    registry
}

/// As in production: no faults, real clock, real randomness. There is room for every job.
pub async fn open(lab: &Lab, node: &str, registry: &Registry, ears: &Ears) -> Result<Store> {
    let rules = Rules { max_per_project: u32::MAX, max_global: u32::MAX, retained: u32::MAX, ..Rules::default() };
    let definitions = Arc::new(registry.definitions(rules));
    let mut options =
        OpenOptions::new(lab.data_dir(node), Arc::new(SystemClock), Arc::new(OsEntropy::default()), definitions);
    options.observer = Some(Arc::new(ears.clone()));
    if let Some(url) = lab.url() {
        options.backend = Backend::Postgres(url.to_owned());
    }
    Store::open(options).await.context("opening the store")
}

pub fn job(n: usize, shape: Shape) -> Enqueue {
    let project = name(&format!("p{}", n % shape.projects()));
    Enqueue::new(OrgId::default(), project, name("work"), Json::of(&json!({ "n": n })))
}

/// Brings so many jobs in, in batches of this size.
pub async fn fill(store: &Store, shape: Shape, jobs: usize, batch: usize) -> Result<()> {
    let mut n = 0;
    while n < jobs {
        let more = batch.min(jobs - n);
        let jobs = (n..n + more).map(|n| job(n, shape)).collect();
        store.commit(Batch { org: OrgId::default(), jobs }, Actor::Api).await?;
        n += more;
    }
    Ok(())
}
