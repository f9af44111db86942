//! How long a request is tried again when there is no answer.
//!
//! A server that was never heard of is given up on soon. Whoever follows something to its end has
//! heard of it, and waits for it to come back: a restart is no reason to lose one's place.

use crate::fault::Fault;
use crate::paint::dim;
use crate::print;
use std::io::Write as _;
use std::time::Duration;
use tokio::time::Instant;

/// How often a request is sent before giving up, or being patient.
const TRIES: u32 = 4;
/// The pause after the first try; it triples each time.
const PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// How long a server that has answered before may be away.
pub const RESTART: Duration = Duration::from_secs(30);

/// The tries of one request.
pub struct Tries {
    patience: Duration,
    count: u32,
    pause: Duration,
    /// Since when there has been no answer.
    silent: Option<Instant>,
}

impl Tries {
    pub const fn new(patience: Duration) -> Self {
        Self { patience, count: 1, pause: PAUSE, silent: None }
    }

    pub const fn is_first(&self) -> bool {
        self.count == 1
    }

    /// Waits after a try that failed; `false` if it was the last.
    pub async fn again(&mut self) -> Result<bool, Fault> {
        let silent = *self.silent.get_or_insert_with(Instant::now);
        if self.count >= TRIES && silent.elapsed() >= self.patience {
            return Ok(false);
        }
        if self.count == TRIES {
            let seconds = self.patience.as_secs();
            let said = format!("the server does not answer; trying again for {seconds} s");
            writeln!(print::err(), "{}", dim(said))?;
        }
        tokio::time::sleep(self.pause).await;
        self.pause = (self.pause * 3).min(LONGEST_PAUSE);
        self.count += 1;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often a server that stays away is asked, and for how long.
    async fn exhaust(patience: Duration) -> (u32, Duration) {
        let began = Instant::now();
        let mut tries = Tries::new(patience);
        assert!(tries.is_first());
        while tries.again().await.unwrap() {
            assert!(!tries.is_first());
        }
        (tries.count, began.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn a_stranger_is_given_up_on_soon_and_an_acquaintance_waited_for() {
        let (tries, waited) = exhaust(Duration::ZERO).await;
        assert!(tries == TRIES && waited < Duration::from_secs(2), "{tries} {waited:?}");
        let (tries, waited) = exhaust(RESTART).await;
        assert!(tries > TRIES && waited >= RESTART && waited <= RESTART + LONGEST_PAUSE, "{tries} {waited:?}");
    }
}
