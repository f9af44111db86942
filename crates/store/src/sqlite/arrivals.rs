//! Where the rows of jobs are.
//!
//! They are kept by the order of arrival, a number. Whoever loads a job comes across it, so that it needs not be looked
//! for again when the job is written.

use baton_core::job::Job;
use baton_core::{JobId, Micros, OrgId};
use rusqlite::{Connection, OptionalExtension};
use std::collections::BTreeMap;

/// What the next job that arrives will be.
#[derive(Clone, Copy)]
pub(super) struct Arriving {
    pub next_ord: i64,
    /// The latest moment at which one has arrived: a clock may have jumped back since.
    latest: Micros,
}

impl Arriving {
    /// Behind all that are there.
    pub fn after(conn: &Connection) -> rusqlite::Result<Self> {
        // One of the two may have lost its row.
        let max = |sql: &str| conn.query_row(sql, [], |row| row.get::<_, Option<i64>>(0));
        let last = max("SELECT max(ord) FROM job")?.max(max("SELECT max(ord) FROM live")?);
        let latest =
            conn.query_row("SELECT created_at FROM job ORDER BY ord DESC LIMIT 1", [], |row| row.get(0)).optional()?;
        Ok(Self { next_ord: last.unwrap_or(0).max(0) + 1, latest: Micros(latest.unwrap_or(i64::MIN)) })
    }

    /// Whether the number that this job takes does not tell how long it will have waited.
    pub fn take(&mut self, job: &Job) -> bool {
        let late = job.since != job.created_at || job.created_at < self.latest;
        self.next_ord += 1;
        self.latest = self.latest.max(job.created_at);
        late
    }
}

/// What one group has come across.
#[derive(Default)]
pub(super) struct Arrivals(BTreeMap<(JobId, OrgId), i64>);

impl Arrivals {
    pub fn note(&mut self, org: &OrgId, job: JobId, ord: i64) {
        self.0.insert((job, org.clone()), ord);
    }

    pub fn get(&self, org: &OrgId, job: JobId) -> Option<i64> {
        self.0.get(&(job, org.clone())).copied()
    }

    /// Looks for it if nobody has come across it.
    pub fn find(&self, conn: &Connection, org: &OrgId, job: JobId) -> rusqlite::Result<Option<i64>> {
        if let Some(ord) = self.get(org, job) {
            return Ok(Some(ord));
        }
        conn.prepare_cached("SELECT ord FROM job WHERE org = ?1 AND id = ?2")?
            .query_row((org.as_str(), job.0.as_bytes()), |row| row.get(0))
            .optional()
    }
}
