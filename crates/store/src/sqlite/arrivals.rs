//! Where the rows of jobs are.
//!
//! They are kept by the order of arrival, a number. Whoever loads a job comes across it, so that it needs not be looked
//! for again when the job is written.

use baton_core::{JobId, OrgId};
use rusqlite::{Connection, OptionalExtension};
use std::collections::BTreeMap;

/// What one group has come across.
#[derive(Default)]
pub(super) struct Arrivals(BTreeMap<JobId, i64>);

impl Arrivals {
    pub fn note(&mut self, job: JobId, ord: i64) {
        self.0.insert(job, ord);
    }

    pub fn get(&self, job: JobId) -> Option<i64> {
        self.0.get(&job).copied()
    }

    /// Looks for it if nobody has come across it.
    pub fn find(&self, conn: &Connection, org: &OrgId, job: JobId) -> rusqlite::Result<Option<i64>> {
        if let Some(ord) = self.get(job) {
            return Ok(Some(ord));
        }
        conn.prepare_cached("SELECT ord FROM job WHERE org = ?1 AND id = ?2")?
            .query_row((org.as_str(), job.0.as_bytes()), |row| row.get(0))
            .optional()
    }
}
