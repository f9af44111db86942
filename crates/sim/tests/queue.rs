//! The queue through the engine: what users of it are promised.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use anyhow::{Context as _, Result, ensure};
use baton_core::command::{Actor, Refusal};
use baton_core::dedupe::{self, Mode};
use baton_core::definition::{AtStop, JobType, Timeout};
use baton_core::job::cancel::{self, Cancel, Cancelled, Strategy};
use baton_core::job::confirm::Confirm;
use baton_core::job::enqueue::{Enqueue, How};
use baton_core::job::state::Face;
use baton_core::job::{BACKGROUND, Context, Failure, INTERACTIVE, Job, State};
use baton_core::retry::Policy;
use baton_core::rules::Rules;
use baton_core::time::Span;
use baton_core::{JobId, Json, OrgId, sink};
use baton_engine::{Done, Engine, JobCx, JobDefinition, Outcome, Registry};
use baton_sim::lab::{Lab, name};
use baton_sim::on_both;
use baton_sim::stage::{clean, is, options, record, start, until, until_ended};
use baton_store::{CommitError, Cursor, Store};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, Semaphore, mpsc};

on_both! {
    scheduler_jobs_of_one_project_run_one_after_another
    scheduler_background_runs_under_an_endless_interactive_stream
    dedupe_a_second_click_gives_the_job_that_runs
    dedupe_duplicates_are_dropped_or_merged_as_configured
    cancellation_of_a_queued_job_means_that_it_never_runs
    cancellation_of_a_running_job_interrupts_its_turn
    cancellation_of_a_running_job_is_forced_when_interrupting_takes_too_long
    cancellation_that_marks_stops_the_handler_at_once
    recovery_a_restart_runs_again_what_was_running
    recovery_sinks_hold_one_row_however_often_a_job_is_replayed
    a_job_that_runs_too_long_is_stopped_and_tried_again
    a_handler_that_blocks_its_thread_keeps_neither_its_lane_nor_its_slot
    stopping_does_not_wait_for_a_handler_that_ignores_it
    a_transient_failure_is_tried_again_until_it_goes_well
    failures_that_would_repeat_are_final_and_budgets_end
    a_job_asks_and_goes_on_with_the_answer
    progress_and_running_context_are_shown_while_it_runs
    what_does_not_fit_its_schema_is_a_clear_failure
    a_hook_that_panics_keeps_no_job_from_moving
    a_turn_that_is_told_late_is_interrupted_too
}

/// Says when its jobs begin and end; how they go on is up to the test.
#[derive(Clone)]
struct Probe {
    seen: Arc<Mutex<Vec<String>>>,
    running: Arc<Mutex<BTreeMap<String, usize>>>,
    most: Arc<Mutex<BTreeMap<String, usize>>>,
    began: mpsc::UnboundedSender<JobId>,
}

/// A job's stay among those that run.
struct Stay {
    probe: Probe,
    key: String,
}

impl Probe {
    fn new() -> (Self, mpsc::UnboundedReceiver<JobId>) {
        let (began, heard) = mpsc::unbounded_channel();
        (Self { seen: Arc::default(), running: Arc::default(), most: Arc::default(), began }, heard)
    }

    fn enter(&self, job: &Job) -> Stay {
        let key = job.project.to_string();
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let now = running.entry(key.clone()).or_default();
        *now += 1;
        let mut most = self.most.lock().unwrap_or_else(PoisonError::into_inner);
        let before = most.entry(key.clone()).or_default();
        *before = (*before).max(*now);
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).push(format!("{}", job.priority));
        let _ = self.began.send(job.id);
        Stay { probe: self.clone(), key }
    }

    fn most(&self) -> BTreeMap<String, usize> {
        self.most.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        let mut running = self.probe.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(n) = running.get_mut(&self.key) {
            *n -= 1;
        }
    }
}

fn kind(text: &str) -> JobType {
    let retry = Policy { base: Span::millis(1), max: Span::millis(5), ..Policy::default() };
    JobType { retry, timeout: Timeout::Never, ..JobType::new(name(text), 1, "") }
}

fn order(text: &str, project: &str) -> Enqueue {
    Enqueue::new(OrgId::default(), name(project), name(text), Json::of(&json!({})))
}

async fn enqueue(store: &Store, order: Enqueue) -> Result<JobId> {
    Ok(store.commit(order, Actor::Api).await?.job.id)
}

fn knowing(mut lab: Lab, registry: &Registry, rules: Rules) -> Lab {
    lab.definitions = Arc::new(registry.definitions(rules));
    lab
}

/// An engine with so many slots.
async fn engine(lab: &Lab, registry: Registry, slots: usize) -> Result<Engine> {
    let node = lab.node().await?;
    let mut options = options(&node);
    options.slots = slots;
    Ok(Engine::start(node.store, registry, options).await?)
}

/// A type whose jobs wait at a gate that lets through one at a time.
fn gated(kind: JobType, probe: &Probe) -> (Registry, Arc<Semaphore>) {
    let gate = Arc::new(Semaphore::new(0));
    let mut registry = Registry::empty();
    let (probe, at) = (probe.clone(), gate.clone());
    registry.add(kind, move |cx: JobCx, _: Json| {
        let (probe, gate) = (probe.clone(), at.clone());
        async move {
            let _stay = probe.enter(&cx.job);
            gate.acquire().await.unwrap().forget();
            Outcome::Done(Json::of(&json!({})))
        }
    });
    (registry, gate)
}

async fn scheduler_jobs_of_one_project_run_one_after_another(lab: Lab) -> Result<()> {
    let (probe, _) = Probe::new();
    let mut registry = Registry::empty();
    let inside = probe.clone();
    registry.add(kind("work"), move |cx: JobCx, _: Json| {
        let probe = inside.clone();
        async move {
            let _stay = probe.enter(&cx.job);
            tokio::time::sleep(Duration::from_millis(3)).await;
            Outcome::Done(Json::of(&json!({})))
        }
    });
    let lab = knowing(lab, &registry, Rules::default());
    let engine = engine(&lab, registry, 4).await?;
    let mut jobs = Vec::new();
    for n in 0..18 {
        jobs.push(enqueue(engine.store(), order("work", &format!("p{}", n % 3))).await?);
    }
    for id in jobs {
        until(engine.store(), id, is(Face::Completed)).await?;
    }
    let most = probe.most();
    ensure!(most.len() == 3 && most.values().all(|n| *n == 1), "{most:?}");
    clean(engine.store()).await
}

async fn scheduler_background_runs_under_an_endless_interactive_stream(lab: Lab) -> Result<()> {
    let (probe, mut began) = Probe::new();
    let (registry, gate) = gated(kind("work"), &probe);
    let lab = knowing(lab, &registry, Rules::default());
    let engine = engine(&lab, registry, 1).await?;
    let at = |priority| Enqueue { priority: Some(priority), ..order("work", "p1") };
    let background = enqueue(engine.store(), at(BACKGROUND)).await?;
    // It may begin at once, before anything else is there: then it is not what waits.
    ensure!(began.recv().await == Some(background));
    let waiting = enqueue(engine.store(), at(BACKGROUND)).await?;
    for _ in 0..4 {
        enqueue(engine.store(), at(INTERACTIVE)).await?;
    }
    lab.advance(Span::secs(16));
    let mut interactive = 0;
    loop {
        enqueue(engine.store(), at(INTERACTIVE)).await?;
        gate.add_permits(1);
        if began.recv().await == Some(waiting) {
            break;
        }
        interactive += 1;
        ensure!(interactive <= 3, "{interactive} interactive jobs went first");
    }
    ensure!(interactive == 3, "it did not wait for its turn: {:?}", probe.seen());
    Ok(())
}

async fn dedupe_a_second_click_gives_the_job_that_runs(lab: Lab) -> Result<()> {
    let (probe, mut began) = Probe::new();
    let dedupe = dedupe::Rule { mode: Mode::SingleFlight, key: Some(name("{project}:{session}:suggest")) };
    let (registry, gate) = gated(JobType { dedupe, ..kind("suggest") }, &probe);
    let lab = knowing(lab, &registry, Rules::default());
    let engine = engine(&lab, registry, 2).await?;
    let click = |session: &str| Enqueue { source_session: Some(name(session)), ..order("suggest", "p1") };
    let first = engine.store().commit(click("s1"), Actor::Api).await?;
    ensure!(began.recv().await == Some(first.job.id));
    let again = engine.store().commit(click("s1"), Actor::Api).await?;
    ensure!(again.how == How::AlreadyQueued && again.job.id == first.job.id);
    let other = engine.store().commit(click("s2"), Actor::Api).await?;
    ensure!(other.how == How::Enqueued, "another chat is another matter");
    gate.add_permits(1);
    until(engine.store(), first.job.id, is(Face::Completed)).await?;
    ensure!(engine.store().commit(click("s1"), Actor::Api).await?.how == How::Enqueued, "it may be clicked again");
    Ok(())
}

async fn dedupe_duplicates_are_dropped_or_merged_as_configured(lab: Lab) -> Result<()> {
    let mut registry = Registry::empty();
    for (text, mode) in [("drop", Mode::DropDuplicate), ("merge", Mode::MergeDuplicate)] {
        let dedupe = dedupe::Rule { mode, key: Some(name("{payload.item}")) };
        registry.add(JobType { dedupe, ..kind(text) }, |_: JobCx, payload: Json| async { Outcome::Done(payload) });
    }
    let lab = knowing(lab, &registry, Rules::default());
    let node = lab.node().await?;
    let about =
        |text: &str, more: &str| Enqueue { payload: Json::of(&json!({ "item": 1, more: true })), ..order(text, "p1") };
    // Nobody works yet, so all of them wait.
    let dropped = node.store.commit(about("drop", "a"), Actor::Api).await?;
    ensure!(node.store.commit(about("drop", "b"), Actor::Api).await?.how == How::Dropped);
    let merged = node.store.commit(about("merge", "a"), Actor::Api).await?;
    ensure!(node.store.commit(about("merge", "b"), Actor::Api).await?.how == How::Merged);
    let engine = Engine::start(node.store.clone(), registry, options(&node)).await?;
    let done = until_ended(engine.store(), dropped.job.id).await?;
    ensure!(done.result.unwrap().value() == json!({ "a": true, "item": 1 }));
    ensure!(engine.store().commit(about("drop", "c"), Actor::Api).await?.how == How::Dropped, "also when it is done");
    let done = until_ended(engine.store(), merged.job.id).await?;
    ensure!(done.result.unwrap().value() == json!({ "a": true, "b": true, "item": 1 }));
    clean(engine.store()).await
}

async fn cancelled(engine: &Engine, job: JobId) -> Result<Cancelled> {
    let cancel = Cancel { org: OrgId::default(), job, reason: None };
    Ok(engine.store().commit(cancel, Actor::Api).await?)
}

fn reason(record: &baton_store::JobRecord) -> String {
    record.error.as_ref().map(|e| e.code.clone()).unwrap_or_default()
}

async fn cancellation_of_a_queued_job_means_that_it_never_runs(lab: Lab) -> Result<()> {
    let (probe, mut began) = Probe::new();
    let (registry, gate) = gated(kind("work"), &probe);
    let lab = knowing(lab, &registry, Rules::default());
    let engine = engine(&lab, registry, 2).await?;
    let first = enqueue(engine.store(), order("work", "p1")).await?;
    ensure!(began.recv().await == Some(first));
    let queued = enqueue(engine.store(), order("work", "p1")).await?;
    let last = enqueue(engine.store(), order("work", "p1")).await?;
    ensure!(cancelled(&engine, queued).await? == Cancelled::Now);
    ensure!(cancelled(&engine, queued).await? == Cancelled::Already, "cancelling it again changes nothing");
    gate.add_permits(2);
    let done = until(engine.store(), last, is(Face::Completed)).await?;
    ensure!(done.job.attempts == 1);
    let never = record(engine.store(), queued).await?;
    ensure!(never.job.attempts == 0 && never.job.status.face() == Face::Canceled);
    ensure!(reason(&never) == "user_requested");
    clean(engine.store()).await
}

/// A job type that works on a turn of a thread, and may or may not listen.
struct Turn {
    listens: bool,
    began: mpsc::UnboundedSender<JobId>,
    interrupted: mpsc::UnboundedSender<Context>,
}

impl JobDefinition for Turn {
    type Payload = Value;
    type Output = Value;

    fn job_type(&self) -> JobType {
        let cancel = cancel::Rule { strategy: Strategy::InterruptTurn, grace: Span::secs(30) };
        JobType { cancel, ..kind("turn") }
    }

    async fn run(&self, cx: JobCx, _: Value) -> Result<Done<Value>, Failure> {
        if cx.job.project.as_str() == "next" {
            return Ok(Done::Result(json!({})));
        }
        cx.running_context(Some("thread-1"), Some("turn-1")).await.unwrap();
        let _ = self.began.send(cx.job.id);
        if self.listens {
            cx.cancelled().await;
        } else {
            std::future::pending::<()>().await;
        }
        Ok(Done::Result(json!({ "too": "late" })))
    }

    async fn interrupt(&self, context: Context) {
        let _ = self.interrupted.send(context);
    }
}

struct Turning {
    engine: Engine,
    job: JobId,
    next: JobId,
    interrupted: mpsc::UnboundedReceiver<Context>,
}

/// A turn that runs, and the project's next job behind it.
async fn turning(lab: Lab, listens: bool) -> Result<(Lab, Turning)> {
    let (tell_began, mut began) = mpsc::unbounded_channel();
    let (tell_interrupted, interrupted) = mpsc::unbounded_channel();
    let mut registry = Registry::empty();
    registry.define(Turn { listens, began: tell_began, interrupted: tell_interrupted });
    registry.add(kind("after"), |_: JobCx, _: Json| async { Outcome::Done(Json::of(&json!({}))) });
    let lab = knowing(lab, &registry, Rules::default());
    let engine = engine(&lab, registry, 2).await?;
    let job = enqueue(engine.store(), order("turn", "p1")).await?;
    ensure!(began.recv().await == Some(job));
    let next = enqueue(engine.store(), order("after", "p1")).await?;
    Ok((lab, Turning { engine, job, next, interrupted }))
}

async fn cancellation_of_a_running_job_interrupts_its_turn(lab: Lab) -> Result<()> {
    let (_lab, mut turning) = turning(lab, true).await?;
    let Turning { engine, job, next, interrupted } = &mut turning;
    ensure!(cancelled(engine, *job).await? == Cancelled::Requested);
    let context = interrupted.recv().await.context("it is interrupted")?;
    ensure!(context == Context { thread: Some("thread-1".to_owned()), turn: Some("turn-1".to_owned()) });
    let ended = until_ended(engine.store(), *job).await?;
    ensure!(ended.job.status.face() == Face::Canceled && reason(&ended) == "user_requested");
    ensure!(ended.result.is_none(), "what it came to is discarded");
    ensure!(ended.job.cancel_requested().is_some());
    until(engine.store(), *next, is(Face::Completed)).await?;
    clean(engine.store()).await
}

/// Setting a timer makes everybody look at the clock again.
async fn nudge(store: &Store) -> Result<()> {
    let deadline = Some(store.now().await?.plus(Span::secs(3_600)));
    let kind = store.definitions().job_types().next().context("a type")?.name.clone();
    let later = Some(store.now().await?.plus(Span::secs(3_000)));
    let order = Enqueue { deadline, not_before: later, kind, ..order("any", "nudge") };
    store.commit(order, Actor::Api).await?;
    Ok(())
}

async fn cancellation_of_a_running_job_is_forced_when_interrupting_takes_too_long(lab: Lab) -> Result<()> {
    let (lab, mut turning) = turning(lab, false).await?;
    let Turning { engine, job, next, interrupted } = &mut turning;
    ensure!(cancelled(engine, *job).await? == Cancelled::Requested);
    ensure!(interrupted.recv().await.is_some());
    ensure!(record(engine.store(), *job).await?.job.status.state() == State::Executing, "it has its time");
    lab.advance(Span::secs(31));
    nudge(engine.store()).await?;
    let ended = until_ended(engine.store(), *job).await?;
    ensure!(ended.job.status.face() == Face::Canceled && reason(&ended) == "interrupt_timeout");
    until(engine.store(), *next, is(Face::Completed)).await?;
    clean(engine.store()).await
}

async fn cancellation_that_marks_stops_the_handler_at_once(lab: Lab) -> Result<()> {
    let (probe, mut began) = Probe::new();
    let (registry, _gate) = gated(kind("work"), &probe);
    let lab = knowing(lab, &registry, Rules::default());
    let engine = engine(&lab, registry, 1).await?;
    let first = enqueue(engine.store(), order("work", "p1")).await?;
    ensure!(began.recv().await == Some(first));
    let next = enqueue(engine.store(), order("work", "p1")).await?;
    ensure!(cancelled(&engine, first).await? == Cancelled::Now);
    // The only slot is free again only when the handler has been stopped.
    ensure!(began.recv().await == Some(next));
    ensure!(probe.most().values().all(|n| *n == 1));
    Ok(())
}

async fn recovery_a_restart_runs_again_what_was_running(lab: Lab) -> Result<()> {
    let (probe, mut began) = Probe::new();
    // A gate for each life: what is left of the first must not go through the second's.
    let (registry, _closed) = gated(kind("work"), &probe);
    let lab = knowing(lab, &registry, Rules::default());
    let first_life = engine(&lab, registry, 2).await?;
    let mut jobs = Vec::new();
    for project in ["p1", "p2"] {
        jobs.push(enqueue(first_life.store(), order("work", project)).await?);
        began.recv().await.context("it begins")?;
    }
    first_life.store().close().await;
    drop(first_life);
    let (registry, gate) = gated(kind("work"), &probe);
    let second_life = engine(&lab, registry, 2).await?;
    for _ in &jobs {
        began.recv().await.context("it begins again")?;
    }
    gate.add_permits(2);
    for id in jobs {
        let done = until(second_life.store(), id, is(Face::Completed)).await?;
        ensure!((done.job.attempts, done.job.failures) == (2, 0), "a crash counts its attempt and no failure");
    }
    clean(second_life.store()).await
}

/// A job type that keeps a row of a transcript up to date.
struct Explain {
    began: mpsc::UnboundedSender<u32>,
    gate: Arc<Notify>,
}

fn row(job: &Job, status: &str) -> Vec<sink::Row> {
    vec![sink::Row::new("transcript", "explain-1", &json!({ "attempt": job.attempts, "status": status }))]
}

impl JobDefinition for Explain {
    type Payload = Value;
    type Output = Value;
    const HOOKS: bool = true;

    fn job_type(&self) -> JobType {
        kind("explain")
    }

    async fn run(&self, cx: JobCx, _: Value) -> Result<Done<Value>, Failure> {
        let _ = self.began.send(cx.job.attempts);
        self.gate.notified().await;
        Ok(Done::Result(json!({ "text": "because" })))
    }

    fn on_queued(&self, job: &Job, _: &Value) -> Vec<sink::Row> {
        row(job, "queued")
    }

    fn on_started(&self, job: &Job, _: &Value) -> Vec<sink::Row> {
        row(job, "streaming")
    }

    fn on_completed(&self, job: &Job, _: &Value, _: &Value) -> Vec<sink::Row> {
        row(job, "complete")
    }

    fn on_canceled(&self, job: &Job, _: &Value, reason: &str) -> Vec<sink::Row> {
        row(job, reason)
    }
}

async fn recovery_sinks_hold_one_row_however_often_a_job_is_replayed(lab: Lab) -> Result<()> {
    let (tell, mut began) = mpsc::unbounded_channel();
    // A gate for each life: what is left of the first must not go through the second's.
    let (closed, gate) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let registry = |gate: &Arc<Notify>| {
        let mut registry = Registry::empty();
        registry.define(Explain { began: tell.clone(), gate: gate.clone() });
        registry
    };
    let lab = knowing(lab, &registry(&gate), Rules::default());
    let key = sink::Key { space: "transcript".to_owned(), key: "explain-1".to_owned() };
    let shown = async |store: &Store| -> Result<Value> {
        Ok(store.sink(&OrgId::default(), &key).await?.context("there is a row")?.value())
    };
    let first = engine(&lab, registry(&closed), 1).await?;
    let id = enqueue(first.store(), order("explain", "p1")).await?;
    ensure!(began.recv().await == Some(1));
    ensure!(shown(first.store()).await? == json!({ "attempt": 1, "status": "streaming" }));
    first.store().close().await;
    drop(first);
    let second = engine(&lab, registry(&gate), 1).await?;
    ensure!(began.recv().await == Some(2));
    ensure!(shown(second.store()).await? == json!({ "attempt": 2, "status": "streaming" }));
    gate.notify_one();
    until(second.store(), id, is(Face::Completed)).await?;
    ensure!(shown(second.store()).await? == json!({ "attempt": 2, "status": "complete" }));
    let other = enqueue(second.store(), order("explain", "p1")).await?;
    ensure!(began.recv().await == Some(1));
    cancelled(&second, other).await?;
    ensure!(shown(second.store()).await? == json!({ "attempt": 1, "status": "user_requested" }));
    clean(second.store()).await
}

async fn a_job_that_runs_too_long_is_stopped_and_tried_again(lab: Lab) -> Result<()> {
    let mut registry = Registry::empty();
    let timeout = Timeout::After(Span::millis(30));
    registry.add(JobType { timeout, ..kind("slow") }, |cx: JobCx, _: Json| async move {
        if cx.job.project.as_str() == "stuck" || cx.job.attempts < 2 {
            std::future::pending::<()>().await;
        }
        Outcome::Done(Json::of(&json!({})))
    });
    let lab = knowing(lab, &registry, Rules::default());
    let engine = engine(&lab, registry, 2).await?;
    let second_try = enqueue(engine.store(), order("slow", "p1")).await?;
    let stuck = enqueue(engine.store(), order("slow", "stuck")).await?;
    let done = until(engine.store(), second_try, is(Face::Completed)).await?;
    ensure!((done.job.attempts, done.job.failures) == (2, 1));
    let failed = until(engine.store(), stuck, is(Face::Failed)).await?;
    let error = failed.error.context("it says why")?;
    ensure!(error.code == "attempts_exhausted" && error.message.contains("timeout"), "{error:?}");
    clean(engine.store()).await
}

/// A type whose handlers hold on to their threads until the sender is dropped.
fn blocking(kind: JobType) -> (Registry, std::sync::mpsc::Sender<()>, mpsc::UnboundedReceiver<JobId>) {
    let (release, held) = std::sync::mpsc::channel::<()>();
    let (tell, began) = mpsc::unbounded_channel();
    let held = Arc::new(Mutex::new(held));
    let mut registry = Registry::empty();
    registry.add(kind, move |cx: JobCx, _: Json| {
        let (held, tell) = (held.clone(), tell.clone());
        async move {
            if cx.job.project.as_str() == "blocks" && cx.job.attempts == 1 {
                let _ = tell.send(cx.job.id);
                let _ = held.lock().unwrap_or_else(PoisonError::into_inner).recv();
            }
            Outcome::Done(Json::of(&json!({ "attempt": cx.job.attempts })))
        }
    });
    (registry, release, began)
}

async fn a_handler_that_blocks_its_thread_keeps_neither_its_lane_nor_its_slot(lab: Lab) -> Result<()> {
    let timeout = Timeout::After(Span::millis(30));
    let (registry, release, mut began) = blocking(JobType { timeout, max_attempts: Some(2), ..kind("block") });
    let lab = knowing(lab, &registry, Rules::default());
    let engine = engine(&lab, registry, 1).await?;
    let blocked = enqueue(engine.store(), order("block", "blocks")).await?;
    ensure!(began.recv().await == Some(blocked));
    let other = enqueue(engine.store(), order("block", "p1")).await?;
    until(engine.store(), other, is(Face::Completed)).await?;
    let done = until(engine.store(), blocked, is(Face::Completed)).await?;
    ensure!(done.result.context("a result")?.value()["attempt"] == 2, "what the first one says is discarded");
    drop(release);
    clean(engine.store()).await
}

async fn stopping_does_not_wait_for_a_handler_that_ignores_it(lab: Lab) -> Result<()> {
    for (at_stop, face) in [(AtStop::Cancel, Face::Canceled), (AtStop::GiveBack, Face::Queued)] {
        let text = format!("block-{}", face.as_str());
        let (registry, release, mut began) = blocking(JobType { at_stop, ..kind(&text) });
        let lab_definitions = Arc::new(registry.definitions(Rules::default()));
        let node = lab.node_knowing(&format!("node_{}", face.as_str()), lab_definitions).await?;
        let engine = Engine::start(node.store.clone(), registry, options(&node)).await?;
        let job = enqueue(engine.store(), order(&text, "blocks")).await?;
        ensure!(began.recv().await == Some(job));
        let store = lab.node_named("looker").await?.store;
        engine.stop(Duration::ZERO).await;
        let after = record(&store, job).await?;
        ensure!(after.job.status.face() == face, "{:?}", after.job.status);
        if face == Face::Canceled {
            ensure!(reason(&after) == "shutdown_timeout");
        } else {
            ensure!((after.job.attempts, after.job.failures) == (1, 0), "nobody's fault");
        }
        drop(release);
        clean(&store).await?;
        store.close().await;
    }
    Ok(())
}

async fn a_transient_failure_is_tried_again_until_it_goes_well(lab: Lab) -> Result<()> {
    let mut registry = Registry::empty();
    registry.add(JobType { max_attempts: Some(4), ..kind("flaky") }, |cx: JobCx, _: Json| async move {
        if cx.job.attempts < 4 {
            return Outcome::Failed(Failure::transient("flaky", "not yet"));
        }
        Outcome::Done(Json::of(&json!({})))
    });
    let lab = knowing(lab, &registry, Rules::default());
    let engine = engine(&lab, registry, 1).await?;
    let id = enqueue(engine.store(), order("flaky", "p1")).await?;
    let done = until(engine.store(), id, is(Face::Completed)).await?;
    ensure!((done.job.attempts, done.job.failures) == (4, 3));
    let mut events = engine.store().watch_events();
    let retries = loop {
        events.mark_unchanged();
        let page = engine.store().events(&OrgId::default(), Cursor::START, 1_000).await?;
        if page.items.iter().any(|row| row.event.kind == "job.completed") {
            break page.items.into_iter().filter(|row| row.event.kind == "job.retry_scheduled").count();
        }
        events.changed().await?;
    };
    ensure!(retries == 3);
    clean(engine.store()).await
}

async fn failures_that_would_repeat_are_final_and_budgets_end(lab: Lab) -> Result<()> {
    let mut registry = Registry::empty();
    registry.add(JobType { max_attempts: Some(3), ..kind("fails") }, |_: JobCx, payload: Json| async move {
        let code = payload.value()["code"].as_str().unwrap_or_default().to_owned();
        Outcome::Failed(Failure::new(&code, "as asked"))
    });
    let lab = knowing(lab, &registry, Rules::default());
    let engine = engine(&lab, registry, 1).await?;
    for (code, ends_as, attempts) in
        [("invalid_output", "invalid_output", 1), ("rate_limited", "attempts_exhausted", 3)]
    {
        let payload = Json::of(&json!({ "code": code }));
        let id = enqueue(engine.store(), Enqueue { payload, ..order("fails", "p1") }).await?;
        let failed = until(engine.store(), id, is(Face::Failed)).await?;
        ensure!(reason(&failed) == ends_as && failed.job.attempts == attempts, "{:?}", failed.error);
    }
    clean(engine.store()).await
}

async fn a_job_asks_and_goes_on_with_the_answer(lab: Lab) -> Result<()> {
    let registry = Registry::builtin();
    let lab = knowing(lab, &registry, Rules::default());
    let engine = start(&lab, "node_a", registry).await?;
    let payload = Json::of(&json!({ "message": "hi", "ask": true }));
    let id = enqueue(engine.store(), Enqueue { payload, ..order("echo", "p1") }).await?;
    let asking = until(engine.store(), id, |r| r.job.status.state() == State::AwaitingUserConfirmation).await?;
    ensure!(asking.job.status.face() == Face::Queued, "it waits for somebody");
    let meanwhile = enqueue(engine.store(), order("noop", "p1")).await?;
    until(engine.store(), meanwhile, is(Face::Completed)).await?;
    let answer = Json::of(&json!({ "confirmed": true }));
    engine.store().commit(Confirm { org: OrgId::default(), job: id, answer }, Actor::Api).await?;
    let done = until(engine.store(), id, is(Face::Completed)).await?;
    ensure!(done.result.context("a result")?.value()["answer"]["confirmed"] == true);
    ensure!(done.job.attempts == 1);
    clean(engine.store()).await
}

async fn progress_and_running_context_are_shown_while_it_runs(lab: Lab) -> Result<()> {
    let (tell, mut began) = mpsc::unbounded_channel();
    let gate = Arc::new(Notify::new());
    let mut registry = Registry::empty();
    let at = gate.clone();
    registry.add(kind("tells"), move |cx: JobCx, _: Json| {
        let (tell, gate) = (tell.clone(), at.clone());
        async move {
            cx.progress(Some(40), Some("nearly half")).await.unwrap();
            cx.running_context(Some("t"), None).await.unwrap();
            let _ = tell.send(());
            gate.notified().await;
            Outcome::Done(Json::of(&json!({})))
        }
    });
    let lab = knowing(lab, &registry, Rules::default());
    let engine = engine(&lab, registry, 1).await?;
    let id = enqueue(engine.store(), order("tells", "p1")).await?;
    began.recv().await.context("it tells")?;
    let aside = record(engine.store(), id).await?.job.aside.context("what it told")?;
    let progress = aside.progress.context("progress")?;
    ensure!((progress.percent, progress.note.as_deref()) == (Some(40), Some("nearly half")));
    ensure!(aside.context == Context { thread: Some("t".to_owned()), turn: None });
    gate.notify_one();
    until(engine.store(), id, is(Face::Completed)).await?;
    clean(engine.store()).await
}

/// Accepts one shape and says another.
struct Strict;

impl JobDefinition for Strict {
    type Payload = Value;
    type Output = Value;

    fn job_type(&self) -> JobType {
        JobType {
            payload_schema: Some(json!({ "type": "object", "required": ["n"] })),
            result_schema: Some(json!({ "type": "object", "required": ["ok"] })),
            ..kind("strict")
        }
    }

    async fn run(&self, _: JobCx, payload: Value) -> Result<Done<Value>, Failure> {
        Ok(Done::Result(payload))
    }
}

async fn what_does_not_fit_its_schema_is_a_clear_failure(lab: Lab) -> Result<()> {
    let mut registry = Registry::empty();
    registry.define(Strict);
    let lab = knowing(lab, &registry, Rules::default());
    let engine = engine(&lab, registry, 1).await?;
    match engine.store().commit(order("strict", "p1"), Actor::Api).await {
        Err(CommitError::Refused(no)) => {
            ensure!(no.code() == "invalid_payload" && no.to_string().contains("\"n\""), "{no}")
        }
        other => anyhow::bail!("{other:?}"),
    }
    let payload = Json::of(&json!({ "n": 1 }));
    let id = enqueue(engine.store(), Enqueue { payload, ..order("strict", "p1") }).await?;
    let failed = until(engine.store(), id, is(Face::Failed)).await?;
    ensure!(reason(&failed) == "invalid_result" && failed.job.attempts == 1, "{:?}", failed.error);
    clean(engine.store()).await
}

/// Its hooks do everything wrong.
struct Rude;

impl JobDefinition for Rude {
    type Payload = Value;
    type Output = Value;
    const HOOKS: bool = true;

    fn job_type(&self) -> JobType {
        kind("rude")
    }

    async fn run(&self, _: JobCx, _: Value) -> Result<Done<Value>, Failure> {
        Ok(Done::Result(json!({})))
    }

    fn on_started(&self, _: &Job, _: &Value) -> Vec<sink::Row> {
        std::panic::set_hook(Box::new(|_| {}));
        panic!("rude");
    }

    fn on_completed(&self, _: &Job, _: &Value, _: &Value) -> Vec<sink::Row> {
        vec![sink::Row::new("transcript", "", &json!("without a key"))]
    }
}

async fn a_hook_that_panics_keeps_no_job_from_moving(lab: Lab) -> Result<()> {
    let mut registry = Registry::empty();
    registry.define(Rude);
    registry.add(kind("calm"), |_: JobCx, _: Json| async { Outcome::Done(Json::of(&json!({}))) });
    let lab = knowing(lab, &registry, Rules::default());
    let engine = engine(&lab, registry, 1).await?;
    let rude = enqueue(engine.store(), order("rude", "p1")).await?;
    let calm = enqueue(engine.store(), order("calm", "p2")).await?;
    for id in [rude, calm] {
        let done = until(engine.store(), id, is(Face::Completed)).await?;
        ensure!(done.job.attempts == 1);
    }
    clean(engine.store()).await
}

/// Says what it works on only after somebody wants it to end.
struct LateTurn {
    began: mpsc::UnboundedSender<()>,
    interrupted: mpsc::UnboundedSender<Context>,
}

impl JobDefinition for LateTurn {
    type Payload = Value;
    type Output = Value;

    fn job_type(&self) -> JobType {
        let cancel = cancel::Rule { strategy: Strategy::InterruptTurn, grace: Span::secs(30) };
        JobType { cancel, ..kind("late") }
    }

    async fn run(&self, cx: JobCx, _: Value) -> Result<Done<Value>, Failure> {
        let _ = self.began.send(());
        cx.cancelled().await;
        cx.running_context(Some("thread-2"), Some("turn-2")).await.unwrap();
        std::future::pending::<()>().await;
        Ok(Done::Result(json!({})))
    }

    async fn interrupt(&self, context: Context) {
        let _ = self.interrupted.send(context);
    }
}

async fn a_turn_that_is_told_late_is_interrupted_too(lab: Lab) -> Result<()> {
    let (tell_began, mut began) = mpsc::unbounded_channel();
    let (tell_interrupted, mut interrupted) = mpsc::unbounded_channel();
    let mut registry = Registry::empty();
    registry.define(LateTurn { began: tell_began, interrupted: tell_interrupted });
    let lab = knowing(lab, &registry, Rules::default());
    let engine = engine(&lab, registry, 1).await?;
    let job = enqueue(engine.store(), order("late", "p1")).await?;
    began.recv().await.context("it begins")?;
    ensure!(cancelled(&engine, job).await? == Cancelled::Requested);
    let context = interrupted.recv().await.context("it is interrupted")?;
    ensure!(context.turn.as_deref() == Some("turn-2"));
    Ok(())
}
