//! Where the rows of jobs are.
//!
//! They are kept by the order of arrival, a number. Whoever loads a job comes across it, so that it needs not be looked
//! for again when the job is written. Its events are linked, so the place of the last leads to all.

use baton_core::by_org::ByOrg;
use baton_core::event::Recorded;
use baton_core::job::Job;
use baton_core::{JobId, Micros, OrgId};
use rusqlite::{Connection, OptionalExtension};

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

/// Where the rows of a job are, and where its history ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spot {
    pub ord: i64,
    /// The place of its last event; 0 if it has none that is linked.
    pub head_pos: i64,
}

/// What one group has come across.
#[derive(Default)]
pub(super) struct Arrivals(ByOrg<JobId, Spot>);

impl Arrivals {
    pub fn note(&mut self, org: &OrgId, job: JobId, spot: Spot) {
        self.0.insert(org, job, spot);
    }

    pub fn get(&self, org: &OrgId, job: JobId) -> Option<Spot> {
        self.0.get(org, &job).copied()
    }

    /// Looks for a live one if nobody has come across it.
    pub fn find(&mut self, conn: &Connection, org: &OrgId, job: JobId) -> rusqlite::Result<Option<Spot>> {
        if let Some(spot) = self.get(org, job) {
            return Ok(Some(spot));
        }
        let sql =
            "SELECT l.ord, l.head_pos FROM job j CROSS JOIN live l ON l.ord = j.ord WHERE j.org = ?1 AND j.id = ?2";
        let found = conn
            .prepare_cached(sql)?
            .query_row((org.as_str(), job.0.as_bytes()), |row| Ok(Spot { ord: row.get(0)?, head_pos: row.get(1)? }))
            .optional()?;
        if let Some(spot) = found {
            self.note(org, job, spot);
        }
        Ok(found)
    }

    /// An event at this place is the last of its subject, if that is a job; the place of the one before it.
    pub fn tell(&mut self, event: &Recorded, pos: i64) -> Option<i64> {
        let spot = self.0.get_mut(&event.org, &JobId(event.subject))?;
        Some(std::mem::replace(&mut spot.head_pos, pos))
    }
}
