//! Acting on a job that is there: cancel, wake, requeue.

use super::enqueue::status;
use super::shown::Shown;
use super::{job_id, reach};
use crate::after::{After, Standing};
use crate::app::App;
use crate::call::Call;
use crate::door::Caller;
use crate::idempotency::{self, Keyed, rendered};
use crate::problem::Fault;
use crate::refusal::Told;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::Response;
use baton_core::JobId;
use baton_core::command::Command;
use baton_core::job::cancel::Cancel;
use baton_core::job::enqueue::Enqueued;
use baton_core::job::requeue::Requeue;
use baton_core::job::wake::Wake;
use baton_core::limits::REASON_CHARS;
use baton_wire::{EnqueuedJob, Job, OrchestratorJob};

type Id = Result<Path<String>, PathRejection>;

pub async fn cancel(State(app): State<App>, caller: Caller, id: Id, call: Call) -> Result<Response, Fault> {
    cancelled::<Job>(&app, &caller, id, &call, "POST /api/v1/jobs/{jobId}/cancel").await
}

/// The same in the words of the orchestrator's contract.
pub async fn cancel_orchestrated(
    State(app): State<App>,
    caller: Caller,
    id: Id,
    call: Call,
) -> Result<Response, Fault> {
    let done =
        cancelled::<OrchestratorJob>(&app, &caller, id, &call, "POST /api/orchestrator/jobs/{jobId}/cancel").await;
    done.map_err(|fault| fault.renamed("invalid_transition", "job_conflict").respelled("cancelled", "canceled"))
}

async fn cancelled<J: Shown>(
    app: &App,
    caller: &Caller,
    id: Id,
    call: &Call,
    scope: &'static str,
) -> Result<Response, Fault> {
    let job = job_id(id)?;
    let asked: baton_wire::Cancel = call.body.parse_or_default()?;
    if asked.reason.as_ref().is_some_and(|reason| reason.chars().count() > REASON_CHARS) {
        return Err(Fault::field("reason", format!("at most {REASON_CHARS} characters")));
    }
    let keyed = call.keyed(scope, &asked)?;
    act::<J, _>(app, caller, job, Cancel { org: caller.org.clone(), job, reason: asked.reason }, keyed).await
}

pub async fn wake(State(app): State<App>, caller: Caller, id: Id, call: Call) -> Result<Response, Fault> {
    let job = job_id(id)?;
    let keyed = call.keyed_bare("POST /api/v1/jobs/{jobId}/wake")?;
    act::<Job, _>(&app, &caller, job, Wake { org: caller.org.clone(), job }, keyed).await
}

/// Commits, and answers with the job as it stands after that.
async fn act<J: Shown, C: Command>(
    app: &App,
    caller: &Caller,
    job: JobId,
    command: C,
    keyed: Option<Keyed>,
) -> Result<Response, Fault>
where
    C::No: Told,
{
    reach(app, caller, job).await?;
    let render = |out: &Standing| rendered(200, &J::with(&out.job, &out.cold, out.ending.as_ref().into()));
    idempotency::commit(app, caller, After { command, job }, keyed, render).await
}

pub async fn requeue(State(app): State<App>, caller: Caller, id: Id, call: Call) -> Result<Response, Fault> {
    let job = job_id(id)?;
    let keyed = call.keyed_bare("POST /api/v1/jobs/{jobId}/requeue")?;
    reach(&app, &caller, job).await?;
    let command = Requeue { org: caller.org.clone(), jobs: vec![job] };
    // One was asked for, so one it is.
    let render = |outs: &Vec<Enqueued>| {
        let out = outs.first();
        rendered(status(out.is_some_and(|out| out.how.is_new())), &out.map(EnqueuedJob::from))
    };
    idempotency::commit(&app, &caller, command, keyed, render).await
}
