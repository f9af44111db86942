//! Time as a value: microseconds since 1970 UTC. Who reads a clock hands the reading in.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A moment, in microseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Micros(pub i64);

impl Micros {
    /// Saturates instead of wrapping: a moment past the end of time is simply far away.
    #[must_use]
    pub const fn plus(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }

    #[must_use]
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }

    pub const fn as_millis(self) -> i64 {
        self.0.div_euclid(1_000)
    }
}

impl fmt::Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}us", self.0)
    }
}

/// A length of time, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Span(pub i64);

impl Span {
    pub const fn millis(ms: i64) -> Self {
        Self(ms.saturating_mul(1_000))
    }

    pub const fn secs(s: i64) -> Self {
        Self(s.saturating_mul(1_000_000))
    }

    /// For timers of the runtime, which do not know negative lengths.
    pub const fn to_std(self) -> std::time::Duration {
        std::time::Duration::from_micros(if self.0 < 0 { 0 } else { self.0 as u64 })
    }
}
