//! The queue through the engine: what users of it are promised.

mod cancelling;
mod recovering;
mod running;
mod scheduling;

use anyhow::{Context as _, Result, ensure};
use baton_core::command::{Actor, Refusal};
use baton_core::dedupe::{self, Mode};
use baton_core::definition::{AtStop, JobType, Timeout};
use baton_core::job::cancel::{self, Cancel, Cancelled, Strategy};
use baton_core::job::enqueue::{Enqueue, How};
use baton_core::job::state::Face;
use baton_core::job::{BACKGROUND, Context, Failure, INTERACTIVE, Job, State};
use baton_core::retry::Policy;
use baton_core::rules::Rules;
use baton_core::time::Span;
use baton_core::{JobId, Json, OrgId, sink};
use baton_engine::{Done, Engine, JobCx, JobDefinition, Options, Outcome, Registry};
use baton_sim::answers::{open_decision, resolve};
use baton_sim::lab::{Lab, name};
use baton_sim::on_both;
use baton_sim::stage::{clean, is, options, record, start, until, until_ended};
use baton_store::{CommitError, Cursor, Store};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, Semaphore, mpsc};

/// Says when its jobs begin and end; how they go on is up to the test.
#[derive(Clone)]
struct Probe {
    seen: Arc<Mutex<Vec<String>>>,
    running: Arc<Mutex<BTreeMap<String, usize>>>,
    most: Arc<Mutex<BTreeMap<String, usize>>>,
    began: mpsc::UnboundedSender<JobId>,
}

/// A job's stay among those that run.
struct Stay {
    probe: Probe,
    key: String,
}

impl Probe {
    fn new() -> (Self, mpsc::UnboundedReceiver<JobId>) {
        let (began, heard) = mpsc::unbounded_channel();
        (Self { seen: Arc::default(), running: Arc::default(), most: Arc::default(), began }, heard)
    }

    fn enter(&self, job: &Job) -> Stay {
        let key = job.project.to_string();
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let now = running.entry(key.clone()).or_default();
        *now += 1;
        let mut most = self.most.lock().unwrap_or_else(PoisonError::into_inner);
        let before = most.entry(key.clone()).or_default();
        *before = (*before).max(*now);
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).push(format!("{}", job.priority));
        let _ = self.began.send(job.id);
        Stay { probe: self.clone(), key }
    }

    fn most(&self) -> BTreeMap<String, usize> {
        self.most.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        let mut running = self.probe.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(n) = running.get_mut(&self.key) {
            *n -= 1;
        }
    }
}

fn kind(text: &str) -> JobType {
    let retry = Policy { base: Span::millis(1), max: Span::millis(5), ..Policy::default() };
    JobType { retry, timeout: Timeout::Never, ..JobType::new(name(text), 1, "") }
}

fn order(text: &str, project: &str) -> Enqueue {
    Enqueue::new(OrgId::default(), name(project), name(text), Json::of(&json!({})))
}

async fn enqueue(store: &Store, order: Enqueue) -> Result<JobId> {
    Ok(store.commit(order, Actor::Api).await?.job.id)
}

fn knowing(mut lab: Lab, registry: &Registry, rules: Rules) -> Lab {
    lab.definitions = Arc::new(registry.definitions(rules));
    lab
}

/// An engine with so many slots.
async fn engine(lab: &Lab, registry: Registry, slots: usize) -> Result<Engine> {
    let node = lab.node().await?;
    let mut options = options(&node);
    options.slots = slots;
    Ok(Engine::start(node.store, registry, options).await?)
}

/// A type whose jobs wait at a gate that lets through one at a time.
fn gated(kind: JobType, probe: &Probe) -> (Registry, Arc<Semaphore>) {
    let gate = Arc::new(Semaphore::new(0));
    let mut registry = Registry::empty();
    let (probe, at) = (probe.clone(), gate.clone());
    registry.add(kind, move |cx: JobCx, _: Json| {
        let (probe, gate) = (probe.clone(), at.clone());
        async move {
            let _stay = probe.enter(&cx.job);
            gate.acquire().await.unwrap().forget();
            Outcome::Done(Json::of(&json!({})))
        }
    });
    (registry, gate)
}

async fn cancelled(engine: &Engine, job: JobId) -> Result<Cancelled> {
    let cancel = Cancel { org: OrgId::default(), job, reason: None };
    Ok(engine.store().commit(cancel, Actor::Api).await?)
}

fn reason(record: &baton_store::JobRecord) -> String {
    record.error.as_ref().map(|e| e.code.clone()).unwrap_or_default()
}
