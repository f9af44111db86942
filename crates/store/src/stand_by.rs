//! Whoever has nothing to do stands by, and is handed what comes in by the very commit that brings it in.
//!
//! Otherwise a job that arrives where somebody is idle costs two commits before it begins: one that brings it in, and one that
//! hands it out.
//!
//! Invariants
//! - Whoever stands by is in one group at a time; if that had nothing for them, they stand by again.
//! - Whoever leaves is told what a group has already handed to them.

use crate::error::StoreError;
use crate::group::{Ask, ClaimSeat, Claimed, Leased, Look, Work};
use baton_core::schedule::Turns;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;
use tokio::time::Instant;

#[derive(Clone, Default)]
pub(crate) struct Idle(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    next: u64,
    /// In the order in which they came.
    waiting: BTreeMap<u64, Box<ClaimSeat>>,
    /// They have left while they were in a group.
    left: BTreeSet<u64>,
}

/// The place of one who stands by, as long as they are in a group.
pub(crate) struct Place {
    idle: Idle,
    number: u64,
}

/// What came in while somebody stood by.
#[derive(Debug)]
pub struct Handed {
    pub leased: Vec<Leased>,
    /// For the next claim.
    pub turns: Turns,
    /// Leases are younger than this.
    pub asked_at: Instant,
}

/// One who stands by.
pub struct StandBy {
    idle: Idle,
    number: u64,
    heard: oneshot::Receiver<Result<Claimed, StoreError>>,
}

impl Idle {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn stand_by(&self, ask: Ask) -> StandBy {
        let (reply, heard) = oneshot::channel();
        let mut state = self.state();
        let number = state.next;
        state.next += 1;
        let ask = Ask { look: Look::Newborn, ..ask };
        state.waiting.insert(number, Box::new(ClaimSeat { ask, claimed: Claimed::default(), reply, place: None }));
        StandBy { idle: self.clone(), number, heard }
    }

    /// A group that brings jobs in takes them all along.
    pub fn join(&self, works: &mut Vec<Work>) {
        if !works.iter().any(Work::brings_in) {
            return;
        }
        let now = Instant::now();
        let waiting = std::mem::take(&mut self.state().waiting);
        for (number, mut seat) in waiting.into_iter().filter(|(_, seat)| !seat.reply.is_closed()) {
            seat.place = Some(Place { idle: self.clone(), number });
            seat.claimed.asked_at = Some(now);
            works.push(Work::Claim(seat));
        }
    }
}

impl Place {
    /// The group had nothing.
    pub fn back(self, seat: Box<ClaimSeat>) {
        let mut state = self.idle.state();
        if !state.left.remove(&self.number) {
            state.waiting.insert(self.number, seat);
        }
    }
}

impl StandBy {
    /// What is handed over, once there is something.
    pub async fn handed(&mut self) -> Option<Handed> {
        let Claimed { leased, turns, asked_at, .. } = (&mut self.heard).await.ok()?.ok()?;
        Some(Handed { leased, turns, asked_at: asked_at? })
    }

    /// What a group has handed over already, or is about to.
    pub async fn leave(mut self) -> Option<Handed> {
        {
            let mut state = self.idle.state();
            if state.waiting.remove(&self.number).is_some() {
                return None;
            }
            state.left.insert(self.number);
        }
        self.handed().await
    }
}

impl Drop for StandBy {
    fn drop(&mut self) {
        let mut state = self.idle.state();
        state.waiting.remove(&self.number);
        state.left.remove(&self.number);
    }
}
