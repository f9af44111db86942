//! A project's jobs, by when they were made.

use super::shown::{Shown, show};
use super::wanted::States;
use crate::app::App;
use crate::cursor;
use crate::door::Caller;
use crate::limits;
use crate::problem::Fault;
use crate::query::Params;
use crate::wait;
use axum::Json as Answer;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use baton_core::{JobId, ProjectId};
use baton_store::{Filter, JobRecord, ListJobs, Page};
use baton_wire::{JobList, limit};

pub async fn list<J: Shown>(
    State(app): State<App>,
    caller: Caller,
    project: Result<Path<String>, PathRejection>,
    params: Params,
) -> Result<Answer<JobList<J>>, Fault> {
    let asked = cursor::JOBS.asked(&params, &["state", "type"])?;
    let project = project.map(|Path(text)| text).unwrap_or_default();
    let project = ProjectId::new(&project).map_err(|error| Fault::field("projectId", error))?;
    caller.reach_project(&project)?;
    let states = States::read::<J>(&params)?;
    let (faces, exact) = states.faces();
    let limit = asked.limit;
    let ask = ListJobs {
        org: caller.org.clone(),
        project,
        filter: Filter { states: faces, kind: params.parsed("type")? },
        order: asked.order,
        after: asked.after_job()?,
        // Some of what is found will be left out again.
        limit: if exact && caller.grant.is_whole() { limit } else { limit::JOBS },
        bytes: limits::PAGE_BYTES,
    };
    let mut page = wait::read(app.store().jobs(ask)).await?;
    let reached = |record: &JobRecord| caller.grant.reaches(&record.job.project, &record.job.kind.name);
    page.items.retain(|record| states.matches(&record.job.status) && reached(record));
    let page = cut(page, limit);
    let jobs = page.items.iter().map(show).collect();
    Ok(Answer(JobList { jobs, next_cursor: page.next.map(|id| asked.next_job(id)) }))
}

/// What is beyond the limit belongs to the next page.
pub fn cut(mut page: Page<JobRecord, JobId>, limit: usize) -> Page<JobRecord, JobId> {
    if page.items.len() > limit {
        page.items.truncate(limit);
        page.next = page.items.last().map(|record| record.job.id);
    }
    page
}
