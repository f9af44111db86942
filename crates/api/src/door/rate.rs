//! How fast one key may ask: a bucket each, that fills as time passes.

use crate::limits::KEYS_KNOWN;
use crate::problem::Fault;
use axum::http::{HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use baton_core::id::KeyId;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// How many requests a second, and how many at once after a rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    pub per_second: u32,
    pub burst: u32,
}

impl Default for Rate {
    fn default() -> Self {
        Self { per_second: 1_000, burst: 2_000 }
    }
}

pub struct Buckets {
    /// `None` lets everybody ask as fast as they can.
    rate: Option<Rate>,
    /// When each bucket will be full again.
    full_at: Mutex<BTreeMap<KeyId, Instant>>,
}

/// How a key stands with its rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    rate: Option<Rate>,
    /// Requests that may follow at once.
    left: u32,
    /// Until the bucket is full, or, for who is refused, until the next request.
    wait: Duration,
}

impl Buckets {
    pub const fn new(rate: Option<Rate>) -> Self {
        Self { rate, full_at: Mutex::new(BTreeMap::new()) }
    }

    /// Takes one request from a key's bucket, unless it is empty.
    pub fn take(&self, key: KeyId) -> Result<Pace, Pace> {
        self.take_at(key, Instant::now())
    }

    fn take_at(&self, key: KeyId, now: Instant) -> Result<Pace, Pace> {
        let Some(rate) = self.rate else { return Ok(Pace { rate: None, left: 0, wait: Duration::ZERO }) };
        let one = Duration::from_secs(1) / rate.per_second.max(1);
        let whole = one * rate.burst.max(1);
        let mut all = self.full_at.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= KEYS_KNOWN {
            all.retain(|_, full_at| *full_at > now);
        }
        let full_at = all.get(&key).copied().unwrap_or(now).max(now) + one;
        let wait = full_at - now;
        if wait > whole {
            return Err(Pace { rate: Some(rate), left: 0, wait: wait - whole });
        }
        all.insert(key, full_at);
        let left = ((whole - wait).as_nanos() / one.as_nanos().max(1)) as u32;
        Ok(Pace { rate: Some(rate), left, wait })
    }
}

impl Pace {
    /// The answer of who asks too fast.
    pub fn refused(self) -> Response {
        let ms = u32::try_from(self.wait.as_millis()).unwrap_or(u32::MAX).max(1);
        let detail = "this key asks faster than it may".to_owned();
        self.told(Fault::new("rate_limited", detail).after(ms).into_response())
    }

    /// Says in the headers of an answer how much is left.
    #[must_use]
    pub fn told(self, mut response: Response) -> Response {
        let Some(rate) = self.rate else { return response };
        let seconds = self.wait.as_secs() + u64::from(self.wait.subsec_nanos() > 0);
        let window = (rate.burst / rate.per_second.max(1)).max(1);
        let headers = response.headers_mut();
        let told = [
            ("ratelimit-policy", format!("\"key\";q={};w={window}", rate.burst)),
            ("ratelimit", format!("\"key\";r={};t={seconds}", self.left)),
        ];
        for (name, value) in told {
            if let Ok(value) = HeaderValue::from_str(&value) {
                headers.insert(HeaderName::from_static(name), value);
            }
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    const RATE: Rate = Rate { per_second: 10, burst: 3 };

    #[test]
    fn a_bucket_empties_and_fills_again_and_belongs_to_one_key() {
        let buckets = Buckets::new(Some(RATE));
        let (key, other) = (KeyId(Uuid::from_u128(1)), KeyId(Uuid::from_u128(2)));
        let start = Instant::now();
        let left: Vec<_> = (0..3).map(|_| buckets.take_at(key, start).unwrap().left).collect();
        assert_eq!(left, [2, 1, 0]);
        let no = buckets.take_at(key, start).unwrap_err();
        assert_eq!(no.wait, Duration::from_millis(100));
        assert!(buckets.take_at(other, start).is_ok());
        assert!(buckets.take_at(key, start + no.wait).is_ok(), "one has dropped in");
        assert!(buckets.take_at(key, start + no.wait).is_err());
        let later = start + Duration::from_secs(9);
        assert_eq!(buckets.take_at(key, later).unwrap().left, 2, "it never holds more than it can");
    }

    #[test]
    fn without_a_rate_nobody_is_refused_or_told() {
        let buckets = Buckets::new(None);
        for _ in 0..100 {
            assert!(buckets.take(KeyId(Uuid::nil())).is_ok());
        }
        let answer = buckets.take(KeyId(Uuid::nil())).unwrap().told(Response::default());
        assert!(answer.headers().is_empty());
    }

    #[test]
    fn an_answer_says_how_much_is_left() {
        let buckets = Buckets::new(Some(RATE));
        let answer = buckets.take(KeyId(Uuid::nil())).unwrap().told(Response::default());
        assert_eq!(answer.headers()["ratelimit"], "\"key\";r=2;t=1");
        assert_eq!(answer.headers()["ratelimit-policy"], "\"key\";q=3;w=1");
    }
}
