//! The data directory: one process at a time, and what to do with a file that cannot be read.

use super::{connect_writer, migrations};
use crate::error::OpenError;
use crate::open::{Corrupt, SEAL_HEADS};
use rusqlite::{Connection, ErrorCode};
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

/// Files up to this size are checked whole on every start; a larger one would make starting
/// slow, so only its schema is read and `baton audit` does the rest.
const CHECK_WHOLE_BYTES: u64 = 64 * 1024 * 1024;
/// How many files were moved aside before we refuse to add another.
const QUARANTINES_MAX: u32 = 1_000;

/// Held while the process uses the directory; the system releases it even after SIGKILL.
pub(crate) struct DirLock(#[expect(dead_code, reason = "holding it open is its use")] File);

impl DirLock {
    pub fn take(dir: &Path) -> Result<Self, OpenError> {
        let unusable = |cause| OpenError::DataDir { path: dir.to_owned(), cause };
        create_private(dir).map_err(unusable)?;
        let file = File::options().create(true).append(true).open(dir.join("lock")).map_err(unusable)?;
        match file.try_lock() {
            Ok(()) => Ok(Self(file)),
            Err(TryLockError::WouldBlock) => Err(OpenError::InUse(dir.to_owned())),
            Err(TryLockError::Error(cause)) => Err(unusable(cause)),
        }
    }
}

/// What is in there is nobody else's business.
fn create_private(dir: &Path) -> std::io::Result<()> {
    if dir.is_dir() {
        return Ok(());
    }
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir)
}

/// Opens and migrates the database; a corrupt one is moved aside first.
pub(super) fn open_or_quarantine(path: &Path, corrupt: Corrupt) -> Result<Connection, OpenError> {
    if is_empty(path) {
        missing(path, corrupt)?;
    }
    let cause = match open_checked(path, corrupt) {
        Ok(conn) => return Ok(conn),
        Err(Failed::Open(e)) => return Err(e),
        Err(Failed::Corrupt(cause)) if corrupt == Corrupt::LeaveAlone => {
            return Err(OpenError::Damaged { path: path.to_owned(), cause });
        }
        Err(Failed::Corrupt(cause)) => cause,
    };
    let moved_to = quarantine(path)?;
    tracing::error!(%cause, moved_to = %moved_to.display(), "the database file was corrupt and has been moved aside");
    match corrupt {
        Corrupt::Stop | Corrupt::LeaveAlone => Err(OpenError::Corrupt { moved_to }),
        Corrupt::StartEmpty => match open_checked(path, corrupt) {
            Ok(conn) => Ok(conn),
            Err(Failed::Open(e)) => Err(e),
            Err(Failed::Corrupt(e)) => Err(OpenError::Database(e)),
        },
    }
}

pub(super) fn is_empty(path: &Path) -> bool {
    fs::metadata(path).map_or(0, |file| file.len()) == 0
}

/// Whether something says that there was a database where none is.
pub(super) fn left_over(path: &Path) -> bool {
    let dir = path.parent().unwrap_or(Path::new("."));
    dir.join(SEAL_HEADS).exists() || !is_empty(&beside(path, "-wal"))
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// A supervisor starts a server again that has stopped. If it stopped because its database was
/// damaged, the second start finds none, and must not mistake that for a first one. Nor is it a
/// first one if there were seals, or if there is a log without its file: SQLite would delete it.
fn missing(path: &Path, corrupt: Corrupt) -> Result<(), OpenError> {
    let dir = path.parent().unwrap_or(Path::new("."));
    let left = left_over(path);
    match corrupt {
        Corrupt::StartEmpty if left => {
            let moved_to = quarantine(path)?;
            tracing::error!(
                moved_to = %moved_to.display(),
                "the database is gone; what was left of it has been moved aside"
            );
            Ok(())
        }
        Corrupt::StartEmpty => Ok(()),
        Corrupt::LeaveAlone => Err(OpenError::NoDatabase(dir.display().to_string())),
        Corrupt::Stop if left => Err(OpenError::Gone(dir.to_owned())),
        Corrupt::Stop => {
            let aside = (1..=QUARANTINES_MAX).map(|n| aside(dir, n)).take_while(|aside| aside.exists()).last();
            aside.map_or(Ok(()), |moved_to| Err(OpenError::Corrupt { moved_to }))
        }
    }
}

fn aside(dir: &Path, n: u32) -> PathBuf {
    dir.join(format!("corrupt-{n}"))
}

pub(super) enum Failed {
    Corrupt(String),
    Open(OpenError),
}

impl Failed {
    /// Damage in the words of whoever found it.
    pub fn told(self, damaged: impl FnOnce(String) -> OpenError) -> OpenError {
        match self {
            Self::Corrupt(cause) => damaged(cause),
            Self::Open(e) => e,
        }
    }
}

impl From<OpenError> for Failed {
    fn from(e: OpenError) -> Self {
        Self::Open(e)
    }
}

impl From<rusqlite::Error> for Failed {
    fn from(e: rusqlite::Error) -> Self {
        match e.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Corrupt(e.to_string()),
            _ => Self::Open(OpenError::Database(e.to_string())),
        }
    }
}

fn open_checked(path: &Path, corrupt: Corrupt) -> Result<Connection, Failed> {
    let mut conn = connect_writer(path)?;
    let size = fs::metadata(path).map_or(0, |m| m.len());
    verdict(&conn, size <= CHECK_WHOLE_BYTES)?;
    if corrupt == Corrupt::LeaveAlone {
        let dir = path.parent().unwrap_or(Path::new(".")).display().to_string();
        migrations::look(&conn)?.ok_or(OpenError::NoDatabase(dir))?;
    } else {
        migrations::run(&mut conn)?;
    }
    Ok(conn)
}

/// Whether SQLite can make sense of the file: of every page, or of its schema at least.
pub(super) fn verdict(conn: &Connection, whole: bool) -> Result<(), Failed> {
    if !whole {
        conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, i64>(0))?;
        return Ok(());
    }
    let verdict: String = conn.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if verdict == "ok" { Ok(()) } else { Err(Failed::Corrupt(verdict)) }
}

/// Moves the database with its companions into a directory of their own.
fn quarantine(path: &Path) -> Result<PathBuf, OpenError> {
    let dir = path.parent().unwrap_or(Path::new("."));
    let unusable = |cause| OpenError::DataDir { path: dir.to_owned(), cause };
    for aside in (1..=QUARANTINES_MAX).map(|n| aside(dir, n)) {
        match fs::create_dir(&aside) {
            Ok(()) => {
                let companions = ["", "-wal", "-shm"].map(|suffix| beside(path, suffix));
                // The file before its log: alone it could pass for sound, as it was some time ago.
                for from in [dir.join(SEAL_HEADS)].into_iter().chain(companions) {
                    if let (true, Some(name)) = (from.exists(), from.file_name()) {
                        fs::rename(&from, aside.join(name)).map_err(unusable)?;
                    }
                }
                return Ok(aside);
            }
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(cause) => return Err(unusable(cause)),
        }
    }
    Err(OpenError::Database(format!("{} holds {QUARANTINES_MAX} corrupt databases already", dir.display())))
}
