//! Luck: which commit goes wrong and how, drawn from the seed.

use super::watch::Watch;
use baton_core::rng::Rng;
use baton_store::faults::{Faults, Mishap, Sabotage};
use baton_store::{Entropy, StoreError};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// In a thousand commits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Odds {
    pub crash: u64,
    pub lost: u64,
    pub conflict: u64,
    /// Clock jumps, in a thousand client steps.
    pub jump: u64,
    pub group_max: u64,
}

impl Odds {
    pub fn draw(rng: &mut Rng) -> Self {
        let pick = |rng: &mut Rng, from: &[u64]| from[rng.below(from.len() as u64) as usize];
        Self {
            crash: pick(rng, &[0, 5, 20, 60]),
            lost: pick(rng, &[0, 10, 50]),
            conflict: pick(rng, &[0, 10, 100]),
            jump: pick(rng, &[0, 20, 100]),
            group_max: pick(rng, &[1, 2, 7, 512]),
        }
    }
}

/// Shared by all nodes of a simulation.
pub(super) struct Luck {
    pub odds: Odds,
    rng: Mutex<Rng>,
    calm: AtomicBool,
    commits: AtomicU64,
    crashes: AtomicU64,
    lost: AtomicU64,
    sabotage: Option<Sabotage>,
    watch: Arc<dyn Watch>,
}

impl Luck {
    pub fn new(odds: Odds, seed: u64, sabotage: Option<Sabotage>, watch: Arc<dyn Watch>) -> Self {
        Self {
            odds,
            rng: Mutex::new(Rng::new(seed)),
            calm: AtomicBool::new(false),
            commits: AtomicU64::new(0),
            crashes: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            sabotage,
            watch,
        }
    }

    /// From here on nothing goes wrong any more.
    pub fn calm(&self) {
        self.calm.store(true, Ordering::SeqCst);
    }

    pub fn is_calm(&self) -> bool {
        self.calm.load(Ordering::SeqCst)
    }

    /// A client was told that this job exists.
    pub fn promised(&self, job: baton_core::JobId) {
        self.watch.promise(job);
    }

    /// A client was told no.
    pub fn refused(&self, why: &str) {
        self.watch.happened(&format!("refused: {why}"), 1);
    }

    /// Something happened outside that must not.
    pub fn violate(&self, text: String) {
        self.watch.violate(text);
    }

    pub fn commits(&self) -> u64 {
        self.commits.load(Ordering::SeqCst)
    }

    pub fn crashes(&self) -> u64 {
        self.crashes.load(Ordering::SeqCst)
    }

    pub fn lost_answers(&self) -> u64 {
        self.lost.load(Ordering::SeqCst)
    }

    pub fn draw<T>(&self, f: impl FnOnce(&mut Rng) -> T) -> T {
        f(&mut self.rng.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn mishap(&self) -> Mishap {
        self.commits.fetch_add(1, Ordering::SeqCst);
        if self.is_calm() {
            return Mishap::None;
        }
        let Odds { crash, lost, conflict, .. } = self.odds;
        let roll = self.draw(|rng| rng.below(1_000));
        match roll {
            r if r < crash => {
                self.crashes.fetch_add(1, Ordering::SeqCst);
                if r % 2 == 0 { Mishap::CrashBefore } else { Mishap::CrashAfter }
            }
            r if r < crash + lost => {
                self.lost.fetch_add(1, Ordering::SeqCst);
                if r % 2 == 0 { Mishap::AnswerLost } else { Mishap::CommitLost }
            }
            r if r < crash + lost + conflict => Mishap::Conflict,
            _ => Mishap::None,
        }
    }
}

/// One node's share of the luck, with a way to hear that it has died.
pub(super) struct NodeLuck {
    pub luck: Arc<Luck>,
    pub died: tokio::sync::Notify,
}

impl Faults for NodeLuck {
    fn at_commit(&self) -> Mishap {
        self.luck.mishap()
    }

    fn crashed(&self) {
        self.died.notify_one();
    }

    fn sabotage(&self) -> Option<Sabotage> {
        self.luck.sabotage
    }

    /// Whoever waits is decided ahead, however little there is to write.
    fn ahead_from(&self, _: usize) -> usize {
        0
    }

    fn group_max(&self) -> usize {
        self.luck.odds.group_max as usize
    }

    fn spoiled(&self, why: &StoreError) {
        self.luck.watch.violate(format!("a command could not be committed: {why}"));
    }

    fn after_group(&self) {
        self.luck.watch.note();
    }
}

/// Ids and seeds of commands come from the same luck.
pub(super) struct SeededEntropy(pub Arc<Luck>);

impl Entropy for SeededEntropy {
    fn words(&self) -> (u64, u64) {
        self.0.draw(|rng| (rng.next_u64(), rng.next_u64()))
    }
}
