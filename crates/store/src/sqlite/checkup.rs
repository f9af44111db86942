//! A look at the file, beside whoever works with it.

use super::data_dir::{is_empty, left_over, verdict};
use super::{FILE, migrations};
use crate::checkup::{Checkup, Place};
use crate::error::OpenError;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use std::path::Path;
use std::time::Duration;

/// Larger files are not read whole: that would take minutes.
const WHOLE_BYTES: u64 = 1024 * 1024 * 1024;
/// How long the file may be busy.
const BUSY: Duration = Duration::from_secs(5);

pub fn checkup(dir: &Path) -> Result<Checkup, OpenError> {
    let path = dir.join(FILE);
    if is_empty(&path) {
        let gone = left_over(&path);
        return Err(if gone { OpenError::Gone(dir.to_owned()) } else { none(dir) });
    }
    let bytes = std::fs::metadata(&path).map_or(0, |file| file.len());
    let whole = bytes <= WHOLE_BYTES;
    let conn = look_only(&path).map_err(|e| OpenError::Database(e.to_string()))?;
    verdict(&conn, whole).map_err(|failed| failed.told(|cause| OpenError::Damaged { path: path.clone(), cause }))?;
    let versions = migrations::versions(&conn)?.ok_or_else(|| none(dir))?;
    Ok(Checkup::new(versions, Place::File { bytes, whole }))
}

fn none(dir: &Path) -> OpenError {
    OpenError::NoDatabase(dir.display().to_string())
}

fn look_only(path: &Path) -> rusqlite::Result<Connection> {
    let conn = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    conn.busy_timeout(BUSY)?;
    // A log that a crash left behind is for the next server to take in. Where there is none, SQLite
    // leaves an empty one, which means nothing and goes with the next clean stop.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    Ok(conn)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::connect;
    use std::fs;

    fn files(dir: &Path) -> Vec<(String, Vec<u8>)> {
        let mut all: Vec<_> = fs::read_dir(dir)
            .unwrap()
            .map(Result::unwrap)
            .map(|file| (file.file_name().into_string().unwrap(), fs::read(file.path()).unwrap()))
            // Shared memory is no file but in name.
            .filter(|(name, bytes)| !name.ends_with("-shm") && !bytes.is_empty())
            .collect();
        all.sort();
        all
    }

    #[test]
    fn a_look_changes_nothing_not_even_what_a_crash_left() {
        let dir = tempfile::tempdir().unwrap();
        assert!(matches!(checkup(dir.path()), Err(OpenError::NoDatabase(_))));
        assert!(files(dir.path()).is_empty(), "a look makes no database");
        let path = dir.path().join(FILE);
        let mut conn = connect(&path).unwrap();
        migrations::run(&mut conn).unwrap();
        let seen = checkup(dir.path()).unwrap();
        assert_eq!(seen.schema, seen.known);
        assert!(matches!(seen.place, Place::File { whole: true, .. }));
        // As a crash would leave it: the log was not taken in.
        let crashed = tempfile::tempdir().unwrap();
        for name in [FILE, "baton.db-wal"] {
            fs::copy(dir.path().join(name), crashed.path().join(name)).unwrap();
        }
        let before = files(crashed.path());
        assert_eq!(before.len(), 2);
        assert_eq!(checkup(crashed.path()).unwrap().schema, seen.schema);
        assert_eq!(files(crashed.path()), before);
    }

    #[test]
    fn damage_is_told_and_left_where_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE);
        fs::write(&path, "this was a database".repeat(500)).unwrap();
        assert!(matches!(checkup(dir.path()), Err(OpenError::Damaged { .. })));
        assert!(path.exists());
        fs::write(&path, "").unwrap();
        fs::write(dir.path().join("baton.db-wal"), "left").unwrap();
        assert!(matches!(checkup(dir.path()), Err(OpenError::Gone(_))));
    }
}
