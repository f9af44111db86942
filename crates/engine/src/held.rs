//! What this node's pool holds right now: the fences to beat for, and how to stop each handler.
//!
//! A lease is held from its claim until its settlement is committed, also while the settlement
//! waits for the store to come back: until then nobody else shall begin the job again.

use baton_core::job::Fence;
use baton_core::time::Span;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::task::{AbortHandle, Id};
use tokio::time::Instant;

struct Holding {
    lease: Span,
    /// By our own clock, counted from before the last word that the store heard: past this
    /// moment somebody else may have the job.
    good_until: Instant,
    /// No beat got through in time. What is stopped may need a while to end.
    overdue: bool,
    /// While the handler runs.
    handler: Option<(Id, AbortHandle)>,
}

/// Shared by the pool, which fills it, and by the beater and the sweeper, which look at it.
#[derive(Default)]
pub(crate) struct Held(Mutex<BTreeMap<Fence, Holding>>);

impl Held {
    fn all(&self) -> MutexGuard<'_, BTreeMap<Fence, Holding>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn add(&self, fence: Fence, lease: Span, asked_at: Instant, handler: AbortHandle) {
        let holding = Holding {
            lease,
            good_until: asked_at + lease.to_std(),
            overdue: false,
            handler: Some((handler.id(), handler)),
        };
        self.all().insert(fence, holding);
    }

    /// The handler has ended; whose it was. The lease is held on until it is settled.
    pub fn handler_ended(&self, task: Id) -> Option<Fence> {
        let mut all = self.all();
        let found = all.iter_mut().find(|(_, h)| h.handler.as_ref().is_some_and(|(id, _)| *id == task));
        found.map(|(fence, holding)| {
            holding.handler = None;
            fence.clone()
        })
    }

    /// Nothing more will be said about this lease.
    pub fn let_go(&self, fence: &Fence) {
        self.all().remove(fence);
    }

    pub fn fences(&self) -> Vec<(Fence, Span)> {
        self.all().iter().map(|(fence, h)| (fence.clone(), h.lease)).collect()
    }

    pub fn holds(&self) -> BTreeSet<Fence> {
        self.all().keys().cloned().collect()
    }

    /// The store has heard a beat that was sent at `sent_at`.
    pub fn beaten(&self, fences: &[Fence], sent_at: Instant) {
        let mut all = self.all();
        for fence in fences {
            if let Some(holding) = all.get_mut(fence) {
                holding.good_until = sent_at + holding.lease.to_std();
                holding.overdue = false;
            }
        }
    }

    /// Stops the handlers of leases that are lost. What they would say is no longer wanted.
    /// How many of them were still held.
    pub fn stop(&self, lost: &[Fence]) -> usize {
        let all = self.all();
        let lost = lost.iter().filter_map(|fence| all.get(fence)).collect::<Vec<_>>();
        lost.iter().filter_map(|h| h.handler.as_ref()).for_each(|(_, handler)| handler.abort());
        lost.len()
    }

    /// Stops the handlers whose leases may have run out by then because no beat got through. How
    /// many leases that is news of.
    pub fn stop_overdue(&self, by: Instant) -> usize {
        let mut news = 0;
        for holding in self.all().values_mut().filter(|h| h.good_until < by) {
            if let Some((_, handler)) = &holding.handler {
                handler.abort();
                news += usize::from(!holding.overdue);
                holding.overdue = true;
            }
        }
        news
    }

    pub fn stop_all(&self) {
        self.all().values().filter_map(|h| h.handler.as_ref()).for_each(|(_, handler)| handler.abort());
    }
}
