//! The history, read in order and waited for.

use crate::app::App;
use crate::door::Caller;
use crate::problem::Fault;
use crate::query::Params;
use crate::wait;
use axum::Json;
use axum::extract::State;
use baton_store::Cursor;
use baton_wire::{Event, EventList, TAIL, limit};
use std::time::Duration;
use tokio::time::Instant;

pub async fn list(State(app): State<App>, caller: Caller, params: Params) -> Result<Json<EventList>, Fault> {
    params.allow(&["after", "limit", "wait_ms"])?;
    let after = after(&app, params.one("after")?).await?;
    let limit = params.number("limit", 1..=limit::EVENTS, limit::EVENTS_DEFAULT)?;
    let wait_ms = params.number("wait_ms", 0..=limit::WAIT_MS, 0)?;
    let deadline = Instant::now() + Duration::from_millis(wait_ms);
    // Listening before looking: what is committed in between is heard.
    let mut heard = app.store().watch_events();
    loop {
        let page = wait::read(app.store().events(&caller.org, after, limit)).await?;
        if !page.items.is_empty() || Instant::now() >= deadline || app.is_stopping() {
            let next = page.items.last().map_or(after, |row| row.cursor);
            let shown = page.items.iter().filter(|row| caller.hears(&row.event.data.value()));
            let events = shown.map(|row| Event::new(row.cursor.to_string(), &row.event)).collect();
            return Ok(Json(EventList { events, next: next.to_string() }));
        }
        tokio::select! {
            biased;
            () = app.stopped() => {}
            // The history of another org moves the same signal: look again, wait for the rest.
            changed = heard.changed() => {
                if changed.is_err() {
                    return Err(baton_store::StoreError::Closed.into());
                }
            }
            () = tokio::time::sleep_until(deadline) => {}
        }
    }
}

/// Where to begin, as a client says it.
pub async fn after(app: &App, text: Option<&str>) -> Result<Cursor, Fault> {
    let cursor: Cursor = match text {
        None => return Ok(Cursor::START),
        Some(TAIL) => return Ok(app.store().tail()?),
        Some(text) => text.parse().map_err(|error: baton_store::BadCursor| {
            Fault::new("invalid_cursor", format!("after: {error}; use {TAIL}, or a cursor as it was handed out"))
        })?,
    };
    if !wait::read(app.store().reaches(cursor)).await? {
        let detail =
            "after: the history has not come that far; was it another database, or has a backup been restored?";
        return Err(Fault::new("invalid_cursor", detail));
    }
    Ok(cursor)
}
