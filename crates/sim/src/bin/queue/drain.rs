//! How fast a backlog of jobs that do nothing drains, through the engine, and that each of them ran once.

use crate::place::{Ears, Shape, fill, open, registry};
use anyhow::{Context, Result, ensure};
use baton_core::limits::BATCH_JOBS;
use baton_engine::{Engine, Options};
use baton_sim::lab::{Lab, Place, name};
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::Instant;

/// A drain that takes longer is stuck.
const STUCK: Duration = Duration::from_secs(300);

#[derive(Clone, Copy)]
pub struct Drain {
    pub shape: Shape,
    pub jobs: usize,
    /// Jobs that run at once in each node.
    pub slots: usize,
    pub nodes: usize,
}

impl Drain {
    /// Jobs a second, in a database of its own.
    pub async fn rate(self, place: Place) -> Result<f64> {
        let lab = Lab::new(place, None).await?.context("no PostgreSQL")?;
        let Self { shape, jobs, slots, nodes } = self;
        let ears = Ears::new();
        ears.wanted.store(jobs, Ordering::SeqCst);
        let registry = registry(shape, &ears);
        let mut stores = Vec::new();
        for node in 0..nodes {
            stores.push(open(&lab, &format!("node_{node}"), &registry, &ears).await?);
        }
        if let Some(store) = stores.first() {
            fill(store, shape, jobs, BATCH_JOBS).await?;
        }
        let mut engines = Vec::new();
        let (began, used) = (Instant::now(), processor_time()?);
        for (node, store) in stores.into_iter().enumerate() {
            let mut options = Options::new(name(&format!("node_{node}")));
            options.slots = slots;
            engines.push(Engine::start(store, registry.clone(), options).await?);
        }
        tokio::time::timeout(STUCK, ears.all.notified()).await.context("the drain is stuck")?;
        let took = began.elapsed();
        let each = (processor_time()? - used).as_secs_f64() * 1e6 / jobs as f64;
        // Says more than the rate where others use the machine too. Servers of databases are not counted.
        eprintln!("{:>63} {:.1} µs of processor time a job", "", each);
        self.check(&ears, &engines).await?;
        for engine in &engines {
            engine.stop(Duration::from_secs(5)).await;
        }
        drop(engines);
        lab.remove().await?;
        Ok(jobs as f64 / took.as_secs_f64())
    }

    /// Every job once, no lane over its limit, the history whole.
    async fn check(self, ears: &Ears, engines: &[Engine]) -> Result<()> {
        let mut ids: Vec<_> = ears.ran().iter().map(|(id, _)| *id).collect();
        ensure!(ids.len() == self.jobs, "{} jobs ran, not {}", ids.len(), self.jobs);
        ids.sort_unstable();
        ids.dedup();
        ensure!(ids.len() == self.jobs, "a job ran twice");
        ensure!(ears.overfull.load(Ordering::SeqCst) == 0, "a lane was overfull");
        let engine = engines.first().context("there is a node")?;
        let report = engine.audit().await?;
        ensure!(report.is_clean(), "{:?}", report.violations);
        ensure!(report.events >= 3 * self.jobs as u64, "{} events", report.events);
        Ok(())
    }
}

/// What this process has used so far, in all its threads.
fn processor_time() -> Result<Duration> {
    let mut sum = 0;
    for task in std::fs::read_dir("/proc/self/task")? {
        let text = std::fs::read_to_string(task?.path().join("schedstat"))?;
        sum += text.split_whitespace().next().context("no time")?.parse::<u64>()?;
    }
    Ok(Duration::from_nanos(sum))
}
