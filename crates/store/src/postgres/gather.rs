//! Whom a committer waits for before it begins a group.
//!
//! Those who were answered together come again together as a rule, a moment later. A group that is begun without them leaves
//! them to the next one, and so for ever: each group has half of those who could share a commit. So a committer waits for
//! as many as it has answered, beside those who waited then; for a moment only, and seldom where that was in vain.

use std::time::Duration;

/// What being woken and asking again takes, and far less than a commit.
pub(super) const WINDOW: Duration = Duration::from_micros(60);
/// Groups that are begun without waiting where waiting was in vain again and again.
const RESTS_MAX: u32 = 64;

#[derive(Debug, Default)]
pub(super) struct Gather {
    /// Submissions that may come together.
    expected: usize,
    /// Groups that are still begun without waiting.
    rests: u32,
    /// How many that will be the next time.
    vain: u32,
}

impl Gather {
    /// So many submissions are about to be answered, while others wait.
    pub fn answers(&mut self, answered: usize, waiting: usize) {
        self.expected = answered + waiting;
    }

    /// How many are worth waiting for, if there are only so many.
    pub fn worth(&mut self, there: usize) -> Option<usize> {
        if there >= self.expected {
            return None;
        }
        if self.rests > 0 {
            self.rests -= 1;
            return None;
        }
        Some(self.expected)
    }

    /// What came of waiting.
    pub fn waited(&mut self, before: usize, after: usize) {
        if 2 * (after - before) >= self.expected.saturating_sub(before) {
            self.vain = 0;
        } else {
            self.vain = (2 * self.vain + 1).min(RESTS_MAX);
        }
        self.rests = self.vain;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_who_were_answered_are_waited_for_beside_those_who_waited() {
        let mut gather = Gather::default();
        assert_eq!(gather.worth(1), None, "nobody was answered");
        gather.answers(4, 3);
        assert_eq!(gather.worth(3), Some(7));
        assert_eq!(gather.worth(7), None);
        gather.waited(3, 7);
        gather.answers(7, 0);
        assert_eq!(gather.worth(1), Some(7));
        // One after the other: the next is there already.
        gather.answers(1, 0);
        assert_eq!(gather.worth(1), None);
    }

    #[test]
    fn waiting_in_vain_becomes_seldom_and_does_not_stay_so() {
        let mut gather = Gather::default();
        let mut waits = 0;
        for _ in 0..1_000 {
            gather.answers(4, 0);
            if gather.worth(1).is_some() {
                gather.waited(1, 1);
                waits += 1;
            }
        }
        assert!((10..30).contains(&waits), "{waits}");
        gather.answers(4, 0);
        while gather.worth(1).is_none() {}
        gather.waited(1, 3);
        assert_eq!(gather.worth(1), Some(4));
    }
}
