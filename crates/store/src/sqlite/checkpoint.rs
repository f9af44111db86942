//! Checkpoints beside the writer: moving pages from the log into the file must not stall
//! commits.
//!
//! A passive checkpoint on its own connection blocks nobody, but under steady writing it never
//! quite catches up, so the log would grow for ever. When it is long and little is left to move, the writer does this
//! rest itself between two groups, and the log starts again from its beginning. That is also when SQLite flushes the file.
//!
//! On a disk that is so slow that there is never little left, or while readers take turns so closely that one of them always
//! holds on to the log, that would not come about. So when it is too long the writer does whatever is left, and waits a moment
//! for those who read. Only while somebody reads an old state for long does the log grow on, because then nobody can move
//! what came after it; that is tried again now and then. If a checkpoint is being made beside it at that very moment, none
//! is asked for any more until the writer has had its turn.

use super::{BUSY_WAIT, connect};
use rusqlite::hooks::Wal;
use rusqlite::{Connection, Row};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::time::Duration;

/// How long the writer waits for readers to let go of a log that is too long.
const READERS_WAIT: Duration = Duration::from_millis(50);

/// When there is something to do, in pages of the log.
#[derive(Clone, Copy)]
pub(super) struct Lengths {
    /// By so much it grows between two checkpoints.
    step: i64,
    /// From then on the writer does the rest, when there is little.
    long: i64,
    /// From then on the writer does the rest, however much there is.
    too_long: i64,
}

impl Lengths {
    /// 8, 64 and 256 MB.
    pub const USUAL: Self = Self { step: 2_048, long: 16_384, too_long: 65_536 };
}

pub(super) struct Checkpointer {
    lengths: Lengths,
    nudge: SyncSender<()>,
    /// Pages in the log, as the last commit left it.
    log: Arc<AtomicI64>,
    /// Pages of it that the file has as well.
    moved: Arc<AtomicI64>,
    /// Pages that there were after the group before.
    last: i64,
    /// Pages in the log at which there is more to do.
    next: i64,
    /// Pages in the log at which the writer does all that is left.
    at_any_rate: i64,
}

pub(super) fn spawn(path: &Path, writer: &mut Connection, lengths: Lengths) -> rusqlite::Result<Checkpointer> {
    let conn = connect(path)?;
    let (nudge, nudged) = sync_channel(1);
    let (log, moved) = (Arc::new(AtomicI64::new(0)), Arc::new(AtomicI64::new(0)));
    let (grown, seen) = (log.clone(), moved.clone());
    writer.wal_hook(Some(move |_: &mut Wal, pages: std::ffi::c_int| {
        grown.store(pages.into(), Ordering::Relaxed);
        Ok(())
    }))?;
    let thread = std::thread::Builder::new().name("sqlite-checkpoint".to_owned());
    let started = thread.spawn(move || {
        while nudged.recv().is_ok() {
            match passive(&conn) {
                Ok(Came::Moved(pages)) => seen.store(pages, Ordering::Relaxed),
                Ok(Came::HeldUp | Came::Beside) => {}
                Err(e) => tracing::warn!(%e, "a checkpoint failed; the next one will do its work"),
            }
        }
    });
    if let Err(e) = started {
        tracing::error!(%e, "cannot start the checkpoint thread");
        return Err(rusqlite::Error::InvalidQuery);
    }
    Ok(Checkpointer { lengths, nudge, log, moved, last: 0, next: lengths.step, at_any_rate: lengths.too_long })
}

/// What a checkpoint came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Came {
    /// The file has so many pages of the log now.
    Moved(i64),
    /// Somebody reads an old state.
    HeldUp,
    /// Another one is being made, so this one was not begun.
    Beside,
}

fn came(row: &Row<'_>) -> rusqlite::Result<Came> {
    // Nobody has counted the pages of a log that another one was at.
    const NOT_COUNTED: i64 = -1;
    Ok(match (row.get(0)?, row.get(1)?) {
        (false, _) => Came::Moved(row.get(2)?),
        (true, NOT_COUNTED) => Came::Beside,
        (true, _) => Came::HeldUp,
    })
}

fn passive(conn: &Connection) -> rusqlite::Result<Came> {
    conn.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], came)
}

/// The same, and readers are asked to let go of the log, so that it can start again.
fn waiting_for_readers(conn: &Connection) -> rusqlite::Result<Came> {
    conn.busy_timeout(READERS_WAIT)?;
    let done = conn.query_row("PRAGMA wal_checkpoint(RESTART)", [], came);
    conn.busy_timeout(BUSY_WAIT)?;
    done
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
        let Lengths { step, long, too_long } = self.lengths;
        let log = self.log.load(Ordering::Relaxed);
        if log < self.last {
            // It has started again from its beginning.
            self.moved.store(0, Ordering::Relaxed);
            (self.next, self.at_any_rate) = (step, too_long);
        }
        self.last = log;
        if log < self.next {
            return;
        }
        if log > self.at_any_rate {
            if self.rest(waiting_for_readers(writer)) == Some(Came::Beside) {
                return;
            }
            self.at_any_rate = log + long;
        } else if log > long && log - self.moved.load(Ordering::Relaxed) < 2 * step {
            let _ = self.rest(passive(writer));
        } else {
            match self.nudge.try_send(()) {
                Ok(()) => {}
                // One is waiting already.
                Err(TrySendError::Full(())) => return,
                // Nobody does it beside any more.
                Err(TrySendError::Disconnected(())) => drop(self.rest(passive(writer))),
            }
        }
        self.next = log + step;
    }

    /// What the writer did came to that.
    fn rest(&self, done: rusqlite::Result<Came>) -> Option<Came> {
        if let Err(e) = &done {
            tracing::warn!(%e, "a checkpoint failed; the next one will do its work");
        }
        let came = done.ok()?;
        if let Came::Moved(pages) = came {
            self.moved.store(pages, Ordering::Relaxed);
        }
        Some(came)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::connect_writer;

    const LENGTHS: Lengths = Lengths { step: 8, long: 64, too_long: 256 };
    /// More would mean that the log never starts again.
    const COMMITS: usize = 100_000;

    /// A log that is written to without a rest.
    struct Written {
        writer: Connection,
        checkpointer: Checkpointer,
        longest: i64,
    }

    impl Written {
        fn new(path: &Path) -> Self {
            let mut writer = connect_writer(path).unwrap();
            writer.execute_batch("CREATE TABLE t (x)").unwrap();
            let checkpointer = spawn(path, &mut writer, LENGTHS).unwrap();
            Self { writer, checkpointer, longest: 0 }
        }

        /// Pages in the log before and after a commit.
        fn commit(&mut self) -> (i64, i64) {
            let before = self.checkpointer.last;
            self.writer.execute("INSERT INTO t VALUES (zeroblob(9000))", ()).unwrap();
            self.checkpointer.after_group(&self.writer);
            self.longest = self.longest.max(self.checkpointer.last);
            (before, self.checkpointer.last)
        }

        fn until_it_starts_again(&mut self) {
            let starts_again = |(before, after): (i64, i64)| after < before;
            assert!((0..COMMITS).any(|_| starts_again(self.commit())), "it has {} pages", self.checkpointer.last);
        }
    }

    #[test]
    fn a_log_that_is_written_to_all_the_time_starts_again_and_again() {
        let dir = tempfile::tempdir().unwrap();
        let mut written = Written::new(&dir.path().join("x.db"));
        for _ in 0..5 {
            written.until_it_starts_again();
        }
    }

    #[test]
    fn who_does_it_beside_may_be_slow_or_gone() {
        let dir = tempfile::tempdir().unwrap();
        for (name, gone) in [("slow.db", false), ("gone.db", true)] {
            let mut written = Written::new(&dir.path().join(name));
            let (nudge, nudged) = sync_channel(1);
            written.checkpointer.nudge = nudge;
            let _kept = Some(nudged).filter(|_| !gone);
            for _ in 0..3 {
                written.until_it_starts_again();
                assert!(written.longest < 2 * LENGTHS.too_long, "{name}: {} pages", written.longest);
            }
        }
    }

    /// As if the disk were so slow that one ends only when the next is due.
    #[test]
    fn one_that_is_always_being_made_beside_it_does_not_make_it_grow_for_ever() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.db");
        let mut written = Written::new(&path);
        let (nudge, _nudged) = sync_channel(1);
        written.checkpointer.nudge = nudge;
        let beside = connect(&path).unwrap();
        let over = Arc::new(AtomicI64::new(0));
        let seen = over.clone();
        let thread = std::thread::spawn(move || {
            while seen.load(Ordering::Relaxed) == 0 {
                passive(&beside).unwrap();
            }
        });
        for _ in 0..3 {
            written.until_it_starts_again();
        }
        over.store(1, Ordering::Relaxed);
        thread.join().unwrap();
    }

    /// One of them always holds on to the log, each for a moment.
    #[test]
    fn readers_who_take_turns_do_not_make_it_grow_for_ever() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.db");
        let mut written = Written::new(&path);
        let readers = [connect(&path).unwrap(), connect(&path).unwrap()];
        let over = Arc::new(AtomicI64::new(0));
        let threads = readers.map(|reader| {
            let over = over.clone();
            std::thread::spawn(move || {
                while over.load(Ordering::Relaxed) == 0 {
                    reader.query_row("SELECT sum(length(x)) FROM t", [], |row| row.get::<_, Option<i64>>(0)).unwrap();
                }
            })
        });
        for _ in 0..3 {
            written.until_it_starts_again();
        }
        over.store(1, Ordering::Relaxed);
        for thread in threads {
            thread.join().unwrap();
        }
    }

    #[test]
    fn a_reader_makes_it_longer_until_it_goes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.db");
        let mut written = Written::new(&path);
        written.commit();
        let reader = connect(&path).unwrap();
        reader.execute_batch("BEGIN; SELECT count(*) FROM t").unwrap();
        for _ in 0..400 {
            let (before, after) = written.commit();
            assert!(before < after, "it started again while somebody looked at it");
        }
        reader.execute_batch("COMMIT").unwrap();
        written.until_it_starts_again();
    }
}
