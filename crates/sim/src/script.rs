//! Faults by script: what goes wrong at which commit.

use baton_core::Micros;
use baton_store::faults::{Faults, Mishap, Sabotage};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;

/// A node's faults. Commits are counted from 1, over all incarnations that share the script.
pub struct Script {
    mishaps: Mutex<BTreeMap<u64, Mishap>>,
    always: Mutex<Option<Mishap>>,
    sabotage: Option<Sabotage>,
    commits: AtomicU64,
    group_max: AtomicUsize,
    shift: Arc<AtomicI64>,
    crashed: watch::Sender<bool>,
}

impl Script {
    pub fn new(shift: Arc<AtomicI64>, sabotage: Option<Sabotage>) -> Self {
        Self {
            mishaps: Mutex::default(),
            always: Mutex::default(),
            sabotage,
            commits: AtomicU64::new(0),
            group_max: AtomicUsize::new(baton_store::GROUP_MAX),
            shift,
            crashed: watch::Sender::new(false),
        }
    }

    /// The commit `ahead` commits from now goes wrong; 1 is the next.
    pub fn at(&self, ahead: u64, mishap: Mishap) {
        let n = self.commits.load(Ordering::SeqCst) + ahead;
        self.mishaps.lock().unwrap_or_else(PoisonError::into_inner).insert(n, mishap);
    }

    /// Every commit from now on goes wrong; `None` ends it.
    pub fn always(&self, mishap: Option<Mishap>) {
        *self.always.lock().unwrap_or_else(PoisonError::into_inner) = mishap;
    }

    pub fn group_max(&self, max: usize) {
        self.group_max.store(max, Ordering::SeqCst);
    }

    /// Commits that were attempted so far.
    pub fn commits(&self) -> u64 {
        self.commits.load(Ordering::SeqCst)
    }

    /// Resolves when the store has crashed.
    pub async fn crash(&self) {
        let mut crashed = self.crashed.subscribe();
        // The sender lives as long as we do.
        let _ = crashed.wait_for(|c| *c).await;
    }

    pub fn has_crashed(&self) -> bool {
        *self.crashed.borrow()
    }
}

impl Faults for Script {
    fn at_commit(&self) -> Mishap {
        let n = self.commits.fetch_add(1, Ordering::SeqCst) + 1;
        if let Some(mishap) = *self.always.lock().unwrap_or_else(PoisonError::into_inner) {
            return mishap;
        }
        self.mishaps.lock().unwrap_or_else(PoisonError::into_inner).remove(&n).unwrap_or(Mishap::None)
    }

    fn crashed(&self) {
        self.crashed.send_replace(true);
    }

    fn sabotage(&self) -> Option<Sabotage> {
        self.sabotage
    }

    /// Whoever waits is decided ahead, however little there is to write.
    fn ahead_from(&self, _: usize) -> usize {
        0
    }

    fn group_max(&self) -> usize {
        self.group_max.load(Ordering::SeqCst)
    }

    fn time_shift(&self) -> Micros {
        Micros(self.shift.load(Ordering::SeqCst))
    }
}
