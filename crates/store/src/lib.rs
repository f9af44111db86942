//! What is remembered: the only crate that knows SQL.
//!
//! A [`Store`] commits commands. Waiting commands are taken together: what they read is loaded
//! under lock in one total order, they are decided one after another over that working set, the
//! merged changes are written as multi-row statements, and one commit makes them durable. All
//! or nothing per command; one fsync for many.
//!
//! Invariants
//! - Nobody hears an answer, not even a refusal, before the commit it depends on.
//! - One bad member never spoils its neighbours: a group that fails is run again one by one.
//! - A commit whose answer was lost is asked after, never blindly repeated.
//!
//! Elsewhere: every rule (`baton-core`), who claims and fires and when (`baton-engine`).

mod bell;
mod checkup;
mod cursor;
mod error;
#[cfg(feature = "faults")]
pub mod faults;
mod group;
mod hand_out;
mod known;
mod migrate;
mod open;
mod order;
mod phase;
mod ports;
mod postgres;
#[cfg(feature = "faults")]
pub mod raw;
#[cfg(feature = "faults")]
pub mod raw_queue;
mod records;
mod run_audit;
mod runs;
mod signals;
mod sqlite;
mod stand_by;
mod step_back;
mod store;

pub use checkup::{Checkup, Place, Server};
pub use cursor::{BadCursor, Cursor};
pub use error::{CommitError, OpenError, StoreError};
pub use group::{Answer, Ask, GROUP_MAX, Leased, Look, Once, QUEUE_MAX, Scope, Turn};
pub use open::{Backend, Corrupt, OpenOptions};
pub use order::Order;
pub use ports::{Clock, Entropy, Observer, Shapes};
pub use records::{
    DeadLetters, Depth, EventRow, Filter, JobRecord, LaneRecord, ListDocs, ListJobs, ListLanes, ListOrgs, Page,
    Prunable,
};
pub use runs::{LedgerRow, ListLedger, ListRuns};
pub use sqlite::FILE as SQLITE_FILE;
#[cfg(feature = "faults")]
pub use sqlite::{Db as SqliteDb, Disk};
pub use stand_by::{Handed, StandBy};
pub use step_back::step_back;
pub use store::{Store, Unsealed};
