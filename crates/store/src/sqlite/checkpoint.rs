//! Checkpoints beside the writer: moving pages from the log into the file must not stall
//! commits.
//!
//! A passive checkpoint on its own connection blocks nobody, but under steady writing it never
//! quite catches up, so the log would grow for ever. When it is long, the writer does the
//! (short) rest itself between two groups, and the log starts again from its beginning.

use super::connect;
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};

/// Groups between two looks at the log.
const GROUPS: u32 = 128;
/// The log may grow by this much before it is looked at all the same: groups can be large.
const GROWTH_BYTES: u64 = 16 * 1024 * 1024;
/// Pages in the log from which the writer helps: 64 MB.
const LONG_PAGES: i64 = 16_384;

pub(super) struct Checkpointer {
    nudge: SyncSender<()>,
    log_pages: Arc<AtomicI64>,
    groups: u32,
    log: PathBuf,
    /// How long the log's file was at the last look. It never gets shorter.
    log_bytes: u64,
}

pub(super) fn spawn(path: &Path) -> rusqlite::Result<Checkpointer> {
    let conn = connect(path)?;
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    let (nudge, nudged) = sync_channel(1);
    let log_pages = Arc::new(AtomicI64::new(0));
    let seen = log_pages.clone();
    let thread = std::thread::Builder::new().name("sqlite-checkpoint".to_owned());
    let started = thread.spawn(move || {
        while nudged.recv().is_ok() {
            match passive(&conn) {
                Ok(pages) => seen.store(pages, Ordering::Relaxed),
                Err(e) => tracing::warn!(%e, "a checkpoint failed; the next one will do its work"),
            }
        }
    });
    if let Err(e) = started {
        tracing::error!(%e, "cannot start the checkpoint thread");
        return Err(rusqlite::Error::InvalidQuery);
    }
    Ok(Checkpointer { nudge, log_pages, groups: 0, log: log.into(), log_bytes: 0 })
}

/// How many pages the log holds.
fn passive(conn: &Connection) -> rusqlite::Result<i64> {
    conn.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| row.get(1))
}

/// On closing: everything into the file, so that the file alone is the database. Readers that
/// are still busy only make the log stay, which the next start reads.
pub(super) fn whole(conn: &Connection) {
    if let Err(e) = conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0)) {
        tracing::warn!(%e, "the last checkpoint failed; the next start does its work");
    }
}

impl Checkpointer {
    /// Called by the writer between groups.
    pub fn after_group(&mut self, writer: &Connection) {
        self.groups += 1;
        let log_bytes = std::fs::metadata(&self.log).map_or(0, |file| file.len());
        if self.groups < GROUPS && log_bytes < self.log_bytes + GROWTH_BYTES {
            return;
        }
        self.groups = 0;
        self.log_bytes = log_bytes;
        if self.log_pages.swap(0, Ordering::Relaxed) > LONG_PAGES
            && let Err(e) = passive(writer)
        {
            tracing::warn!(%e, "a checkpoint failed; the next one will do its work");
        }
        // Full means that a nudge is already waiting.
        let _ = self.nudge.try_send(());
    }
}
