//! Which requests are sent, and how to send one of them again.

use super::{Aim, Broken, Shout};
use crate::seed::seed;
use std::ops::Range;

/// How many there are.
const REQUESTS: &str = "BATON_REQUESTS";
/// The only one that there is.
const REQUEST: &str = "BATON_REQUEST";

/// Bytes of a request that are shown when it has broken something; the rest is in its number.
const SHOWN: usize = 2_000;

#[derive(Clone, Debug)]
pub struct Plan {
    pub seed: u64,
    pub numbers: Range<u64>,
}

impl Plan {
    /// As the environment says; otherwise the first so many.
    pub fn new(requests: u64) -> Self {
        let numbers = match number(REQUEST) {
            Some(one) => one..one + 1,
            None => 0..number(REQUESTS).unwrap_or(requests),
        };
        Self { seed: seed(), numbers }
    }

    pub fn shout(&self, aim: &Aim, number: u64) -> Shout {
        aim.shout(self.seed, number)
    }

    /// What is said of a request that has broken something.
    pub fn lament(&self, number: u64, shout: &Shout, broken: &Broken) -> String {
        let sent = shout.bytes[..shout.bytes.len().min(SHOWN)].escape_ascii();
        format!(
            "request {number}, {}: {broken}\nit began with {sent}\nrepeat it alone with BATON_SEED={} {REQUEST}={number}",
            shout.what, self.seed
        )
    }
}

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|error| panic!("{name} is no number: {error}")))
}
