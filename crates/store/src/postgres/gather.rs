//! Whom a committer waits for before it begins a group.
//!
//! Those who were answered together come again together as a rule, a moment later. A group that is begun without them leaves
//! them to the next one, and so for ever: each group has half of those who could share a commit. So a committer waits for
//! as many as it has answered, beside those who waited then; for a moment only, and seldom where that was in vain.

use super::doubts::Doubts;
use std::time::Duration;

/// What being woken and asking again takes, and far less than a commit.
pub(super) const WINDOW: Duration = Duration::from_micros(60);

#[derive(Debug, Default)]
pub(super) struct Gather {
    /// Submissions that may come together.
    expected: usize,
    doubts: Doubts,
}

impl Gather {
    /// So many submissions are about to be answered, while others wait.
    pub fn answers(&mut self, answered: usize, waiting: usize) {
        self.expected = answered + waiting;
    }

    /// How many are worth waiting for, if there are only so many.
    pub fn worth(&mut self, there: usize) -> Option<usize> {
        (there < self.expected && !self.doubts.rests()).then_some(self.expected)
    }

    /// What came of waiting.
    pub fn waited(&mut self, before: usize, after: usize) {
        self.doubts.tried(2 * (after - before) >= self.expected.saturating_sub(before));
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
}
