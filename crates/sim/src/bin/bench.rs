//! How many durable commits a second, beside the raw limit of the same database in the same run.
//!
//! The command is an enqueue of a `noop` job: three rows and a hash. Raw is one row, one commit.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool of developers")]

use anyhow::{Context, Result};
use baton_core::command::Actor;
use baton_core::job::enqueue::Enqueue;
use baton_engine::{OsEntropy, SystemClock};
use baton_sim::lab::{Lab, Place, echo, name};
use baton_store::raw::{RawPostgres, RawSqlite};
use baton_store::{Backend, OpenOptions, Store};
use futures_util::future::try_join_all;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::Instant;

const CALLERS: [usize; 3] = [1, 8, 32];
const WARM_UP: Duration = Duration::from_millis(500);
const MEASURE: Duration = Duration::from_secs(3);

struct Figure {
    store: &'static str,
    metric: String,
    per_second: f64,
    raw: Option<f64>,
}

#[tokio::main]
async fn main() -> Result<()> {
    let json = std::env::args().any(|a| a == "--json");
    let mut figures = Vec::new();
    for place in [Place::Sqlite, Place::Postgres] {
        match Lab::new(place, None).await? {
            Some(lab) => figures.extend(measure(&lab).await?),
            None => eprintln!("no PostgreSQL: run with `cargo xtask bench`"),
        }
    }
    print(&figures, json);
    Ok(())
}

async fn measure(lab: &Lab) -> Result<Vec<Figure>> {
    let store_name = if lab.url().is_some() { "postgres" } else { "sqlite" };
    let store = open(lab).await?;
    let mut figures = Vec::new();
    for callers in CALLERS {
        let raw = match lab.url() {
            Some(url) => raw_postgres(url, callers).await?,
            None => raw_sqlite(lab)?,
        };
        let ours = commits(&store, callers).await?;
        let metric = format!("{callers} callers");
        figures.push(Figure { store: store_name, metric: format!("raw, {metric}"), per_second: raw, raw: None });
        figures.push(Figure { store: store_name, metric, per_second: ours, raw: Some(raw) });
    }
    store.close().await;
    Ok(figures)
}

/// As in production: no faults, real clock, real randomness.
async fn open(lab: &Lab) -> Result<Store> {
    let definitions = Arc::new(baton_sim::open_lane::registry().definitions(baton_core::rules::Rules::default()));
    let mut options =
        OpenOptions::new(lab.data_dir("bench"), Arc::new(SystemClock), Arc::new(OsEntropy::default()), definitions);
    if let Some(url) = lab.url() {
        options.backend = Backend::Postgres(url.to_owned());
    }
    Store::open(options).await.context("opening the store")
}

async fn commits(store: &Store, callers: usize) -> Result<f64> {
    let noop = Enqueue { kind: name("noop"), ..echo() };
    let count = AtomicU64::new(0);
    let began = Instant::now();
    let end = began + WARM_UP + MEASURE;
    try_join_all((0..callers).map(|_| async {
        while Instant::now() < end {
            store.commit(noop.clone(), Actor::Api).await?;
            if began.elapsed() > WARM_UP {
                count.fetch_add(1, Ordering::Relaxed);
            }
        }
        anyhow::Ok(())
    }))
    .await?;
    Ok(count.load(Ordering::Relaxed) as f64 / MEASURE.as_secs_f64())
}

/// One writer: SQLite has no more.
fn raw_sqlite(lab: &Lab) -> Result<f64> {
    let raw = RawSqlite::open(lab.dir())?;
    let began = Instant::now();
    let mut count = 0u64;
    while began.elapsed() < WARM_UP + MEASURE {
        raw.commit()?;
        count += u64::from(began.elapsed() > WARM_UP);
    }
    Ok(count as f64 / MEASURE.as_secs_f64())
}

/// As many connections as callers.
async fn raw_postgres(url: &str, callers: usize) -> Result<f64> {
    let count = AtomicU64::new(0);
    let links = try_join_all((0..callers).map(|_| RawPostgres::open(url))).await?;
    let began = Instant::now();
    let end = began + WARM_UP + MEASURE;
    try_join_all(links.iter().map(|link| async {
        while Instant::now() < end {
            link.commit().await?;
            if began.elapsed() > WARM_UP {
                count.fetch_add(1, Ordering::Relaxed);
            }
        }
        anyhow::Ok(())
    }))
    .await?;
    Ok(count.load(Ordering::Relaxed) as f64 / MEASURE.as_secs_f64())
}

fn print(figures: &[Figure], json: bool) {
    if json {
        let rows = figures.iter().map(|f| {
            let ratio = f.raw.map(|raw| f.per_second / raw);
            json!({
                "bench": "commit", "store": f.store, "metric": f.metric, "value": f.per_second.round(),
                "unit": "commits/s", "limit": f.raw.map(f64::round), "ratio": ratio,
            })
        });
        println!("{:#}", rows.collect::<serde_json::Value>());
        return;
    }
    println!("{:<10} {:<18} {:>12} {:>8}", "store", "metric", "commits/s", "ratio");
    for f in figures {
        let ratio = f.raw.map_or(String::new(), |raw| format!("{:.2}", f.per_second / raw));
        println!("{:<10} {:<18} {:>12.0} {:>8}", f.store, f.metric, f.per_second, ratio);
    }
}
