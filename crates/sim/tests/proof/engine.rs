//! The engine on real databases: what happens around the commits.

use anyhow::{Context, Result, ensure};
use baton_core::command::Actor;
use baton_core::definition::{JobType, Timeout};
use baton_core::job::enqueue::Enqueue;
use baton_core::job::state::Face;
use baton_core::job::{Pause, Status};
use baton_core::rules::Rules;
use baton_core::time::{Micros, Span};
use baton_core::{JobId, Json, seal};
use baton_engine::{Engine, JobCx, Outcome, Registry, StartError};
use baton_sim::hold::Hold;
use baton_sim::lab::{Lab, Place, echo, name};
use baton_sim::stage::{check, clean, is, options, record, start, told, until};
use baton_sim::{on_both, open_lane};
use baton_store::{JobRecord, Store};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, mpsc};

on_both! {
    a_job_runs_to_its_result
    a_handler_that_panics_fails_its_job
    a_beat_keeps_a_long_job_and_a_lost_lease_stops_its_handler
    a_jumping_clock_takes_nothing_from_a_living_worker
    what_is_drained_is_still_beaten_for
    a_dead_nodes_job_is_taken_over_by_another
    a_node_that_comes_back_takes_back_its_own
    stopping_gives_back_what_does_not_finish
    a_deadline_ends_a_waiting_job
    a_changed_definition_under_an_old_version_is_refused
    stopping_seals_the_history
    cutting_off_the_tail_with_its_seals_is_noticed
}

/// Runs a test where rows can be held by others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_beat_that_hangs_does_not_keep_a_handler_running_past_its_lease() {
    check(Place::Postgres, a_beat_that_hangs).await;
}

/// The lease was prolonged after the clock had been advanced by this much. A beat that was under
/// way at that moment prolongs it too, but only by what has passed on its own clock.
fn beaten_since(before: Micros, advanced: Span) -> impl Fn(&JobRecord) -> bool {
    move |record| record.job.status.lease().is_some_and(|lease| lease.until >= before.plus(advanced))
}

/// A job type whose handler says when it begins, and ends when it is let go or stopped.
struct Stage {
    began: mpsc::UnboundedReceiver<u32>,
    stopped: mpsc::UnboundedReceiver<u32>,
    let_go: Arc<Notify>,
    registry: Registry,
}

/// Says so when it is dropped without having been disarmed.
struct Curtain(Option<(mpsc::UnboundedSender<u32>, u32)>);

impl Drop for Curtain {
    fn drop(&mut self) {
        if let Some((stopped, attempt)) = self.0.take() {
            let _ = stopped.send(attempt);
        }
    }
}

fn stage() -> Stage {
    stage_of(long_type())
}

fn stage_of(kind: JobType) -> Stage {
    let (tell_began, began) = mpsc::unbounded_channel();
    let (tell_stopped, stopped) = mpsc::unbounded_channel();
    let let_go = Arc::new(Notify::new());
    let mut registry = open_lane::registry();
    let gate = let_go.clone();
    registry.add(kind, move |cx: JobCx, _: Json| {
        let (began, stopped, gate) = (tell_began.clone(), tell_stopped.clone(), gate.clone());
        async move {
            let mut curtain = Curtain(Some((stopped, cx.job.attempts)));
            let _ = began.send(cx.job.attempts);
            gate.notified().await;
            curtain.0 = None;
            Outcome::Done(Json::of(&json!({ "attempt": cx.job.attempts })))
        }
    });
    Stage { began, stopped, let_go, registry }
}

fn long_type() -> JobType {
    JobType {
        max_attempts: Some(3),
        lane: open_lane::rule(),
        timeout: Timeout::Never,
        ..JobType::new(name("long"), 1, "")
    }
}

/// A lab that also knows the `long` type.
fn with_long(lab: Lab) -> Lab {
    knowing(lab, &stage().registry)
}

fn knowing(mut lab: Lab, registry: &Registry) -> Lab {
    lab.definitions = Arc::new(registry.definitions(Rules::default()));
    lab
}

async fn enqueue_long(store: &Store) -> Result<JobId> {
    Ok(store.commit(Enqueue { kind: name("long"), ..echo() }, Actor::Api).await?.job.id)
}

async fn a_job_runs_to_its_result(lab: Lab) -> Result<()> {
    let engine = start(&lab, "node_a", open_lane::registry()).await?;
    let id = engine.store().commit(echo(), Actor::Api).await?.job.id;
    let done = until(engine.store(), id, is(Face::Completed)).await?;
    ensure!(done.result == Some(Json::of(&json!({ "message": "hello" }))));
    ensure!(done.job.attempts == 1);
    clean(engine.store()).await
}

async fn a_handler_that_panics_fails_its_job(mut lab: Lab) -> Result<()> {
    let mut registry = Registry::empty();
    registry.add(JobType { name: name("bad"), ..long_type() }, |_: JobCx, _: Json| async {
        std::panic::set_hook(Box::new(|_| {}));
        panic!("oh no");
    });
    lab.definitions = Arc::new(registry.definitions(Rules::default()));
    let engine = start(&lab, "node_a", registry).await?;
    let id = engine.store().commit(Enqueue { kind: name("bad"), ..echo() }, Actor::Api).await?.job.id;
    let failed = until(engine.store(), id, is(Face::Failed)).await?;
    ensure!(failed.error.is_some_and(|e| e.code == "handler_panicked"));
    clean(engine.store()).await
}

async fn a_beat_keeps_a_long_job_and_a_lost_lease_stops_its_handler(lab: Lab) -> Result<()> {
    let lab = with_long(lab);
    let mut stage = stage();
    let engine = start(&lab, "node_a", stage.registry.clone()).await?;
    let store = engine.store().clone();
    let id = enqueue_long(&store).await?;
    stage.began.recv().await.context("it begins")?;
    for _ in 0..3 {
        let before = record(&store, id).await?.job.status.lease().context("leased")?.until;
        lab.advance(Span::secs(20));
        until(&store, id, beaten_since(before, Span::secs(20))).await?;
    }
    // A jump of the clock alone costs nothing: the node knows that its own worker lives. Another
    // node does not, and takes the job if it looks before the next beat; go on until it does.
    let second = start(&lab, "node_b", stage.registry.clone()).await?;
    let held = record(&store, id).await?.job.token;
    until(&store, id, |r| {
        lab.advance(Span::secs(3_600));
        r.job.token > held
    })
    .await?;
    let lost = stage.stopped.recv().await.context("its handler is stopped")?;
    ensure!(lost >= 1);
    stage.let_go.notify_one();
    stage.let_go.notify_waiters();
    let ended = until(&store, id, |r| {
        stage.let_go.notify_waiters();
        r.job.is_ended()
    })
    .await?;
    ensure!(ended.job.attempts >= 2, "somebody else went on with it");
    drop(second);
    clean(&store).await
}

async fn a_beat_that_hangs(lab: Lab) -> Result<()> {
    let mut stage = stage_of(JobType { lease: Span::secs(2), ..long_type() });
    let lab = knowing(lab, &stage.registry);
    let engine = start(&lab, "node_a", stage.registry.clone()).await?;
    let id = enqueue_long(engine.store()).await?;
    ensure!(stage.began.recv().await == Some(1));
    let somebody = Hold::row(&lab, id).await?;
    ensure!(stage.stopped.recv().await == Some(1), "it was stopped while the beat still hung");
    somebody.let_go().await?;
    // Given back or taken back, it runs again.
    ensure!(stage.began.recv().await == Some(2));
    stage.let_go.notify_one();
    until(engine.store(), id, is(Face::Completed)).await?;
    clean(engine.store()).await
}

async fn a_jumping_clock_takes_nothing_from_a_living_worker(lab: Lab) -> Result<()> {
    let lab = with_long(lab);
    let mut stage = stage();
    let engine = start(&lab, "node_a", stage.registry.clone()).await?;
    let id = enqueue_long(engine.store()).await?;
    ensure!(stage.began.recv().await == Some(1));
    for _ in 0..3 {
        let before = record(engine.store(), id).await?.job.status.lease().context("leased")?.until;
        lab.advance(Span::secs(3_600));
        until(engine.store(), id, beaten_since(before, Span::secs(3_600))).await?;
    }
    stage.let_go.notify_one();
    let done = until(engine.store(), id, is(Face::Completed)).await?;
    ensure!(done.job.attempts == 1, "it was never taken away");
    clean(engine.store()).await
}

async fn what_is_drained_is_still_beaten_for(lab: Lab) -> Result<()> {
    let lab = with_long(lab);
    let mut stage = stage();
    let first = start(&lab, "node_a", stage.registry.clone()).await?;
    let second = start(&lab, "node_b", open_lane::registry()).await?;
    let id = enqueue_long(first.store()).await?;
    ensure!(stage.began.recv().await == Some(1));
    first.begin_stopping(Duration::from_secs(30));
    for _ in 0..3 {
        let before = record(second.store(), id).await?.job.status.lease().context("leased")?.until;
        lab.advance(Span::secs(20));
        until(second.store(), id, beaten_since(before, Span::secs(20))).await?;
    }
    stage.let_go.notify_one();
    first.stop(Duration::from_secs(30)).await;
    let done = record(second.store(), id).await?;
    ensure!(done.job.status.face() == Face::Completed && done.job.attempts == 1, "{:?}", done.job);
    clean(second.store()).await
}

async fn a_dead_nodes_job_is_taken_over_by_another(lab: Lab) -> Result<()> {
    let lab = with_long(lab);
    let mut stage = stage();
    let first = start(&lab, "node_a", stage.registry.clone()).await?;
    let id = enqueue_long(first.store()).await?;
    ensure!(stage.began.recv().await == Some(1));
    drop(first);
    stage.stopped.recv().await.context("its handler went with it")?;
    let second = start(&lab, "node_b", stage.registry.clone()).await?;
    lab.advance(Span::secs(31));
    ensure!(stage.began.recv().await == Some(2), "taken over");
    stage.let_go.notify_one();
    let done = until(second.store(), id, is(Face::Completed)).await?;
    ensure!(done.result == Some(Json::of(&json!({ "attempt": 2 }))));
    clean(second.store()).await
}

async fn a_node_that_comes_back_takes_back_its_own(lab: Lab) -> Result<()> {
    let lab = with_long(lab);
    let mut stage = stage();
    let first = start(&lab, "node_a", stage.registry.clone()).await?;
    let id = enqueue_long(first.store()).await?;
    ensure!(stage.began.recv().await == Some(1));
    first.store().close().await;
    drop(first);
    stage.stopped.recv().await.context("its handler went with it")?;
    let again = start(&lab, "node_a", stage.registry.clone()).await?;
    ensure!(stage.began.recv().await == Some(2), "at once, without waiting for the lease");
    stage.let_go.notify_one();
    until(again.store(), id, is(Face::Completed)).await?;
    clean(again.store()).await
}

async fn stopping_gives_back_what_does_not_finish(lab: Lab) -> Result<()> {
    let lab = with_long(lab);
    let mut stage = stage();
    let engine = start(&lab, "node_a", stage.registry.clone()).await?;
    let id = enqueue_long(engine.store()).await?;
    stage.began.recv().await.context("it begins")?;
    ensure!(engine.ready().is_ok());
    engine.stop(Duration::from_millis(50)).await;
    ensure!(engine.ready().is_err());
    ensure!(stage.stopped.recv().await == Some(1), "its handler was stopped");
    let node = lab.node_named("node_a").await?;
    let job = record(&node.store, id).await?.job;
    ensure!(matches!(job.status, Status::AwaitingTool { pause: Pause::Retry, due_at: Some(_) }), "{:?}", job.status);
    clean(&node.store).await
}

async fn a_deadline_ends_a_waiting_job(lab: Lab) -> Result<()> {
    let engine = start(&lab, "node_a", open_lane::registry()).await?;
    let store = engine.store();
    let deadline = Some(store.now().await?.plus(Span::secs(60)));
    let payload = Json::of(&json!({ "wait": true }));
    let id = store.commit(Enqueue { payload, deadline, ..echo() }, Actor::Api).await?.job.id;
    until(store, id, |r| matches!(r.job.status, Status::AwaitingTool { .. })).await?;
    lab.advance(Span::secs(61));
    // Setting another timer makes the engine look at the clock again.
    let deadline = Some(store.now().await?.plus(Span::secs(60)));
    store.commit(Enqueue { deadline, ..echo() }, Actor::Api).await?;
    let failed = until(store, id, is(Face::Failed)).await?;
    ensure!(failed.error.is_some_and(|e| e.code == "deadline_exceeded"));
    clean(store).await
}

async fn a_changed_definition_under_an_old_version_is_refused(lab: Lab) -> Result<()> {
    let lab = with_long(lab);
    let _first = start(&lab, "node_a", stage().registry).await?;
    let mut registry = Registry::empty();
    let changed = JobType { max_attempts: Some(9), ..long_type() };
    registry.add(changed, |_: JobCx, _: Json| async { Outcome::Done(Json::of(&json!({}))) });
    let node = lab.node_named("node_b").await?;
    let refused = Engine::start(node.store.clone(), registry, options(&node)).await;
    ensure!(matches!(refused, Err(StartError::Definition(_))), "it started");
    Ok(())
}

async fn cutting_off_the_tail_with_its_seals_is_noticed(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let mut settings = options(&node);
    let key = seal::Key::new([9; 32]);
    let memory = lab.dir().join("seal.heads");
    settings.seal_key = Some(key.clone());
    settings.seal_memory = Some(memory.clone());
    let engine = Engine::start(node.store, open_lane::registry(), settings).await?;
    let id = engine.store().commit(echo(), Actor::Api).await?.job.id;
    until(engine.store(), id, is(Face::Completed)).await?;
    told(engine.store(), "job.completed").await?;
    engine.stop(Duration::from_secs(5)).await;
    let store = lab.node().await?.store;
    let report = baton_engine::audit::verify(&store, Some(key.clone()), Some(&memory)).await?;
    ensure!(report.is_clean(), "{:?}", report.violations);
    // Everything that org ever did, gone without a trace inside the database.
    let triggers = match lab.place {
        Place::Postgres => {
            "ALTER TABLE event DISABLE TRIGGER ALL; ALTER TABLE seal DISABLE TRIGGER ALL; ALTER TABLE job DISABLE TRIGGER ALL"
        }
        _ => {
            "DROP TRIGGER event_is_never_removed; DROP TRIGGER seal_is_never_removed; DROP TRIGGER job_end_is_never_removed"
        }
    };
    store.raw(triggers).await?;
    for table in ["event", "seal", "job"] {
        store.raw(&format!("DELETE FROM {table} WHERE org = 'default'")).await?;
    }
    ensure!(store.audit(Some(key.clone())).await?.is_clean(), "from inside nothing is wrong");
    let report = baton_engine::audit::verify(&store, Some(key), Some(&memory)).await?;
    ensure!(report.violations.iter().any(|v| v.code == "seal_missing"), "{report:?}");
    Ok(())
}

async fn stopping_seals_the_history(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let mut settings = options(&node);
    let key = seal::Key::new([9; 32]);
    settings.seal_key = Some(key.clone());
    let engine = Engine::start(node.store, open_lane::registry(), settings).await?;
    let id = engine.store().commit(echo(), Actor::Api).await?.job.id;
    until(engine.store(), id, is(Face::Completed)).await?;
    told(engine.store(), "job.completed").await?;
    engine.stop(Duration::from_secs(5)).await;
    let store = lab.node().await?.store;
    let report = store.audit(Some(key)).await?;
    ensure!(report.is_clean() && report.seals >= 2 && report.macs_checked == report.seals, "{report:?}");
    let report = store.audit(Some(seal::Key::new([8; 32]))).await?;
    ensure!(report.violations.iter().any(|v| v.code == "seal_mac"));
    Ok(())
}
