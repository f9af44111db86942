//! Agents whose calls are made by workers elsewhere: while they wait, they are in nobody's way.

use super::{Field, of_steps, step};
use anyhow::{Result, ensure};
use baton_core::OrgId;
use baton_core::credits::Credits;
use baton_core::plan::{self, Doer, Effect};
use baton_core::rules::Rules;
use baton_core::run::State;
use baton_engine::run::Toolbox;
use baton_engine::{Engine, Registry};
use baton_sim::lab::{Lab, name};
use baton_sim::on_both;
use baton_sim::run_lab::{Deeds, agents, begin, toolbox, until_is};
use baton_sim::stage::{clean, options, record};
use baton_store::{Filter, ListJobs, Order, Store};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

on_both! {
    however_many_wait_others_are_worked_on
    whoever_only_waits_is_given_back_at_once_when_its_node_stops
}

/// More than a node leaves behind when handlers do not stop: whoever waits is not left behind.
const MANY: usize = 70;
const PROJECT: &str = "patient";
/// Agents that the node works on at once.
const SLOTS: usize = 2;
/// Longer than any test: nothing is found by looking again.
const NEVER: Duration = Duration::from_secs(3_600);
/// A read may run ahead of the mark that announces it, so whoever waits looks again by himself.
const LOOK: Duration = Duration::from_millis(20);

fn tools(deeds: &Deeds) -> Toolbox {
    let mut all = toolbox(deeds);
    let (effect, price) = (Effect::Idempotent, Credits::ZERO);
    let about = plan::Tool { doer: Doer::Remote, effect, price, timeout: None, attempts: None };
    all.add_remote(name("elsewhere"), about, None).unwrap_or_else(|e| panic!("{e}"));
    all
}

fn field(mut lab: Lab) -> Field {
    let deeds = Deeds::default();
    let mut registry = Registry::empty();
    registry.work(tools(&deeds));
    lab.definitions = Arc::new(registry.definitions(Rules::default()));
    Field { lab, deeds, registry }
}

/// A node that finds nothing unless it is told.
async fn node(field: &Field) -> Result<Engine> {
    let node = field.lab.node_named("node_a").await?;
    let mut options = options(&node);
    options.agent_slots = SLOTS;
    options.poll_every = NEVER;
    Ok(Engine::start(node.store, field.registry.clone(), options).await?)
}

/// A run of so many agents, all of which call somebody elsewhere.
fn waiting(agents: usize) -> Value {
    let agent = |n| json!({ "name": format!("a{n}"), "tasks": [{ "steps": [{ "tool": "elsewhere" }] }] });
    let agents: Vec<Value> = (0..agents).map(agent).collect();
    json!({ "name": "waiting", "project": PROJECT, "limits": { "max_agents": agents.len() }, "plan": { "agents": agents } })
}

/// Until so many calls were made.
async fn until_called(store: &Store, calls: usize) -> Result<()> {
    let mut events = store.watch_events();
    loop {
        events.mark_unchanged();
        let filter = Filter { kind: Some(name("tool.elsewhere")), ..Filter::default() };
        let (org, project, order) = (OrgId::default(), name(PROJECT), Order::Rising);
        let ask = ListJobs { org, project, filter, order, after: None, limit: MANY + 1, bytes: usize::MAX };
        if store.jobs(ask).await?.items.len() == calls {
            return Ok(());
        }
        let _ = tokio::time::timeout(LOOK, events.changed()).await;
    }
}

async fn however_many_wait_others_are_worked_on(lab: Lab) -> Result<()> {
    let field = field(lab);
    let engine = node(&field).await?;
    let store = engine.store();
    let tools = tools(&field.deeds);
    begin(store, &waiting(MANY), tools.known()).await?;
    until_called(store, MANY).await?;
    let other = begin(store, &of_steps(&[step("here", "pure")]), tools.known()).await?;
    until_is(store, other, State::Completed).await?;
    clean(store).await
}

async fn whoever_only_waits_is_given_back_at_once_when_its_node_stops(lab: Lab) -> Result<()> {
    let field = field(lab);
    let engine = node(&field).await?;
    let id = begin(engine.store(), &waiting(1), tools(&field.deeds).known()).await?;
    until_called(engine.store(), 1).await?;
    engine.stop(NEVER).await;
    let store = field.lab.node_named("node_b").await?.store;
    for agent in agents(&store, id).await? {
        let Some(job) = agent.job else { continue };
        let job = record(&store, job).await?.job;
        ensure!(job.fence().is_none(), "somebody else may take it: {job:?}");
        ensure!(agent.steps().all(|(_, _, step)| step.is_call()), "{agent:?}");
    }
    clean(&store).await
}
