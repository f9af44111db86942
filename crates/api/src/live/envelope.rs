//! What a socket says of an event. Of jobs it speaks the orchestrator's types.

use super::{Feed, Told};
use crate::problem::Fault;
use baton_core::event::Subject;
use baton_store::Cursor;
use baton_wire::{Envelope, Event, JobPayload, LISTENING, Progress};
use serde_json::{Value, json};

pub async fn envelope(feed: &Feed, told: &Told) -> Result<Envelope, Fault> {
    let (app, org) = (feed.app(), &feed.caller().org);
    let thread = told.thread(app.store(), org, &app.live().threads).await?.map(ToString::to_string);
    let text = |field: &str| told.data.get(field).and_then(Value::as_str).map(str::to_owned);
    let project = text("project");
    let position = told.cursor.to_string();
    let (Some(news), Some(Subject::Job(job))) = (told.news, told.subject) else {
        let payload = serde_json::to_value(Event::new(position.clone(), &told.event)).map_err(Fault::internal)?;
        return Ok(Envelope {
            kind: told.event.kind.clone(),
            thread_id: thread,
            project_id: project,
            position,
            payload,
        });
    };
    let ended = told.ended(app.store(), org).await?;
    let percent = told.data.get("percent").map(|percent| percent.as_u64().and_then(|p| u8::try_from(p).ok()));
    let payload = JobPayload {
        job_id: job,
        project_id: project.clone().unwrap_or_default(),
        job_type: text("type").unwrap_or_default(),
        state: news.state(),
        source_session_id: thread.clone(),
        result: ended.result,
        error: ended.error,
        cancel_reason: ended.cancel_reason,
        // What it noted is its own and not part of the history.
        progress: percent.map(|percent| Progress { percent, note: None }),
        event: told.event.kind.clone(),
        attempt: told.data["attempt"].as_u64().unwrap_or_default(),
    };
    let payload = serde_json::to_value(payload).map_err(Fault::internal)?;
    Ok(Envelope { kind: news.as_str().to_owned(), thread_id: thread, project_id: project, position, payload })
}

/// Where a listener stands, when nothing else has told it.
pub fn standing(place: Cursor) -> Envelope {
    let position = place.to_string();
    Envelope { kind: LISTENING.to_owned(), thread_id: None, project_id: None, position, payload: json!({}) }
}
