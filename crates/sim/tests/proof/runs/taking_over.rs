//! A node dies in the middle of calls; another goes on from what was recorded.

use super::{Field, gated, of_tasks, say, step};
use anyhow::{Result, bail, ensure};
use baton_core::run::hand::Doing;
use baton_core::run::{AgentState, State};
use baton_core::time::Span;
use baton_core::{OrgId, RunId};
use baton_engine::Engine;
use baton_sim::answers::resolve;
use baton_sim::lab::Lab;
use baton_sim::on_both;
use baton_sim::run_lab::{agents, even, until, until_is, until_waits};
use baton_sim::stage::clean;
use serde_json::{Value, json};

on_both! {
    what_is_pure_is_called_again_and_what_is_not_is_asked_about
    what_was_done_by_a_dead_worker_is_not_done_again
    a_run_completes_although_its_worker_dies_when_most_of_it_is_done
}

/// Longer than the lease of a worker.
pub(super) const LEASE_OVER: Span = Span::secs(31);

/// As SIGKILL does: nothing more is said. Another node takes over when the lease is over.
async fn killed(field: &Field, victim: Engine) -> Result<Engine> {
    let survivor = field.node("node_b").await?;
    drop(victim);
    field.lab.advance(LEASE_OVER);
    Ok(survivor)
}

/// A pure and an unsafe call beside each other, and one step after both.
fn pair() -> Value {
    of_tasks(&[
        json!({ "name": "both", "parallelism": "parallel", "steps": [gated("pure", "pure"), gated("unsafe", "unsafe")] }),
        json!({ "name": "then", "steps": [
            { "name": "last", "tool": "pure", "input": { "mark": "last", "pure": "${tasks.both.pure}", "sent": "${tasks.both.unsafe}" } },
        ] }),
    ])
}

/// The pair, in the middle of which its worker died; what is asked about the unsafe call.
async fn cut_off(field: &Field) -> Result<(Engine, RunId, baton_core::id::DecisionId)> {
    let victim = field.node("node_a").await?;
    let id = field.begin(victim.store(), &pair()).await?;
    for mark in ["pure", "unsafe"] {
        field.deeds.until(id, mark, 1).await;
    }
    let engine = killed(field, victim).await?;
    field.deeds.until(id, "pure", 2).await;
    let Doing::Unknown(asked) = until_waits(engine.store(), id, |doing| matches!(doing, Doing::Unknown(_))).await?
    else {
        bail!("nobody asks")
    };
    // Whoever waited there is gone; whoever comes now waits anew.
    field.deeds.open("pure");
    Ok((engine, id, asked))
}

async fn what_is_pure_is_called_again_and_what_is_not_is_asked_about(lab: Lab) -> Result<()> {
    let field = Field::new(lab);
    let (engine, id, asked) = cut_off(&field).await?;
    let store = engine.store();
    ensure!(field.deeds.times(id, "unsafe") == 1, "it was called again and nobody was asked");
    say(store, resolve(asked, "not_done", "looked")).await?;
    field.deeds.until(id, "unsafe", 2).await;
    field.deeds.open("unsafe");
    until_is(store, id, State::Completed).await?;
    ensure!((field.deeds.times(id, "pure"), field.deeds.times(id, "unsafe")) == (2, 2));
    clean(store).await
}

async fn what_was_done_by_a_dead_worker_is_not_done_again(lab: Lab) -> Result<()> {
    let field = Field::new(lab);
    let (engine, id, asked) = cut_off(&field).await?;
    let store = engine.store();
    let mut answer = resolve(asked, "done", "looked");
    answer.data = Some(json!({ "receipt": 7 }));
    say(store, answer).await?;
    until_is(store, id, State::Completed).await?;
    ensure!(field.deeds.times(id, "unsafe") == 1);
    let given = field.deeds.given(id, "last").unwrap_or_default();
    ensure!(given["sent"] == json!({ "receipt": 7 }) && given["pure"] == json!({ "step": "both.pure" }), "{given}");
    clean(store).await
}

async fn a_run_completes_although_its_worker_dies_when_most_of_it_is_done(lab: Lab) -> Result<()> {
    let field = Field::new(lab);
    let victim = field.node("node_a").await?;
    let mut document = even(5, 1, 2, "pure");
    for n in 0..5 {
        let steps = &mut document["plan"]["agents"][n]["tasks"][0]["steps"];
        *steps = json!([step(&format!("first{n}"), "pure"), step(&format!("second{n}"), "pure")]);
        if n >= 3 {
            steps[1]["input"]["gate"] = json!("slow");
        }
    }
    let id = field.begin(victim.store(), &document).await?;
    until(victim.store(), id, |run| run.counts.completed == 3).await?;
    for slow in ["second3", "second4"] {
        field.deeds.until(id, slow, 1).await;
    }
    let engine = killed(&field, victim).await?;
    for slow in ["second3", "second4"] {
        field.deeds.until(id, slow, 2).await;
        field.deeds.open("slow");
    }
    let run = until_is(engine.store(), id, State::Completed).await?;
    ensure!(run.counts.completed == 5 && run.attempt == 1, "{run:?}");
    ensure!(agents(engine.store(), id).await?.iter().all(|agent| agent.state == AgentState::Completed));
    for n in 0..5 {
        // What had ended is not begun again.
        ensure!(field.deeds.times(id, &format!("first{n}")) == 1);
        ensure!(field.deeds.times(id, &format!("second{n}")) == if n < 3 { 1 } else { 2 });
    }
    ensure!(engine.store().attempts(&OrgId::default(), id).await?.len() == 1);
    clean(engine.store()).await
}
