//! A simulated disk: a database that belongs to no process.
//!
//! It survives a crash of the node that uses it, and several simulated nodes can share it.
//! Statements run inline, so that a run on one thread with paused time is the same each time.

use super::writer::{self, Inner, Writer};
use super::{Db, Reading, audit, load, migrations, query, rows, store_error};
use crate::error::{OpenError, StoreError};
use crate::group::QUEUE_MAX;
use crate::known::Known;
use crate::open::OpenOptions;
use crate::records::JobRecord;
use crate::signals::Signals;
use baton_core::audit::Report;
use baton_core::doc::{self, Doc};
use baton_core::event::Recorded;
use baton_core::seal::Key;
use baton_core::timer;
use rusqlite::Connection;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::mpsc;

#[derive(Clone)]
pub struct Disk(Arc<Mutex<Inner>>);

impl Disk {
    /// An empty disk, in memory.
    pub fn empty() -> Result<Self, OpenError> {
        let database = |e: rusqlite::Error| OpenError::Database(e.to_string());
        let mut conn = Connection::open_in_memory().map_err(database)?;
        migrations::run(&mut conn)?;
        // One connection does everything here, what several share otherwise.
        super::prepare_once(&conn, 256).map_err(database)?;
        Ok(Self(Arc::new(Mutex::new(Inner::new(conn).map_err(database)?))))
    }

    pub(super) fn with<T>(&self, f: impl FnOnce(&mut Inner) -> T) -> T {
        // A panic inside a transaction leaves it open; the next group rolls it back first.
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Verifies everything that stands on the disk, whoever wrote it.
    pub fn audit(&self, key: Option<&Key>) -> Result<Report, StoreError> {
        self.with(|inner| {
            if !inner.open_jobs.are_those_of(&inner.conn).map_err(store_error)? {
                return Err(StoreError::Garbled("the writer does not know who is leased".to_owned()));
            }
            let snapshot = inner.conn.transaction().map_err(store_error)?;
            audit::rows(&snapshot, key).map_err(store_error)
        })
    }

    /// Rises whenever something may have been written, so that what was verified before need not be
    /// verified again.
    pub fn writes(&self) -> u64 {
        self.with(|inner| inner.conn.total_changes())
    }

    /// What happened after a place in the history of all orgs, in the order of commits, and the place
    /// after it.
    pub fn history(&self, after: i64) -> Result<(Vec<Recorded>, i64), StoreError> {
        self.with(|inner| audit::history(&inner.conn, after).map_err(store_error))
    }

    /// Every job of all orgs that is kept.
    pub fn jobs(&self) -> Result<Vec<JobRecord>, StoreError> {
        self.with(|inner| {
            let mut all =
                inner.conn.prepare_cached(&query::records_sql("ORDER BY j.org, j.id")).map_err(store_error)?;
            let found = all.query_map([], rows::record).map_err(store_error)?;
            found.collect::<rusqlite::Result<_>>().map_err(store_error)
        })
    }

    /// Every document of a class, of all orgs.
    pub fn docs(&self, class: doc::Class) -> Result<Vec<(String, Doc)>, StoreError> {
        self.with(|inner| {
            let sql = format!("SELECT key, {} FROM doc WHERE class = ?1 ORDER BY org, key", rows::DOC);
            let mut all = inner.conn.prepare_cached(&sql).map_err(store_error)?;
            let found = all.query_map([class.as_str()], |row| Ok((row.get(0)?, rows::doc(row, 1)?)));
            found.and_then(Iterator::collect).map_err(store_error)
        })
    }

    /// Every timer that is set.
    pub fn timers(&self) -> Result<Vec<timer::Key>, StoreError> {
        self.with(|inner| {
            let sql = "SELECT subject, kind FROM timer ORDER BY subject, kind";
            let mut all = inner.conn.prepare_cached(sql).map_err(store_error)?;
            let found = all.query_map([], |row| {
                let kind = timer::Kind::parse(row.get_ref(1)?.as_str()?);
                Ok(timer::Key { subject: rows::uuid(row, 0)?, kind: kind.ok_or_else(|| rows::garbled(1, "no timer"))? })
            });
            found.and_then(Iterator::collect).map_err(store_error)
        })
    }
}

impl Db {
    /// A node on a simulated disk. Must be called inside a runtime; its committer is a task.
    pub fn on_disk(disk: Disk, options: OpenOptions) -> Self {
        let (tail, open_jobs) = disk.with(|inner| (inner.next_pos - 1, inner.open_jobs.clone()));
        let signals = Arc::new(Signals::new(tail));
        let (queue, waiting) = mpsc::channel(QUEUE_MAX);
        let known = Arc::new(Known::new(options.definitions.clone(), options.shapes.clone()));
        // What cannot be read stays unknown, as it would on a real disk.
        known.learn(disk.with(|inner| load::registered(&inner.conn)).unwrap_or_default());
        let writer = Writer { options: options.clone(), signals: signals.clone(), known: known.clone() };
        tokio::spawn(writer::inline(writer, disk.clone(), waiting));
        let (reading, lock) = (Reading::Inline(disk), Mutex::new(None));
        Self { options, queue, signals, known, reading, open_jobs, lock }
    }
}

impl Db {
    /// Any SQL, on a connection of its own where there is a file.
    pub(crate) async fn raw(&self, sql: &str) -> Result<(), StoreError> {
        match &self.reading {
            Reading::Inline(disk) => disk.with(|inner| inner.conn.execute_batch(sql).map_err(store_error)),
            Reading::Threads(_) => {
                let conn = super::connect(&self.options.data_dir.join(super::FILE)).map_err(store_error)?;
                conn.execute_batch(sql).map_err(store_error)
            }
        }
    }
}
