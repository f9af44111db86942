//! What the store needs from the world and does not own: time and chance.

use baton_core::Micros;
use baton_core::id::Seed;

/// The time of commits on SQLite. On PostgreSQL the database's own clock is used instead, so
/// that all nodes agree.
pub trait Clock: Send + Sync + 'static {
    fn now(&self) -> Micros;
}

/// Where the seed of each command comes from.
pub trait Entropy: Send + Sync + 'static {
    /// Two words nobody can guess, or that a simulation can repeat.
    fn words(&self) -> (u64, u64);
}

pub(crate) fn seed(clock: &dyn Clock, entropy: &dyn Entropy) -> Seed {
    let (high, low) = entropy.words();
    Seed { high, low, at: clock.now() }
}
