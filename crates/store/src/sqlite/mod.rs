//! The embedded database: one writer, readers beside it, in one file of the data directory.
//!
//! One thread owns the writing connection: it waits for a submission, takes whatever else has
//! come meanwhile, runs the group in one transaction and answers. Readers have their own
//! connections and threads; checkpoints run on another, so that commits do not wait for them.
//! A simulated store has none of these threads: see `disk`.

mod aging;
mod ahead;
mod arrivals;
mod audit;
mod audit_run;
mod births;
mod checkpoint;
mod checkup;
mod claim;
mod commit;
mod data_dir;
#[cfg(feature = "faults")]
mod disk;
mod history;
mod inserts;
mod links;
mod load;
mod log;
mod many;
mod migrations;
#[cfg(feature = "faults")]
mod mishap;
mod open_agents;
mod open_jobs;
mod open_lanes;
mod query;
mod query_queue;
mod query_run;
mod ranks;
mod readers;
mod rows;
mod run_rows;
mod types;
mod write;
mod write_jobs;
mod write_queue;
mod writer;

use crate::error::{OpenError, StoreError};
use crate::group::{Message, QUEUE_MAX};
use crate::known::Known;
use crate::open::OpenOptions;
use crate::signals::Signals;
use baton_core::Micros;
use checkpoint::Lengths;
pub(crate) use checkup::checkup;
pub(crate) use data_dir::DirLock;
use open_jobs::OpenJobs;
use readers::Readers;
use rusqlite::Connection;
use rusqlite::config::DbConfig;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;
use writer::{Inner, Writer};

#[cfg(feature = "faults")]
pub use disk::Disk;

/// How long a connection waits for another that is in its way.
const BUSY_WAIT: Duration = Duration::from_secs(5);

/// The file in the data directory.
pub const FILE: &str = "baton.db";

pub struct Db {
    pub(crate) options: OpenOptions,
    pub(crate) queue: mpsc::Sender<Message>,
    pub(crate) signals: Arc<Signals>,
    pub(crate) known: Arc<Known>,
    reading: Reading,
    open_jobs: OpenJobs,
    lock: Mutex<Option<Arc<DirLock>>>,
}

enum Reading {
    Threads(Readers),
    #[cfg(feature = "faults")]
    Inline(Disk),
}

impl Db {
    pub fn open(options: OpenOptions) -> Result<Self, OpenError> {
        let lock = Arc::new(DirLock::take(&options.data_dir)?);
        let path = options.data_dir.join(FILE);
        let conn = data_dir::open_or_quarantine(&path, options.corrupt)?;
        let database = |e: rusqlite::Error| OpenError::Database(e.to_string());
        let mut inner = Inner::new(conn).map_err(database)?;
        let signals = Arc::new(Signals::new(inner.next_pos - 1));
        let (queue, waiting) = mpsc::channel(QUEUE_MAX);
        let checkpointer = checkpoint::spawn(&path, &mut inner.conn, Lengths::USUAL).map_err(database)?;
        let readers = Readers::spawn(&path).map_err(database)?;
        let known = Arc::new(Known::new(options.definitions.clone(), options.shapes.clone()));
        known.learn(load::registered(&inner.conn).map_err(database)?);
        let open_jobs = inner.open_jobs.clone();
        let writer = Writer { options: options.clone(), signals: signals.clone(), known: known.clone() };
        writer::spawn(writer, inner, waiting, checkpointer, lock.clone())
            .map_err(|cause| OpenError::DataDir { path, cause })?;
        let (reading, lock) = (Reading::Threads(readers), Mutex::new(Some(lock)));
        Ok(Self { options, queue, signals, known, reading, open_jobs, lock })
    }

    pub(crate) async fn read<T: Send + 'static>(
        &self,
        f: impl FnOnce(&mut Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        match &self.reading {
            Reading::Threads(readers) => readers.run(f).await,
            #[cfg(feature = "faults")]
            Reading::Inline(disk) => disk.with(|inner| f(&mut inner.conn)),
        }
    }

    /// For what takes long: on a thread and a connection of its own, so that it keeps no reader
    /// from the others, and given up when nobody waits for it any more.
    pub(crate) async fn read_apart<T: Send + 'static>(
        &self,
        f: impl FnOnce(&mut Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        match &self.reading {
            Reading::Threads(readers) => {
                readers.open_or_closed()?;
                readers::apart(&self.options.data_dir.join(FILE), f).await
            }
            #[cfg(feature = "faults")]
            Reading::Inline(disk) => disk.with(|inner| f(&mut inner.conn)),
        }
    }

    pub(crate) async fn now(&self) -> Result<Micros, StoreError> {
        Ok(self.clock_now())
    }

    fn clock_now(&self) -> Micros {
        writer::now(&self.options)
    }

    /// Answers no more questions and lets another process have the data directory.
    pub(crate) fn released(&self) {
        match &self.reading {
            Reading::Threads(readers) => readers.close(),
            #[cfg(feature = "faults")]
            Reading::Inline(_) => {}
        }
        self.lock.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

/// A connection for reading, or for a file that nobody else opens.
pub(crate) fn connect(path: &Path) -> rusqlite::Result<Connection> {
    set_up(Connection::open(path)?)
}

/// The connection that writes; there is one.
pub(crate) fn connect_writer(path: &Path) -> rusqlite::Result<Connection> {
    set_up(log::open(path)?)
}

/// As every connection must be.
fn set_up(conn: Connection) -> rusqlite::Result<Connection> {
    conn.busy_timeout(BUSY_WAIT)?;
    // Anything less than FULL would acknowledge what a power cut can take back.
    conn.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0;
         PRAGMA journal_size_limit = 67108864; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -16384;",
    )?;
    prepare_once(&conn, 256)?;
    Ok(conn)
}

/// Keeps so many statements, and keeps them as they are: otherwise SQLite plans anew, and parses, for
/// every other value that is bound.
fn prepare_once(conn: &Connection, statements: usize) -> rusqlite::Result<()> {
    conn.set_prepared_statement_cache_capacity(statements);
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(())
}

/// An error of SQLite's, told apart only as far as callers can act on it.
pub(crate) fn store_error(e: rusqlite::Error) -> StoreError {
    use rusqlite::ErrorCode as Code;
    // The code tells more than the text of a failure that nobody can repeat.
    let told = match e.sqlite_error() {
        Some(failure) => format!("{e} (SQLite {})", failure.extended_code),
        None => e.to_string(),
    };
    match e.sqlite_error_code() {
        Some(Code::ConstraintViolation) => StoreError::Rejected(told),
        Some(Code::DatabaseCorrupt | Code::NotADatabase) => StoreError::Damaged(told),
        Some(_) => StoreError::Unavailable(told),
        None => StoreError::Garbled(told),
    }
}
