//! Cancelling what waits and what runs.

use super::*;

on_both! {
    cancellation_of_a_queued_job_means_that_it_never_runs
    cancellation_of_a_running_job_interrupts_its_turn
    cancellation_of_a_running_job_is_forced_when_interrupting_takes_too_long
    cancellation_that_marks_stops_the_handler_at_once
    a_turn_that_is_told_late_is_interrupted_too
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
