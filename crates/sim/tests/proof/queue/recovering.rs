//! What a restart runs again, and what hooks leave behind.

use super::*;

on_both! {
    recovery_a_restart_runs_again_what_was_running
    recovery_sinks_hold_one_row_however_often_a_job_is_replayed
    a_hook_that_panics_keeps_no_job_from_moving
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
