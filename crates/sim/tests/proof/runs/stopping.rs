//! A node that stops in good order: what is in flight ends, nothing new begins, somebody else goes on.

use super::{Field, gated, of_steps, say, step};
use anyhow::{Result, ensure};
use baton_core::OrgId;
use baton_core::run::State;
use baton_core::run::cancel::Cancel;
use baton_core::run::hand::Doing;
use baton_core::time::Span;
use baton_sim::lab::Lab;
use baton_sim::on_both;
use baton_sim::run_lab::{agents, history, until_is, until_waits};
use baton_sim::stage::clean;
use futures_util::{FutureExt, pin_mut};
use serde_json::json;
use std::time::Duration;

on_both! {
    a_call_that_nobody_waits_for_any_more_is_stopped
    what_is_in_flight_ends_and_nothing_new_begins_when_a_node_stops
    a_sleep_goes_on_where_it_was_when_the_node_is_started_again
}

/// Long enough for calls that end at once.
const DRAIN: Duration = Duration::from_secs(20);

async fn what_is_in_flight_ends_and_nothing_new_begins_when_a_node_stops(lab: Lab) -> Result<()> {
    let field = Field::new(lab);
    let engine = field.node("node_a").await?;
    let id = field.begin(engine.store(), &of_steps(&[gated("first", "unsafe"), step("second", "unsafe")])).await?;
    field.deeds.until(id, "first", 1).await;
    {
        let stopped = engine.stop(DRAIN);
        pin_mut!(stopped);
        ensure!((&mut stopped).now_or_never().is_none(), "it waits for what is in flight");
        field.deeds.open("first");
        stopped.await;
    }
    ensure!(field.deeds.log(id).len() == 2 && field.deeds.times(id, "second") == 0, "{:?}", field.deeds.log(id));
    let next = field.node("node_b").await?;
    until_is(next.store(), id, State::Completed).await?;
    ensure!((field.deeds.times(id, "first"), field.deeds.times(id, "second")) == (1, 1));
    let told = history(next.store(), id).await?;
    ensure!(told.iter().all(|event| event.data.value()["for"] != "outcome"), "nobody had to be asked");
    clean(next.store()).await
}

async fn a_call_that_nobody_waits_for_any_more_is_stopped(lab: Lab) -> Result<()> {
    let field = Field::new(lab);
    let engine = field.node("node_a").await?;
    let document = of_steps(&[gated("hangs", "pure")]);
    let cancelled = field.begin(engine.store(), &document).await?;
    field.deeds.until(cancelled, "hangs", 1).await;
    say(engine.store(), Cancel { org: OrgId::default(), run: cancelled, reason: None }).await?;
    field.deeds.until_still().await;
    // And with the node that made it.
    let left = field.begin(engine.store(), &document).await?;
    field.deeds.until(left, "hangs", 1).await;
    drop(engine);
    field.deeds.until_still().await;
    Ok(())
}

async fn a_sleep_goes_on_where_it_was_when_the_node_is_started_again(lab: Lab) -> Result<()> {
    let field = Field::new(lab);
    let engine = field.node("node_a").await?;
    let sleep = json!({ "name": "sleeps", "tool": "sleep", "input": { "for": "40m" } });
    let id = field.begin(engine.store(), &of_steps(&[sleep, step("then", "pure")])).await?;
    let asleep = |doing: &Doing| matches!(doing, Doing::Sleep(_));
    let before = until_waits(engine.store(), id, asleep).await?;
    engine.stop(DRAIN).await;
    field.lab.advance(Span::secs(20 * 60));
    let next = field.node("node_b").await?;
    ensure!(until_waits(next.store(), id, asleep).await? == before, "it sleeps as long as it was to");
    ensure!(agents(next.store(), id).await?.len() == 1 && field.deeds.times(id, "then") == 0);
    field.lab.advance(Span::secs(20 * 60 + 1));
    until_is(next.store(), id, State::Completed).await?;
    clean(next.store()).await
}
