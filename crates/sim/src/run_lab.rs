//! Runs for experiments: documents, tools that do as they are told and remember what they did.

use crate::lab::name;
use anyhow::{Context, Result, anyhow};
use baton_core::command::Actor;
use baton_core::credits::Credits;
use baton_core::ledger::grant::Grant;
use baton_core::plan::{self, Doer, Effect, Tools};
use baton_core::retry::Class;
use baton_core::run::create::Create;
use baton_core::run::start::Start;
use baton_core::run::{Fault, Run, State};
use baton_core::{Json, OrgId, RunId};
use baton_engine::run::{Called, Tool, ToolCall, ToolFailure, Toolbox};
use baton_store::Store;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// Looks again by itself this often, should a wake-up get lost.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// What the tools did, outside of everything that can be rolled back.
#[derive(Clone, Default)]
pub struct Deeds {
    done: Arc<Mutex<BTreeMap<String, u32>>>,
    gates: Arc<Mutex<BTreeMap<String, Arc<Notify>>>>,
}

impl Deeds {
    fn did(&self, what: &str) {
        let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        *done.entry(what.to_owned()).or_default() += 1;
    }

    /// How often it was done in a run.
    pub fn times(&self, run: RunId, mark: &str) -> u32 {
        let done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        done.get(&format!("{run}/{mark}")).copied().unwrap_or(0)
    }

    /// Whoever waits there may go on, now or later.
    pub fn open(&self, gate: &str) {
        self.gate(gate).notify_one();
    }

    fn gate(&self, gate: &str) -> Arc<Notify> {
        self.gates.lock().unwrap_or_else(PoisonError::into_inner).entry(gate.to_owned()).or_default().clone()
    }
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
            let mark = call.input["mark"].as_str().unwrap_or(&call.step);
            let mark = format!("{}/{mark}", call.run);
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
            deeds.did(&mark);
            if let Some(gate) = call.input["gate"].as_str() {
                deeds.gate(gate).notified().await;
            }
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
    Ok(Create {
        org: OrgId::default(),
        project: compiled.project,
        name: compiled.name,
        labels: compiled.labels,
        priority: compiled.priority,
        budget: compiled.budget,
        document: Json::of(document),
        plan: Arc::new(compiled.plan),
    })
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

/// Agents × tasks × steps, all alike, each step a call of `tool`.
pub fn even(agents: usize, tasks: usize, steps: usize, tool: &str) -> Value {
    let step = |n: usize| json!({ "name": format!("s{n}"), "tool": tool });
    let task = |n: usize| json!({ "name": format!("t{n}"), "steps": (0..steps).map(step).collect::<Vec<_>>() });
    let agent = |n: usize| json!({ "name": format!("a{n}"), "tasks": (0..tasks).map(task).collect::<Vec<_>>() });
    json!({ "name": "even", "plan": { "agents": (0..agents).map(agent).collect::<Vec<_>>() } })
}
