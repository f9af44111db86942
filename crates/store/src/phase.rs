//! Which index a live job stands in. State is not claimability, so it has a column of its own.

use baton_core::Micros;
use baton_core::job::Status;

pub(crate) const PARKED: i16 = 0;
pub(crate) const READY: i16 = 1;
pub(crate) const SCHEDULED: i16 = 2;
pub(crate) const LEASED: i16 = 3;

/// Whether a job has a slot of its lane (0) or wants one (1), if the lane has a limit.
pub(crate) const fn slot(status: &Status) -> i16 {
    if status.holds_slot() { 0 } else { 1 }
}

/// A scheduled row becomes ready when a claim finds it due, so that the index of ready rows
/// holds nothing that cannot be claimed.
pub(crate) fn of(status: &Status, now: Micros) -> i16 {
    match (status, status.due_at()) {
        (Status::Executing { .. }, _) => LEASED,
        (_, None) => PARKED,
        (_, Some(due)) if due <= now => READY,
        (_, Some(_)) => SCHEDULED,
    }
}
