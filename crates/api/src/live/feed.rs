//! A listener's place in the history.

use super::recent::{OrgHistory, Tail};
use super::{Closing, Told, Wanted};
use crate::app::App;
use crate::door::Caller;
use crate::problem::Fault;
use baton_store::{Cursor, StoreError};
use std::sync::Arc;
use tokio::sync::watch;

pub struct Feed {
    app: App,
    caller: Caller,
    wanted: Wanted,
    after: Cursor,
    /// The last place that the listener was told.
    shown: Cursor,
    heard: watch::Receiver<i64>,
    tail: Arc<Tail>,
}

impl Feed {
    pub fn new(app: App, caller: Caller, wanted: Wanted, after: Cursor) -> Self {
        // Listening before looking: what is committed in between is heard.
        let heard = app.store().watch_events();
        let tail = app.live().recent.tail(&caller.org, after);
        Self { app, caller, wanted, after, shown: after, heard, tail }
    }

    pub const fn app(&self) -> &App {
        &self.app
    }

    pub const fn caller(&self) -> &Caller {
        &self.caller
    }

    /// The place after all that was handed out or passed over.
    pub const fn place(&self) -> Cursor {
        self.after
    }

    /// The same, if it has moved since the listener was last told: with it, whoever wants little need
    /// not look again through all that passed by.
    pub fn new_place(&mut self) -> Option<Cursor> {
        let moved = self.shown != self.after;
        self.shown = self.after;
        moved.then_some(self.after)
    }

    /// Whether the key still opens the door.
    pub async fn check(&self) -> Result<(), Closing> {
        Ok(self.app.keyring().still(&self.caller).await?)
    }

    /// Waits for more, and looks through it. There may be nothing in it for this listener. Giving up
    /// on this loses nothing: the place moves only when it ends.
    pub async fn next(&mut self) -> Result<Vec<Arc<Told>>, Closing> {
        loop {
            let history = OrgHistory { store: self.app.store(), org: &self.caller.org };
            let more = self.tail.after(self.after, &history).await.map_err(Fault::from)?;
            let Some(last) = more.last().map(|told| told.cursor) else {
                if self.heard.changed().await.is_err() {
                    return Err(Fault::from(StoreError::Closed).into());
                }
                continue;
            };
            let mut heard = Vec::new();
            for told in more {
                // Something became of the key itself: it is looked at before another word is said.
                if told.event.subject == self.caller.key.0 {
                    self.app.keyring().forget(self.caller.key);
                    self.check().await?;
                }
                if self.hears(&told).await? {
                    heard.push(told);
                }
            }
            self.after = last;
            if let Some(told) = heard.last() {
                self.shown = told.cursor;
            }
            return Ok(heard);
        }
    }

    async fn hears(&self, told: &Told) -> Result<bool, Fault> {
        if !self.caller.hears(&told.data) || !self.wanted.matches(told) {
            return Ok(false);
        }
        if !self.wanted.asks_thread() {
            return Ok(true);
        }
        let thread = told.thread(self.app.store(), &self.caller.org, &self.app.live().threads).await?;
        Ok(self.wanted.matches_thread(thread))
    }
}
