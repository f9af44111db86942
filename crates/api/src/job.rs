//! Jobs: taking them in, showing them, waking them.

use crate::app::App;
use crate::body::{Body, at_most_deep};
use crate::idempotency::{self, Asked, Keyed};
use crate::limits;
use crate::problem::Fault;
use crate::query::Params;
use crate::wait;
use axum::Json as Answer;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::Response;
use baton_core::canon::Json;
use baton_core::job::Cold;
use baton_core::job::enqueue::{Enqueue, Enqueued};
use baton_core::job::state::Face;
use baton_core::job::wake::Wake;
use baton_core::once::Rendered;
use baton_core::{JobId, ProjectId};
use baton_store::{Filter, JobRecord, ListJobs};
use baton_wire::{Job, JobList, Left, NewJob, limit};
use serde_json::Value;

pub async fn enqueue(
    State(app): State<App>,
    params: Params,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Fault> {
    params.allow(&[])?;
    let new: NewJob = body.parse()?;
    let keyed = match idempotency::key(&headers)? {
        None => None,
        Some(key) => {
            let understood = serde_json::to_value(&new).map_err(Fault::internal)?;
            let asked = Asked { scope: "POST /api/v1/jobs", path: "/api/v1/jobs", body: &Json::of(&understood) };
            Some(Keyed::new(key, &asked))
        }
    };
    let payload = Value::Object(new.payload);
    if !at_most_deep(&payload, limits::PAYLOAD_DEPTH) {
        let why = format!("lists and objects may be nested {} deep", limits::PAYLOAD_DEPTH);
        return Err(Fault::field("payload", why));
    }
    let command = Enqueue {
        org: app.org().clone(),
        project: new.project_id,
        kind: new.kind,
        payload: Json::of(&payload),
        priority: new.priority.map(|priority| priority.number()),
        source_session: new.source_session_id,
        not_before: new.not_before.map(|time| time.0),
        deadline: new.deadline.map(|time| time.0),
    };
    let cold = Cold {
        payload: command.payload.clone(),
        source_session: command.source_session.clone(),
        deadline_at: command.deadline,
    };
    let kind = command.kind.to_string();
    let render = move |out: &Enqueued| rendered(201, &Job::open(&out.job, &cold));
    let response = idempotency::commit(&app, command, keyed, render).await?;
    if response.status() == StatusCode::CREATED {
        metrics::counter!("baton_jobs_enqueued_total", "type" => kind).increment(1);
    }
    Ok(response)
}

pub async fn wake(
    State(app): State<App>,
    id: Result<Path<String>, PathRejection>,
    params: Params,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Fault> {
    params.allow(&[])?;
    let id = job_id(id)?;
    body.expect_nothing()?;
    let asked = Asked { scope: "POST /api/v1/jobs/{jobId}/wake", path: uri.path(), body: &Json::stored("{}") };
    let keyed = idempotency::key(&headers)?.map(|key| Keyed::new(key, &asked));
    // Read before the commit, because the answer is stored with it. Waking alone changes nothing
    // that is shown. Without a job the command refuses, or an earlier answer is repeated.
    let found = wait::read(app.store().job(app.org(), id)).await?;
    let shown = found.as_ref().map(show);
    let render = move |_: &_| rendered(200, &shown);
    idempotency::commit(&app, Wake { org: app.org().clone(), job: id }, keyed, render).await
}

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
        before: params.one("cursor")?.map(cursor_from).transpose()?,
        limit: params.number("limit", 1..=limit::JOBS, limit::JOBS_DEFAULT)?,
        bytes: limits::PAGE_BYTES,
    };
    let page = wait::read(app.store().jobs(ask)).await?;
    let jobs = page.items.iter().map(show).collect();
    Ok(Answer(JobList { jobs, next_cursor: page.next.map(cursor_to) }))
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

const CURSOR: &str = "j1";

fn cursor_to(id: JobId) -> String {
    format!("{CURSOR}{}", id.0.simple())
}

fn cursor_from(text: &str) -> Result<JobId, Fault> {
    let id = text.strip_prefix(CURSOR).and_then(|hex| format!("{}_{hex}", JobId::PREFIX).parse().ok());
    id.ok_or_else(|| Fault::new("invalid_cursor", "use a nextCursor as it was handed out"))
}

fn show(record: &JobRecord) -> Job {
    let left = Left { result: record.result.as_ref(), error: record.error.as_ref() };
    Job::with(&record.job, &record.cold, left)
}

fn rendered(status: u16, body: &impl serde::Serialize) -> Rendered {
    // These shapes have text keys only, so writing them cannot fail.
    Rendered { status, body: serde_json::to_string(body).unwrap_or_default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_of_lists_go_to_text_and_back_and_nothing_else_passes() {
        let id: JobId = "job_018bcfe568007001800000000000002a".parse().unwrap();
        assert_eq!(cursor_from(&cursor_to(id)).unwrap(), id);
        for bad in ["", "j1", "018bcfe568007001800000000000002a", "j1zz", "c10000000000000001", &id.to_string()] {
            assert_eq!(cursor_from(bad).unwrap_err().code(), "invalid_cursor", "{bad}");
        }
    }
}
