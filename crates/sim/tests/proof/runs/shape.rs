//! As wide as the plan allows, never wider, never out of order.

use super::{Field, gated};
use anyhow::{Context, Result, ensure};
use baton_core::RunId;
use baton_core::run::State;
use baton_sim::lab::Lab;
use baton_sim::on_both;
use baton_sim::run_lab::{Deed, until_is};
use baton_sim::stage::clean;
use serde_json::{Value, json};

on_both! {
    a_graph_of_tasks_goes_as_wide_as_it_may_and_never_out_of_order
    no_more_agents_work_at_once_than_may
    no_more_tasks_of_an_agent_go_at_once_than_may
    no_more_steps_of_a_task_go_at_once_than_may
}

/// Calls at the same time, at most.
fn most(log: &[Deed]) -> usize {
    let (mut now, mut most) = (0_usize, 0);
    for deed in log {
        now = if deed.begun.is_some() { now + 1 } else { now - 1 };
        most = most.max(now);
    }
    most
}

async fn a_graph_of_tasks_goes_as_wide_as_it_may_and_never_out_of_order(lab: Lab) -> Result<()> {
    let field = Field::new(lab);
    let engine = field.node("node_a").await?;
    let task =
        |name: &str, after: &[&str]| json!({ "name": name, "depends_on": after, "steps": [gated(name, "pure")] });
    // A root, three beside each other, one that waits for two of them, one for all.
    let tasks = [
        task("root", &[]),
        task("left", &["root"]),
        task("middle", &["root"]),
        task("right", &["root"]),
        task("pair", &["left", "middle"]),
        task("all", &["pair", "right"]),
    ];
    let agent = json!({ "name": "a", "parallelism": "dag", "max_tasks": 5, "tasks": tasks });
    let id = field.begin(engine.store(), &json!({ "name": "graph", "plan": { "agents": [agent] } })).await?;
    let deeds = &field.deeds;
    deeds.until(id, "root", 1).await;
    deeds.open("root");
    for wide in ["left", "middle", "right"] {
        deeds.until(id, wide, 1).await;
    }
    for gate in ["left", "middle"] {
        deeds.open(gate);
    }
    // It does not wait for the one that it does not need.
    deeds.until(id, "pair", 1).await;
    for gate in ["pair", "right", "all"] {
        deeds.open(gate);
    }
    until_is(engine.store(), id, State::Completed).await?;
    let log = deeds.log(id);
    ensure!(most(&log) == 3, "{log:?}");
    let at = |mark: &str, begun: bool| {
        log.iter().position(|deed| deed.mark == mark && deed.begun.is_some() == begun).context("it is there")
    };
    let edges = [("root", "left"), ("root", "middle"), ("root", "right"), ("left", "pair"), ("middle", "pair")];
    for (before, after) in edges.into_iter().chain([("pair", "all"), ("right", "all")]) {
        ensure!(at(before, false)? < at(after, true)?, "{after} began before {before} had ended: {log:?}");
    }
    ensure!(at("pair", true)? < at("right", false)?, "{log:?}");
    clean(engine.store()).await
}

/// Begins as many as may at once, then lets all go on one after the other.
async fn narrow(lab: Lab, width: usize, of: usize, document: &Value) -> Result<()> {
    let field = Field::new(lab);
    let engine = field.node("node_a").await?;
    let id: RunId = field.begin(engine.store(), document).await?;
    for nth in 0..of {
        // Whoever begins is let go only once as many are there as may be.
        let begun = (nth + width).min(of);
        field.deeds.until(id, "one", begun).await;
        field.deeds.open("one");
    }
    until_is(engine.store(), id, State::Completed).await?;
    let log = field.deeds.log(id);
    ensure!(log.len() == 2 * of && most(&log) == width, "{} at once of {width}", most(&log));
    clean(engine.store()).await
}

fn one(name: &str) -> Value {
    json!({ "name": name, "tool": "pure", "input": { "mark": "one", "gate": "one" } })
}

async fn no_more_agents_work_at_once_than_may(lab: Lab) -> Result<()> {
    let agent = |n: usize| json!({ "name": format!("a{n}"), "tasks": [{ "name": "t", "steps": [one("s")] }] });
    let agents: Vec<Value> = (0..7).map(agent).collect();
    narrow(lab, 2, 7, &json!({ "name": "agents", "limits": { "max_agents": 2 }, "plan": { "agents": agents } })).await
}

async fn no_more_tasks_of_an_agent_go_at_once_than_may(lab: Lab) -> Result<()> {
    let tasks: Vec<Value> = (0..7).map(|n| json!({ "name": format!("t{n}"), "steps": [one("s")] })).collect();
    let agent = json!({ "name": "a", "parallelism": "parallel", "max_tasks": 3, "tasks": tasks });
    narrow(lab, 3, 7, &json!({ "name": "tasks", "plan": { "agents": [agent] } })).await
}

async fn no_more_steps_of_a_task_go_at_once_than_may(lab: Lab) -> Result<()> {
    let steps: Vec<Value> = (0..7).map(|n| one(&format!("s{n}"))).collect();
    let task = json!({ "name": "t", "parallelism": "parallel", "max_steps": 4, "steps": steps });
    let document = json!({ "name": "steps", "plan": { "agents": [{ "name": "a", "tasks": [task] }] } });
    narrow(lab, 4, 7, &document).await
}
