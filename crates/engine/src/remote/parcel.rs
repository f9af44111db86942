//! A parcel: jobs that were claimed for a worker and are on their way to it.
//!
//! Invariant: it is opened, or what is in it goes to others. So whoever hangs up, wherever on the way that is, leaves
//! nothing behind.

use baton_core::command::Actor;
use baton_core::job::settle::{Outcome, Settle};
use baton_store::{Leased, Store};
use tokio::runtime::Handle;

pub struct Parcel {
    store: Store,
    actor: Actor,
    leased: Vec<Leased>,
}

impl Parcel {
    pub(super) const fn new(store: Store, actor: Actor, leased: Vec<Leased>) -> Self {
        Self { store, actor, leased }
    }

    pub const fn is_empty(&self) -> bool {
        self.leased.is_empty()
    }

    pub(super) fn open(mut self) -> Vec<Leased> {
        std::mem::take(&mut self.leased)
    }
}

impl Drop for Parcel {
    fn drop(&mut self) {
        if self.leased.is_empty() {
            return;
        }
        let (store, actor, leased) = (self.store.clone(), self.actor.clone(), std::mem::take(&mut self.leased));
        // Without anybody who could do it, the leases run out.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move { give_back(&store, leased, &actor).await });
        }
    }
}

/// What was claimed for somebody whom it cannot reach, through no fault of the worker's. If this fails too, the leases run
/// out.
pub(super) async fn give_back(store: &Store, leased: Vec<Leased>, actor: &Actor) {
    if leased.is_empty() {
        return;
    }
    let fences = leased.iter().filter_map(|leased| leased.job.fence());
    let settles =
        fences.map(|fence| (Settle { fence, outcome: Outcome::Undelivered }, actor.clone())).collect::<Vec<_>>();
    tracing::debug!(jobs = settles.len(), "what was claimed for a worker that it cannot reach is given back");
    if let Err(e) = store.turn(settles, None).await {
        tracing::warn!(%e, "jobs could not be given back; their leases will run out");
    }
}
