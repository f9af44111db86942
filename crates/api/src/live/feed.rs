//! A listener's place in the history.

use super::wanted::Wanted;
use crate::app::App;
use crate::door::Caller;
use crate::problem::Fault;
use baton_core::event::Subject;
use baton_core::name::SessionId;
use baton_store::{Cursor, EventRow, StoreError};
use serde_json::Value;
use std::sync::Arc;
use tokio::sync::watch;

pub struct Feed {
    app: App,
    pub caller: Caller,
    wanted: Wanted,
    after: Cursor,
    heard: watch::Receiver<i64>,
}

/// Something that a listener wants to hear.
pub struct Heard {
    pub row: Arc<EventRow>,
    pub subject: Option<Subject>,
    /// As clients write it.
    pub shown: String,
    pub data: Value,
    pub thread: Option<SessionId>,
}

impl Feed {
    pub fn new(app: App, caller: Caller, wanted: Wanted, after: Cursor) -> Self {
        // Listening before looking: what is committed in between is heard.
        let heard = app.store().watch_events();
        Self { app, caller, wanted, after, heard }
    }

    pub const fn app(&self) -> &App {
        &self.app
    }

    /// The place after all that was handed out or passed over.
    pub const fn place(&self) -> Cursor {
        self.after
    }

    /// Waits for more, and looks through it. There may be nothing in it for this listener. Giving up
    /// on this loses nothing: the place moves only when it ends.
    pub async fn next(&mut self) -> Result<Vec<Heard>, Fault> {
        loop {
            let rows = self.app.recent().after(self.app.store(), &self.caller.org, self.after).await?;
            let Some(last) = rows.last().map(|row| row.cursor) else {
                if self.heard.changed().await.is_err() {
                    return Err(StoreError::Closed.into());
                }
                continue;
            };
            let mut heard = Vec::new();
            for row in rows {
                heard.extend(self.hear(row).await?);
            }
            self.after = last;
            return Ok(heard);
        }
    }

    async fn hear(&self, row: Arc<EventRow>) -> Result<Option<Heard>, Fault> {
        let event = &row.event;
        let data = event.data.value();
        let subject = Subject::of(&event.kind, event.subject);
        let shown = subject.map_or_else(|| event.subject.simple().to_string(), |subject| subject.to_string());
        if !self.caller.hears(&data) || !self.wanted.matches(event, &shown, &data) {
            return Ok(None);
        }
        let thread = match subject {
            Some(Subject::Job(job)) => self.app.threads().of(self.app.store(), &self.caller.org, job).await?,
            _ => None,
        };
        if self.wanted.thread.is_some() && self.wanted.thread != thread {
            return Ok(None);
        }
        Ok(Some(Heard { row, subject, shown, data, thread }))
    }
}
