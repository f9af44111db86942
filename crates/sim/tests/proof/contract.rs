//! The contract of a request's life, point by point, through the engine.

use anyhow::{Context, Result, bail, ensure};
use baton_core::command::{Actor, Refusal};
use baton_core::definition::{JobType, Timeout};
use baton_core::job::cancel::{Cancel, Cancelled};
use baton_core::job::enqueue::Enqueue;
use baton_core::job::requeue::Requeue;
use baton_core::job::state::Face;
use baton_core::job::wake::Wake;
use baton_core::job::{Failure, Pause, State, Status};
use baton_core::retry::Policy;
use baton_core::rules::Rules;
use baton_core::time::Span;
use baton_core::{JobId, Json, OrgId};
use baton_engine::{Engine, JobCx, Outcome, Registry};
use baton_sim::answers::{open_decision, resolve};
use baton_sim::lab::{Lab, name};
use baton_sim::on_both;
use baton_sim::stage::{clean, is, options, record, start, until};
use baton_store::{CommitError, Cursor, Store};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

on_both! {
    a_request_is_received_and_queued_before_it_executes
    lower_numbers_run_first_and_equals_in_the_order_they_came
    cancelling_queued_work_prevents_execution_and_records_the_reason
    cancelling_waiting_work_goes_straight_to_cancelled
    an_ended_job_accepts_nothing_more
    a_retry_waits_as_awaiting_tool_with_its_delay_told
    an_exhausted_budget_ends_with_its_own_code
    going_on_after_a_pause_is_the_same_attempt
}

/// Does as its payload says; remembers the order in which jobs ran.
fn registry() -> (Registry, Arc<Mutex<Vec<i32>>>) {
    let order: Arc<Mutex<Vec<i32>>> = Arc::default();
    let seen = order.clone();
    let mut registry = Registry::empty();
    let retry = Policy { base: Span::secs(100), max: Span::secs(150), jitter: false, max_failures: Some(2) };
    let kind = JobType { retry, timeout: Timeout::Never, max_attempts: Some(9), ..JobType::new(name("work"), 1, "") };
    registry.add(kind, move |cx: JobCx, payload: Json| {
        seen.lock().unwrap_or_else(PoisonError::into_inner).push(cx.job.priority);
        async move {
            let payload = payload.value();
            match payload["do"].as_str() {
                Some("park") if cx.job.wakes == 0 => Outcome::Park { until: None, seen: 0 },
                Some("ask") if cx.answer().is_none() => Outcome::Ask(Json::of(&json!({ "sure": "?" }))),
                Some("fail") => Outcome::Failed(Failure::transient("flaky", "again")),
                _ => Outcome::Done(Json::of(&json!({}))),
            }
        }
    });
    (registry, order)
}

async fn stage(mut lab: Lab) -> Result<(Lab, Engine, Arc<Mutex<Vec<i32>>>)> {
    let (registry, order) = registry();
    lab.definitions = Arc::new(registry.definitions(Rules::default()));
    let engine = start(&lab, "node_a", registry).await?;
    Ok((lab, engine, order))
}

fn work(what: &str) -> Enqueue {
    let payload = Json::of(&json!({ "do": what }));
    Enqueue::new(OrgId::default(), name("p1"), name("work"), payload)
}

async fn enqueue(store: &Store, order: Enqueue) -> Result<JobId> {
    Ok(store.commit(order, Actor::Api).await?.job.id)
}

fn cancel(job: JobId, reason: &str) -> Cancel {
    Cancel { org: OrgId::default(), job, reason: Some(reason.to_owned()) }
}

/// What is told of a job, once its end is.
async fn story(store: &Store, job: JobId, until: &str) -> Result<Vec<(String, Value)>> {
    let mut events = store.watch_events();
    loop {
        events.mark_unchanged();
        let page = store.events(&OrgId::default(), Cursor::START, 1_000).await?;
        let own = page.items.into_iter().filter(|row| row.event.subject == job.0);
        let told: Vec<_> = own.map(|row| (row.event.kind.clone(), row.event.data.value())).collect();
        if told.iter().any(|(kind, _)| kind == until) {
            return Ok(told);
        }
        events.changed().await?;
    }
}

async fn a_request_is_received_and_queued_before_it_executes(lab: Lab) -> Result<()> {
    let (_lab, engine, _) = stage(lab).await?;
    let id = enqueue(engine.store(), work("")).await?;
    until(engine.store(), id, is(Face::Completed)).await?;
    let story = story(engine.store(), id, "job.completed").await?;
    let kinds: Vec<_> = story.iter().map(|(kind, _)| kind.as_str()).collect();
    ensure!(kinds == ["job.queued", "job.started", "job.completed"]);
    let moves: Vec<_> = story.iter().map(|(_, data)| (data["from"].as_str(), data["state"].as_str())).collect();
    ensure!(moves[0] == (Some("received"), Some("queued")) && moves[1] == (Some("queued"), Some("executing")));
    clean(engine.store()).await
}

async fn lower_numbers_run_first_and_equals_in_the_order_they_came(mut lab: Lab) -> Result<()> {
    let (registry, order) = registry();
    lab.definitions = Arc::new(registry.definitions(Rules::default()));
    let node = lab.node().await?;
    // 150 and 100 are of the same class, and so are 300 and 200.
    for priority in [200, 150, 300, 100, 150, 100] {
        enqueue(&node.store, Enqueue { priority: Some(priority), ..work("") }).await?;
    }
    let engine = Engine::start(node.store.clone(), registry, options(&node)).await?;
    let mut events = engine.store().watch_events();
    while order.lock().unwrap_or_else(PoisonError::into_inner).len() < 6 {
        let _ = tokio::time::timeout(Duration::from_millis(20), events.changed()).await;
    }
    let ran = order.lock().unwrap_or_else(PoisonError::into_inner).clone();
    ensure!(ran == [100, 100, 150, 150, 200, 300], "{ran:?}");
    Ok(())
}

async fn cancelling_queued_work_prevents_execution_and_records_the_reason(lab: Lab) -> Result<()> {
    let (_lab, engine, order) = stage(lab).await?;
    let later = Some(engine.store().now().await?.plus(Span::secs(900)));
    let id = enqueue(engine.store(), Enqueue { not_before: later, ..work("") }).await?;
    ensure!(engine.store().commit(cancel(id, "changed my mind"), Actor::Api).await? == Cancelled::Now);
    let told = story(engine.store(), id, "job.cancelled").await?;
    ensure!(told.last().is_some_and(|(_, data)| data["reason"] == "changed my mind" && data["from"] == "queued"));
    ensure!(record(engine.store(), id).await?.job.attempts == 0);
    ensure!(order.lock().unwrap_or_else(PoisonError::into_inner).is_empty());
    clean(engine.store()).await
}

async fn cancelling_waiting_work_goes_straight_to_cancelled(lab: Lab) -> Result<()> {
    let (_lab, engine, _) = stage(lab).await?;
    for (what, state) in
        [("park", State::AwaitingTool), ("ask", State::AwaitingUserConfirmation), ("fail", State::AwaitingTool)]
    {
        let id = enqueue(engine.store(), work(what)).await?;
        until(engine.store(), id, |r| r.job.status.state() == state).await?;
        ensure!(engine.store().commit(cancel(id, "enough"), Actor::Api).await? == Cancelled::Now);
        let ended = record(engine.store(), id).await?;
        ensure!(ended.job.status.state() == State::Cancelled, "{what}");
    }
    clean(engine.store()).await
}

fn code<T, No: Refusal>(answer: std::result::Result<T, CommitError<No>>) -> Result<&'static str> {
    match answer {
        Err(CommitError::Refused(no)) => Ok(no.code()),
        Err(e) => bail!("{e}"),
        Ok(_) => bail!("it was accepted"),
    }
}

async fn an_ended_job_accepts_nothing_more(lab: Lab) -> Result<()> {
    let (_lab, engine, _) = stage(lab).await?;
    let store = engine.store();
    let org = OrgId::default();
    let completed = enqueue(store, work("")).await?;
    until(store, completed, is(Face::Completed)).await?;
    let cancelled = enqueue(store, work("park")).await?;
    until(store, cancelled, |r| r.job.status.state() == State::AwaitingTool).await?;
    store.commit(cancel(cancelled, "x"), Actor::Api).await?;
    for (id, ended) in [(completed, State::Completed), (cancelled, State::Cancelled)] {
        let before = record(store, id).await?;
        ensure!(before.job.status.state() == ended);
        let wake = Wake { org: org.clone(), job: id };
        ensure!(code(store.commit(wake, Actor::Api).await)? == "invalid_transition");
        let requeue = Requeue { org: org.clone(), jobs: vec![id] };
        ensure!(code(store.commit(requeue, Actor::Api).await)? == "invalid_transition");
        let again = store.commit(cancel(id, "y"), Actor::Api).await;
        if ended == State::Cancelled {
            ensure!(again? == Cancelled::Already, "itself is accepted, and is no event");
        } else {
            ensure!(code(again)? == "invalid_transition");
        }
        ensure!(record(store, id).await?.job == before.job, "nothing has changed");
    }
    clean(store).await
}

async fn a_retry_waits_as_awaiting_tool_with_its_delay_told(lab: Lab) -> Result<()> {
    let (_lab, engine, _) = stage(lab).await?;
    let id = enqueue(engine.store(), work("fail")).await?;
    let waits = |r: &baton_store::JobRecord| {
        matches!(r.job.status, Status::AwaitingTool { pause: Pause::Retry, due_at: Some(_) })
    };
    let waiting = until(engine.store(), id, waits).await?;
    ensure!(waiting.job.status.face() == Face::Queued, "not ended");
    let told = story(engine.store(), id, "job.retry_scheduled").await?;
    let (_, data) = told.last().context("it is told")?;
    ensure!(data["delay_ms"] == 100_000 && data["failures"] == 1 && data["reason"] == "flaky", "{data}");
    // A job of the same lane goes on meanwhile.
    let other = enqueue(engine.store(), work("")).await?;
    until(engine.store(), other, is(Face::Completed)).await?;
    clean(engine.store()).await
}

async fn an_exhausted_budget_ends_with_its_own_code(lab: Lab) -> Result<()> {
    let (lab, engine, _) = stage(lab).await?;
    let id = enqueue(engine.store(), work("fail")).await?;
    let failures = |n| move |r: &baton_store::JobRecord| r.job.failures == n;
    until(engine.store(), id, failures(1)).await?;
    lab.advance(Span::secs(200));
    // Something new makes everybody look at the clock again.
    enqueue(engine.store(), work("")).await?;
    let failed = until(engine.store(), id, is(Face::Failed)).await?;
    ensure!(failed.error.is_some_and(|e| e.code == "failures_exhausted"));
    ensure!((failed.job.attempts, failed.job.failures) == (2, 2));
    clean(engine.store()).await
}

async fn going_on_after_a_pause_is_the_same_attempt(lab: Lab) -> Result<()> {
    let (_lab, engine, _) = stage(lab).await?;
    let store = engine.store();
    let parked = enqueue(store, work("park")).await?;
    until(store, parked, |r| r.job.status.state() == State::AwaitingTool).await?;
    store.commit(Wake { org: OrgId::default(), job: parked }, Actor::Api).await?;
    let done = until(store, parked, is(Face::Completed)).await?;
    ensure!(done.job.attempts == 1);
    let asked = enqueue(store, work("ask")).await?;
    let asking = until(store, asked, |r| r.job.status.state() == State::AwaitingUserConfirmation).await?;
    let decision = open_decision(&asking.job).context("a question")?;
    store.commit(resolve(decision, "confirm", "yes"), Actor::Api).await?;
    let done = until(store, asked, is(Face::Completed)).await?;
    ensure!(done.job.attempts == 1);
    clean(store).await
}
