//! Through SQLite itself, and looked at the way it looks at files by default.

use super::open;
use rusqlite::Connection;
use std::path::Path;

/// Some pages in memory, so that transactions spill into the log before they are complete.
fn writer(path: &Path, cache: u32) -> Connection {
    let conn = open(path).unwrap();
    conn.execute_batch(&format!(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0; PRAGMA cache_size = {cache};
         CREATE TABLE IF NOT EXISTS t (n INTEGER PRIMARY KEY, x BLOB); CREATE INDEX IF NOT EXISTS i ON t (x);"
    ))
    .unwrap();
    conn
}

/// What somebody sees who finds these files after a crash.
fn survivors(from: &Path, to: &Path) -> Vec<(i64, Vec<u8>)> {
    for suffix in ["", "-wal"] {
        let _ = std::fs::copy(format!("{}{suffix}", from.display()), format!("{}{suffix}", to.display()));
    }
    let conn = Connection::open(to).unwrap();
    let ok: String = conn.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(ok, "ok");
    rows(&conn)
}

fn rows(conn: &Connection) -> Vec<(i64, Vec<u8>)> {
    let mut all = conn.prepare("SELECT n, x FROM t ORDER BY n").unwrap();
    all.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().collect::<rusqlite::Result<_>>().unwrap()
}

/// Small steps of chance, the same each time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u32::try_from(self.0 >> 33).unwrap() % sides
    }
}

#[test]
fn what_is_committed_survives_whatever_else_is_going_on() {
    for seed in 0..6 {
        let dir = tempfile::tempdir().unwrap();
        let (path, copy) = (dir.path().join("a.db"), dir.path().join("b.db"));
        let mut dice = Dice(seed);
        let mut conn = writer(&path, if seed % 2 == 0 { 10 } else { 2_000 });
        let reader = Connection::open(&path).unwrap();
        let mut kept = rows(&conn);
        for round in 0..60 {
            conn.execute_batch("BEGIN IMMEDIATE").unwrap();
            for _ in 0..dice.roll(80) {
                let (n, len) = (dice.roll(500), dice.roll(3_000));
                let byte = u8::try_from(dice.roll(256)).unwrap();
                let put = "INSERT INTO t (n, x) VALUES (?1, ?2) ON CONFLICT (n) DO UPDATE SET x = excluded.x";
                conn.execute(put, (n, vec![byte; len as usize])).unwrap();
                match dice.roll(30) {
                    0 => conn
                        .execute_batch("SAVEPOINT s; DELETE FROM t WHERE n % 3 = 0; ROLLBACK TO s; RELEASE s")
                        .unwrap(),
                    1 => drop(conn.execute("DELETE FROM t WHERE n = ?1", [dice.roll(500)]).unwrap()),
                    2 => assert_eq!(survivors(&path, &copy), kept, "seed {seed}, round {round}: before its commit"),
                    _ => {}
                }
            }
            if dice.roll(4) == 0 {
                conn.execute_batch("ROLLBACK").unwrap();
            } else {
                conn.execute_batch("COMMIT").unwrap();
                kept = rows(&conn);
            }
            assert_eq!(rows(&reader), kept, "seed {seed}, round {round}: another connection");
            assert_eq!(survivors(&path, &copy), kept, "seed {seed}, round {round}: after a crash");
            match dice.roll(10) {
                0 => conn.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())).unwrap(),
                1 => reader.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())).unwrap(),
                2 => conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap(),
                3 => conn = writer(&path, 10),
                _ => {}
            }
        }
    }
}

#[test]
fn commits_without_waiting_for_the_disk_are_seen_by_others_too() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    let conn = writer(&path, 10);
    let reader = Connection::open(&path).unwrap();
    for sync in ["NORMAL", "OFF", "FULL"] {
        conn.execute_batch(&format!("PRAGMA synchronous = {sync}")).unwrap();
        for n in 0..20 {
            let put =
                "INSERT OR REPLACE INTO t (n, x) SELECT value, zeroblob(1000 + ?1) FROM json_each('[1,2,3,4,5,6,7]')";
            conn.execute(put, [n]).unwrap();
            assert_eq!(rows(&reader), rows(&conn), "{sync}");
        }
    }
}
