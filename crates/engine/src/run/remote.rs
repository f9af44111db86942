//! Tools that workers outside serve: a call is a job, and this waits for its end.

use super::toolbox::{ToolCall, ToolFailure};
use baton_core::command::Actor;
use baton_core::job::{Ending, Failure};
use baton_core::plan::Effect;
use baton_core::retry;
use baton_core::run::Fault;
use baton_core::run::remote::{CallTool, Errand, ToolCalled, Withdraw};
use baton_core::{JobId, OrgId, ProjectId, TypeName};
use baton_store::{CommitError, JobRecord, Store, StoreError};
use serde_json::Value;
use std::time::Duration;
use tokio::sync::broadcast;
use tokio::time::Instant;

/// After trouble with the store.
const TROUBLE_PAUSE: Duration = Duration::from_millis(200);
/// Between two looks, should another node hear of the end: at first, and at most.
const LOOK_FIRST: Duration = Duration::from_millis(50);
const LOOK_MOST: Duration = Duration::from_secs(1);
/// The failure of a call that was turned away, and so did nothing.
const TURNED_AWAY: &str = "rate_limited";

/// One call, and where it is made.
pub(super) struct Remote {
    pub store: Store,
    pub org: OrgId,
    pub project: ProjectId,
    pub priority: i32,
    pub tool: TypeName,
    pub effect: Effect,
    pub call: ToolCall,
    pub place: (u32, u32),
    pub task_attempt: u32,
    pub agent_attempt: u32,
    /// It was begun by somebody who is gone.
    pub again: bool,
}

impl Remote {
    fn errand(&self) -> Errand {
        let call = &self.call;
        Errand {
            call: format!("{}#{}", call.key, call.attempt),
            input: call.input.clone(),
            key: call.key.clone(),
            run: call.run,
            agent: call.agent,
            step: call.step.clone(),
            attempt: call.attempt,
            place: self.place,
            task_attempt: self.task_attempt,
            agent_attempt: self.agent_attempt,
            timeout_ms: call.timeout.and_then(|span| u64::try_from(span.as_millis()).ok()),
        }
    }

    /// Has the call made and waits for what comes of it. Whoever drops this does not wait any more: the job is then
    /// ended, unless somebody else waits for it.
    pub async fn made(self) -> Result<Value, ToolFailure> {
        let until = self.call.timeout.map(|span| Instant::now() + span);
        let errand = self.errand();
        // Before it is made, so that its end cannot be missed.
        let ends = self.store.watch_calls();
        let job = self.begin(&errand).await?;
        let mut waiting = Waiting { store: self.store, org: self.org, job, errand, over: false };
        let ended = match until {
            Some(until) => tokio::time::timeout_at(until, waiting.end(ends)).await.ok(),
            None => Some(waiting.end(ends).await),
        };
        let record = match ended {
            Some(record) => record,
            None => match waiting.give_up().await {
                // It was never handed out, so nothing happened.
                Some(record) if record.job.attempts == 0 => {
                    let fault = Fault::new("timeout", "no worker took the call in time");
                    return Err(ToolFailure { not_called: true, ..fault.into() });
                }
                Some(record) if matches!(record.ending(), Some(Ending::Result(_))) => record,
                _ => {
                    let fault = Fault::new("timeout", "the worker did not end the call in time");
                    return Err(ToolFailure { may_have_acted: true, ..fault.into() });
                }
            },
        };
        waiting.over = true;
        outcome(&record)
    }

    async fn begin(&self, errand: &Errand) -> Result<JobId, ToolFailure> {
        let command = CallTool {
            org: self.org.clone(),
            project: self.project.clone(),
            priority: self.priority,
            tool: self.tool.clone(),
            errand: errand.clone(),
            again: self.again,
            effect: self.effect,
        };
        loop {
            match self.store.commit(command.clone(), Actor::Engine).await {
                Ok(ToolCalled::By(job)) => return Ok(job),
                Ok(ToolCalled::Unknown) => {
                    let fault = Fault::new("worker_lost", "the call was cut off before it could be recorded");
                    return Err(ToolFailure { may_have_acted: true, ..fault.into() });
                }
                Ok(ToolCalled::Cannot(why)) => {
                    let fault = Fault::new("dependency_missing", &why);
                    return Err(ToolFailure { not_called: true, ..fault.into() });
                }
                Err(CommitError::Refused(never)) => match never {},
                // Made twice, it is one job.
                Err(CommitError::Store(e)) => pause(&e).await,
                Err(CommitError::KeyReused) => {}
            }
        }
    }
}

async fn pause(e: &StoreError) {
    tracing::warn!(%e, "a call of a tool could not be recorded yet");
    tokio::time::sleep(TROUBLE_PAUSE).await;
}

/// A call that is waited for.
struct Waiting {
    store: Store,
    org: OrgId,
    job: JobId,
    errand: Errand,
    /// There is nothing to withdraw any more.
    over: bool,
}

impl Waiting {
    async fn look(&self) -> Option<JobRecord> {
        match self.store.job(&self.org, self.job).await {
            Ok(found) => found,
            Err(e) => {
                pause(&e).await;
                None
            }
        }
    }

    /// The job as it ended.
    async fn end(&self, mut ends: broadcast::Receiver<JobId>) -> JobRecord {
        let mut rest = LOOK_FIRST;
        loop {
            if let Some(record) = self.look().await.filter(|record| record.job.is_ended()) {
                return record;
            }
            let heard = async {
                loop {
                    match ends.recv().await {
                        Ok(job) if job != self.job => {}
                        // What was missed may have been it.
                        Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => return,
                        Err(broadcast::error::RecvError::Closed) => std::future::pending::<()>().await,
                    }
                }
            };
            if tokio::time::timeout(rest, heard).await.is_err() {
                rest = LOOK_MOST.min(rest * 2);
            }
        }
    }

    /// The time is over, whoever might have taken the agent since.
    async fn give_up(&mut self) -> Option<JobRecord> {
        self.over = true;
        let (org, job, errand) = (self.org.clone(), self.job, self.errand.clone());
        let withdraw = Withdraw { org, job, errand, anyhow: true };
        while let Err(CommitError::Store(e)) = self.store.commit(withdraw.clone(), Actor::Engine).await {
            pause(&e).await;
        }
        self.look().await
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if self.over {
            return;
        }
        let withdraw = Withdraw { org: self.org.clone(), job: self.job, errand: self.errand.clone(), anyhow: false };
        let store = self.store.clone();
        // Outside of a runtime there is nobody left to do it; whoever hands the job out looks again.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                if let Err(e) = store.commit(withdraw, Actor::Engine).await {
                    tracing::debug!(%e, "a call that nobody waits for could not be withdrawn");
                }
            });
        }
    }
}

fn outcome(record: &JobRecord) -> Result<Value, ToolFailure> {
    let begun = record.job.attempts > 0;
    match record.ending() {
        Some(Ending::Result(result)) => Ok(output(result.value())),
        Some(Ending::Error(failure)) => Err(failed(record, failure)),
        Some(Ending::Cancelled(reason)) => {
            let fault = Fault::new("call_cancelled", &format!("the call was cancelled: {reason}"));
            Err(ToolFailure { not_called: !begun, may_have_acted: begun, ..fault.into() })
        }
        None => {
            let fault = Fault::new("worker_lost", "what came of the call is not kept any more");
            Err(ToolFailure { may_have_acted: true, ..fault.into() })
        }
    }
}

/// Alone in its object, or the object itself.
fn output(result: Value) -> Value {
    match result {
        Value::Object(mut fields) if fields.len() == 1 && fields.contains_key("output") => {
            fields.remove("output").unwrap_or_default()
        }
        other => other,
    }
}

/// As with a program: a call that failed may have acted, unless it is said that it did not.
fn failed(record: &JobRecord, failure: Failure) -> ToolFailure {
    let idle = record.job.aside.as_ref().is_some_and(|aside| aside.idle) || failure.code == TURNED_AWAY;
    // That workers are lost says nothing against the call.
    let fault = if failure.code == "recovery_attempts_exhausted" {
        Fault { class: retry::Class::Transient, ..Fault::new("worker_lost", &failure.message) }
    } else {
        Fault::from(failure)
    };
    ToolFailure { may_have_acted: !idle, ..fault.into() }
}
