//! Which due job goes next.
//!
//! Decided here and nowhere else, so that both databases choose alike. Lower priority numbers
//! go first; among equals, whoever was enqueued first.

use std::cmp::Ordering;

/// What the choice looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub priority: i32,
    /// The order of arrival.
    pub order: i64,
}

impl Place {
    pub fn before(&self, other: &Self) -> Ordering {
        (self.priority, self.order).cmp(&(other.priority, other.order))
    }
}

/// The candidates to claim, best first, never more than there are free slots.
pub fn pick<T>(mut candidates: Vec<(Place, T)>, slots: usize) -> Vec<T> {
    candidates.sort_by(|a, b| a.0.before(&b.0));
    candidates.truncate(slots);
    candidates.into_iter().map(|(_, t)| t).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_best_are_picked_and_never_more_than_fit(
            places in proptest::collection::vec((0i32..3, 0i64..1_000), 0..50),
            slots in 0usize..60,
        ) {
            let all = places.iter().map(|&(priority, order)| Place { priority, order }).collect::<Vec<_>>();
            let picked = pick(all.iter().map(|p| (*p, *p)).collect(), slots);
            prop_assert_eq!(picked.len(), slots.min(all.len()));
            prop_assert!(picked.windows(2).all(|w| w[0].before(&w[1]) != Ordering::Greater));
            let worst = picked.last().copied();
            let left_out = all.iter().filter(|p| worst.is_some_and(|w| p.before(&w) == Ordering::Less)).count();
            prop_assert!(left_out < picked.len().max(1));
        }
    }
}
