//! What steps are given of what came before them.

use super::{Field, gated, of_steps, of_tasks, say, step};
use anyhow::{Result, bail, ensure};
use baton_core::run::State;
use baton_core::run::hand::Doing;
use baton_core::run::signal::{Signal, Signalled};
use baton_core::{Json, OrgId, RunId};
use baton_sim::answers::resolve;
use baton_sim::lab::{Lab, name};
use baton_sim::on_both;
use baton_sim::run_lab::{until_is, until_waits};
use baton_sim::stage::clean;
use serde_json::{Value, json};
use std::time::Duration;

on_both! {
    results_of_earlier_steps_and_tasks_stand_in_inputs
    results_are_found_in_the_journal_by_whoever_goes_on
    the_result_of_a_step_that_is_not_done_again_still_stands
    a_signal_may_come_before_or_after_somebody_waits_for_it
    an_answer_is_the_result_of_asking
}

fn telling(name: &str, result: &Value) -> Value {
    json!({ "name": name, "tool": "pure", "input": { "mark": name, "result": result } })
}

async fn results_of_earlier_steps_and_tasks_stand_in_inputs(lab: Lab) -> Result<()> {
    let field = Field::new(lab);
    let engine = field.node("node_a").await?;
    let found = json!({ "items": [{ "id": 3 }, { "id": 5 }] });
    let mut document = of_tasks(&[
        json!({ "name": "find", "steps": [telling("look", &found),
            { "name": "use", "tool": "pure", "input": { "mark": "use", "one": "${steps.look.items.1.id}", "text": "no ${steps.look.items.0.id}" } }] }),
        json!({ "name": "end", "steps": [
            { "name": "all", "tool": "pure", "input": { "mark": "all", "all": "${tasks.find.look}", "run": "${run.id}", "name": "${run.name}" } }] }),
    ]);
    document["task"] = json!("to be done");
    let id = field.begin(engine.store(), &document).await?;
    until_is(engine.store(), id, State::Completed).await?;
    let given = field.deeds.given(id, "use").unwrap_or_default();
    ensure!(given["one"] == 5 && given["text"] == "no 3", "{given}");
    let given = field.deeds.given(id, "all").unwrap_or_default();
    ensure!(given["all"] == found && given["run"] == id.to_string() && given["name"] == "one", "{given}");
    clean(engine.store()).await
}

async fn results_are_found_in_the_journal_by_whoever_goes_on(lab: Lab) -> Result<()> {
    let field = Field::new(lab);
    let engine = field.node("node_a").await?;
    let document = of_tasks(&[
        json!({ "name": "find", "steps": [telling("look", &json!({ "n": 7 }))] }),
        json!({ "name": "use", "steps": [gated("stop", "pure"),
            { "name": "last", "tool": "pure", "input": { "mark": "last", "n": "${tasks.find.look.n}", "s": "${steps.stop}" } }] }),
    ]);
    let id = field.begin(engine.store(), &document).await?;
    field.deeds.until(id, "stop", 1).await;
    drop(engine);
    field.lab.advance(super::taking_over::LEASE_OVER);
    let next = field.node("node_b").await?;
    field.deeds.until(id, "stop", 2).await;
    field.deeds.open("stop");
    until_is(next.store(), id, State::Completed).await?;
    let given = field.deeds.given(id, "last").unwrap_or_default();
    ensure!(given["n"] == 7 && given["s"] == json!({ "step": "use.stop" }), "{given}");
    clean(next.store()).await
}

async fn the_result_of_a_step_that_is_not_done_again_still_stands(lab: Lab) -> Result<()> {
    let field = Field::new(lab);
    let engine = field.node("node_a").await?;
    // Its task, then its agent, then the whole run are begun again.
    let mut document = of_tasks(&[json!({ "name": "t", "failure_mode": "retry", "attempts": 2, "steps": [
        { "name": "send", "tool": "unsafe", "input": { "mark": "send", "result": { "receipt": 4 } } },
        { "name": "use", "tool": "pure", "input": { "mark": "use", "n": "${steps.send.receipt}", "fails": { "task": 1 }, "code": "not_found" } },
        { "name": "break", "tool": "pure", "input": { "mark": "break", "fails": { "agent": 1 }, "code": "not_found" } },
    ] })]);
    document["plan"]["agents"][0]["failure_mode"] = json!("retry");
    let id = field.begin(engine.store(), &document).await?;
    until_is(engine.store(), id, State::Completed).await?;
    ensure!(field.deeds.times(id, "send") == 1, "it was sent {} times", field.deeds.times(id, "send"));
    ensure!(field.deeds.given(id, "use").unwrap_or_default()["n"] == 4);
    clean(engine.store()).await
}

fn signal(run: RunId, of: &str, data: &Value) -> Signal {
    Signal { org: OrgId::default(), run, name: name(of), data: Json::of(data) }
}

async fn a_signal_may_come_before_or_after_somebody_waits_for_it(lab: Lab) -> Result<()> {
    let field = Field::new(lab);
    let engine = field.node("node_a").await?;
    let store = engine.store();
    let wait = |signal: &str| json!({ "name": signal, "tool": "wait", "input": { "signal": signal } });
    let last = json!({ "name": "last", "tool": "pure", "input": { "mark": "last", "a": "${steps.early.data}", "b": "${steps.late.data}" } });
    let id = field.begin(store, &of_steps(&[gated("first", "pure"), wait("early"), wait("late"), last])).await?;
    field.deeds.until(id, "first", 1).await;
    ensure!(say(store, signal(id, "early", &json!("e"))).await?.1 == Signalled::Now);
    ensure!(say(store, signal(id, "early", &json!("other"))).await?.1 == Signalled::Already);
    field.deeds.open("first");
    until_waits(store, id, |doing| matches!(doing, Doing::Signal { name, .. } if name == "late")).await?;
    say(store, signal(id, "late", &json!("l"))).await?;
    until_is(store, id, State::Completed).await?;
    let given = field.deeds.given(id, "last").unwrap_or_default();
    ensure!(given["a"] == "e" && given["b"] == "l", "{given}");
    clean(store).await
}

async fn an_answer_is_the_result_of_asking(lab: Lab) -> Result<()> {
    let field = Field::new(lab);
    let engine = field.node("node_a").await?;
    let ask = json!({ "name": "ask", "tool": "ask", "input": {
        "prompt": "Which?", "options": [{ "name": "left" }, { "name": "right" }] } });
    let last = json!({ "name": "last", "tool": "pure", "input": { "mark": "last", "way": "${steps.ask.option}" } });
    let id = field.begin(engine.store(), &of_steps(&[ask, last, step("end", "pure")])).await?;
    let waits = |doing: &Doing| matches!(doing, Doing::Answer(_));
    let Doing::Answer(asked) = until_waits(engine.store(), id, waits).await? else { bail!("nobody asks") };
    engine.stop(Duration::from_secs(5)).await;
    let next = field.node("node_b").await?;
    say(next.store(), resolve(asked, "right", "that way")).await?;
    until_is(next.store(), id, State::Completed).await?;
    ensure!(field.deeds.given(id, "last").unwrap_or_default()["way"] == "right");
    clean(next.store()).await
}
