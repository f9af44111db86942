//! How fast jobs come in, one by one and in batches, and how soon one of them begins where nothing else happens.

use crate::place::{Ears, Shape, fill, job, open, registry};
use crate::raw::CALLERS;
use anyhow::{Context, Result};
use baton_core::command::Actor;
use baton_engine::{Engine, Options};
use baton_sim::lab::{Lab, Place, name};
use futures_util::future::try_join_all;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::time::Instant;

const WARM_UP: Duration = Duration::from_millis(300);
const MEASURE: Duration = Duration::from_secs(2);
/// Jobs that are brought in in batches.
const BULK: usize = 64_000;
const SAMPLES: usize = 400;

async fn lab(place: Place) -> Result<Lab> {
    Lab::new(place, None).await?.context("no PostgreSQL")
}

/// Jobs a second that several callers bring in one by one.
pub async fn single(place: Place) -> Result<f64> {
    let (lab, ears) = (lab(place).await?, Ears::new());
    let store = open(&lab, "node", &registry(Shape::Open, &ears), &ears).await?;
    let count = AtomicUsize::new(0);
    let began = Instant::now();
    try_join_all((0..CALLERS).map(|caller| {
        let (store, count) = (&store, &count);
        async move {
            while began.elapsed() < WARM_UP + MEASURE {
                store.commit(job(caller, Shape::Open), Actor::Api).await?;
                count.fetch_add(usize::from(began.elapsed() > WARM_UP), Ordering::Relaxed);
            }
            anyhow::Ok(())
        }
    }))
    .await?;
    let rate = count.load(Ordering::Relaxed) as f64 / (began.elapsed() - WARM_UP).as_secs_f64();
    store.close().await;
    lab.remove().await?;
    Ok(rate)
}

/// Jobs a second in batches of this size, from so many callers.
pub async fn bulk(place: Place, batch: usize, callers: usize) -> Result<f64> {
    let (lab, ears) = (lab(place).await?, Ears::new());
    let store = open(&lab, "node", &registry(Shape::Open, &ears), &ears).await?;
    fill(&store, Shape::Open, 4 * batch, batch).await?;
    let each = BULK / callers;
    let began = Instant::now();
    try_join_all((0..callers).map(|_| fill(&store, Shape::Open, each, batch))).await?;
    let rate = (each * callers) as f64 / began.elapsed().as_secs_f64();
    store.close().await;
    lab.remove().await?;
    Ok(rate)
}

/// From asking to the handler, in milliseconds: the middle, and what one in a hundred exceeds.
pub async fn latency(place: Place) -> Result<(f64, f64)> {
    let (lab, ears) = (lab(place).await?, Ears::new());
    let registry = registry(Shape::Open, &ears);
    let store = open(&lab, "node", &registry, &ears).await?;
    let mut options = Options::new(name("node"));
    options.slots = 8;
    let engine = Engine::start(store.clone(), registry, options).await?;
    let mut waits = Vec::with_capacity(SAMPLES);
    for n in 0..SAMPLES {
        ears.wanted.store(n + 1, Ordering::SeqCst);
        let asked = Instant::now();
        store.commit(job(n, Shape::Open), Actor::Api).await?;
        ears.all.notified().await;
        let began = ears.ran().last().context("it ran")?.1;
        waits.push((began - asked).as_secs_f64() * 1e3);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    engine.stop(Duration::from_secs(5)).await;
    lab.remove().await?;
    waits.sort_by(f64::total_cmp);
    Ok((waits[SAMPLES / 2], waits[SAMPLES * 99 / 100]))
}
