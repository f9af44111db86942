//! Runs through the engine, on both databases.

mod elsewhere;
mod holding;
mod money;
mod racing;
mod results;
mod shape;
mod stopping;
mod taking_over;
mod timers;

use anyhow::{Result, ensure};
use baton_core::OrgId;
use baton_core::command::{Actor, Command};
use baton_core::credits::Credits;
use baton_core::rules::Rules;
use baton_core::run::State;
use baton_core::run::hold::Hold;
use baton_core::{AgentId, RunId};
use baton_engine::{Engine, Registry};
use baton_sim::lab::Lab;
use baton_sim::on_both;
use baton_sim::run_lab::{Deeds, begin, even, grant, toolbox, until_is};
use baton_sim::stage::{clean, start};
use baton_store::Store;
use serde_json::{Value, json};
use std::sync::Arc;

/// Where runs are experimented on.
struct Field {
    lab: Lab,
    deeds: Deeds,
    registry: Registry,
}

impl Field {
    fn new(mut lab: Lab) -> Self {
        let deeds = Deeds::default();
        let mut registry = Registry::empty();
        registry.work(toolbox(&deeds));
        lab.definitions = Arc::new(registry.definitions(Rules::default()));
        Self { lab, deeds, registry }
    }

    /// A node that works on runs.
    async fn node(&self, name: &str) -> Result<Engine> {
        start(&self.lab, name, self.registry.clone()).await
    }

    async fn begin(&self, store: &Store, document: &Value) -> Result<RunId> {
        begin(store, document, toolbox(&self.deeds).known()).await
    }
}

/// A run of one agent with these tasks.
fn of_tasks(tasks: &[Value]) -> Value {
    json!({ "name": "one", "plan": { "agents": [{ "name": "a", "tasks": tasks }] } })
}

/// A run of one agent with one task.
fn of_steps(steps: &[Value]) -> Value {
    of_tasks(&[json!({ "name": "t", "steps": steps })])
}

/// A step that is remembered under its name and waits for a gate of that name.
fn gated(name: &str, tool: &str) -> Value {
    json!({ "name": name, "tool": tool, "input": { "mark": name, "gate": name } })
}

fn step(name: &str, tool: &str) -> Value {
    json!({ "name": name, "tool": tool, "input": { "mark": name } })
}

fn hold(run: RunId, agent: Option<AgentId>, pause: bool) -> Hold {
    Hold { org: OrgId::default(), run, agent, pause }
}

async fn say<C: Command>(store: &Store, command: C) -> Result<C::Out>
where
    C::No: std::error::Error + Send + Sync + 'static,
{
    Ok(store.commit(command, Actor::Api).await?)
}

on_both! { a_run_is_executed_and_paid_for }

async fn a_run_is_executed_and_paid_for(lab: Lab) -> Result<()> {
    let field = Field::new(lab);
    let engine = field.node("node_a").await?;
    let store = engine.store();
    grant(store, 1_000).await?;
    let id = field.begin(store, &even(3, 3, 3, "priced")).await?;
    let run = until_is(store, id, State::Completed).await?;
    ensure!(run.money.charged == Credits::whole(27), "{:?}", run.money);
    ensure!(run.counts.steps == 27 && run.counts.tasks == 9 && run.counts.completed == 3, "{:?}", run.counts);
    clean(store).await
}
