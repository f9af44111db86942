//! What a socket says of an event. Of jobs it speaks the orchestrator's six types.

use super::feed::Heard;
use crate::app::App;
use crate::door::Caller;
use crate::problem::Fault;
use crate::wait;
use baton_core::event::Subject;
use baton_core::{JobId, OrgId};
use baton_store::JobRecord;
use baton_wire::{Envelope, Event};
use serde_json::{Value, json};

/// The orchestrator's name for an event of a job, and for the state that it leads to.
fn named(kind: &str) -> Option<(&'static str, &'static str)> {
    match kind {
        "job.queued" => Some(("orchestrator_job_queued", "queued")),
        "job.started" | "job.resumed" => Some(("orchestrator_job_started", "running")),
        "job.progress" => Some(("orchestrator_job_progress", "running")),
        "job.completed" => Some(("orchestrator_job_completed", "completed")),
        "job.failed" => Some(("orchestrator_job_failed", "failed")),
        "job.cancelled" => Some(("orchestrator_job_canceled", "canceled")),
        _ => None,
    }
}

pub async fn envelope(app: &App, caller: &Caller, heard: Heard) -> Result<Envelope, Fault> {
    let event = &heard.row.event;
    let project = heard.data.get("project").and_then(Value::as_str).map(str::to_owned);
    let thread = heard.thread.as_ref().map(ToString::to_string);
    let position = heard.row.cursor.to_string();
    let told = heard.subject.and_then(|subject| match subject {
        Subject::Job(job) => named(&event.kind).map(|named| (job, named)),
        _ => None,
    });
    let Some((job, (kind, state))) = told else {
        let payload = serde_json::to_value(Event::new(position.clone(), event)).map_err(Fault::internal)?;
        return Ok(Envelope { kind: event.kind.clone(), thread_id: thread, project_id: project, position, payload });
    };
    let mut payload = json!({
        "jobId": job,
        "projectId": project,
        "jobType": heard.data.get("type"),
        "state": state,
    });
    if let Some(thread) = &thread {
        payload["sourceSessionId"] = json!(thread);
    }
    if let Some(percent) = heard.data.get("percent").filter(|_| kind == "orchestrator_job_progress") {
        payload["progress"] = json!({ "percent": percent });
    }
    // Events carry digests; what a job came to stands in its record.
    if let Some(record) = ended(app, &caller.org, job, state).await? {
        if let Some(result) = &record.result {
            payload["result"] = result.value();
        }
        if let Some(error) = &record.error {
            payload["error"] = json!(if state == "canceled" {
                error.code.clone()
            } else {
                format!("{}: {}", error.code, error.message)
            });
        }
    }
    Ok(Envelope { kind: kind.to_owned(), thread_id: thread, project_id: project, position, payload })
}

async fn ended(app: &App, org: &OrgId, job: JobId, state: &str) -> Result<Option<JobRecord>, Fault> {
    match state {
        "completed" | "failed" | "canceled" => Ok(wait::read(app.store().job(org, job)).await?),
        _ => Ok(None),
    }
}
