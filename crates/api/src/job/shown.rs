//! Whose words a route speaks: Baton's own under `/api/v1`, the orchestrator's on its routes. What
//! they are about is the same.

use super::wanted::Wanted;
use baton_core::job::state::{Face, State};
use baton_core::job::{self, Cold, End, Status};
use baton_store::JobRecord;
use baton_wire::{Job, Left, OrchestratorJob};
use serde::Serialize;

pub trait Shown: Serialize + Send + 'static {
    /// What is meant by the one word that both have for different states.
    const QUEUED: Wanted;

    fn with(job: &job::Job, cold: &Cold, left: Left<'_>) -> Self;
}

impl Shown for Job {
    const QUEUED: Wanted = Wanted::State(State::Queued);

    fn with(job: &job::Job, cold: &Cold, left: Left<'_>) -> Self {
        Self::with(job, cold, left)
    }
}

impl Shown for OrchestratorJob {
    const QUEUED: Wanted = Wanted::Face(Face::Queued);

    fn with(job: &job::Job, cold: &Cold, left: Left<'_>) -> Self {
        Self::with(job, cold, left)
    }
}

pub fn show<J: Shown>(record: &JobRecord) -> J {
    let cancelled = matches!(record.job.status, Status::Ended { how: End::Cancelled, .. });
    let error = record.error.as_ref();
    let left = Left {
        result: record.result.as_ref(),
        error: error.filter(|_| !cancelled),
        // A cancelled job's reason stands where a failed one's code does.
        cancelled: error.filter(|_| cancelled).map(|reason| reason.code.as_str()),
        requeued_as: record.requeued_as,
    };
    J::with(&record.job, &record.cold, left)
}
