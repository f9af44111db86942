//! What a step costs: runs of fifteen steps, one after the other, that call a tool which does nothing, through
//! the engine; events and ledger are written. Beside the raw limit of the same database in the same run: one
//! row per durable commit, and as many rows in one commit as there are runs at once.
//!
//! Before it ten thousand runs that wait, after it one with ten thousand steps, which must not get slower.
//! `--only sqlite|postgres` leaves the other out, `--at-once 1|32` everything but the short runs so
//! many at once: for tuning.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool of developers")]

use anyhow::{Context, Result, ensure};
use baton_core::command::Actor;
use baton_core::credits::Credits;
use baton_core::event::Note;
use baton_core::ledger::grant::Grant;
use baton_core::plan::{self, Doer, Effect};
use baton_core::rules::Rules;
use baton_core::run::State;
use baton_core::run::create::Create;
use baton_core::run::start::Start;
use baton_core::{JobId, OrgId, RunId};
use baton_engine::run::{Called, Tool, ToolCall, Toolbox};
use baton_engine::{Engine, Options, OsEntropy, Registry, SystemClock};
use baton_sim::lab::{Lab, Place, name};
use baton_sim::run_lab::{create, even};
use baton_sim::schema;
use baton_store::raw::{RawPostgres, RawSqlite};
use baton_store::{Backend, Observer, OpenOptions, Store};
use futures_util::future::try_join_all;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

const STEPS: usize = 15;
const AT_ONCE: [usize; 2] = [1, 32];
const WARM_UP: Duration = Duration::from_millis(500);
const MEASURE: Duration = Duration::from_secs(4);
/// Measurements of each; the middle one counts.
const ROUNDS: usize = 3;
const LONG: usize = 10_000;
const WAITING: usize = 10_000;
/// Runs that are made to wait at once.
const MADE_AT_ONCE: usize = 64;

struct Figure {
    store: &'static str,
    metric: String,
    value: f64,
    unit: &'static str,
    limit: Option<f64>,
}

/// Does nothing, and remembers when.
#[derive(Clone, Default)]
struct Noop {
    calls: Arc<AtomicU64>,
    last: Arc<Mutex<BTreeMap<RunId, Instant>>>,
    gaps: Arc<Mutex<Vec<Duration>>>,
    marks: Arc<Mutex<Vec<Instant>>>,
}

/// Hears when jobs have ended. Looking at runs all the time would cost more than they do.
#[derive(Default)]
struct Ends(Mutex<BTreeMap<JobId, Arc<Notify>>>);

impl Ends {
    /// Told when the job has ended, or at once if it has.
    fn of(&self, job: JobId) -> Arc<Notify> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(job).or_default().clone()
    }

    fn forget(&self, job: JobId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&job);
    }
}

impl Observer for Ends {
    fn committed(&self, notes: &[Note]) {
        for note in notes.iter().filter(|note| ["job.completed", "job.failed", "job.cancelled"].contains(&note.what)) {
            self.of(note.job).notify_one();
        }
    }
}

impl Noop {
    /// Between two calls of one run nothing happens but what a step costs.
    fn called(&self, run: RunId) {
        let now = Instant::now();
        self.calls.fetch_add(1, Ordering::Relaxed);
        let before = self.last.lock().unwrap_or_else(PoisonError::into_inner).insert(run, now);
        if let Some(before) = before {
            self.gaps.lock().unwrap_or_else(PoisonError::into_inner).push(now - before);
        }
        self.marks.lock().unwrap_or_else(PoisonError::into_inner).push(now);
    }

    fn forget(&self) {
        self.calls.store(0, Ordering::Relaxed);
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.gaps.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.marks.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn gap(&self, share: f64) -> f64 {
        let mut gaps = self.gaps.lock().unwrap_or_else(PoisonError::into_inner).clone();
        gaps.sort_unstable();
        gaps.get((gaps.len() as f64 * share) as usize).map_or(0.0, |gap| gap.as_secs_f64() * 1e3)
    }
}

impl Tool for Noop {
    fn call(&self, call: ToolCall) -> Called {
        self.called(call.run);
        Box::pin(std::future::ready(Ok(Value::Null)))
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().collect();
    let asked = |flag: &str| args.iter().any(|arg| arg == flag);
    let json = asked("--json");
    let value = |flag: &str| args.iter().skip_while(|arg| *arg != flag).nth(1);
    let at_once: Option<usize> = value("--at-once").map(|n| n.parse()).transpose()?;
    ensure!(at_once.is_none_or(|n| AT_ONCE.contains(&n)), "--at-once is one of {AT_ONCE:?}");
    let only = value("--only").map(String::as_str);
    ensure!(matches!(only, None | Some("sqlite" | "postgres")), "--only is sqlite or postgres");
    let mut figures = Vec::new();
    for (place, name) in [(Place::Sqlite, "sqlite"), (Place::Postgres, "postgres")] {
        if only.is_some_and(|only| only != name) {
            continue;
        }
        match Lab::new(place, None).await? {
            Some(lab) => figures.extend(measure(&lab, at_once).await?),
            None => eprintln!("no PostgreSQL: run with `cargo xtask bench runs`"),
        }
    }
    print(&figures, json);
    Ok(())
}

struct Bench<'a> {
    lab: &'a Lab,
    store_name: &'static str,
    engine: Engine,
    noop: Noop,
    ends: Arc<Ends>,
    toolbox: Toolbox,
    figures: Vec<Figure>,
}

async fn measure(lab: &Lab, only: Option<usize>) -> Result<Vec<Figure>> {
    let noop = Noop::default();
    let mut toolbox = Toolbox::default();
    // A thousandth of a credit, so that the ledger is written.
    let price = Credits::from_micros(1_000).unwrap_or_default();
    let about = plan::Tool { doer: Doer::Tool, effect: Effect::Pure, price, timeout: None, attempts: Some(1) };
    toolbox.add(name("noop"), about, noop.clone())?;
    let mut registry = Registry::empty();
    registry.work(toolbox.clone());
    let ends = Arc::new(Ends::default());
    let store = open(lab, &registry, ends.clone()).await?;
    let grant =
        Grant { org: OrgId::default(), amount: Credits::whole(100_000_000), key: "bench".to_owned(), note: None };
    store.commit(grant, Actor::Api).await?;
    let engine = Engine::start(store, registry, Options::new(name("bench"))).await?;
    let store_name = if lab.url().is_some() { "postgres" } else { "sqlite" };
    let mut bench = Bench { lab, store_name, engine, noop, ends, toolbox, figures: Vec::new() };
    // First, while memory holds nothing else; they wait on beside all that follows.
    if only.is_none() {
        bench.waiting().await?;
    }
    for at_once in AT_ONCE.into_iter().filter(|n| only.is_none_or(|only| only == *n)) {
        bench.short(at_once).await?;
    }
    if only.is_none() {
        bench.long().await?;
    }
    bench.engine.stop(Duration::from_secs(30)).await;
    Ok(bench.figures)
}

/// As in production: no faults, real clock, real randomness.
async fn open(lab: &Lab, registry: &Registry, ends: Arc<Ends>) -> Result<Store> {
    let definitions = Arc::new(registry.definitions(Rules::default()));
    let mut options =
        OpenOptions::new(lab.data_dir("bench"), Arc::new(SystemClock), Arc::new(OsEntropy::default()), definitions);
    options.observer = Some(ends);
    if let Some(url) = lab.url() {
        options.backend = Backend::Postgres(url.to_owned());
    }
    Store::open(options).await.context("opening the store")
}

impl Bench<'_> {
    fn add(&mut self, metric: String, value: f64, unit: &'static str, limit: Option<f64>) {
        eprintln!("{:<10} {metric:<44} {value:>12.3} {unit}", self.store_name);
        self.figures.push(Figure { store: self.store_name, metric, value, unit, limit });
    }

    async fn begin(&self, create: Create) -> Result<RunId> {
        let (store, org) = (self.engine.store(), OrgId::default());
        let run = store.commit(create, Actor::Api).await?;
        store.commit(Start { org, run: run.id }, Actor::Api).await?;
        Ok(run.id)
    }

    /// From being made to having ended. It has one agent, so its one job ends right after it.
    async fn whole(&self, create: Create) -> Result<()> {
        let (store, org) = (self.engine.store(), OrgId::default());
        let run = store.commit(create, Actor::Api).await?;
        let started = store.commit(Start { org: org.clone(), run: run.id }, Actor::Api).await?;
        let job = started.job.context("a run that was started has a job")?;
        self.ends.of(job).notified().await;
        self.ends.forget(job);
        let ended = store.run(&org, run.id).await?.context("a run is never removed")?;
        ensure!(ended.state == State::Completed, "{ended:?}");
        Ok(())
    }

    async fn short(&mut self, at_once: usize) -> Result<()> {
        let create = create(&even(1, 1, STEPS, "noop"), self.toolbox.known())?;
        let mut rounds = Vec::new();
        for _ in 0..ROUNDS {
            let raw = raw(self.lab, at_once).await?;
            self.noop.forget();
            let runs = AtomicU64::new(0);
            let began = Instant::now();
            let end = began + WARM_UP + MEASURE;
            let this = &*self;
            let steps_before = &AtomicU64::new(u64::MAX);
            try_join_all((0..at_once).map(|_| async {
                while Instant::now() < end {
                    this.whole(create.clone()).await?;
                    if began.elapsed() > WARM_UP {
                        let so_far = this.noop.calls.load(Ordering::Relaxed);
                        steps_before.fetch_min(so_far, Ordering::Relaxed);
                        runs.fetch_add(1, Ordering::Relaxed);
                    }
                }
                anyhow::Ok(())
            }))
            .await?;
            let steps = self.noop.calls.load(Ordering::Relaxed) - steps_before.load(Ordering::Relaxed);
            let took = (began.elapsed() - WARM_UP).as_secs_f64();
            let (p50, p99) = (self.noop.gap(0.5), self.noop.gap(0.99));
            rounds.push((steps as f64 / took, runs.load(Ordering::Relaxed) as f64 / took, p50, p99, raw));
        }
        rounds.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (steps, runs, p50, p99, raw) = rounds[ROUNDS / 2];
        self.add(format!("raw step records, {at_once} at once"), raw, "rows/s", None);
        self.add(format!("steps, {at_once} runs at once"), steps, "steps/s", Some(raw));
        self.add(format!("runs of {STEPS} steps, {at_once} at once"), runs, "runs/s", None);
        self.add(format!("overhead per step p50, {at_once} runs at once"), p50, "ms", None);
        self.add(format!("overhead per step p99, {at_once} runs at once"), p99, "ms", None);
        Ok(())
    }

    /// The last tenth must not take longer than the first.
    async fn long(&mut self) -> Result<()> {
        self.noop.forget();
        self.whole(create(&even(1, 1, LONG, "noop"), self.toolbox.known())?).await?;
        let marks = self.noop.marks.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let tenth = LONG / 10;
        let took = |from: usize| (marks[from + tenth - 1] - marks[from]).as_secs_f64();
        let whole = (marks[LONG - 1] - marks[0]).as_secs_f64();
        self.add(format!("one run of {LONG} steps"), LONG as f64 / whole, "steps/s", None);
        let (first, last) = (tenth as f64 / took(0), tenth as f64 / took(LONG - tenth));
        self.add(format!("the last tenth of {LONG} steps"), last, "steps/s", Some(first));
        Ok(())
    }

    async fn waiting(&mut self) -> Result<()> {
        let document = json!({
            "name": "waits", "plan": { "agents": [{ "tasks": [{ "steps": [
                { "tool": "wait", "input": { "signal": "never" } },
            ] }] }] },
        });
        let waits = create(&document, self.toolbox.known())?;
        let (rss, bytes) = (resident()?, self.bytes().await?);
        let made = Mutex::new(Vec::with_capacity(WAITING));
        let began = Instant::now();
        let this = &*self;
        try_join_all((0..MADE_AT_ONCE).map(|_| async {
            loop {
                if made.lock().unwrap_or_else(PoisonError::into_inner).len() >= WAITING {
                    return anyhow::Ok(());
                }
                let id = this.begin(waits.clone()).await?;
                made.lock().unwrap_or_else(PoisonError::into_inner).push(id);
            }
        }))
        .await?;
        let made = made.into_inner().unwrap_or_else(PoisonError::into_inner);
        for id in &made {
            let waits = |agent: &baton_core::run::Agent| {
                agent.steps().any(|(_, _, step)| matches!(step.doing, baton_core::run::hand::Doing::Signal { .. }))
            };
            loop {
                let agents = self.engine.store().agents(&OrgId::default(), *id, 1, None, 1).await?;
                if agents.iter().any(waits) {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        let took = began.elapsed().as_secs_f64();
        let count = made.len() as f64;
        self.add(format!("runs made to wait, {MADE_AT_ONCE} at once"), count / took, "runs/s", None);
        let grown = (resident()? - rss).max(0.0);
        self.add(format!("memory of {} waiting runs", made.len()), grown / 1024.0, "MiB", None);
        self.add("memory of a waiting run".to_owned(), grown * 1024.0 / count, "bytes", None);
        let grown = self.bytes().await? - bytes;
        self.add("database of a waiting run".to_owned(), grown / count, "bytes", None);
        Ok(())
    }

    async fn bytes(&self) -> Result<f64> {
        match self.lab.url() {
            Some(url) => schema::bytes(url).await,
            None => size(&self.lab.data_dir("bench")),
        }
    }
}

fn size(dir: &Path) -> Result<f64> {
    let mut sum = 0;
    for entry in std::fs::read_dir(dir)? {
        sum += entry?.metadata()?.len();
    }
    Ok(sum as f64)
}

/// In KiB.
fn resident() -> Result<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).context("no VmRSS")?;
    Ok(line.split_whitespace().nth(1).context("no number")?.parse()?)
}

/// Rows a second: one by one alone; together, as many in one commit on SQLite, which has one writer, and as
/// many connections on PostgreSQL.
async fn raw(lab: &Lab, at_once: usize) -> Result<f64> {
    let end = Instant::now() + MEASURE / 4;
    let began = Instant::now();
    let count = AtomicU64::new(0);
    match lab.url() {
        None => {
            let raw = RawSqlite::open(lab.dir())?;
            while Instant::now() < end {
                raw.commit_rows(at_once)?;
                count.fetch_add(at_once as u64, Ordering::Relaxed);
            }
        }
        Some(url) => {
            let links = try_join_all((0..at_once).map(|_| RawPostgres::open(url))).await?;
            try_join_all(links.iter().map(|link| async {
                while Instant::now() < end {
                    link.commit().await?;
                    count.fetch_add(1, Ordering::Relaxed);
                }
                anyhow::Ok(())
            }))
            .await?;
        }
    }
    Ok(count.load(Ordering::Relaxed) as f64 / began.elapsed().as_secs_f64())
}

fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

fn print(figures: &[Figure], json: bool) {
    if json {
        let rows = figures.iter().map(|f| {
            json!({
                "bench": "runs", "store": f.store, "metric": f.metric, "value": rounded(f.value), "unit": f.unit,
                "limit": f.limit.map(rounded), "ratio": f.limit.map(|limit| rounded(f.value / limit)),
            })
        });
        println!("{:#}", rows.collect::<Value>());
        return;
    }
    println!("{:<10} {:<44} {:>12} {:<8} {:>7}", "store", "metric", "value", "unit", "ratio");
    for f in figures {
        let ratio = f.limit.map_or(String::new(), |limit| format!("{:.2}", f.value / limit));
        println!("{:<10} {:<44} {:>12.3} {:<8} {:>7}", f.store, f.metric, f.value, f.unit, ratio);
    }
}
