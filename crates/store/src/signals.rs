//! Who waits is told here, on this node. Other nodes hear through the database.

use crate::bell::Bell;
use crate::group::Stirred;
use tokio::sync::watch;

/// Before anybody has found out how far the history is final.
pub(crate) const UNKNOWN: i64 = -1;

pub(crate) struct Signals {
    /// The position up to which the history is final for readers.
    pub events: watch::Sender<i64>,
    pub jobs: Bell,
    pub timers: Bell,
    /// Somebody wants jobs to end that workers hold.
    pub leases: Bell,
}

impl Signals {
    pub fn new(tail: i64) -> Self {
        Self {
            events: watch::Sender::new(tail),
            jobs: Bell::default(),
            timers: Bell::default(),
            leases: Bell::default(),
        }
    }

    /// For jobs and timers; the tail of events moves when they are final, not when written.
    pub fn stir(&self, stirred: Stirred) {
        if stirred.jobs {
            self.jobs.ring();
        }
        if stirred.timers {
            self.timers.ring();
        }
        if stirred.leases {
            self.leases.ring();
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
