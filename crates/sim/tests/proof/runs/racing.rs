//! Many at once: every edge of the state table is won by one of them.

use super::{Field, hold, of_steps};
use anyhow::{Context, Result, ensure};
use baton_core::command::{Actor, Refusal};
use baton_core::credits::Credits;
use baton_core::run::cancel::Cancel;
use baton_core::run::hand::Doing;
use baton_core::run::retry::Retry;
use baton_core::run::start::Start;
use baton_core::run::{RunError, State};
use baton_core::{OrgId, RunId};
use baton_sim::lab::Lab;
use baton_sim::on_both;
use baton_sim::run_lab::{create, grant, history, toolbox, until_is, until_waits};
use baton_sim::stage::clean;
use baton_store::{CommitError, Store};
use futures_util::future::join_all;
use serde_json::{Value, json};
use std::collections::BTreeMap;

on_both! {
    a_hundred_who_start_a_run_start_it_once
    a_hundred_who_pause_resume_start_and_retry_take_turns
    a_hundred_who_end_a_run_end_it_once
    a_hundred_who_retry_a_run_attempt_it_once_more
}

/// How many there are.
const MANY: usize = 100;

#[derive(Clone, Copy, Debug)]
enum Wish {
    Start,
    Pause,
    Resume,
    Cancel,
    Retry,
}

async fn wish(store: Store, run: RunId, wish: Wish) -> Result<(), CommitError<RunError>> {
    let org = OrgId::default();
    match wish {
        Wish::Start => store.commit(Start { org, run }, Actor::Api).await,
        Wish::Pause => store.commit(hold(run, None, true), Actor::Api).await,
        Wish::Resume => store.commit(hold(run, None, false), Actor::Api).await,
        Wish::Cancel => store.commit(Cancel { org, run, reason: None }, Actor::Api).await,
        Wish::Retry => store.commit(Retry { org, run }, Actor::Api).await,
    }
    .map(drop)
}

/// All at once, on both nodes by turns. Whoever is not heard is told why.
async fn race(stores: [&Store; 2], run: RunId, wishes: &[Wish]) -> Result<()> {
    let said = (0..MANY).map(|n| tokio::spawn(wish(stores[n % 2].clone(), run, wishes[n / 2 % wishes.len()])));
    for heard in join_all(said).await {
        match heard? {
            Ok(()) => {}
            Err(CommitError::Refused(no)) => ensure!(no.code() == "invalid_transition", "{no:?}"),
            Err(other) => anyhow::bail!("{other:?}"),
        }
    }
    Ok(())
}

/// How often each edge was taken, once the history is known to be one way through the table.
async fn edges(store: &Store, run: RunId) -> Result<BTreeMap<(State, State), usize>> {
    let mut edges = BTreeMap::new();
    let mut state = None;
    for event in history(store, run).await?.iter().filter(|event| event.kind.starts_with("run.")) {
        let to = event.data.value()["state"].as_str().and_then(State::parse).context("it names the state")?;
        if let Some(from) = state.replace(to) {
            ensure!(from != to, "{} happened to a run that was {to}", event.kind);
            from.check(to)?;
            *edges.entry((from, to)).or_default() += 1;
        }
    }
    Ok(edges)
}

/// It stays until it is told to go on.
fn patient() -> Value {
    let mut document = of_steps(&[
        json!({ "name": "pays", "tool": "priced" }),
        json!({ "name": "waits", "tool": "wait", "input": { "signal": "go" } }),
    ]);
    document["budget"] = json!("10");
    document
}

async fn made(field: &Field, store: &Store, document: &Value) -> Result<RunId> {
    grant(store, 100).await?;
    let create = create(document, toolbox(&field.deeds).known())?;
    Ok(store.commit(create, Actor::Api).await?.id)
}

async fn a_hundred_who_start_a_run_start_it_once(lab: Lab) -> Result<()> {
    let field = Field::new(lab);
    let (a, b) = (field.node("node_a").await?, field.node("node_b").await?);
    let id = made(&field, a.store(), &patient()).await?;
    race([a.store(), b.store()], id, &[Wish::Start]).await?;
    until_waits(a.store(), id, |doing| matches!(doing, Doing::Signal { .. })).await?;
    let edges = edges(a.store(), id).await?;
    let once = [(State::Created, State::Pending), (State::Pending, State::Running)];
    ensure!(edges == once.map(|edge| (edge, 1)).into(), "{edges:?}");
    clean(a.store()).await
}

async fn a_hundred_who_pause_resume_start_and_retry_take_turns(lab: Lab) -> Result<()> {
    let field = Field::new(lab);
    let (a, b) = (field.node("node_a").await?, field.node("node_b").await?);
    let id = made(&field, a.store(), &patient()).await?;
    race([a.store(), b.store()], id, &[Wish::Start, Wish::Pause, Wish::Resume, Wish::Retry]).await?;
    wish(a.store().clone(), id, Wish::Start).await.ok();
    wish(a.store().clone(), id, Wish::Resume).await.ok();
    until_is(a.store(), id, State::Running).await?;
    let edges = edges(a.store(), id).await?;
    let times = |from, to| edges.get(&(from, to)).copied().unwrap_or(0);
    ensure!(times(State::Created, State::Pending) == 1 && times(State::Pending, State::Running) == 1, "{edges:?}");
    let paused = times(State::Running, State::Paused);
    let (resuming, resumed) = (times(State::Paused, State::Resuming), times(State::Resuming, State::Running));
    ensure!(paused == resuming && resuming == resumed, "{edges:?}");
    clean(a.store()).await
}

async fn a_hundred_who_end_a_run_end_it_once(lab: Lab) -> Result<()> {
    let field = Field::new(lab);
    let (a, b) = (field.node("node_a").await?, field.node("node_b").await?);
    let id = made(&field, a.store(), &patient()).await?;
    wish(a.store().clone(), id, Wish::Start).await?;
    until_waits(a.store(), id, |doing| matches!(doing, Doing::Signal { .. })).await?;
    race([a.store(), b.store()], id, &[Wish::Pause, Wish::Cancel, Wish::Resume, Wish::Start, Wish::Retry]).await?;
    let run = until_is(b.store(), id, State::Cancelled).await?;
    ensure!(run.money.charged.plus(run.money.refunded) == Some(run.money.reserved), "{:?}", run.money);
    let edges = edges(a.store(), id).await?;
    let ends: usize = edges.iter().filter(|((_, to), _)| *to == State::Cancelled).map(|(_, times)| times).sum();
    ensure!(ends == 1, "{edges:?}");
    clean(a.store()).await
}

async fn a_hundred_who_retry_a_run_attempt_it_once_more(lab: Lab) -> Result<()> {
    let field = Field::new(lab);
    let (a, b) = (field.node("node_a").await?, field.node("node_b").await?);
    let mut document = of_steps(&[json!({
        "name": "fails", "tool": "priced", "input": { "fails": { "step": 9 }, "code": "not_found" },
    })]);
    (document["budget"], document["max_attempts"]) = (json!("10"), json!(2));
    let id = made(&field, a.store(), &document).await?;
    wish(a.store().clone(), id, Wish::Start).await?;
    until_is(a.store(), id, State::Failed).await?;
    let said = (0..MANY).map(|n| tokio::spawn(wish([&a, &b][n % 2].store().clone(), id, Wish::Retry)));
    for heard in join_all(said).await {
        // Those who come when it has failed again are told that it was tried often enough.
        let code = match heard? {
            Ok(()) => continue,
            Err(CommitError::Refused(no)) => no.code(),
            Err(other) => anyhow::bail!("{other:?}"),
        };
        ensure!(["invalid_transition", "attempts_exhausted"].contains(&code), "{code}");
    }
    let run = baton_sim::run_lab::until(a.store(), id, |run| run.attempt == 2 && run.state == State::Failed).await?;
    ensure!(run.money.charged == Credits::whole(1), "{:?}", run.money);
    let edges = edges(a.store(), id).await?;
    ensure!(edges.get(&(State::Failed, State::Retrying)) == Some(&1), "{edges:?}");
    clean(a.store()).await
}
