//! What an agent has begun and not ended.

use super::Fault;
use crate::credits::Credits;
use crate::id::DecisionId;
use crate::time::{Micros, Span};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Places that are done, as ranges: a plan that is worked through in order is one range, however long.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Done(Vec<(u32, u32)>);

impl Done {
    pub fn contains(&self, place: u32) -> bool {
        let after = self.0.partition_point(|(from, _)| *from <= place);
        after > 0 && place < self.0[after - 1].1
    }

    pub fn insert(&mut self, place: u32) {
        if self.contains(place) {
            return;
        }
        let after = self.0.partition_point(|(from, _)| *from <= place);
        let joins_before = after > 0 && self.0[after - 1].1 == place;
        let joins_next = after < self.0.len() && self.0[after].0 == place + 1;
        match (joins_before, joins_next) {
            (true, true) => {
                self.0[after - 1].1 = self.0[after].1;
                self.0.remove(after);
            }
            (true, false) => self.0[after - 1].1 += 1,
            (false, true) => self.0[after].0 = place,
            (false, false) => self.0.insert(after, (place, place + 1)),
        }
    }

    pub fn len(&self) -> u32 {
        self.0.iter().map(|(from, to)| to - from).sum()
    }

    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The first place that is not done.
    pub fn first_gap(&self) -> u32 {
        match self.0.first() {
            Some((0, to)) => *to,
            _ => 0,
        }
    }
}

/// A task that was begun.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    pub attempt: u32,
    /// Of its first attempt.
    pub started_at: Micros,
    /// Of this attempt.
    pub deadline: Micros,
    /// It begins again then, after a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Micros>,
    #[serde(default, skip_serializing_if = "Done::is_empty")]
    pub done: Done,
    /// Of those that are done, how many were skipped.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub skipped: u32,
    /// Spent on its steps that have ended, in all its attempts.
    pub charged: Credits,
    pub steps: BTreeMap<u32, Step>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
pub(super) const fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// A step that was begun.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Calls begun, the one at hand included.
    pub attempt: u32,
    pub started_at: Micros,
    /// Set aside for the call at hand.
    pub held: Credits,
    /// Spent on calls that have ended.
    pub charged: Credits,
    /// Workers that were lost during the call at hand.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lost: u32,
    /// Calling it twice may do something twice.
    #[serde(default, rename = "unsafe", skip_serializing_if = "std::ops::Not::not")]
    pub is_unsafe: bool,
    pub doing: Doing,
}

/// What a step is waiting for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Doing {
    /// The tool was called, or is about to be.
    Call,
    /// It is called again then.
    Backoff(Micros),
    Sleep(Micros),
    Signal {
        name: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Micros>,
    },
    /// People are asked; their answer is the result.
    Answer(DecisionId),
    /// It failed while its agent was paused: what follows is decided when that goes on.
    Broken {
        fault: Fault,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after: Option<Span>,
    },
    /// It is not known what came of an unsafe call; people are asked.
    Unknown(DecisionId),
}

impl Step {
    pub const fn is_call(&self) -> bool {
        matches!(self.doing, Doing::Call)
    }

    pub const fn decision(&self) -> Option<DecisionId> {
        match self.doing {
            Doing::Answer(id) | Doing::Unknown(id) => Some(id),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn ranges_are_a_set(places in proptest::collection::vec(0u32..40, 0..80)) {
            let (mut done, mut set) = (Done::default(), BTreeSet::new());
            for place in places {
                done.insert(place);
                set.insert(place);
                prop_assert_eq!(done.len() as usize, set.len());
                prop_assert_eq!(done.first_gap(), (0..).find(|n| !set.contains(n)).unwrap());
                prop_assert!((0..45).all(|n| done.contains(n) == set.contains(&n)));
                prop_assert!(done.0.windows(2).all(|w| w[0].1 < w[1].0), "{:?}", done);
            }
        }
    }
}
