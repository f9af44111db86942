//! Whether a failed job is tried again, and when.
//!
//! Pure and deterministic: the same failure with the same chance gives the same verdict.

use crate::job::State;
use crate::rng::Rng;
use crate::time::Span;
use serde::{Deserialize, Serialize};

/// What kind of failure it was; decided where it happened, by one list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// It may go better next time: tried again while the budgets last.
    Transient,
    /// It would go wrong again in the same way.
    Deterministic,
    /// Nothing of this kind can go well.
    Fatal,
}

/// Codes of failures that may go better next time; every other one would go wrong again.
pub const TRANSIENT: [&str; 12] = [
    "timeout",
    "rate_limited",
    "bad_gateway",
    "unavailable",
    "gateway_timeout",
    "connection_failed",
    "connection_reset",
    "connection_refused",
    "out_of_memory",
    "disk_full",
    "model_rate_limited",
    "worker_lost",
];

impl Class {
    pub const ALL: [Self; 3] = [Self::Transient, Self::Deterministic, Self::Fatal];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Transient => "transient",
            Self::Deterministic => "deterministic",
            Self::Fatal => "fatal",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.as_str() == text)
    }

    /// Of a failure that says no more than its code.
    pub fn of_code(code: &str) -> Self {
        if TRANSIENT.contains(&code) { Self::Transient } else { Self::Deterministic }
    }

    /// Of an answer over HTTP that is not a success.
    pub const fn of_status(status: u16) -> Self {
        match status {
            408 | 429 | 502 | 503 | 504 => Self::Transient,
            _ => Self::Deterministic,
        }
    }
}

/// How the jobs of a type are tried again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// Failures that a job may report; as many as attempts, unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_failures: Option<u32>,
    /// After the first failure; doubled with each further one.
    pub base: Span,
    /// Never longer than this.
    pub max: Span,
    /// Spreads the delays by a tenth either way.
    pub jitter: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self { max_failures: None, base: Span::secs(1), max: Span::secs(60), jitter: true }
    }
}

impl Policy {
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// The delay after the nth failure, counted from one.
    pub fn delay(&self, failures: u32, rng: &mut Rng) -> Span {
        let max = self.max.0.max(0);
        let doubled = failures.saturating_sub(1).min(62);
        let plain = self.base.0.max(0).saturating_mul(1_i64 << doubled).min(max);
        if !self.jitter {
            return Span(plain);
        }
        let tenth = plain / 10;
        let spread = i64::try_from(rng.below(2 * tenth.unsigned_abs() + 1)).unwrap_or(0);
        Span((plain - tenth + spread).clamp(0, max))
    }
}

/// What a job has used up, the failure at hand included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spent {
    pub state: State,
    pub attempts: u32,
    pub max_attempts: u32,
    pub failures: u32,
    pub max_failures: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Not terminal: wait, then try again.
    Retry { after: Span },
    /// It may not be tried again: the failure's own class says so.
    Final,
    /// It may be, but a budget is used up.
    Exhausted(&'static str),
}

pub const ATTEMPTS_EXHAUSTED: &str = "attempts_exhausted";
pub const FAILURES_EXHAUSTED: &str = "failures_exhausted";
pub const ALREADY_TERMINAL: &str = "already_terminal";

pub fn decide(policy: &Policy, spent: Spent, class: Class, rng: &mut Rng) -> Verdict {
    if spent.state.is_ended() {
        return Verdict::Exhausted(ALREADY_TERMINAL);
    }
    // Where no failure may be repeated, each keeps its own name: somebody else decides what follows from it.
    if class != Class::Transient || spent.max_failures == 0 {
        return Verdict::Final;
    }
    if spent.attempts >= spent.max_attempts {
        return Verdict::Exhausted(ATTEMPTS_EXHAUSTED);
    }
    if spent.failures >= spent.max_failures {
        return Verdict::Exhausted(FAILURES_EXHAUSTED);
    }
    Verdict::Retry { after: policy.delay(spent.failures, rng) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    const SPENT: Spent = Spent { state: State::Executing, attempts: 1, max_attempts: 3, failures: 1, max_failures: 3 };

    fn verdict(spent: Spent, class: Class) -> Verdict {
        decide(&Policy { jitter: false, ..Policy::default() }, spent, class, &mut Rng::new(1))
    }

    #[test]
    fn where_no_failure_may_be_repeated_each_is_final() {
        let none = Spent { max_failures: 0, ..SPENT };
        assert_eq!(verdict(none, Class::Transient), Verdict::Final);
    }

    #[test]
    fn the_decision_table() {
        let retry = Verdict::Retry { after: Span::secs(1) };
        assert_eq!(verdict(SPENT, Class::Transient), retry);
        assert_eq!(verdict(SPENT, Class::Deterministic), Verdict::Final);
        assert_eq!(verdict(SPENT, Class::Fatal), Verdict::Final);
        let out = Spent { attempts: 3, ..SPENT };
        assert_eq!(verdict(out, Class::Transient), Verdict::Exhausted(ATTEMPTS_EXHAUSTED));
        let out = Spent { failures: 3, ..SPENT };
        assert_eq!(verdict(out, Class::Transient), Verdict::Exhausted(FAILURES_EXHAUSTED));
        let out = Spent { failures: 3, attempts: 3, ..SPENT };
        assert_eq!(verdict(out, Class::Transient), Verdict::Exhausted(ATTEMPTS_EXHAUSTED));
        for state in State::ALL.into_iter().filter(|s| s.is_ended()) {
            for class in Class::ALL {
                let ended = Spent { state, ..SPENT };
                assert_eq!(verdict(ended, class), Verdict::Exhausted(ALREADY_TERMINAL));
            }
        }
    }

    #[test]
    fn what_is_not_listed_would_go_wrong_again() {
        for code in TRANSIENT {
            assert_eq!(Class::of_code(code), Class::Transient);
        }
        for code in ["invalid_output", "not_found", "unauthorized", "handler_panicked", ""] {
            assert_eq!(Class::of_code(code), Class::Deterministic);
        }
        for status in [429, 502, 503, 504] {
            assert_eq!(Class::of_status(status), Class::Transient);
        }
        for status in [400, 401, 403, 404, 422, 500] {
            assert_eq!(Class::of_status(status), Class::Deterministic);
        }
    }

    proptest! {
        #[test]
        fn delays_double_are_bounded_and_can_be_replayed(failures in 1u32..200, seed: u64) {
            let policy = Policy { base: Span::millis(100), max: Span::secs(30), ..Policy::default() };
            let delay = policy.delay(failures, &mut Rng::new(seed));
            prop_assert_eq!(delay, policy.delay(failures, &mut Rng::new(seed)));
            prop_assert!(delay <= policy.max);
            let plain = Policy { jitter: false, ..policy }.delay(failures, &mut Rng::new(seed));
            prop_assert!((delay.0 - plain.0).abs() <= plain.0 / 10, "{:?} {:?}", delay, plain);
            if failures < 9 {
                prop_assert_eq!(plain, Span::millis(100 << (failures - 1)));
            }
        }
    }
}
