//! Lines: workers that wait for the same wait behind each other.
//!
//! Only the first of a line looks when there is news. With something in its hands it leaves, and the next one looks at
//! once, for there may be more. A hundred idle workers so cost one look, not a hundred.

use super::Wanted;
use baton_core::lane::LaneKey;
use baton_core::schedule::Turns;
use baton_core::{OrgId, ProjectId, TypeName};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

/// What those of one line have in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Want {
    org: OrgId,
    types: BTreeSet<TypeName>,
    lanes: Option<BTreeSet<LaneKey>>,
    projects: Option<BTreeSet<ProjectId>>,
}

#[derive(Default)]
pub(super) struct Line {
    /// Held by the one who looks.
    pub first: tokio::sync::Mutex<()>,
    /// Whose turn it is, as the last look left it.
    pub turns: Mutex<Turns>,
}

/// Lines that are remembered although nobody stands in them, so that lanes take turns from one ask to the next.
const LINES: usize = 1_000;

/// The lines, each with when it was last asked for.
#[derive(Default)]
pub(super) struct Lines(Mutex<Known>);

#[derive(Default)]
struct Known {
    lines: BTreeMap<Want, (u64, Arc<Line>)>,
    asks: u64,
}

impl Lines {
    pub fn line(&self, wanted: &Wanted) -> Arc<Line> {
        let want = Want {
            org: wanted.worker.org.clone(),
            types: wanted.types.clone(),
            lanes: wanted.lanes.clone(),
            projects: wanted.projects.clone(),
        };
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.asks += 1;
        let now = known.asks;
        if !known.lines.contains_key(&want) && known.lines.len() >= LINES {
            known.forget_half();
        }
        let (asked, line) = known.lines.entry(want).or_default();
        *asked = now;
        line.clone()
    }
}

impl Known {
    /// The older half, but none in which somebody stands.
    fn forget_half(&mut self) {
        let mut asked: Vec<u64> = self.lines.values().map(|(asked, _)| *asked).collect();
        asked.sort_unstable();
        let middle = asked[asked.len() / 2];
        self.lines.retain(|_, (asked, line)| *asked >= middle || Arc::strong_count(line) > 1);
    }
}

#[cfg(test)]
mod tests {
    use super::super::Worker;
    use super::*;
    use baton_core::id::KeyId;
    use std::time::Duration;
    use uuid::Uuid;

    fn wanted(key: u128, kind: &str) -> Wanted {
        let worker = Worker { org: OrgId::default(), key: KeyId(Uuid::from_u128(key)), name: None };
        let types = BTreeSet::from([kind.parse().unwrap()]);
        Wanted { worker, types, lanes: None, projects: None, max: 1, wait: Duration::ZERO }
    }

    #[test]
    fn those_who_want_the_same_stand_in_one_line_and_only_so_many_are_remembered() {
        let lines = Lines::default();
        let (one, two, other) = (lines.line(&wanted(1, "a")), lines.line(&wanted(2, "a")), lines.line(&wanted(1, "b")));
        assert!(Arc::ptr_eq(&one, &two) && !Arc::ptr_eq(&one, &other));
        drop((two, other));
        for n in 0..LINES * 2 {
            lines.line(&wanted(1, &format!("k{n}")));
        }
        assert!(lines.0.lock().unwrap().lines.len() <= LINES);
        assert!(Arc::ptr_eq(&one, &lines.line(&wanted(1, "a"))), "somebody stands in it");
    }
}
