//! A large backlog drains, correctly: every job once, no lane over its limit, the history whole.
//!
//! Not a benchmark, but it says how fast it went.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool of developers")]

use anyhow::{Context, Result, bail, ensure};
use baton_core::OrgId;
use baton_core::command::Actor;
use baton_core::definition::JobType;
use baton_core::job::batch::Batch;
use baton_core::job::enqueue::Enqueue;
use baton_core::lane::{Limit, Rule};
use baton_core::limits::BATCH_JOBS;
use baton_core::rules::Rules;
use baton_core::{JobId, Json};
use baton_engine::{Engine, JobCx, Options, OsEntropy, Outcome, Registry, SystemClock};
use baton_sim::lab::{Lab, Place, name};
use baton_store::{Backend, OpenOptions, Store};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

const JOBS: usize = 200_000;
const LANES: usize = 1_000;
const SLOTS: usize = 200;
/// A drain that makes no progress for so long is stuck.
const STUCK: Duration = Duration::from_secs(60);

/// What the handlers see.
#[derive(Clone, Default)]
struct Tally {
    runs: Arc<Mutex<BTreeMap<JobId, u32>>>,
    lanes: Arc<Mutex<BTreeMap<String, (u32, u32)>>>,
}

#[tokio::main]
async fn main() -> Result<()> {
    let jobs = match std::env::args().nth(1) {
        Some(text) => text.parse().with_context(|| format!("{text} is not a number of jobs"))?,
        None => JOBS,
    };
    for place in [Place::Sqlite, Place::Postgres] {
        for (shape, limit) in [("one lane without a limit", Limit::None), ("1,000 lanes of one", Limit::At(1))] {
            match Lab::new(place, None).await? {
                Some(lab) => drain(&lab, shape, limit, jobs).await.with_context(|| format!("{shape} on {place:?}"))?,
                None => bail!("no PostgreSQL: run with `cargo xtask soak`"),
            }
        }
    }
    Ok(())
}

fn registry(limit: Limit, tally: &Tally) -> Registry {
    let lane = Rule::Own { key: name("{payload.lane}"), limit, depth: None };
    let kind = JobType { lane, ..JobType::new(name("work"), 1, "") };
    let mut registry = Registry::empty();
    let tally = tally.clone();
    registry.add(kind, move |cx: JobCx, _: Json| {
        let lane = cx.job.lane.key.to_string();
        *tally.runs.lock().unwrap_or_else(PoisonError::into_inner).entry(cx.job.id).or_default() += 1;
        tally.enter(&lane);
        let tally = tally.clone();
        async move {
            tokio::task::yield_now().await;
            tally.leave(&lane);
            Outcome::Done(Json::of(&json!({})))
        }
    });
    registry
}

impl Tally {
    fn enter(&self, lane: &str) {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        let (now, most) = lanes.entry(lane.to_owned()).or_default();
        *now += 1;
        *most = (*most).max(*now);
    }

    fn leave(&self, lane: &str) {
        if let Some((now, _)) = self.lanes.lock().unwrap_or_else(PoisonError::into_inner).get_mut(lane) {
            *now -= 1;
        }
    }
}

async fn drain(lab: &Lab, shape: &str, limit: Limit, jobs: usize) -> Result<()> {
    let tally = Tally::default();
    let registry = registry(limit, &tally);
    let rules = Rules { max_per_project: u32::MAX, max_global: u32::MAX, ..Rules::default() };
    let clock = Arc::new(SystemClock);
    let mut options = OpenOptions::new(
        lab.data_dir("backlog"),
        clock,
        Arc::new(OsEntropy::default()),
        Arc::new(registry.definitions(rules)),
    );
    if let Some(url) = lab.url() {
        options.backend = Backend::Postgres(url.to_owned());
    }
    let store = Store::open(options).await?;
    let began = Instant::now();
    let all: Vec<usize> = (0..jobs).collect();
    for chunk in all.chunks(BATCH_JOBS) {
        store.commit(batch(chunk, limit), Actor::Api).await?;
    }
    let enqueued = began.elapsed();
    let mut settings = Options::new(name("node_a"));
    settings.slots = SLOTS;
    let began = Instant::now();
    let engine = Engine::start(store, registry, settings).await?;
    wait(&engine).await?;
    let drained = began.elapsed();
    let rate = |took: Duration| jobs as f64 / took.as_secs_f64();
    println!(
        "{:<8} {shape:<26} {jobs:>8} jobs: enqueued {:>8.0}/s, drained {:>7.0}/s",
        engine.store().name(),
        rate(enqueued),
        rate(drained)
    );
    check(&engine, &tally, limit, jobs).await?;
    engine.stop(Duration::from_secs(5)).await;
    Ok(())
}

fn batch(numbers: &[usize], limit: Limit) -> Batch {
    let job = |n: &usize| {
        let lane = if limit == Limit::None { 0 } else { n % LANES };
        let payload = Json::of(&json!({ "lane": format!("lane-{lane}") }));
        Enqueue::new(OrgId::default(), name(&format!("p{}", n % LANES)), name("work"), payload)
    };
    Batch { org: OrgId::default(), jobs: numbers.iter().map(job).collect() }
}

async fn wait(engine: &Engine) -> Result<()> {
    let (mut before, mut since) = (i64::MAX, Instant::now());
    loop {
        let left: i64 = engine.store().depths().await?.iter().map(|depth| depth.jobs).sum();
        if left == 0 {
            return Ok(());
        }
        if left < before {
            (before, since) = (left, Instant::now());
        }
        ensure!(since.elapsed() < STUCK, "{left} jobs are left and nothing moves");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

async fn check(engine: &Engine, tally: &Tally, limit: Limit, jobs: usize) -> Result<()> {
    let runs = tally.runs.lock().unwrap_or_else(PoisonError::into_inner).clone();
    ensure!(runs.len() == jobs, "{} of {jobs} jobs ran", runs.len());
    ensure!(runs.values().all(|n| *n == 1), "a job ran twice");
    if limit == Limit::At(1) {
        let lanes = tally.lanes.lock().unwrap_or_else(PoisonError::into_inner).clone();
        ensure!(lanes.values().all(|(_, most)| *most == 1), "a lane was overfull");
    }
    let report = engine.audit().await?;
    ensure!(report.is_clean(), "{:?}", report.violations);
    ensure!(report.events >= 3 * jobs as u64, "{} events", report.events);
    Ok(())
}
