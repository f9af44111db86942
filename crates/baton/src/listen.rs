//! Reading the history as it goes on, across restarts of the server.

use crate::client::Client;
use crate::fault::Fault;
use baton_wire::{Event, EventList, TAIL, limit};

pub struct Listener {
    client: Client,
    /// None: before the first event.
    after: Option<String>,
}

/// How much, and how long to wait if there is nothing yet.
#[derive(Clone, Copy)]
pub struct Portion {
    pub events: usize,
    pub wait_ms: u64,
}

impl Listener {
    pub fn new(client: &Client, after: Option<String>) -> Self {
        Self { client: client.clone(), after }
    }

    /// One that hears what happens from now on.
    pub async fn at_the_end(client: &Client) -> Result<Self, Fault> {
        let mut listener = Self::new(client, Some(TAIL.to_owned()));
        listener.hear(Portion { events: 1, wait_ms: 0 }).await?;
        Ok(listener)
    }

    /// What happens next; maybe nothing, after a while. From the first answer on, the server may be
    /// away for a while.
    pub async fn hear(&mut self, portion: Portion) -> Result<Vec<Event>, Fault> {
        // The end is where the history ends now: it is taken down before waiting there, because
        // after a restart it would be somewhere else.
        let wait_ms = if self.after.as_deref() == Some(TAIL) { 0 } else { portion.wait_ms };
        let events = portion.events.min(limit::EVENTS);
        let mut query = vec![("limit", events.to_string()), ("wait_ms", wait_ms.to_string())];
        query.extend(self.after.clone().map(|after| ("after", after)));
        let heard: EventList = self.client.get("/api/v1/events", &query).await?;
        self.after = Some(heard.next);
        self.client.be_patient();
        Ok(heard.events)
    }
}
