//! What the store needs from the world and does not own: time and chance.

use baton_core::Micros;
use baton_core::definition::Shape;
use baton_core::event::Note;
use baton_core::id::Seed;
use serde_json::Value;
use std::sync::Arc;

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

/// Hears what became of jobs, once it is committed. Called on the way of commits: must be quick.
pub trait Observer: Send + Sync + 'static {
    fn committed(&self, notes: &[Note]);
}

/// Makes shapes of the schemas that registered job types bring along.
pub trait Shapes: Send + Sync + 'static {
    fn of(&self, schema: &Value) -> Arc<dyn Shape>;
}

pub(crate) fn seed(clock: &dyn Clock, entropy: &dyn Entropy) -> Seed {
    let (high, low) = entropy.words();
    Seed { high, low, at: clock.now() }
}
