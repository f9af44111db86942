//! What clients ask for and handlers do.

use super::checker::MAX_ATTEMPTS;
use super::clock::SimClock;
use super::life::Fleet;
use super::luck::Luck;
use crate::lab::name;
use anyhow::{Context, Result, ensure};
use baton_core::command::Actor;
use baton_core::definition::JobType;
use baton_core::job::enqueue::{Enqueue, Enqueued};
use baton_core::job::settle::{self, Settle};
use baton_core::job::wake::Wake;
use baton_core::job::{Failure, Fence, Status};
use baton_core::once::{Key, Rendered};
use baton_core::rng::Rng;
use baton_core::time::Span;
use baton_core::{Digest, JobId, Json, OrgId};
use baton_engine::{JobCx, Outcome, Registry};
use baton_store::{Answer, Clock, CommitError, Disk, Filter, ListJobs, Once, Store};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// A client waits this long for an answer before it asks again.
const PATIENCE: Duration = Duration::from_secs(7);
const PROJECT: &str = "sim";

/// What jobs of a simulation can run: the built-in types and `work`, whose payload says what
/// shall happen.
pub(super) fn registry() -> Registry {
    let mut registry = Registry::builtin();
    let kind = JobType {
        max_attempts: Some(MAX_ATTEMPTS as u32),
        lane: crate::open_lane::rule(),
        ..JobType::new(name("work"), 1, "")
    };
    registry.add(kind, work);
    registry
}

async fn work(cx: JobCx, payload: Json) -> Outcome {
    let payload = payload.value();
    let ms = payload["ms"].as_u64().unwrap_or(0);
    tokio::time::sleep(Duration::from_millis(ms)).await;
    match payload["then"].as_str() {
        Some("fail") => Outcome::Failed(Failure::new("asked_to", "it was asked to fail")),
        Some("panic") => panic!("it was asked to panic"),
        Some("park") if cx.job.token < 3 => {
            Outcome::Park { until: Some(cx.at.plus(Span::secs(20))), seen: cx.job.wakes }
        }
        Some("wait") if cx.job.wakes == 0 => Outcome::Park { until: None, seen: 0 },
        _ => Outcome::Done(Json::of(&json!({ "n": payload["n"] }))),
    }
}

/// A job that a client asked for and was promised.
pub(super) struct Promised {
    id: JobId,
    payload: Value,
    deadline: bool,
}

/// Clients do their work while things go wrong; what they were promised.
pub(super) async fn play(
    fleet: &Fleet,
    luck: &Arc<Luck>,
    clocks: &[Arc<SimClock>],
    jobs: usize,
    rng: &mut Rng,
) -> Result<Vec<Promised>> {
    let mut promised = Vec::new();
    for n in 0..jobs {
        let then = ["done", "done", "done", "fail", "panic", "park", "wait"][rng.below(7) as usize];
        // Some handlers take longer than their lease, and live by their heartbeats.
        let ms = [0, 0, 5, 500, 3_000, 45_000][rng.below(6) as usize];
        let payload = json!({ "n": n, "ms": ms, "then": then });
        let deadline = rng.chance(1, 6).then(|| Span::secs(1 + rng.below(120).cast_signed()));
        let delay = rng.chance(1, 4).then(|| Span::millis(rng.below(60_000).cast_signed()));
        let priority = rng.chance(1, 3).then_some(100);
        let ask = Asked { n, payload: payload.clone(), deadline, delay, priority };
        let id = ask.until_promised(fleet, clocks).await?;
        luck.promised(id);
        promised.push(Promised { id, payload, deadline: deadline.is_some() });
        if rng.chance(1, 3) {
            let target = promised[rng.below(promised.len() as u64) as usize].id;
            bother(fleet, target, rng).await;
        }
        if rng.below(1_000) < luck.odds.jump {
            clocks[rng.below(clocks.len() as u64) as usize].jump(rng);
        }
        if rng.chance(1, 3) {
            tokio::time::sleep(Duration::from_millis(rng.below(20_000))).await;
        }
    }
    Ok(promised)
}

struct Asked {
    n: usize,
    payload: Value,
    deadline: Option<Span>,
    delay: Option<Span>,
    priority: Option<i32>,
}

impl Asked {
    /// Asks any node that is up, again and again under the same key, until it is answered.
    async fn until_promised(&self, fleet: &Fleet, clocks: &[Arc<SimClock>]) -> Result<JobId> {
        let mut tries = 0;
        loop {
            let stores = fleet.stores();
            if let Some(store) = stores.get(tries % stores.len().max(1))
                && let Ok(Some(id)) = tokio::time::timeout(PATIENCE, self.ask(store, clocks)).await
            {
                return Ok(id);
            }
            tries += 1;
            ensure!(tries < 10_000, "nobody ever answers");
            let _ = tokio::time::timeout(PATIENCE, fleet.up.notified()).await;
        }
    }

    async fn ask(&self, store: &Store, clocks: &[Arc<SimClock>]) -> Option<JobId> {
        // Far enough ahead for the clock that will judge it.
        let now = clocks.iter().map(|c| c.now()).max()?;
        let payload = Json::of(&self.payload);
        let command = Enqueue {
            priority: self.priority,
            not_before: self.delay.map(|d| now.plus(d)),
            deadline: self.deadline.map(|d| now.plus(d)),
            ..Enqueue::new(OrgId::default(), name(PROJECT), name("work"), payload)
        };
        let key = format!("key-{}", self.n);
        let once = Once {
            request: Digest::of(&[key.as_bytes()]),
            key: Key { org: OrgId::default(), scope: "sim".to_owned(), key },
            render: Box::new(|out: &Enqueued| Rendered { status: 201, body: out.job.id.to_string() }),
        };
        match store.commit_once(command, Actor::Api, once).await {
            Ok(Answer::Fresh(out)) => Some(out.job.id),
            Ok(Answer::Replayed(before)) => before.body.parse().ok(),
            Err(_) => None,
        }
    }
}

/// A wake-up, or a stranger who claims to be the worker.
async fn bother(fleet: &Fleet, job: JobId, rng: &mut Rng) {
    let Some(store) = fleet.stores().pop() else { return };
    let org = OrgId::default();
    if rng.chance(1, 2) {
        let _ = tokio::time::timeout(PATIENCE, store.commit(Wake { org, job }, Actor::Api)).await;
        return;
    }
    let token = rng.below(4).cast_signed();
    let fence = Fence { org, job, token, worker: name("node_stranger") };
    let lie = Settle { fence, outcome: settle::Outcome::Done(Json::of(&json!({ "n": "a lie" }))) };
    let _ = tokio::time::timeout(PATIENCE, store.commit(lie, Actor::Engine)).await;
}

/// Waits until everything promised has ended, and looks whether it ended as it should.
pub(super) async fn rest(fleet: &Fleet, disk: &Disk, promised: &[Promised]) -> Result<()> {
    let mut open: BTreeMap<JobId, &Promised> = promised.iter().map(|p| (p.id, p)).collect();
    ensure!(open.len() == promised.len(), "two keys were answered with one job");
    while !open.is_empty() {
        if let Some(store) = fleet.stores().first() {
            for id in open.keys().copied().collect::<Vec<_>>() {
                let record = store.job(&OrgId::default(), id).await?.with_context(|| format!("{id} is lost"))?;
                match record.job.status {
                    Status::Ended { .. } => {
                        ended_well(open.remove(&id).context("it was open")?, &record)?;
                    }
                    // Nobody else will wake it.
                    Status::AwaitingTool { due_at: None, .. } => {
                        let wake = Wake { org: OrgId::default(), job: id };
                        let woken = store.commit(wake, Actor::Api).await;
                        ensure!(!matches!(woken, Err(CommitError::Store(_))), "{woken:?}");
                    }
                    _ => {}
                }
            }
            let ask = ListJobs {
                org: OrgId::default(),
                project: name(PROJECT),
                filter: Filter::default(),
                before: None,
                limit: 1_000,
                bytes: usize::MAX,
            };
            ensure!(store.jobs(ask).await?.items.len() == promised.len(), "jobs that nobody asked for");
        }
        tokio::time::sleep(Duration::from_secs(5)).await;
    }
    let report = disk.audit(Some(&baton_core::seal::Key::new([3; 32])))?;
    ensure!(report.is_clean(), "{:?}", report.violations);
    Ok(())
}

fn ended_well(promised: &Promised, record: &baton_store::JobRecord) -> Result<()> {
    let code = record.error.as_ref().map(|e| e.code.as_str());
    match (&record.result, code) {
        (Some(result), None) => {
            ensure!(result.value()["n"] == promised.payload["n"], "{:?} answers {:?}", promised.payload, result);
            ensure!(promised.payload["then"] != "fail" && promised.payload["then"] != "panic");
        }
        (None, Some("asked_to")) => ensure!(promised.payload["then"] == "fail"),
        (None, Some("handler_panicked")) => ensure!(promised.payload["then"] == "panic"),
        (None, Some("deadline_exceeded")) => ensure!(promised.deadline),
        // Its worker died, or a clock that was ahead declared it dead, too often.
        (None, Some("recovery_attempts_exhausted")) => {
            ensure!(record.job.attempts >= record.job.max_attempts);
        }
        other => anyhow::bail!("{:?} ended as {other:?}", promised.payload),
    }
    Ok(())
}
