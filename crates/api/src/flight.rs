//! Requests that are repeated while the first of them is still under way.
//!
//! One of them goes to the store; the others on this node wait for its answer in memory and share
//! it. What they share is what the store holds by then, so it is the answer that a later repetition
//! gets as well. If the first one came to nothing, the next one goes.

use crate::limits::{FLIGHT_WAIT, FLIGHT_WAITERS};
use crate::problem::Fault;
use baton_core::canon::Digest;
use baton_core::once::{Key, Rendered};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// What a request came to.
#[derive(Clone)]
struct Landed {
    request: Digest,
    answer: Rendered,
}

#[derive(Default)]
pub struct Flights(Mutex<BTreeMap<Key, watch::Sender<Option<Landed>>>>);

/// What to do with a request under a key.
pub enum Turn<'a> {
    /// Nobody else is at it: ask the store, and say what came of it.
    Go(Flight<'a>),
    /// Somebody just was.
    Landed(Rendered),
}

/// Under way until it is dropped.
pub struct Flight<'a> {
    flights: &'a Flights,
    key: Key,
}

impl Flights {
    pub async fn turn(&self, key: &Key, request: Digest) -> Result<Turn<'_>, Fault> {
        let waited = tokio::time::timeout(FLIGHT_WAIT, self.wait(key, request)).await;
        waited.unwrap_or_else(|_| Err(in_flight()))
    }

    async fn wait(&self, key: &Key, request: Digest) -> Result<Turn<'_>, Fault> {
        loop {
            let mut first = match self.lock().entry(key.clone()) {
                Entry::Vacant(free) => {
                    free.insert(watch::Sender::new(None));
                    return Ok(Turn::Go(Flight { flights: self, key: key.clone() }));
                }
                Entry::Occupied(taken) if taken.get().receiver_count() >= FLIGHT_WAITERS => return Err(in_flight()),
                Entry::Occupied(taken) => taken.get().subscribe(),
            };
            // It lands, or is dropped without having landed.
            let _ = first.changed().await;
            let landed = first.borrow().clone();
            match landed {
                Some(landed) if landed.request == request => return Ok(Turn::Landed(landed.answer)),
                // The store knows what to say to another request under the same key.
                _ => {}
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, watch::Sender<Option<Landed>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Flight<'_> {
    /// This is stored under the key now.
    pub fn land(self, request: Digest, answer: Rendered) {
        if let Some(sender) = self.flights.lock().get(&self.key) {
            sender.send_replace(Some(Landed { request, answer }));
        }
    }
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        self.flights.lock().remove(&self.key);
    }
}

fn in_flight() -> Fault {
    Fault::new("idempotency_in_flight", "a request with this Idempotency-Key is still being worked on; ask again")
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_core::OrgId;
    use std::sync::Arc;

    fn key() -> Key {
        Key { org: OrgId::default(), scope: "POST /x".to_owned(), key: "k".to_owned() }
    }

    fn digest(text: &str) -> Digest {
        Digest::of(&[text.as_bytes()])
    }

    fn answer() -> Rendered {
        Rendered { status: 201, body: "{}".to_owned() }
    }

    async fn go(flights: &Flights, request: &str) -> Option<Rendered> {
        match flights.turn(&key(), digest(request)).await.unwrap() {
            Turn::Go(_) => None,
            Turn::Landed(answer) => Some(answer),
        }
    }

    async fn waiting(flights: &Flights, many: usize) {
        while flights.lock().get(&key()).is_none_or(|first| first.receiver_count() < many) {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_waits_is_answered_like_the_first() {
        let flights = Arc::new(Flights::default());
        let Turn::Go(first) = flights.turn(&key(), digest("a")).await.unwrap() else { panic!("it is the first") };
        let others = (0..100).map(|_| {
            let flights = flights.clone();
            tokio::spawn(async move { go(&flights, "a").await })
        });
        let others = others.collect::<Vec<_>>();
        waiting(&flights, 100).await;
        first.land(digest("a"), answer());
        for other in others {
            assert_eq!(other.await.unwrap(), Some(answer()));
        }
        assert!(flights.lock().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn if_the_first_comes_to_nothing_the_next_one_goes_and_another_request_asks_for_itself() {
        let flights = Arc::new(Flights::default());
        for landed in [false, true] {
            let Turn::Go(first) = flights.turn(&key(), digest("a")).await.unwrap() else { panic!("it is the first") };
            let next = tokio::spawn({
                let flights = flights.clone();
                async move { go(&flights, if landed { "b" } else { "a" }).await }
            });
            waiting(&flights, 1).await;
            if landed {
                first.land(digest("a"), answer());
            } else {
                drop(first);
            }
            assert_eq!(next.await.unwrap(), None);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_has_an_end_and_so_has_their_number() {
        let flights = Arc::new(Flights::default());
        let Turn::Go(_first) = flights.turn(&key(), digest("a")).await.unwrap() else { panic!("it is the first") };
        let many = (0..=FLIGHT_WAITERS).map(|_| {
            let flights = flights.clone();
            tokio::spawn(async move { flights.turn(&key(), digest("a")).await.map(|_| ()).unwrap_err() })
        });
        for refused in many.collect::<Vec<_>>() {
            assert_eq!(refused.await.unwrap().code(), "idempotency_in_flight");
        }
    }
}
