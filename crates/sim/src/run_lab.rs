//! Runs for experiments: documents, tools that do as they are told and remember what they did.

use crate::lab::name;
use anyhow::{Context, Result, anyhow};
use baton_core::command::Actor;
use baton_core::credits::Credits;
use baton_core::event::Recorded;
use baton_core::ledger::grant::Grant;
use baton_core::plan::{self, Doer, Effect, Tools};
use baton_core::retry::Class;
use baton_core::run::create::Create;
use baton_core::run::hand::Doing;
use baton_core::run::start::Start;
use baton_core::run::{Agent, Fault, Run, State};
use baton_core::{Json, OrgId, RunId};
use baton_engine::run::{Called, Tool, ToolCall, ToolFailure, Toolbox};
use baton_store::{Cursor, Store};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Semaphore, watch};

/// Looks again by itself this often, should a wake-up get lost.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// Agents and events that are looked at; no experiment has more.
const AGENTS: usize = 100;
const EVENTS: usize = 1_000;

/// What the tools did, outside of everything that can be rolled back.
#[derive(Clone)]
pub struct Deeds {
    log: Arc<watch::Sender<Vec<Deed>>>,
    /// Calls that have neither ended nor been dropped.
    flying: Arc<watch::Sender<usize>>,
    gates: Arc<Mutex<BTreeMap<String, Arc<Semaphore>>>>,
}

/// A call that began, or ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Deed {
    pub run: RunId,
    pub mark: String,
    /// What it was given, where it began.
    pub begun: Option<Value>,
}

impl Default for Deeds {
    fn default() -> Self {
        Self { log: Arc::new(watch::Sender::new(Vec::new())), flying: Arc::default(), gates: Arc::default() }
    }
}

impl Deeds {
    fn note(&self, run: RunId, mark: &str, begun: Option<Value>) {
        self.log.send_modify(|log| log.push(Deed { run, mark: mark.to_owned(), begun }));
    }

    /// Something was done at one stroke.
    pub fn did(&self, run: RunId, mark: &str) {
        self.note(run, mark, Some(Value::Null));
        self.note(run, mark, None);
    }

    /// How often it was begun in a run.
    pub fn times(&self, run: RunId, mark: &str) -> usize {
        times(&self.log.borrow(), run, mark)
    }

    /// All that was begun and ended in a run, in that order.
    pub fn log(&self, run: RunId) -> Vec<Deed> {
        self.log.borrow().iter().filter(|deed| deed.run == run).cloned().collect()
    }

    /// What it was given when it was last begun.
    pub fn given(&self, run: RunId, mark: &str) -> Option<Value> {
        self.log(run).into_iter().rev().find(|deed| deed.mark == mark && deed.begun.is_some())?.begun
    }

    /// Until it was begun so often.
    pub async fn until(&self, run: RunId, mark: &str, often: usize) {
        // We hold the sender, so it cannot be gone.
        let _ = self.log.subscribe().wait_for(|log| times(log, run, mark) >= often).await;
    }

    /// Until no call is in flight any more.
    pub async fn until_still(&self) {
        let _ = self.flying.subscribe().wait_for(|flying| *flying == 0).await;
    }

    /// One who waits there may go on, now or later.
    pub fn open(&self, gate: &str) {
        self.gate(gate).add_permits(1);
    }

    fn gate(&self, gate: &str) -> Arc<Semaphore> {
        let mut gates = self.gates.lock().unwrap_or_else(PoisonError::into_inner);
        gates.entry(gate.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(0))).clone()
    }
}

/// A call in flight, until it is dropped.
struct Flight(Deeds);

impl Flight {
    fn new(deeds: &Deeds) -> Self {
        deeds.flying.send_modify(|flying| *flying += 1);
        Self(deeds.clone())
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        self.0.flying.send_modify(|flying| *flying -= 1);
    }
}

fn times(log: &[Deed], run: RunId, mark: &str) -> usize {
    log.iter().filter(|deed| deed.run == run && deed.mark == mark && deed.begun.is_some()).count()
}

/// What a tool of the lab is told to do.
///
/// `mark`: under which name the deed is remembered, beside the run (`task.step` otherwise). `fails`: in how
/// many attempts of the step, the task and the agent it fails, with `code` (`timeout` otherwise); then it
/// does nothing. `gate`: waits until it is opened. `result`: what it answers.
struct Obedient {
    deeds: Deeds,
}

impl Tool for Obedient {
    fn call(&self, call: ToolCall) -> Called {
        let deeds = self.deeds.clone();
        Box::pin(async move {
            let _flight = Flight::new(&deeds);
            let mark = call.input["mark"].as_str().unwrap_or(&call.step);
            let fails = &call.input["fails"];
            let within = |attempt: u32, what: &str| u64::from(attempt) <= fails[what].as_u64().unwrap_or(0);
            // agent.attempt.task.attempt.step
            let key: Vec<u32> = call.key.split('.').skip(1).filter_map(|part| part.parse().ok()).collect();
            let of_key = |at: usize| key.get(at).copied().unwrap_or(1);
            if within(call.attempt, "step") || within(of_key(2), "task") || within(of_key(0), "agent") {
                let code = call.input["code"].as_str().unwrap_or("timeout");
                let class = Class::of_code(code);
                return Err(ToolFailure::from(Fault { class, ..Fault::new(code, "as it was told") }));
            }
            deeds.note(call.run, mark, Some(call.input.clone()));
            if let Some(gate) = call.input["gate"].as_str() {
                // It is never closed.
                deeds.gate(gate).acquire().await.map(tokio::sync::SemaphorePermit::forget).ok();
            }
            deeds.note(call.run, mark, None);
            Ok(match &call.input["result"] {
                Value::Null => json!({ "step": call.step }),
                result => result.clone(),
            })
        })
    }
}

/// `pure`, `idempotent` and `unsafe`, which cost nothing; `priced` (pure) and `risky`
/// (unsafe), which cost 1 a call.
pub fn toolbox(deeds: &Deeds) -> Toolbox {
    let mut all = Toolbox::default();
    let tools = [
        ("pure", Effect::Pure, Credits::ZERO),
        ("idempotent", Effect::Idempotent, Credits::ZERO),
        ("unsafe", Effect::Unsafe, Credits::ZERO),
        ("priced", Effect::Pure, Credits::whole(1)),
        ("risky", Effect::Unsafe, Credits::whole(1)),
    ];
    for (tool, effect, price) in tools {
        let about = plan::Tool { doer: Doer::Tool, effect, price, timeout: None, attempts: None };
        let added = all.add(name(tool), about, Obedient { deeds: deeds.clone() });
        added.unwrap_or_else(|e| panic!("{e}"));
    }
    all
}

/// What creating a run of this document says.
pub fn create(document: &Value, tools: &Tools) -> Result<Create> {
    let compiled = plan::check(document, tools).map_err(|problems| anyhow!("{problems:?}"))?;
    Ok(Create::new(OrgId::default(), Json::of(document), compiled))
}

pub async fn grant(store: &Store, credits: u32) -> Result<()> {
    let grant = Grant { org: OrgId::default(), amount: Credits::whole(credits), key: "lab".to_owned(), note: None };
    store.commit(grant, Actor::Api).await?;
    Ok(())
}

/// Makes a run and starts it.
pub async fn begin(store: &Store, document: &Value, tools: &Tools) -> Result<RunId> {
    let run = store.commit(create(document, tools)?, Actor::Api).await?;
    store.commit(Start { org: OrgId::default(), run: run.id }, Actor::Api).await?;
    Ok(run.id)
}

pub async fn run(store: &Store, id: RunId) -> Result<Run> {
    store.run(&OrgId::default(), id).await?.context("the run exists")
}

/// Looks whenever there is something new, and now and then by itself.
pub async fn until(store: &Store, id: RunId, enough: impl Fn(&Run) -> bool) -> Result<Run> {
    let mut events = store.watch_events();
    loop {
        events.mark_unchanged();
        let found = run(store, id).await?;
        if enough(&found) {
            return Ok(found);
        }
        let _ = tokio::time::timeout(LOOK_AGAIN, events.changed()).await;
    }
}

pub async fn until_is(store: &Store, id: RunId, state: State) -> Result<Run> {
    until(store, id, |run| run.state == state).await
}

/// The agents of the attempt at hand.
pub async fn agents(store: &Store, id: RunId) -> Result<Vec<Agent>> {
    let attempt = run(store, id).await?.attempt;
    Ok(store.agents(&OrgId::default(), id, attempt, None, AGENTS).await?)
}

/// Until a step of the run waits for something like this, and what it waits for.
pub async fn until_waits(store: &Store, id: RunId, like: fn(&Doing) -> bool) -> Result<Doing> {
    let mut events = store.watch_events();
    loop {
        events.mark_unchanged();
        let found = agents(store, id).await?;
        if let Some((_, _, step)) = found.iter().flat_map(Agent::steps).find(|(_, _, step)| like(&step.doing)) {
            return Ok(step.doing.clone());
        }
        let _ = tokio::time::timeout(LOOK_AGAIN, events.changed()).await;
    }
}

/// What happened to the run and its agents, in the order of commits.
pub async fn history(store: &Store, id: RunId) -> Result<Vec<Recorded>> {
    let mut events = store.watch_events();
    loop {
        events.mark_unchanged();
        let written = run(store, id).await?.head.n;
        let page = store.run_events(&OrgId::default(), id, Cursor::START, EVENTS).await?;
        let readable = page.items.iter().filter(|row| row.event.subject == id.0).map(|row| row.event.n).max();
        // On PostgreSQL what was written becomes readable a moment later.
        if readable >= Some(written) {
            return Ok(page.items.into_iter().map(|row| row.event).collect());
        }
        let _ = tokio::time::timeout(LOOK_AGAIN, events.changed()).await;
    }
}

/// Agents × tasks × steps, all alike, each step a call of `tool`.
pub fn even(agents: usize, tasks: usize, steps: usize, tool: &str) -> Value {
    let step = |n: usize| json!({ "name": format!("s{n}"), "tool": tool });
    let task = |n: usize| json!({ "name": format!("t{n}"), "steps": (0..steps).map(step).collect::<Vec<_>>() });
    let agent = |n: usize| json!({ "name": format!("a{n}"), "tasks": (0..tasks).map(task).collect::<Vec<_>>() });
    json!({ "name": "even", "plan": { "agents": (0..agents).map(agent).collect::<Vec<_>>() } })
}
