//! Jobs: taking them in, showing them, acting on them.

mod act;
mod enqueue;

pub use act::{cancel, cancel_orchestrated, confirm, requeue, wake};
pub use enqueue::{batch, enqueue, payload};

use crate::app::App;
use crate::cursor;
use crate::limits;
use crate::problem::Fault;
use crate::query::Params;
use crate::wait;
use axum::Json as Answer;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use baton_core::job::state::Face;
use baton_core::job::{End, Status};
use baton_core::{JobId, ProjectId};
use baton_store::{Filter, JobRecord, ListJobs};
use baton_wire::{Job, JobList, Left, limit};

pub async fn get(
    State(app): State<App>,
    id: Result<Path<String>, PathRejection>,
    params: Params,
) -> Result<Answer<Job>, Fault> {
    params.allow(&[])?;
    let id = job_id(id)?;
    match wait::read(app.store().job(app.org(), id)).await? {
        Some(record) => Ok(Answer(show(&record))),
        None => Err(Fault::new("job_not_found", format!("job {id} does not exist"))),
    }
}

pub async fn list(
    State(app): State<App>,
    project: Result<Path<String>, PathRejection>,
    params: Params,
) -> Result<Answer<JobList>, Fault> {
    params.allow(&["state", "limit", "cursor"])?;
    let project = project.map(|Path(text)| text).unwrap_or_default();
    let project = ProjectId::new(&project).map_err(|error| Fault::field("projectId", error))?;
    let ask = ListJobs {
        org: app.org().clone(),
        project,
        filter: Filter { states: states(&params)? },
        before: cursor::JOBS.read_job(&params)?,
        limit: params.number("limit", 1..=limit::JOBS, limit::JOBS_DEFAULT)?,
        bytes: limits::PAGE_BYTES,
    };
    let page = wait::read(app.store().jobs(ask)).await?;
    let jobs = page.items.iter().map(show).collect();
    Ok(Answer(JobList { jobs, next_cursor: page.next.map(|id| cursor::JOBS.job(id)) }))
}

fn states(params: &Params) -> Result<Vec<Face>, Fault> {
    let mut states = Vec::new();
    for text in params.all("state") {
        let known = || Face::ALL.map(Face::as_str).join(", ");
        let face = Face::parse(text).ok_or_else(|| Fault::field("state", format!("must be among {}", known())))?;
        if !states.contains(&face) {
            states.push(face);
        }
    }
    Ok(states)
}

/// An id that nobody could have been given names no job.
fn job_id(path: Result<Path<String>, PathRejection>) -> Result<JobId, Fault> {
    let text = path.map(|Path(text)| text).unwrap_or_default();
    text.parse().map_err(|error: baton_core::id::BadId| Fault::new("job_not_found", error.to_string()))
}

pub fn show(record: &JobRecord) -> Job {
    let cancelled = matches!(record.job.status, Status::Ended { how: End::Cancelled, .. });
    let error = record.error.as_ref();
    let left = Left {
        result: record.result.as_ref(),
        error: error.filter(|_| !cancelled),
        // A cancelled job's reason stands where a failed one's code does.
        cancelled: error.filter(|_| cancelled).map(|reason| reason.code.as_str()),
        requeued_as: record.requeued_as,
    };
    Job::with(&record.job, &record.cold, left)
}
