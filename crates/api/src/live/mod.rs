//! Hearing what happens: what was missed first, then live, without a gap and without a repetition.
//!
//! A listener is a cursor into the history ([`feed`]). It reads on whenever there is more, so whoever
//! is slow costs nobody anything but their own place; what many read at once is read once
//! ([`recent`], [`told`]).
//!
//! Invariants
//! - A listener is handed the events of its org that its key reaches and that it wants, each once,
//!   in the order of commits; its place never passes what it was not handed or does not want.
//! - Whoever is sent away is told why ([`closing`]) and can go on where they were.
//! - Nobody holds more memory than [`crate::limits`] says, however slow they are.

mod closing;
mod envelope;
mod feed;
mod recent;
pub mod socket;
pub mod sse;
mod threads;
mod told;
mod wanted;

use crate::app::App;
use crate::door::Caller;
use crate::limits;
use crate::places::{Place, Places};
use crate::problem::Fault;
use crate::query::Params;
use baton_store::Cursor;
use baton_wire::TAIL;
use closing::Closing;
use feed::Feed;
use recent::Recent;
use std::sync::Arc;
use std::time::Duration;
use threads::Threads;
use told::Told;
use wanted::Wanted;

/// How listeners are treated. The defaults are the limits; tests have less time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listening {
    /// Listeners at once.
    pub places: usize,
    /// Of one key.
    pub per_key: usize,
    /// How often they are told that nothing happened, and their keys are looked at.
    pub beat: Duration,
    /// Beats that a socket may leave unanswered.
    pub silent: u32,
    /// How long they may take to accept what they are sent.
    pub slow: Duration,
    /// What is kept in memory for all of them.
    pub recent_bytes: usize,
}

impl Default for Listening {
    fn default() -> Self {
        Self {
            places: limits::LISTENERS,
            per_key: limits::LISTENERS_PER_KEY,
            beat: limits::LISTENER_BEAT,
            silent: limits::LISTENER_SILENT,
            slow: limits::LISTENER_SLOW,
            recent_bytes: limits::RECENT_BYTES,
        }
    }
}

/// What all listeners of a node share.
pub struct Live {
    pub listening: Listening,
    places: Arc<Places>,
    recent: Recent,
    threads: Threads,
}

impl Live {
    pub fn new(listening: Listening) -> Self {
        Self {
            listening,
            places: Arc::new(Places::of_listeners(listening.places, listening.per_key)),
            recent: Recent::new(listening.recent_bytes),
            threads: Threads::default(),
        }
    }

    /// Resolves when nobody listens.
    pub async fn deserted(&self) {
        self.places.deserted().await;
    }
}

/// What every listener has come through before the first word: all that can be refused is.
async fn let_in(app: App, caller: Caller, params: &Params, back: Option<&str>) -> Result<(Feed, Place), Fault> {
    params.allow(&wanted::PARAMS)?;
    let wanted = Wanted::read(params, &caller)?;
    // Whoever comes back by itself asks as it first did, and adds where it is by now.
    let from = back.or(params.one("after")?).unwrap_or(TAIL);
    let after: Cursor = crate::event::after(&app, Some(from)).await?;
    let place = app.live().places.take(caller.key)?;
    Ok((Feed::new(app, caller, wanted, after), place))
}
