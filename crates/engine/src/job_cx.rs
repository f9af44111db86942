//! What a handler sees of the job it runs, and what it can say while it runs.

use crate::held::Held;
use baton_core::Micros;
use baton_core::command::Actor;
use baton_core::job::report::{Report, ReportError};
use baton_core::job::{Context, Fence, Job, Progress};
use baton_store::{CommitError, Store, StoreError};
use serde_json::Value;
use std::fmt;
use std::sync::Arc;
use tokio::sync::watch;
use tokio::time::Instant;

/// See the module. Cheap to clone.
#[derive(Clone)]
pub struct JobCx {
    /// As it stood when it was claimed, with its lease.
    pub job: Arc<Job>,
    /// When it was claimed. Handlers have no other clock.
    pub at: Micros,
    pub(crate) line: Line,
}

/// The way back to the store.
#[derive(Clone)]
pub(crate) struct Line {
    pub store: Store,
    pub fence: Fence,
    pub held: Arc<Held>,
    pub cancelled: watch::Receiver<bool>,
    /// Set when the node has been told to stop.
    pub stopping: watch::Receiver<Option<Instant>>,
}

impl fmt::Debug for JobCx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobCx").field("job", &self.job).field("at", &self.at).finish_non_exhaustive()
    }
}

#[derive(Clone, Debug, thiserror::Error)]
pub enum SayError {
    #[error(transparent)]
    LeaseLost(ReportError),
    #[error("it could not be recorded: {0}")]
    Store(StoreError),
}

impl JobCx {
    /// Says how far the job is.
    pub async fn progress(&self, percent: Option<u8>, note: Option<&str>) -> Result<(), SayError> {
        let note = note.map(str::to_owned);
        self.say(Some(Progress { percent, note }), None).await
    }

    /// Says what the job works on outside, so that cancelling it can interrupt that.
    pub async fn running_context(&self, thread: Option<&str>, turn: Option<&str>) -> Result<(), SayError> {
        let context = Context { thread: thread.map(str::to_owned), turn: turn.map(str::to_owned) };
        self.say(None, Some(context)).await
    }

    async fn say(&self, progress: Option<Progress>, context: Option<Context>) -> Result<(), SayError> {
        let Line { store, fence, held, .. } = &self.line;
        let report = Report { fence: fence.clone(), progress, context: context.clone() };
        match store.commit(report, Actor::Worker(fence.worker.clone())).await {
            Ok(reported) => {
                if let Some(context) = context {
                    held.works_on(fence, context, reported.cancel_requested);
                }
                Ok(())
            }
            Err(CommitError::KeyReused) => Ok(()),
            Err(CommitError::Refused(no)) => Err(SayError::LeaseLost(no)),
            Err(CommitError::Store(e)) => Err(SayError::Store(e)),
        }
    }

    pub(crate) const fn store(&self) -> &Store {
        &self.line.store
    }

    pub(crate) const fn fence(&self) -> &Fence {
        &self.line.fence
    }

    /// The job waits for somebody outside, and leaves its slot to others meanwhile; or it works again.
    pub(crate) fn waits(&self, waits: bool) {
        self.line.held.waits(&self.line.fence, waits);
    }

    /// The node has been told to stop: whoever can leave off should.
    pub(crate) fn is_stopping(&self) -> bool {
        self.line.stopping.borrow().is_some()
    }

    /// The answer to what the job asked, if it did and there is one.
    pub fn answer(&self) -> Option<&Value> {
        self.job.aside.as_ref()?.answer.as_ref()
    }

    pub fn is_cancelled(&self) -> bool {
        *self.line.cancelled.borrow()
    }

    /// Resolves when somebody wants the job to end; whatever it comes to then is discarded. Also
    /// when its node stops: what it comes to still counts then, and if it fails it is given back, or
    /// ends with the node, as its type says.
    pub async fn cancelled(&self) {
        let mut cancelled = self.line.cancelled.clone();
        if cancelled.wait_for(|cancelled| *cancelled).await.is_err() {
            // Whoever could say so has let go of the job, which ends its handler otherwise.
            std::future::pending::<()>().await;
        }
    }
}
