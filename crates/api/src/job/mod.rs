//! Jobs: taking them in, showing them, acting on them.

mod act;
mod enqueue;
mod list;
mod shown;
mod wanted;

pub use act::{cancel, cancel_orchestrated, requeue, wake};
pub use enqueue::{batch, enqueue, payload};
pub use list::{cut, list};
pub use shown::show;
pub use wanted::{States, words};

use crate::app::App;
use crate::door::Caller;
use crate::problem::Fault;
use crate::query::Params;
use crate::wait;
use axum::Json as Answer;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use baton_core::JobId;
use baton_store::JobRecord;
use shown::Shown;

pub async fn get<J: Shown>(
    State(app): State<App>,
    caller: Caller,
    id: Result<Path<String>, PathRejection>,
    params: Params,
) -> Result<Answer<J>, Fault> {
    params.allow(&[])?;
    let id = job_id(id)?;
    Ok(Answer(show(&reached(&app, &caller, id).await?)))
}

/// A job that there is for this caller.
pub async fn reached(app: &App, caller: &Caller, id: JobId) -> Result<JobRecord, Fault> {
    let found = wait::read(app.store().job(&caller.org, id)).await?;
    let found = found.filter(|record| caller.grant.reaches(&record.job.project, &record.job.kind.name));
    found.ok_or_else(|| Fault::new("job_not_found", format!("job {id} does not exist")))
}

/// Before something is done to a job. What a job belongs to never changes, so this is not too early;
/// a key that reaches everything need not ask.
pub async fn reach(app: &App, caller: &Caller, id: JobId) -> Result<(), Fault> {
    if caller.grant.is_whole() {
        return Ok(());
    }
    reached(app, caller, id).await.map(|_| ())
}

/// An id that nobody could have been given names no job.
fn job_id(path: Result<Path<String>, PathRejection>) -> Result<JobId, Fault> {
    let text = path.map(|Path(text)| text).unwrap_or_default();
    text.parse().map_err(|error: baton_core::id::BadId| Fault::new("job_not_found", error.to_string()))
}
