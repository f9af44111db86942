//! The one place that reads the machine's clock.

use baton_core::Micros;
use baton_store::Clock;

pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the room where time comes in")]
    fn now(&self) -> Micros {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Micros(since.map_or(0, |d| i64::try_from(d.as_micros()).unwrap_or(i64::MAX)))
    }
}
