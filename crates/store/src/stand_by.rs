//! Whoever has nothing to do stands by, and is handed what comes in by the very commit that brings it in.
//!
//! Otherwise a job that arrives where somebody is idle costs two commits before it begins: one that brings it in, and one that
//! hands it out.
//!
//! Invariants
//! - Whoever stands by is in one group at a time; if that had nothing for them, they stand by again.
//! - Whoever leaves before a group is decided is handed nothing by it, and need not wait for it. Afterwards they are told what
//!   has been handed to them.
//! - When a bell rings for those who look for jobs nobody stands by any more: who waits already goes before who comes in.

use crate::error::StoreError;
use crate::group::{Ask, ClaimSeat, Claimed, Leased, Look, Work};
use baton_core::name::TypeName;
use baton_core::schedule::Turns;
use std::collections::BTreeMap;
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
    in_groups: BTreeMap<u64, Progress>,
}

/// How far one has come who is in a group.
#[derive(Clone, Copy, Default)]
struct Progress {
    /// They have left, or are about to.
    leaves: bool,
    /// Something may be handed to them.
    decided: bool,
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

    /// A group that brings in jobs of their types takes them along.
    pub fn join(&self, works: &mut Vec<Work>) {
        let brings = |seat: &ClaimSeat| {
            let asked_for = |name: &TypeName| seat.ask.kinds.iter().any(|kind| kind.name == *name);
            works.iter().any(|work| work.brings_in(&asked_for))
        };
        let mut state = self.state();
        let called: Vec<_> = state.waiting.extract_if(.., |_, seat| brings(seat)).collect();
        let now = Instant::now();
        for (number, mut seat) in called.into_iter().filter(|(_, seat)| !seat.reply.is_closed()) {
            state.in_groups.insert(number, Progress::default());
            seat.place = Some(Place { idle: self.clone(), number });
            seat.claimed = Claimed { asked_at: Some(now), ..Claimed::default() };
            works.push(Work::Claim(seat));
        }
    }

    /// There are others to look for.
    pub fn hush(&self) {
        // Whoever hears of it may come back at once.
        let gone = std::mem::take(&mut self.state().waiting);
        drop(gone);
    }
}

impl Place {
    /// A group is about to be loaded, for the first time or anew.
    pub fn begins(&self) {
        if let Some(progress) = self.idle.state().in_groups.get_mut(&self.number)
            && !progress.leaves
        {
            progress.decided = false;
        }
    }

    /// Whether the group may hand them something: from now on they wait for it.
    pub fn takes_part(&self) -> bool {
        let mut state = self.idle.state();
        let Some(progress) = state.in_groups.get_mut(&self.number) else { return false };
        progress.decided |= !progress.leaves;
        progress.decided
    }

    /// The group had nothing.
    pub fn back(self, mut seat: Box<ClaimSeat>) {
        let mut state = self.idle.state();
        let leaves = state.in_groups.remove(&self.number).is_none_or(|progress| progress.leaves);
        if !leaves && !seat.reply.is_closed() {
            seat.claimed = Claimed::default();
            state.waiting.insert(self.number, seat);
        }
    }

    /// They are told what was handed to them.
    pub fn done(self) {
        self.idle.state().in_groups.remove(&self.number);
    }
}

impl StandBy {
    /// What is handed over, once there is something; nothing if there are others to look for.
    pub async fn handed(&mut self) -> Option<Handed> {
        let Claimed { leased, turns, asked_at, .. } = (&mut self.heard).await.ok()?.ok()?;
        Some(Handed { leased, turns, asked_at: asked_at? })
    }

    /// What a group has handed over already.
    pub async fn leave(mut self) -> Option<Handed> {
        {
            let mut state = self.idle.state();
            if state.waiting.remove(&self.number).is_some() {
                return None;
            }
            if let Some(progress) = state.in_groups.get_mut(&self.number) {
                progress.leaves = true;
                if !progress.decided {
                    return None;
                }
            }
        }
        self.handed().await
    }
}

impl Drop for StandBy {
    fn drop(&mut self) {
        let mut state = self.idle.state();
        state.waiting.remove(&self.number);
        if let Some(progress) = state.in_groups.get_mut(&self.number) {
            progress.leaves = true;
        }
    }
}
