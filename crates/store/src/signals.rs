//! Who waits is told here, on this node. Other nodes hear through the database.

use crate::group::Stirred;
use tokio::sync::watch;

/// Before anybody has found out how far the history is final.
pub(crate) const UNKNOWN: i64 = -1;

pub(crate) struct Signals {
    /// The position up to which the history is final for readers.
    pub events: watch::Sender<i64>,
    pub jobs: watch::Sender<u64>,
    pub timers: watch::Sender<u64>,
    /// Somebody wants jobs to end that workers hold.
    pub leases: watch::Sender<u64>,
}

impl Signals {
    pub fn new(tail: i64) -> Self {
        let quiet = || watch::Sender::new(0);
        Self { events: watch::Sender::new(tail), jobs: quiet(), timers: quiet(), leases: quiet() }
    }

    /// For jobs and timers; the tail of events moves when they are final, not when written.
    pub fn stir(&self, stirred: Stirred) {
        if stirred.jobs {
            self.jobs.send_modify(|n| *n += 1);
        }
        if stirred.timers {
            self.timers.send_modify(|n| *n += 1);
        }
        if stirred.leases {
            self.leases.send_modify(|n| *n += 1);
        }
    }

    pub fn publish(&self, tail: i64) {
        self.events.send_if_modified(|now| {
            let ahead = tail > *now;
            if ahead {
                *now = tail;
            }
            ahead
        });
    }
}
