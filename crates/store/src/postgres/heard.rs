//! What time it is by the database's clock, without asking.
//!
//! Every snapshot tells the time. For a moment after that it can be worked out: what has passed since the answer was heard
//! is added. The answer took a while to come, so this is behind what the server would say rather than ahead of it.

use baton_core::Micros;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Clocks do not run apart by more than what an answer takes in so short a time.
const GOOD_FOR: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(super) struct Heard(Mutex<Option<(Micros, Instant)>>);

impl Heard {
    pub fn tell(&self, now: Micros) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((now, Instant::now()));
    }

    /// A connection is gone: it may be another server that answers next.
    pub fn forget(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Nothing if that was too long ago.
    pub fn now(&self) -> Option<Micros> {
        let (then, at) = (*self.0.lock().unwrap_or_else(PoisonError::into_inner))?;
        later(then, at.elapsed())
    }
}

fn later(then: Micros, passed: Duration) -> Option<Micros> {
    let micros = i64::try_from(passed.as_micros()).ok()?;
    (passed < GOOD_FOR).then_some(Micros(then.0 + micros))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_on_for_a_moment() {
        let then = Micros(1_000);
        assert_eq!(later(then, Duration::ZERO), Some(then));
        assert_eq!(later(then, Duration::from_millis(2)), Some(Micros(3_000)));
        assert_eq!(later(then, GOOD_FOR), None);
        let heard = Heard::default();
        assert_eq!(heard.now(), None);
        heard.tell(then);
        assert!(heard.now().is_some_and(|now| now >= then));
        heard.forget();
        assert_eq!(heard.now(), None);
    }
}
