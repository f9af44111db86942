//! Jobs: taking them in, showing them, acting on them.

mod act;
mod enqueue;
mod list;
mod shown;
mod wanted;

pub use act::{cancel, cancel_orchestrated, requeue, wake};
pub use enqueue::{batch, enqueue, payload};
pub use list::list;
pub use shown::show;

use crate::app::App;
use crate::door::Caller;
use crate::problem::Fault;
use crate::query::Params;
use crate::wait;
use axum::Json as Answer;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use baton_core::JobId;
use shown::Shown;

pub async fn get<J: Shown>(
    State(app): State<App>,
    caller: Caller,
    id: Result<Path<String>, PathRejection>,
    params: Params,
) -> Result<Answer<J>, Fault> {
    params.allow(&[])?;
    let id = job_id(id)?;
    match wait::read(app.store().job(&caller.org, id)).await? {
        Some(record) => Ok(Answer(show(&record))),
        None => Err(Fault::new("job_not_found", format!("job {id} does not exist"))),
    }
}

/// An id that nobody could have been given names no job.
fn job_id(path: Result<Path<String>, PathRejection>) -> Result<JobId, Fault> {
    let text = path.map(|Path(text)| text).unwrap_or_default();
    text.parse().map_err(|error: baton_core::id::BadId| Fault::new("job_not_found", error.to_string()))
}
