//! What the queue does: jobs in, one by one and in batches; jobs out, from backlogs of three shapes; how soon one
//! begins; and what the server takes while nothing happens. Each beside the raw limit of the same database in the
//! same run, with the same durability, and beside what it should come to.
//!
//! What it can be asked for is in [`USAGE`].

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool of developers")]

mod drain;
mod figure;
mod intake;
mod outside;
mod place;
mod raw;
mod server;

use anyhow::{Context, Result, bail, ensure};
use baton_sim::lab::{Lab, Place};
use drain::Drain;
use figure::{Aim, Figures, median};
use place::Shape;
use raw::Raw;

const JOBS: [usize; 2] = [20_000, 200_000];
const SERIAL_JOBS: usize = 5_000;
/// Jobs that run at once: about half as many are settled and claimed in one commit.
const SLOTS: usize = 1_000;
const ROUNDS: usize = 3;

const USAGE: &str = "\
Usage: queue [OPTIONS]      (as a rule: cargo xtask bench queue [OPTIONS])

Measures the queue on both databases, each beside its raw limit; takes about five minutes.

  --only sqlite|postgres     only on this database
  --shape open|lanes|serial  only this drain: no limit, 1,000 lanes of one, one lane of one
  --intake                   only how jobs come in, and how soon one begins
  --jobs N                   of drains
  --slots N                  jobs that run at once
  --rounds N                 the middle of so many counts
  --json                     an array instead of a table
  --help                     this

Examples:
  cargo xtask bench queue --only sqlite --shape lanes --jobs 20000
  cargo xtask bench queue --intake --rounds 1 --json";

struct Asked {
    only: Option<String>,
    shape: Option<Shape>,
    intake: bool,
    jobs: Option<usize>,
    slots: usize,
    rounds: usize,
    json: bool,
}

impl Asked {
    /// Nothing if only the usage was asked for.
    fn read(mut args: impl Iterator<Item = String>) -> Result<Option<Self>> {
        let mut asked =
            Self { only: None, shape: None, intake: false, jobs: None, slots: SLOTS, rounds: ROUNDS, json: false };
        while let Some(flag) = args.next() {
            let mut value = || args.next().with_context(|| format!("{flag} needs a value; see --help"));
            match flag.as_str() {
                "--help" | "-h" => return Ok(None),
                "--json" => asked.json = true,
                "--intake" => asked.intake = true,
                "--only" => asked.only = Some(value()?),
                "--shape" => {
                    let word = value()?;
                    let shape = Shape::ALL.into_iter().find(|shape| shape.word() == word);
                    asked.shape = Some(shape.context("--shape is open, lanes or serial")?);
                }
                "--jobs" | "--slots" | "--rounds" => {
                    let number = value()?.parse().ok().filter(|n| *n > 0);
                    let number = number.with_context(|| format!("{flag} needs a number from 1 on"))?;
                    match flag.as_str() {
                        "--jobs" => asked.jobs = Some(number),
                        "--slots" => asked.slots = number,
                        _ => asked.rounds = number,
                    }
                }
                other => bail!("{other} is not known; see --help"),
            }
        }
        let only = asked.only.as_deref();
        ensure!(matches!(only, None | Some("sqlite" | "postgres")), "--only is sqlite or postgres");
        ensure!(!(asked.intake && asked.shape.is_some()), "--intake and --shape leave nothing to measure");
        Ok(Some(asked))
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let Some(asked) = Asked::read(std::env::args().skip(1))? else {
        println!("{USAGE}");
        return Ok(());
    };
    let mut figures = Vec::new();
    for (place, store) in [(Place::Sqlite, "sqlite"), (Place::Postgres, "postgres")] {
        if asked.only.as_ref().is_some_and(|only| only != store) {
            continue;
        }
        match Lab::new(place, None).await? {
            Some(lab) => {
                figures.extend(measure(&lab, Figures::new(store), &asked).await?.all);
                lab.remove().await?;
            }
            None => eprintln!("no PostgreSQL: run with `cargo xtask bench queue`"),
        }
    }
    figure::print(&figures, asked.json);
    Ok(())
}

/// What is aimed at on each database.
struct Aims {
    open: f64,
    lanes: f64,
    serial: f64,
    single: f64,
    bulk: f64,
    latency_ms: f64,
}

const fn aims(place: Place) -> Aims {
    match place {
        Place::Postgres => Aims { open: 0.5, lanes: 0.42, serial: 2.0, single: 1.0, bulk: 0.35, latency_ms: 1.5 },
        _ => Aims { open: 0.45, lanes: 0.28, serial: 0.85, single: 2.5, bulk: 0.4, latency_ms: 1.0 },
    }
}

/// A backlog twice as large should drain as fast, or nearly so.
const LARGE: f64 = 0.8;
const RSS_MB: f64 = 40.0;
const READY_MS: f64 = 100.0;

async fn measure(lab: &Lab, mut figures: Figures, asked: &Asked) -> Result<Figures> {
    let raw = raw::measure(lab, &mut figures).await?;
    if !asked.intake {
        drains(lab.place, &mut figures, &raw, asked).await?;
    }
    if asked.shape.is_some() {
        return Ok(figures);
    }
    let aims = aims(lab.place);
    let (place, f) = (lab.place, &mut figures);
    let single = middle(asked.rounds, || intake::single(place)).await?;
    f.add(
        "enqueue one by one, 8 callers".to_owned(),
        single,
        "jobs/s",
        Some(raw.commits),
        Some(Aim::Ratio(aims.single)),
    );
    for (batch, callers, who) in [(500, 1, ""), (1_000, 1, ""), (1_000, raw::CALLERS, ", 8 callers")] {
        let bulk = middle(asked.rounds, || intake::bulk(place, batch, callers)).await?;
        let metric = format!("enqueue in batches of {batch}{who}");
        f.add(metric, bulk, "jobs/s", Some(raw.rows), Some(Aim::Ratio(aims.bulk)));
    }
    let (p50, p99) = intake::latency(place).await?;
    f.add("from asking to the handler, idle, p50".to_owned(), p50, "ms", None, Some(Aim::AtMost(aims.latency_ms)));
    f.add("from asking to the handler, idle, p99".to_owned(), p99, "ms", None, None);
    if asked.intake {
        return Ok(figures);
    }
    if let Some(outside) = outside::measure(lab).await? {
        f.add("over HTTP: enqueue one by one, 8 callers".to_owned(), outside.single, "jobs/s", Some(raw.commits), None);
        f.add("over HTTP: enqueue in batches of 500".to_owned(), outside.bulk, "jobs/s", Some(raw.rows), None);
        let metric = format!("over HTTP: drain {} by 4 workers, no limit", outside::JOBS);
        f.add(metric, outside.drain, "jobs/s", Some(raw.turns_batched), None);
        f.add("over HTTP: from asking to a worker that waits, p50".to_owned(), outside.p50_ms, "ms", None, None);
        f.add("over HTTP: from asking to a worker that waits, p99".to_owned(), outside.p99_ms, "ms", None, None);
    }
    match server::measure(lab).await? {
        Some(idle) => {
            f.add("baton serve: first start".to_owned(), idle.first_ms, "ms", None, None);
            f.add("baton serve: ready".to_owned(), idle.ready_ms, "ms", None, Some(Aim::AtMost(READY_MS)));
            f.add("baton serve: memory when idle".to_owned(), idle.rss_mb, "MB", None, Some(Aim::AtMost(RSS_MB)));
        }
        None => eprintln!("no release binary of baton beside this one: build it to measure it"),
    }
    Ok(figures)
}

async fn drains(place: Place, figures: &mut Figures, raw: &Raw, asked: &Asked) -> Result<()> {
    let aims = aims(place);
    for shape in Shape::ALL.into_iter().filter(|shape| asked.shape.is_none_or(|only| only == *shape)) {
        let (limit, aim) = match shape {
            Shape::Open => (raw.turns_batched, aims.open),
            Shape::Lanes => (raw.turns_batched, aims.lanes),
            Shape::Serial => (raw.turns, aims.serial),
        };
        let sizes = match (asked.jobs, shape) {
            (Some(jobs), _) => vec![jobs],
            (None, Shape::Serial) => vec![SERIAL_JOBS],
            (None, _) => JOBS.to_vec(),
        };
        let mut first = None;
        for jobs in sizes {
            // A large one is measured once: it is long enough.
            let rounds = if jobs > JOBS[0] && asked.jobs.is_none() { 1 } else { asked.rounds };
            let drain = Drain { shape, jobs, slots: asked.slots, nodes: 1 };
            let rate = middle(rounds, || drain.rate(place)).await?;
            let metric = format!("drain {jobs}, {}", shape.text());
            figures.add(metric, rate, "jobs/s", Some(limit), Some(Aim::Ratio(aim)));
            let Some(small) = first else {
                first = Some(rate);
                continue;
            };
            let metric = format!("drain {jobs} against {}, {}", JOBS[0], shape.text());
            figures.add(metric, rate, "jobs/s", Some(small), Some(Aim::Ratio(LARGE)));
        }
        if let (Place::Postgres, Shape::Open | Shape::Lanes, Some(one)) = (place, shape, first) {
            let drain = Drain { shape, jobs: asked.jobs.unwrap_or(JOBS[0]), slots: asked.slots, nodes: 2 };
            let two = middle(asked.rounds, || drain.rate(place)).await?;
            let metric = format!("drain {} by two nodes against one, {}", drain.jobs, shape.text());
            figures.add(metric, two, "jobs/s", Some(one), Some(Aim::Ratio(1.0)));
        }
    }
    Ok(())
}

async fn middle<F: Future<Output = Result<f64>>>(rounds: usize, one: impl Fn() -> F) -> Result<f64> {
    let mut all = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        all.push(one().await?);
    }
    Ok(median(all))
}
