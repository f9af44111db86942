//! The schema on SQLite. Applied migrations are never edited.

use crate::error::OpenError;
use crate::migrate::{self, Applied, Migration, Versions, complete, pending};
use rusqlite::{Connection, TransactionBehavior};

const ALL: [Migration; 10] = [
    Migration { version: 1, name: "spine", oldest: 1, sql: include_str!("migrations/0001_spine.sql") },
    // Older binaries would not keep the counts of lanes.
    Migration { version: 2, name: "queue", oldest: 2, sql: include_str!("migrations/0002_queue.sql") },
    Migration { version: 3, name: "exact", oldest: 2, sql: include_str!("migrations/0003_exact.sql") },
    // Older binaries would end jobs without withdrawing their decisions.
    Migration { version: 4, name: "door", oldest: 4, sql: include_str!("migrations/0004_door.sql") },
    // Older binaries would fail on timers and subjects that they do not know.
    Migration { version: 5, name: "runs", oldest: 5, sql: include_str!("migrations/0005_runs.sql") },
    Migration { version: 6, name: "queue_speed", oldest: 5, sql: include_str!("migrations/0006_queue_speed.sql") },
    // Older binaries know the rows of jobs by other keys.
    Migration {
        version: 7,
        name: "rows_by_number",
        oldest: 7,
        sql: include_str!("migrations/0007_rows_by_number.sql"),
    },
    // Older binaries would tell events that nothing leads to.
    Migration {
        version: 8,
        name: "links_and_needs",
        oldest: 8,
        sql: include_str!("migrations/0008_links_and_needs.sql"),
    },
    // Older binaries would let jobs wait where nobody looks for them.
    Migration { version: 9, name: "ranks", oldest: 9, sql: include_str!("migrations/0009_ranks.sql") },
    // Older binaries can work without the index, slowly.
    Migration { version: 10, name: "leases", oldest: 9, sql: include_str!("migrations/0010_leases.sql") },
];

/// Runs what is missing. The directory lock keeps other processes away, the transaction makes
/// it all or nothing.
pub(super) fn run(conn: &mut Connection) -> Result<(), OpenError> {
    // An index of a long history is sorted where there is room, not in memory.
    conn.execute_batch("PRAGMA temp_store = FILE").map_err(database)?;
    run_all(conn, &ALL)?;
    conn.execute_batch("PRAGMA temp_store = MEMORY").map_err(database)
}

/// For looking only: whether all have run. `None` if there never was a database of ours.
pub(super) fn look(conn: &Connection) -> Result<Option<()>, OpenError> {
    if is_ours(conn)? { complete(&ALL, &applied(conn)?).map(Some) } else { Ok(None) }
}

/// The same, if the next start may migrate it.
pub(super) fn versions(conn: &Connection) -> Result<Option<Versions>, OpenError> {
    if is_ours(conn)? { migrate::versions(&ALL, &applied(conn)?).map(Some) } else { Ok(None) }
}

fn is_ours(conn: &Connection) -> Result<bool, OpenError> {
    let ours = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'schema_version'";
    let ours: i64 = conn.query_row(ours, [], |row| row.get(0)).map_err(database)?;
    Ok(ours > 0)
}

fn database(e: rusqlite::Error) -> OpenError {
    OpenError::Database(e.to_string())
}

fn applied(conn: &Connection) -> Result<Vec<Applied>, OpenError> {
    let mut all = conn.prepare("SELECT version, oldest, checksum FROM schema_version").map_err(database)?;
    let rows =
        all.query_map([], |row| Ok(Applied { version: row.get(0)?, oldest: row.get(1)?, checksum: row.get(2)? }));
    rows.and_then(Iterator::collect).map_err(database)
}

fn run_all(conn: &mut Connection, all: &[Migration]) -> Result<(), OpenError> {
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate).map_err(database)?;
    tx.execute_batch(
        "CREATE TABLE IF NOT EXISTS schema_version (
             version INTEGER PRIMARY KEY, name TEXT NOT NULL, oldest INTEGER NOT NULL, checksum BLOB NOT NULL)",
    )
    .map_err(database)?;
    for migration in pending(all, &applied(&tx)?)? {
        tx.execute_batch(migration.sql).map_err(database)?;
        tx.execute(
            "INSERT INTO schema_version (version, name, oldest, checksum) VALUES (?1, ?2, ?3, ?4)",
            (migration.version, migration.name, migration.oldest, migration.checksum().0),
        )
        .map_err(database)?;
    }
    tx.commit().map_err(database)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn running_twice_changes_nothing_and_a_newer_schema_is_refused() {
        let mut conn = Connection::open_in_memory().unwrap();
        run(&mut conn).unwrap();
        run(&mut conn).unwrap();
        let known = ALL[ALL.len() - 1].version;
        let newer = known + 1;
        let next = Migration { version: newer, name: "next", oldest: newer, sql: "CREATE TABLE later (x)" };
        run_all(&mut conn, &[&ALL[..], &[next]].concat()).unwrap();
        let refused = run(&mut conn).unwrap_err();
        let expected = (newer, newer, known);
        assert!(matches!(refused, OpenError::TooNew { found, oldest, known } if (found, oldest, known) == expected));
    }

    #[test]
    fn jobs_of_before_keep_all_that_they_were() {
        let mut conn = Connection::open_in_memory().unwrap();
        run_all(&mut conn, &ALL[..4]).unwrap();
        conn.execute_batch(
            "INSERT INTO job (org, id, project, type, version, priority, payload, deadline_at, created_at, max_attempts, lane)
             VALUES ('a', x'01', 'p', 'echo', 2, 200, '{\"n\":1}', 90, 10, 3, 'project:p'),
                    ('a', x'02', 'p', 'echo', 1, 200, '{\"n\":2}', NULL, 20, 3, 'project:p'),
                    ('b', x'02', 'q', 'echo', 1, 100, '{\"n\":3}', NULL, 30, 3, 'own');
             UPDATE job SET state = 'completed', ended_at = 40, result = '{}', head_n = 3, head_hash = x'aa', head_at = 40
             WHERE org = 'a' AND id = x'01';
             INSERT INTO live (org, id, project, type, version, priority, ord, phase, class, slot, state, due_at, since, lane,
                 lane_max, kept, outside, dedupe, attempts, max_attempts, failures, max_failures, token, wakes, created_at,
                 has_deadline, head_n, head_hash, head_at)
             VALUES ('a', x'02', 'p', 'echo', 1, 200, 7, 1, 1, 1, 'queued', 20, 20, 'project:p', 1, 1, 1, 'k', 0, 3, 0, 2, 0, 0,
                     20, 0, 1, x'bb', 20),
                    ('b', x'02', 'q', 'echo', 1, 100, 3, 2, 0, 1, 'queued', 99, 99, 'own', NULL, 0, 0, NULL, 0, 3, 0, 3, 0, 0,
                     30, 0, 1, x'cc', 30);",
        )
        .unwrap();
        run(&mut conn).unwrap();
        let rows = |sql: &str| -> Vec<String> {
            let mut all = conn.prepare(sql).unwrap();
            all.query_map([], |row| row.get(0)).unwrap().collect::<rusqlite::Result<_>>().unwrap()
        };
        let ended = "SELECT concat_ws(' ', project, version, payload, deadline_at, state, ended_at, result, head_n, hex(head_hash))
                     FROM job WHERE org = 'a' AND id = x'01' AND ord < 0";
        assert_eq!(rows(ended), ["p 2 {\"n\":1} 90 completed 40 {} 3 AA"]);
        let ranks = "SELECT concat_ws(' ', r.class, r.org, r.lane, r.needs, r.type, l.phase)
                     FROM rank r JOIN live l ON l.rank = r.id ORDER BY l.ord";
        assert_eq!(rows(ranks), ["0 b own 0 echo 2", "1 a project:p 1 echo 1"]);
        let live = "SELECT concat_ws(' ', l.org, j.project, j.max_failures, l.lane, l.dedupe, l.late, hex(l.head_hash), j.payload)
                    FROM live l JOIN job j ON j.ord = l.ord AND j.org = l.org AND j.id = l.id ORDER BY l.ord";
        assert_eq!(rows(live), ["b q 3 own 1 CC {\"n\":3}", "a p 2 project:p k 0 BB {\"n\":2}"]);
        assert!(conn.execute("UPDATE job SET result = 'x' WHERE state IS NOT NULL", []).is_err(), "still final");
    }

    #[test]
    fn whoever_can_be_handed_out_stands_somewhere_and_nobody_else() {
        let mut conn = Connection::open_in_memory().unwrap();
        run_all(&mut conn, &ALL[..8]).unwrap();
        let columns = "ord, org, id, type, priority, class, since, late, lane, kept, outside, attempts, max_attempts, failures, token, \
                       wakes, head_n, head_hash, head_at, phase, slot, state, pause, due_at, worker, lease_until, started_at";
        let all = [
            ("a", "1, 1, 'queued', NULL, 5, NULL, NULL, NULL"),
            ("a", "2, 1, 'queued', NULL, 9, NULL, NULL, NULL"),
            ("b", "1, 1, 'awaiting_tool', 'retry', 5, NULL, NULL, 1"),
            ("a", "3, 0, 'executing', NULL, NULL, 'w', 7, 1"),
            ("a", "0, 0, 'awaiting_tool', 'tool', NULL, NULL, NULL, 1"),
            ("a", "1, 0, 'awaiting_tool', 'tool', 5, NULL, NULL, 1"),
            ("a", "0, 1, 'awaiting_user_confirmation', NULL, NULL, NULL, NULL, 1"),
        ];
        for (n, (org, rest)) in (1..).zip(all) {
            let row =
                format!("{n}, '{org}', x'0{n}', 'echo', 200, 1, 1, 0, 'l', 1, 1, 0, 3, 0, 0, 0, 1, x'00', 1, {rest}");
            conn.execute(&format!("INSERT INTO live ({columns}) VALUES ({row})"), []).unwrap();
        }
        run(&mut conn).unwrap();
        let stand =
            "SELECT l.ord || ' ' || r.org || ' ' || r.needs FROM live l JOIN rank r ON r.id = l.rank ORDER BY l.ord";
        let stand: rusqlite::Result<Vec<String>> =
            conn.prepare(stand).unwrap().query_map([], |row| row.get(0)).unwrap().collect();
        assert_eq!(stand.unwrap(), ["1 a 1", "2 a 1", "3 b 1", "6 a 0"]);
        assert_eq!(conn.query_row("SELECT count(*) FROM rank", [], |row| row.get::<_, i64>(0)).unwrap(), 3);
        assert!(conn.execute("UPDATE live SET rank = NULL WHERE ord = 1", []).is_err());
        assert!(conn.execute("UPDATE live SET rank = 1 WHERE ord = 4", []).is_err());
    }

    #[test]
    fn what_is_append_only_cannot_be_touched_by_hand() {
        let mut conn = Connection::open_in_memory().unwrap();
        run(&mut conn).unwrap();
        conn.execute_batch(
            "INSERT INTO event VALUES ('default', 1, x'00', 1, 1, 'job.queued', 'api', '{}', zeroblob(32), 0);
             INSERT INTO seal VALUES ('default', 1, 0, 1, 1, x'00', x'00', 1, x'00');
             INSERT INTO definition_version VALUES ('default', x'00', 1, x'00', '{}');",
        )
        .unwrap();
        for sql in [
            "UPDATE event SET at = 2",
            "DELETE FROM event",
            "UPDATE seal SET count = 2",
            "DELETE FROM seal",
            "UPDATE definition_version SET body = ''",
            "DELETE FROM definition_version",
        ] {
            assert!(conn.execute(sql, []).is_err(), "{sql}");
        }
    }
}
