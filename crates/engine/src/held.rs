//! What this node's pool holds right now: the fences to beat for, and how to stop each.

use baton_core::job::Fence;
use baton_core::time::Span;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::task::{AbortHandle, Id};

pub(crate) struct Holding {
    pub fence: Fence,
    pub lease: Span,
    pub abort: AbortHandle,
}

/// Shared by the pool, which fills it, and the beater, which looks at it.
#[derive(Default)]
pub(crate) struct Held(Mutex<BTreeMap<Id, Holding>>);

impl Held {
    fn all(&self) -> MutexGuard<'_, BTreeMap<Id, Holding>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn add(&self, task: Id, holding: Holding) {
        self.all().insert(task, holding);
    }

    /// The task has ended; what it held.
    pub fn remove(&self, task: Id) -> Option<Holding> {
        self.all().remove(&task)
    }

    pub fn fences(&self) -> Vec<(Fence, Span)> {
        self.all().values().map(|h| (h.fence.clone(), h.lease)).collect()
    }

    /// Stops the handlers of leases that are lost. What they would say is no longer wanted.
    pub fn stop(&self, lost: &[Fence]) {
        for holding in self.all().values().filter(|h| lost.contains(&h.fence)) {
            holding.abort.abort();
        }
    }

    pub fn stop_all(&self) {
        self.all().values().for_each(|h| h.abort.abort());
    }
}
