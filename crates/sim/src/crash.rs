//! Crash points: a scenario is killed at every commit, once before it and once after it but
//! before anybody hears, and must still come to the same end.
//!
//! The scenario is told from outside, as a client would live it: it remembers what it was
//! promised, repeats what was never answered under the same key, and at the end looks whether
//! everything promised is there exactly once. Two more mishaps, where the process lives but the
//! answer to a commit is lost, go through the same mill.

use crate::lab::{Lab, Place, echo, name};
use crate::script::Script;
use anyhow::{Context, Result, bail, ensure};
use baton_core::command::Actor;
use baton_core::job::enqueue::{Enqueue, Enqueued};
use baton_core::job::state::Face;
use baton_core::job::wake::Wake;
use baton_core::once::{Key, Rendered};
use baton_core::seal;
use baton_core::time::Span;
use baton_core::{Digest, JobId, Json, OrgId};
use baton_engine::{Engine, Options};
use baton_store::faults::{Mishap, Sabotage};
use baton_store::{Answer, Filter, ListJobs, Once, Store};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// What can go wrong at a commit.
pub const MISHAPS: [Mishap; 4] = [Mishap::CrashBefore, Mishap::CrashAfter, Mishap::AnswerLost, Mishap::CommitLost];

/// No scenario has more commits than this; one that does never ends.
const POINTS_MAX: u64 = 500;
/// A scenario that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// Between a store that turns somebody away and the news that it has crashed.
const LAST_BREATH: Duration = Duration::from_secs(2);

const PROJECT: &str = "crash";
const NODE: &str = "node_a";

/// What the client was promised, over all lives of the server.
#[derive(Default)]
struct Memory {
    promised: BTreeMap<&'static str, JobId>,
}

/// How a job of the scenario must end.
struct Plan {
    key: &'static str,
    payload: Value,
    /// After an hour it fails if it has not ended.
    deadline: bool,
    ends: Face,
}

fn plans() -> [Plan; 6] {
    let plan = |key, payload, deadline, ends| Plan { key, payload, deadline, ends };
    [
        plan("plain", json!({ "message": 1 }), false, Face::Completed),
        plan("more", json!({ "message": 2 }), true, Face::Completed),
        plan("sleeps", json!({ "message": 3, "delay_ms": 1_800_000 }), false, Face::Completed),
        plan("woken", json!({ "message": 4, "wait": true }), false, Face::Completed),
        plan("forgotten", json!({ "message": 5, "wait": true }), true, Face::Failed),
        plan("wrong", json!({ "message": 6, "fail": "deterministic" }), false, Face::Failed),
    ]
}

/// Tries every commit of the scenario with one mishap; how many points there were.
pub fn explore(place: Place, mishap: Mishap, sabotage: Option<Sabotage>) -> Result<u64> {
    for n in 1..=POINTS_MAX {
        let Some(lab) = runtime()?.block_on(Lab::new(place, sabotage))? else { return Ok(0) };
        let reached = one_point(&lab, n, mishap).with_context(|| format!("{mishap:?} at commit {n} on {place:?}"))?;
        if !reached {
            return Ok(n - 1);
        }
    }
    bail!("the scenario has more than {POINTS_MAX} commits")
}

/// Whether the scenario had an nth commit.
fn one_point(lab: &Lab, n: u64, mishap: Mishap) -> Result<bool> {
    let mut memory = Memory::default();
    let script = Arc::new(lab.script());
    script.group_max(1);
    script.at(n, mishap);
    let first = life(lab, &script, &mut memory)?;
    let reached = script.commits() >= n;
    if first == Life::Crashed {
        let healthy = Arc::new(lab.script());
        ensure!(life(lab, &healthy, &mut memory)? == Life::Finished, "it crashed without being asked to");
    }
    runtime()?.block_on(check(lab, &memory))?;
    Ok(reached)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Life {
    Finished,
    Crashed,
}

/// One life of the server: a runtime of its own, so that a crash takes every task with it.
fn life(lab: &Lab, script: &Arc<Script>, memory: &mut Memory) -> Result<Life> {
    let runtime = runtime()?;
    runtime.block_on(async {
        let store = lab.open(NODE, script.clone()).await?;
        tokio::select! {
            biased;
            () = script.crash() => Ok(Life::Crashed),
            ended = tokio::time::timeout(PATIENCE, scenario(lab, store, memory)) => match ended {
                Ok(Ok(())) => Ok(Life::Finished),
                // A dying store may turn somebody away a moment before it is seen to be dead.
                Ok(Err(e)) => match tokio::time::timeout(LAST_BREATH, script.crash()).await {
                    Ok(()) => Ok(Life::Crashed),
                    Err(_) => Err(e),
                },
                Err(_) => bail!("the scenario hangs"),
            },
        }
    })
}

fn runtime() -> Result<Runtime> {
    Ok(Builder::new_current_thread().enable_all().build()?)
}

fn key() -> seal::Key {
    seal::Key::new([5; 32])
}

async fn scenario(lab: &Lab, store: Store, memory: &mut Memory) -> Result<()> {
    let mut options = Options::new(name(NODE));
    options.seal_key = Some(key());
    let engine = Engine::start(store, crate::open_lane::registry(), options).await?;
    let store = engine.store();
    let plans = plans();
    for plan in &plans {
        let id = enqueue(store, plan.key, &plan.payload, plan.deadline).await?;
        if let Some(before) = memory.promised.insert(plan.key, id) {
            ensure!(before == id, "{} was promised as {before} and is now {id}", plan.key);
        }
    }
    let org = OrgId::default();
    let id = |key| memory.promised.get(key).copied().context("all are promised by now");
    until(store, id("woken")?, |face, parked| parked || face == Face::Completed).await?;
    // Already awake is as good.
    if let Some(job) = store.job(&org, id("woken")?).await?
        && !job.job.is_ended()
    {
        let woken = store.commit(Wake { org: org.clone(), job: id("woken")? }, Actor::Api).await;
        ensure!(woken.is_ok() || store.job(&org, id("woken")?).await?.is_some_and(|j| j.job.is_ended()));
    }
    for key in ["plain", "more", "woken", "wrong"] {
        until(store, id(key)?, |face, _| matches!(face, Face::Completed | Face::Failed)).await?;
    }
    for key in ["sleeps", "forgotten"] {
        until(store, id(key)?, |face, parked| parked || face != Face::Queued && face != Face::Running).await?;
    }
    lab.advance(Span::secs(7_200));
    // Setting a timer and queueing a job makes everybody look at the clock again.
    let nudge = json!({ "message": "nudge" });
    enqueue(store, "nudge", &nudge, true).await?;
    for plan in &plans {
        until(store, id(plan.key)?, |face, _| matches!(face, Face::Completed | Face::Failed)).await?;
    }
    engine.stop(Duration::from_secs(5)).await;
    Ok(())
}

async fn enqueue(store: &Store, key: &'static str, payload: &Value, deadline: bool) -> Result<JobId> {
    let deadline = if deadline { Some(store.now().await?.plus(Span::secs(3_600))) } else { None };
    let command = Enqueue { project: name(PROJECT), payload: Json::of(payload), deadline, ..echo() };
    let once = Once {
        key: Key { org: OrgId::default(), scope: "crash".to_owned(), key: key.to_owned() },
        request: Digest::of(&[key.as_bytes()]),
        render: Box::new(|out: &Enqueued| Rendered { status: 201, body: out.job.id.to_string() }),
    };
    match store.commit_once(command, Actor::Api, once).await? {
        Answer::Fresh(out) => Ok(out.job.id),
        Answer::Replayed(before) => Ok(before.body.parse()?),
    }
}

/// Waits until a job has come far enough: its face, and whether it is parked.
async fn until(store: &Store, id: JobId, enough: impl Fn(Face, bool) -> bool) -> Result<()> {
    let mut events = store.watch_events();
    loop {
        events.mark_unchanged();
        let record =
            store.job(&OrgId::default(), id).await?.with_context(|| format!("{id} was promised and is gone"))?;
        let face = record.job.status.face();
        let parked = face == Face::Running && record.job.status.lease().is_none();
        if enough(face, parked) {
            return Ok(());
        }
        // A read may run ahead of the mark that announces it, so look again now and then.
        let _ = tokio::time::timeout(Duration::from_millis(50), events.changed()).await;
    }
}

/// Everything promised is there, once, as it should be, and the history is whole.
async fn check(lab: &Lab, memory: &Memory) -> Result<()> {
    let node = lab.node_named(NODE).await?;
    let store = &node.store;
    let org = OrgId::default();
    let filter = Filter::default();
    let ask =
        ListJobs { org: org.clone(), project: name(PROJECT), filter, before: None, limit: 100, bytes: usize::MAX };
    let all = store.jobs(ask).await?.items;
    let plans = plans();
    ensure!(all.len() == plans.len() + 1, "{} jobs instead of {}", all.len(), plans.len() + 1);
    for plan in &plans {
        let id = memory.promised.get(plan.key).context("promised")?;
        let job = all.iter().find(|r| r.job.id == *id).with_context(|| format!("{} is lost", plan.key))?;
        ensure!(job.job.status.face() == plan.ends, "{} ended as {:?}", plan.key, job.job.status);
        let message = job.result.as_ref().map(|r| r.value()["message"].clone());
        let expected = (plan.ends == Face::Completed).then(|| plan.payload["message"].clone());
        ensure!(message == expected, "{} answered {message:?}", plan.key);
        ensure!(job.job.attempts <= job.job.max_attempts);
    }
    let (due, next) = store.due_timers(10).await?;
    ensure!(due.is_empty() && next.is_none(), "timers are left: {due:?} {next:?}");
    let report = store.audit(Some(key())).await?;
    ensure!(report.is_clean(), "{:?}", report.violations);
    store.close().await;
    Ok(())
}
