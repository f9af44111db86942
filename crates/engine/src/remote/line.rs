//! Lines: workers that wait for the same wait behind each other.
//!
//! Only the first of a line looks when there is news. With something in its hands it leaves, and the next one looks at
//! once, for there may be more. A hundred idle workers so cost one look, not a hundred.

use super::Wanted;
use baton_core::lane::LaneKey;
use baton_core::schedule::Turns;
use baton_core::{OrgId, ProjectId, TypeName};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError, Weak};

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

/// Only lines in which somebody stands.
#[derive(Default)]
pub(super) struct Lines(Mutex<BTreeMap<Want, Weak<Line>>>);

impl Lines {
    pub fn line(&self, wanted: &Wanted) -> Arc<Line> {
        let want = Want {
            org: wanted.worker.org.clone(),
            types: wanted.types.clone(),
            lanes: wanted.lanes.clone(),
            projects: wanted.projects.clone(),
        };
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(line) = lines.get(&want).and_then(Weak::upgrade) {
            return line;
        }
        lines.retain(|_, line| line.strong_count() > 0);
        let line = Arc::new(Line::default());
        lines.insert(want, Arc::downgrade(&line));
        line
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
    fn those_who_want_the_same_stand_in_one_line_and_nobody_is_remembered_who_has_gone() {
        let lines = Lines::default();
        let (one, two, other) = (lines.line(&wanted(1, "a")), lines.line(&wanted(2, "a")), lines.line(&wanted(1, "b")));
        assert!(Arc::ptr_eq(&one, &two) && !Arc::ptr_eq(&one, &other));
        drop((one, two, other));
        let _new = lines.line(&wanted(1, "c"));
        assert_eq!(lines.0.lock().unwrap().len(), 1);
    }
}
