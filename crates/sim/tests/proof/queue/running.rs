//! How executions end: in time, too late, badly, with a question, in the wrong shape.

use super::*;

on_both! {
    a_job_that_runs_too_long_is_stopped_and_tried_again
    a_handler_that_blocks_its_thread_keeps_neither_its_lane_nor_its_slot
    stopping_does_not_wait_for_a_handler_that_ignores_it
    giving_up_when_the_node_stops_is_no_failure_and_finishing_counts
    a_transient_failure_is_tried_again_until_it_goes_well
    failures_that_would_repeat_are_final_and_budgets_end
    a_job_asks_and_goes_on_with_the_answer
    progress_and_running_context_are_shown_while_it_runs
    what_does_not_fit_its_schema_is_a_clear_failure
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

/// Until its node stops; then it does as its project says.
async fn until_told(cx: JobCx, tell: mpsc::UnboundedSender<JobId>) -> Outcome {
    let _ = tell.send(cx.job.id);
    cx.cancelled().await;
    match cx.job.project.as_str() {
        "fails" => Outcome::Failed(Failure::new("told_to_end", "it gave up")),
        "panics" => panic!("it was told to end"),
        _ => Outcome::Done(Json::of(&json!({}))),
    }
}

async fn giving_up_when_the_node_stops_is_no_failure_and_finishing_counts(lab: Lab) -> Result<()> {
    for (at_stop, gave_up) in [(AtStop::Cancel, Face::Canceled), (AtStop::GiveBack, Face::Queued)] {
        let text = format!("obeys-{}", gave_up.as_str());
        let (tell, mut began) = mpsc::unbounded_channel();
        let mut registry = Registry::empty();
        registry.add(JobType { at_stop, ..kind(&text) }, move |cx: JobCx, _: Json| until_told(cx, tell.clone()));
        let definitions = Arc::new(registry.definitions(Rules::default()));
        let node = lab.node_knowing(&format!("node_{}", gave_up.as_str()), definitions).await?;
        let settings = Options { slots: 3, ..options(&node) };
        let engine = Engine::start(node.store.clone(), registry, settings).await?;
        let mut jobs = Vec::new();
        for project in ["fails", "panics", "finishes"] {
            jobs.push((project, enqueue(engine.store(), order(&text, project)).await?));
            began.recv().await.context("it begins")?;
        }
        let store = lab.node_named("looker").await?.store;
        engine.stop(Duration::ZERO).await;
        for (project, job) in jobs {
            let after = record(&store, job).await?;
            let face = if project == "finishes" { Face::Completed } else { gave_up };
            ensure!(after.job.status.face() == face, "{project}: {:?}, {:?}", after.job.status, after.error);
            ensure!((after.job.attempts, after.job.failures) == (1, 0), "nobody's fault");
            ensure!(face != Face::Canceled || reason(&after) == "shutdown_timeout");
        }
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
    let decision = open_decision(&asking.job).context("a question")?;
    engine.store().commit(resolve(decision, "confirm", "go on"), Actor::Api).await?;
    let done = until(engine.store(), id, is(Face::Completed)).await?;
    ensure!(done.result.context("a result")?.value()["answer"]["option"] == "confirm");
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
