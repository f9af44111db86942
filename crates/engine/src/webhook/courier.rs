//! The courier: reads the history for every webhook, and enqueues a delivery for what it wants.
//!
//! Each node has one. They need not know of each other: whoever commits first has moved the place
//! from which the others read, and theirs is refused. What is remembered here is only how far was
//! read without finding anything, so that not every look is a commit.

use crate::engine::Shared;
use baton_core::OrgId;
use baton_core::command::Actor;
use baton_core::id::WebhookId;
use baton_core::webhook::dispatch::Dispatch;
use baton_core::webhook::{Letter, Webhook};
use baton_store::{CommitError, Cursor, StoreError};
use baton_wire::Event;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// Looks by itself this often, should a wake-up get lost.
const POLL: Duration = Duration::from_secs(5);
/// Between two looks at least: many events make one look.
const REST: Duration = Duration::from_millis(50);
/// Webhooks read at once.
const PAGE: usize = 100;
/// Events read at once, and deliveries in one commit at most.
const EVENTS: usize = 100;
/// Pages read for one webhook before it is the next one's turn.
const TURN: usize = 20;
/// Events passed over before their place is written down.
const UNWRITTEN: usize = 5_000;
/// Deliveries that may wait for one endpoint; what happens then is told when there is room.
const BACKLOG: u32 = 1_000;

/// How far was read beyond the place that is written down.
struct Ahead {
    written: String,
    read: Cursor,
    passed: usize,
}

#[derive(Default)]
struct Courier {
    ahead: BTreeMap<WebhookId, Ahead>,
}

pub(crate) async fn run(shared: Arc<Shared>) {
    let mut events = shared.store.watch_events();
    let mut courier = Courier::default();
    loop {
        events.mark_unchanged();
        let more = match courier.round(&shared).await {
            Ok(more) => more,
            Err(e) => {
                shared.trouble(&e);
                false
            }
        };
        if !shared.rest(REST).await || (!more && !shared.rest_unless(POLL, events.changed()).await) {
            return;
        }
    }
}

impl Courier {
    /// One look for everybody; whether there may be more at once.
    async fn round(&mut self, shared: &Shared) -> Result<bool, StoreError> {
        let (mut after, mut more, mut seen) = (None, false, BTreeSet::new());
        loop {
            let page = shared.store.webhooks(after, PAGE).await?;
            after = page.last().map(|(_, key, _)| key.key.clone());
            for (org, key, doc) in &page {
                let (Ok(id), Some(webhook)) = (key.key.parse(), Webhook::of(doc)) else {
                    tracing::error!(webhook = key.key, "a webhook cannot be read; it is told nothing");
                    continue;
                };
                seen.insert(id);
                // What is wrong with one must not keep the others from being told.
                match self.tell(shared, org, id, &webhook).await {
                    Ok(on) => more |= on,
                    Err(e) => shared.trouble(&e),
                }
            }
            if page.len() < PAGE {
                break;
            }
        }
        self.ahead.retain(|id, _| seen.contains(id));
        Ok(more)
    }

    /// Reads on for one webhook; whether there may be more at once.
    async fn tell(
        &mut self,
        shared: &Shared,
        org: &OrgId,
        id: WebhookId,
        webhook: &Webhook,
    ) -> Result<bool, StoreError> {
        let begin =
            || Ahead { written: webhook.place.clone(), read: webhook.place.parse().unwrap_or_default(), passed: 0 };
        let ahead = self.ahead.entry(id).or_insert_with(begin);
        if ahead.written != webhook.place {
            // Somebody else has told it, or it was enabled at another place.
            *ahead = begin();
        }
        for _ in 0..TURN {
            let tail = shared.store.tail()?;
            if ahead.read >= tail {
                return Ok(false);
            }
            let page = shared.store.events(org, ahead.read, EVENTS).await?;
            let Some(last) = page.items.last().map(|row| row.cursor) else {
                // All up to there is another org's, or nobody's.
                ahead.read = tail;
                return Ok(false);
            };
            let wanted = page.items.iter().filter(|row| webhook.filter.wants(&row.event.kind, &row.event.data.value()));
            let letters = wanted.map(|row| letter(id, row.cursor, &Event::new(row.cursor.to_string(), &row.event)));
            let letters = letters.collect::<Vec<_>>();
            ahead.passed += page.items.len();
            if letters.is_empty() && ahead.passed < UNWRITTEN {
                ahead.read = last;
                continue;
            }
            if !letters.is_empty() && full(shared, org, id).await? {
                return Ok(false);
            }
            let dispatch =
                Dispatch { org: org.clone(), id, from: ahead.written.clone(), to: last.to_string(), letters };
            match shared.store.commit(dispatch, Actor::Engine).await {
                Ok(_) => *ahead = Ahead { written: last.to_string(), read: last, passed: 0 },
                // Somebody else was first: the next look begins where they are.
                Err(CommitError::Refused(_) | CommitError::KeyReused) => return Ok(true),
                Err(CommitError::Store(e)) => return Err(e),
            }
        }
        Ok(true)
    }
}

async fn full(shared: &Shared, org: &OrgId, id: WebhookId) -> Result<bool, StoreError> {
    let Some(lane) = Webhook::lane(id) else { return Ok(false) };
    Ok(shared.store.lane(org, &lane).await?.is_some_and(|lane| lane.waiting >= BACKLOG))
}

/// The same event is the same message, however often it is sent.
fn letter(id: WebhookId, cursor: Cursor, event: &Event) -> Letter {
    let message = format!("msg_{}_{cursor}", id.0.simple());
    Letter { message, event: serde_json::to_value(event).unwrap_or_default() }
}
