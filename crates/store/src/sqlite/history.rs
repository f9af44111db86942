//! The events of one job, found by going back from its last.

use super::rows;
use baton_core::job::prune::Stub;
use rusqlite::Connection;

/// From the first to the last. Links only lead back, so whatever they say, the walk ends. Those from before events were linked stand in the index of subjects.
const OF_JOB: &str = "WITH RECURSIVE told(n, pos, hash, prev) AS (
     SELECT e.n, e.pos, e.hash, e.prev FROM job j CROSS JOIN event e ON e.org = j.org AND e.pos = j.head_pos
         WHERE j.org = ?1 AND j.id = ?2 AND e.subject = ?2
     UNION ALL
     SELECT e.n, e.pos, e.hash, e.prev FROM told t CROSS JOIN event e ON e.org = ?1 AND e.pos = t.prev
         WHERE e.subject = ?2 AND e.pos < t.pos)
     SELECT pos, hash, n FROM told
     UNION ALL SELECT pos, hash, n FROM event INDEXED BY event_by_subject WHERE org = ?1 AND subject = ?2 AND prev IS NULL ORDER BY n";

/// The place and the hash of each, for a job that has ended.
pub(super) fn of_job(conn: &Connection, org: &str, job: &[u8]) -> rusqlite::Result<Vec<Stub>> {
    conn.prepare_cached(OF_JOB)?
        .query_map((org, job), |row| Ok(Stub { pos: row.get(0)?, hash: rows::digest(row, 1)?.0 }))?
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::migrations;

    /// A job that began before events were linked, beside another one and an event that is not about a job.
    fn told() -> Connection {
        let mut conn = Connection::open_in_memory().unwrap();
        migrations::run(&mut conn).unwrap();
        conn.execute_batch(
            "INSERT INTO job (ord, org, id, project, type, version, priority, payload, created_at, max_attempts, state,
                 ended_at, error_code, head_n, head_hash, head_at, head_pos)
             VALUES (1, 'a', x'01', 'p', 'echo', 1, 100, '{}', 1, 1, 'failed', 9, 'e', 4, x'aa', 9, 9);
             INSERT INTO event (org, pos, subject, n, at, kind, actor, data, hash, prev)
             SELECT 'a', e.column1, e.column2, e.column3, 1, 'k', 'api', '{}', zeroblob(32), e.column4
             FROM (VALUES (2, x'01', 1, NULL), (3, x'01', 2, NULL), (4, x'02', 1, NULL), (6, x'01', 3, 0), (7, x'03', 1, 0),
                   (9, x'01', 4, 6)) e;",
        )
        .unwrap();
        conn
    }

    #[test]
    fn events_from_before_they_were_linked_and_those_since_are_one_history() {
        let places =
            |job: &[u8]| -> Vec<i64> { of_job(&told(), "a", job).unwrap().iter().map(|stub| stub.pos).collect() };
        assert_eq!(places(&[1]), [2, 3, 6, 9]);
        assert!(places(&[9]).is_empty(), "nothing is told of a job that is not there");
    }

    #[test]
    fn an_ended_job_goes_only_after_its_last_event() {
        let conn = told();
        let gone = || conn.execute("DELETE FROM job WHERE ord = 1", []);
        conn.execute_batch("DROP TRIGGER event_is_never_removed; DELETE FROM event WHERE subject = x'01' AND n <> 2")
            .unwrap();
        assert!(gone().is_err(), "one is left in the index");
        conn.execute("DELETE FROM event WHERE subject = x'01'", []).unwrap();
        assert_eq!(gone().unwrap(), 1);
        let conn = told();
        conn.execute_batch("DROP TRIGGER event_is_never_removed; DELETE FROM event WHERE subject = x'01' AND n < 4")
            .unwrap();
        assert!(conn.execute("DELETE FROM job WHERE ord = 1", []).is_err(), "the last one is left");
    }
}
