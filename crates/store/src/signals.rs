//! Who waits is told here, on this node. Other nodes hear through the database.

use crate::bell::Bell;
use crate::group::Stirred;
use crate::stand_by::Idle;
use baton_core::JobId;
use baton_core::event::Note;
use baton_core::run::remote::is_tool_type;
use tokio::sync::{broadcast, watch};

/// Before anybody has found out how far the history is final.
pub(crate) const UNKNOWN: i64 = -1;

pub(crate) struct Signals {
    /// The position up to which the history is final for readers.
    pub events: watch::Sender<i64>,
    /// Jobs for pools of nodes. They and workers outside serve different types: neither looks for what only the other can
    /// find.
    pub jobs: Bell,
    pub outside: Bell,
    pub timers: Bell,
    /// Somebody wants jobs to end that workers hold.
    pub leases: Bell,
    /// Pools of this node that have nothing to do.
    pub idle: Idle,
    /// Calls that workers outside made have ended.
    pub calls: broadcast::Sender<JobId>,
}

/// Ends of calls that wait to be heard; whoever hears less looks for itself.
const CALLS_MAX: usize = 1_024;

impl Signals {
    pub fn new(tail: i64) -> Self {
        Self {
            events: watch::Sender::new(tail),
            jobs: Bell::default(),
            outside: Bell::default(),
            timers: Bell::default(),
            leases: Bell::default(),
            idle: Idle::default(),
            calls: broadcast::Sender::new(CALLS_MAX),
        }
    }

    /// For jobs and timers; the tail of events moves when they are final, not when written.
    pub fn stir(&self, stirred: Stirred) {
        if stirred.jobs {
            self.jobs.ring();
            self.idle.hush();
        }
        if stirred.outside {
            self.outside.ring();
        }
        if stirred.timers {
            self.timers.ring();
        }
        if stirred.leases {
            self.leases.ring();
        }
    }

    /// Tells whoever waits for calls which have ended.
    pub fn tell_calls(&self, notes: &[Note]) {
        if self.calls.receiver_count() == 0 {
            return;
        }
        let ended = |note: &&Note| matches!(note.what, "job.completed" | "job.failed" | "job.cancelled");
        for note in notes.iter().filter(ended).filter(|note| is_tool_type(&note.kind)) {
            // Nobody listens any more.
            let _ = self.calls.send(note.job);
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
