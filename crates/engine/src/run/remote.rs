//! Tools that workers outside serve: a call is a job, and this waits for its end.

use super::toolbox::{ToolCall, ToolFailure};
use baton_core::command::Actor;
use baton_core::job::Ending;
use baton_core::plan::Effect;
use baton_core::run::Fault;
use baton_core::run::remote::{CallFailed, CallTool, Errand, ToolCalled, Withdraw, came_to};
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
                Some(record) if matches!(record.ending(), Some(Ending::Result(_))) => Some(record),
                _ => {
                    let fault = Fault::new("timeout", "the worker did not end the call in time");
                    return Err(ToolFailure { may_have_acted: true, ..fault.into() });
                }
            },
        };
        waiting.over = true;
        let Some(record) = record else { return Err(CallFailed::lost("the call is not kept any more").into()) };
        Ok(came_to(&record.job, record.ending())?)
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
                    return Err(CallFailed::lost("the call was cut off before it could be recorded").into());
                }
                // Whatever is said about it now is not heard.
                Ok(ToolCalled::Unwanted) => {
                    let fault = Fault::new("call_cancelled", "nobody waits for the call any more");
                    return Err(ToolFailure { not_called: true, ..fault.into() });
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
    /// The job as it stands, if it is still kept.
    async fn look(&self) -> Option<JobRecord> {
        loop {
            match self.store.job(&self.org, self.job).await {
                Ok(found) => return found,
                Err(e) => pause(&e).await,
            }
        }
    }

    /// The job as it ended, if it is still kept.
    async fn end(&self, mut ends: broadcast::Receiver<JobId>) -> Option<JobRecord> {
        let mut rest = LOOK_FIRST;
        loop {
            match self.look().await {
                Some(record) if !record.job.is_ended() => {}
                ended => return ended,
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
