//! How an engine is set up. Every wait has a name here.

use baton_core::WorkerId;
use baton_core::seal;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Clone, Debug)]
pub struct Options {
    /// Who holds the leases of this engine's own workers.
    pub node: WorkerId,
    /// Jobs that run at once in this process.
    pub slots: usize,
    /// What the engine does for itself, such as deliveries to webhooks, at once in this process.
    pub errand_slots: usize,
    /// Agents of runs that are worked on at once in this process; those that wait take no place.
    pub agent_slots: usize,
    /// Seals the history when given.
    pub seal_key: Option<seal::Key>,
    /// Remembers the last seals outside the database: see [`crate::seal_memory`].
    pub seal_memory: Option<PathBuf>,
    /// Between two heartbeats at most: leases that last less than three times as long are beaten for
    /// more often.
    pub beat_every: Duration,
    /// The pool looks for work this often even if nobody wakes it.
    pub poll_every: Duration,
    /// Between two looks for leases that ran out.
    pub sweep_every: Duration,
    pub seal_every: Duration,
    pub purge_every: Duration,
    /// Between two looks for ended jobs to forget.
    pub prune_every: Duration,
}

impl Options {
    pub const fn new(node: WorkerId) -> Self {
        Self {
            node,
            slots: 2,
            errand_slots: 32,
            agent_slots: 64,
            seal_key: None,
            seal_memory: None,
            beat_every: Duration::from_secs(10),
            poll_every: Duration::from_secs(1),
            sweep_every: Duration::from_secs(1),
            seal_every: Duration::from_secs(60),
            purge_every: Duration::from_secs(600),
            prune_every: Duration::from_secs(60),
        }
    }
}
