//! A node's clock: virtual time, off by some skew, and now and then set by somebody.

use baton_core::Micros;
use baton_core::rng::Rng;
use baton_store::Clock;
use std::sync::atomic::{AtomicI64, Ordering};
use tokio::time::Instant;

/// An arbitrary day.
const START: Micros = Micros(1_800_000_000_000_000);
/// Clocks are off by up to this much, either way.
const SKEW_MAX_US: u64 = 45_000_000;
/// A clock is set by up to this much, either way.
const JUMP_MAX_US: u64 = 180_000_000;

pub(super) struct SimClock {
    began: Instant,
    skew: AtomicI64,
}

impl SimClock {
    pub fn drawn(rng: &mut Rng) -> Self {
        let skew = if rng.chance(1, 2) { 0 } else { either_way(rng, SKEW_MAX_US) };
        Self { began: Instant::now(), skew: AtomicI64::new(skew) }
    }

    pub fn jump(&self, rng: &mut Rng) {
        self.skew.fetch_add(either_way(rng, JUMP_MAX_US), Ordering::SeqCst);
    }
}

fn either_way(rng: &mut Rng, max: u64) -> i64 {
    rng.below(2 * max).cast_signed() - max.cast_signed()
}

impl Clock for SimClock {
    fn now(&self) -> Micros {
        let passed = i64::try_from(self.began.elapsed().as_micros()).unwrap_or(i64::MAX);
        Micros(START.0 + passed + self.skew.load(Ordering::SeqCst))
    }
}
