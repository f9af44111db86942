//! Where a test's chances come from, so that they can come again.

#![allow(clippy::print_stderr, reason = "a test says how to repeat it")]

use baton_engine::OsEntropy;
use baton_store::Entropy;

/// A number to start a generator from; `BATON_SEED` repeats a run.
pub fn seed() -> u64 {
    let given = std::env::var("BATON_SEED").ok();
    let given = given.map(|text| text.parse().unwrap_or_else(|e| panic!("BATON_SEED is not a number: {e}")));
    let seed = given.unwrap_or_else(|| OsEntropy::default().words().0);
    eprintln!("repeat this run with BATON_SEED={seed}");
    seed
}
