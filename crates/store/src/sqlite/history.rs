//! The events of one job, found by going back from its last.

use super::rows;
use baton_core::job::prune::Stub;
use rusqlite::Connection;

/// From the first to the last. Those from before events were linked stand in the index of subjects.
const OF_JOB: &str = "WITH RECURSIVE told(n, pos, hash, prev) AS (
     SELECT e.n, e.pos, e.hash, e.prev FROM job j CROSS JOIN event e ON e.org = j.org AND e.pos = j.head_pos
         WHERE j.org = ?1 AND j.id = ?2 AND e.subject = ?2
     UNION ALL
     SELECT e.n, e.pos, e.hash, e.prev FROM told t CROSS JOIN event e ON e.org = ?1 AND e.pos = t.prev
         WHERE e.subject = ?2)
     SELECT pos, hash, n FROM told
     UNION ALL SELECT pos, hash, n FROM event WHERE org = ?1 AND subject = ?2 AND prev IS NULL ORDER BY n";

/// The place and the hash of each, for a job that has ended.
pub(super) fn of_job(conn: &Connection, org: &str, job: &[u8]) -> rusqlite::Result<Vec<Stub>> {
    conn.prepare_cached(OF_JOB)?
        .query_map((org, job), |row| Ok(Stub { pos: row.get(0)?, hash: rows::digest(row, 1)?.0 }))?
        .collect()
}
