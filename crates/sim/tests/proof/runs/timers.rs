//! What happens by itself when too much time has passed.

use super::taking_over::LEASE_OVER;
use super::{Field, gated, hold, of_steps, say};
use anyhow::{Context, Result, ensure};
use baton_core::command::Actor;
use baton_core::job::recover::{Recover, Why};
use baton_core::run::hand::Doing;
use baton_core::run::lost::{Lost, LostError};
use baton_core::run::{Run, State};
use baton_core::time::Span;
use baton_core::{OrgId, RunId};
use baton_engine::{Engine, Registry};
use baton_sim::lab::Lab;
use baton_sim::on_both;
use baton_sim::run_lab::{agents, grant, until, until_is, until_waits};
use baton_sim::stage::{clean, start};
use baton_store::CommitError;
use serde_json::json;
use std::time::Duration;

on_both! {
    a_run_that_takes_longer_than_a_day_fails
    a_run_that_is_paused_for_longer_than_a_week_is_cancelled
    a_run_that_nobody_goes_on_with_within_five_minutes_fails
    an_agent_that_nobody_takes_over_fails_its_run_and_an_outage_does_not
}

const DAY: Span = Span::secs(24 * 60 * 60);

/// It has spent one credit of ten and waits.
async fn waiting(field: &Field, engine: &Engine) -> Result<RunId> {
    grant(engine.store(), 100).await?;
    let wait = json!({ "name": "waits", "tool": "wait", "input": { "signal": "go" } });
    let mut document = of_steps(&[json!({ "name": "pays", "tool": "priced" }), wait]);
    document["plan"]["agents"][0]["timeout"] = json!("300d");
    document["plan"]["agents"][0]["tasks"][0]["timeout"] = json!("300d");
    document["budget"] = json!("10");
    let id = field.begin(engine.store(), &document).await?;
    until_waits(engine.store(), id, |doing| matches!(doing, Doing::Signal { .. })).await?;
    Ok(id)
}

fn refunded(run: &Run) -> Result<()> {
    let told = (run.money.charged.to_string(), run.money.refunded.to_string());
    ensure!(told == ("1".to_owned(), "9".to_owned()), "{told:?}");
    Ok(())
}

fn because(run: &Run, code: &str) -> Result<()> {
    let told = run.error.as_ref().map(|fault| fault.code.as_str()).or(run.reason.as_deref());
    ensure!(told == Some(code), "{told:?} instead of {code}");
    refunded(run)
}

async fn a_run_that_takes_longer_than_a_day_fails(lab: Lab) -> Result<()> {
    let field = Field::new(lab);
    let engine = field.node("node_a").await?;
    let id = waiting(&field, &engine).await?;
    field.lab.advance(DAY);
    field.lab.advance(Span::secs(1));
    because(&until_is(engine.store(), id, State::Failed).await?, "run_timeout")?;
    clean(engine.store()).await
}

async fn a_run_that_is_paused_for_longer_than_a_week_is_cancelled(lab: Lab) -> Result<()> {
    let field = Field::new(lab);
    let engine = field.node("node_a").await?;
    let id = waiting(&field, &engine).await?;
    say(engine.store(), hold(id, None, true)).await?;
    for _ in 0..7 {
        field.lab.advance(DAY);
    }
    field.lab.advance(Span::secs(1));
    because(&until_is(engine.store(), id, State::Cancelled).await?, "pause_timeout")?;
    clean(engine.store()).await
}

async fn a_run_that_nobody_goes_on_with_within_five_minutes_fails(lab: Lab) -> Result<()> {
    let field = Field::new(lab);
    let engine = field.node("node_a").await?;
    let id = waiting(&field, &engine).await?;
    say(engine.store(), hold(id, None, true)).await?;
    // After this nobody is left who could go on with it.
    engine.stop(Duration::from_secs(5)).await;
    // It is alive, and works on nothing of the kind.
    let other = start(&field.lab, "node_b", Registry::empty()).await?;
    say(other.store(), hold(id, None, false)).await?;
    field.lab.advance(Span::secs(5 * 60 + 1));
    because(&until_is(other.store(), id, State::Failed).await?, "resume_timeout")?;
    clean(other.store()).await
}

async fn an_agent_that_nobody_takes_over_fails_its_run_and_an_outage_does_not(lab: Lab) -> Result<()> {
    let field = Field::new(lab);
    let engine = field.node("node_a").await?;
    grant(engine.store(), 100).await?;
    let mut document = of_steps(&[json!({ "name": "pays", "tool": "priced" }), gated("hangs", "pure")]);
    document["budget"] = json!("10");
    let id = field.begin(engine.store(), &document).await?;
    field.deeds.until(id, "hangs", 1).await;
    let agent = agents(engine.store(), id).await?.first().context("there is one")?.id;
    drop(engine);
    let node = field.lab.node_named("node_b").await?;
    let began = node.store.now().await?;
    field.lab.advance(LEASE_OVER);
    for fence in node.store.expired(9).await? {
        node.store.commit(Recover::new(fence, Why::LeaseExpired), Actor::Engine).await?;
    }
    field.lab.advance(Span::secs(61));
    let now = node.store.now().await?;
    let lost = |alive_since| node.store.commit(Lost { org: OrgId::default(), agent, alive_since }, Actor::Engine);
    // Nobody was there to take it over: that is nobody's fault.
    let outage = lost(now).await;
    ensure!(matches!(outage, Err(CommitError::Refused(LostError::NotLost))), "{outage:?}");
    ensure!(node.store.lost_agents(now.plus(Span::secs(-60)), 9).await? == [(OrgId::default(), agent)]);
    lost(began).await?;
    let run = until(&node.store, id, |run| run.state == State::Failed).await?;
    because(&run, "worker_lost")?;
    clean(&node.store).await
}
