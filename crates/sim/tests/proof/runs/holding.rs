//! Pausing and resuming.

use super::{Field, gated, hold, of_steps, say, step};
use anyhow::{Context, Result, ensure};
use baton_core::run::hand::Doing;
use baton_core::run::{Agent, AgentState, State};
use baton_sim::lab::Lab;
use baton_sim::on_both;
use baton_sim::run_lab::{agents, run, until, until_is, until_waits};
use baton_sim::stage::clean;
use serde_json::{Value, json};
use std::time::Duration;

on_both! {
    a_failure_ends_many_questions_at_once
    a_pause_is_prompt_and_what_is_in_flight_still_counts
    a_pause_outlives_the_node
    one_agent_is_paused_and_the_others_go_on
}

async fn a_pause_is_prompt_and_what_is_in_flight_still_counts(lab: Lab) -> Result<()> {
    let field = Field::new(lab);
    let engine = field.node("node_a").await?;
    let store = engine.store();
    let id = field.begin(store, &of_steps(&[gated("first", "unsafe"), step("second", "pure")])).await?;
    field.deeds.until(id, "first", 1).await;
    let paused = say(store, hold(id, None, true)).await?;
    ensure!(paused.state == State::Paused, "{paused:?}");
    field.deeds.open("first");
    // What came of the call is kept, and the worker leaves.
    let mut events = store.watch_events();
    while agents(store, id).await?.iter().any(|agent| agent.job.is_some()) {
        let _ = tokio::time::timeout(Duration::from_millis(20), events.changed()).await;
    }
    let agent = agents(store, id).await?.pop().context("there is one")?;
    ensure!(agent.state == AgentState::Paused && agent.step_count == 1, "{agent:?}");
    ensure!(field.deeds.times(id, "second") == 0 && run(store, id).await?.state == State::Paused);
    clean(store).await?;
    say(store, hold(id, None, false)).await?;
    until_is(store, id, State::Completed).await?;
    ensure!((field.deeds.times(id, "first"), field.deeds.times(id, "second")) == (1, 1));
    clean(store).await
}

async fn a_pause_outlives_the_node(lab: Lab) -> Result<()> {
    let field = Field::new(lab);
    let engine = field.node("node_a").await?;
    let wait = json!({ "name": "waits", "tool": "wait", "input": { "signal": "go", "within": "1h" } });
    let id = field.begin(engine.store(), &of_steps(&[wait, step("then", "pure")])).await?;
    until_waits(engine.store(), id, |doing| matches!(doing, Doing::Signal { .. })).await?;
    say(engine.store(), hold(id, None, true)).await?;
    engine.stop(Duration::from_secs(5)).await;
    let next = field.node("node_b").await?;
    let store = next.store();
    // The signal would let it go on, were it not paused.
    let signal = baton_core::run::signal::Signal {
        org: baton_core::OrgId::default(),
        run: id,
        name: baton_sim::lab::name("go"),
        data: baton_core::Json::of(&json!(1)),
    };
    say(store, signal).await?;
    ensure!(run(store, id).await?.state == State::Paused && field.deeds.times(id, "then") == 0);
    say(store, hold(id, None, false)).await?;
    until_is(store, id, State::Completed).await?;
    clean(store).await
}

async fn one_agent_is_paused_and_the_others_go_on(lab: Lab) -> Result<()> {
    let field = Field::new(lab);
    let engine = field.node("node_a").await?;
    let store = engine.store();
    let agent = |name: &str| {
        let steps = [gated(&format!("{name}-first"), "pure"), step(&format!("{name}-second"), "pure")];
        json!({ "name": name, "tasks": [{ "name": "t", "steps": steps }] })
    };
    let id = field.begin(store, &json!({ "name": "two", "plan": { "agents": [agent("a"), agent("b")] } })).await?;
    for first in ["a-first", "b-first"] {
        field.deeds.until(id, first, 1).await;
    }
    let held = agents(store, id).await?.first().context("there are two")?.id;
    say(store, hold(id, Some(held), true)).await?;
    for first in ["a-first", "b-first"] {
        field.deeds.open(first);
    }
    until(store, id, |run| run.counts.completed == 1).await?;
    ensure!(run(store, id).await?.state == State::Running && field.deeds.times(id, "a-second") == 0);
    say(store, hold(id, Some(held), false)).await?;
    until_is(store, id, State::Completed).await?;
    ensure!((field.deeds.times(id, "a-first"), field.deeds.times(id, "b-second")) == (1, 1));
    clean(store).await
}

/// Each question is a document of its own: ending them all must not take a look for each.
async fn a_failure_ends_many_questions_at_once(lab: Lab) -> Result<()> {
    let field = Field::new(lab);
    let engine = field.node("node_a").await?;
    let store = engine.store();
    let ask =
        |n: usize| json!({ "name": format!("asks{n}"), "steps": [{ "tool": "ask", "input": { "prompt": "Go?" } }] });
    let mut tasks: Vec<Value> = (0..4).map(ask).collect();
    let fails = json!({ "tool": "pure", "input": { "fails": { "step": 9 }, "code": "not_found" } });
    tasks.push(json!({ "name": "falls", "steps": [gated("hold", "pure"), fails] }));
    let agent = |name: &str, tasks: &[Value]| json!({ "name": name, "parallelism": "parallel", "tasks": tasks });
    let both = [agent("one", &tasks), agent("two", &tasks[..4])];
    let id = field.begin(store, &json!({ "name": "asks", "plan": { "agents": both } })).await?;
    let open = |agents: &[Agent]| agents.iter().map(|agent| agent.decisions().count()).sum::<usize>();
    let mut events = store.watch_events();
    while open(&agents(store, id).await?) < 8 {
        let _ = tokio::time::timeout(Duration::from_millis(20), events.changed()).await;
    }
    field.deeds.open("hold");
    until_is(store, id, State::Failed).await?;
    clean(store).await
}
