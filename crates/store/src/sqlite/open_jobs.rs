//! Jobs that workers hold, as the last commit left them.
//!
//! A job that was handed out is settled next, as a rule soon. The one writer is alone, so what it wrote last is what
//! the file holds: nothing needs to be read and parsed. Only what was committed is kept here.
//!
//! Until when each is leased is kept for all of them, and whoever looks for leases asks here which jobs to look at: an index
//! would have to hear of every claim, of every beat and of every end.

use super::arrivals::{Arrivals, Spot};
use super::rows;
use baton_core::by_org::ByOrg;
use baton_core::job::Job;
use baton_core::{JobId, Micros, OrgId, World};
use rusqlite::{Connection, Row};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Jobs kept whole, of half a kilobyte or so each. With more, all are forgotten but for their leases, and are read again.
const WHOLE_MAX: usize = 8_192;

/// Known to the writer, who alone changes it, and to those who look for leases.
#[derive(Clone, Default)]
pub(super) struct OpenJobs(Arc<Mutex<Option<Known>>>);

#[derive(Default)]
struct Known {
    all: ByOrg<JobId, Open>,
    /// How many of them may be there whole.
    whole: usize,
}

struct Open {
    until: Micros,
    spot: Spot,
    job: Option<Arc<Job>>,
}

impl OpenJobs {
    fn known(&self) -> MutexGuard<'_, Option<Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whatever was kept may be wrong.
    pub fn forget(&self) {
        *self.known() = None;
    }

    /// By the writer, before it needs to know: reads who is leased, unless that is known. What cannot be read is left to
    /// whoever loads it.
    pub fn look(&self, conn: &Connection) -> rusqlite::Result<()> {
        if self.known().is_some() {
            return Ok(());
        }
        let mut known = Known::default();
        let mut leased = conn.prepare_cached("SELECT id, org, lease_until, ord, head_pos FROM live WHERE phase = 3")?;
        let mut leased = leased.query([])?;
        while let Some(row) = leased.next()? {
            match lease(row) {
                Ok((org, id, open)) => drop(known.all.insert(&org, id, open)),
                Err(e) => tracing::error!(%e, "a leased job cannot be read"),
            }
        }
        *self.known() = Some(known);
        Ok(())
    }

    /// Whether what is kept is what the file says, if it is known.
    #[cfg(feature = "faults")]
    pub fn are_those_of(&self, conn: &Connection) -> rusqlite::Result<bool> {
        let there = Self::default();
        there.look(conn)?;
        let leases = |known: &Known| -> Vec<_> {
            known.all.iter().map(|(org, id, open)| (org.clone(), *id, open.until, open.spot)).collect()
        };
        let there = there.known().as_ref().map(leases);
        let kept = self.known().as_ref().map(leases);
        Ok(kept.is_none() || kept == there)
    }

    /// With where it is.
    pub fn get(&self, org: &OrgId, id: JobId) -> Option<(Arc<Job>, Spot)> {
        let known = self.known();
        let open = known.as_ref()?.all.get(org, &id)?;
        Some((open.job.clone()?, open.spot))
    }

    /// After a commit.
    pub fn learn(&self, world: &mut World, arrivals: &Arrivals) {
        let mut known = self.known();
        let Some(known) = &mut *known else { return };
        for job in world.take_changed_jobs() {
            match job.status.lease().map(|lease| lease.until).zip(arrivals.get(&job.org, job.id)) {
                Some((until, spot)) => known.put(until, spot, &job),
                None => known.remove(&job),
            }
        }
    }

    /// Where those stand whose leases end until then, those that end first in front; nothing if nobody knows.
    pub fn leased_until(&self, then: Micros, limit: usize) -> Option<Vec<i64>> {
        let known = self.known();
        let overdue = known.as_ref()?.all.values().filter(|open| open.until <= then);
        let mut overdue: Vec<_> = overdue.map(|open| (open.until, open.spot.ord)).collect();
        overdue.sort_unstable();
        Some(overdue.into_iter().take(limit).map(|(_, ord)| ord).collect())
    }
}

fn lease(row: &Row<'_>) -> rusqlite::Result<(OrgId, JobId, Open)> {
    let (org, id) = (rows::parsed(row, 1)?, JobId(rows::uuid(row, 0)?));
    let spot = Spot { ord: row.get(3)?, head_pos: row.get(4)? };
    Ok((org, id, Open { until: rows::micros(row, 2)?, spot, job: None }))
}

impl Known {
    fn put(&mut self, until: Micros, spot: Spot, job: &Arc<Job>) {
        if self.whole >= WHOLE_MAX {
            self.all.values_mut().for_each(|open| open.job = None);
            self.whole = 0;
        }
        let open = Open { until, spot, job: Some(job.clone()) };
        let before = self.all.insert(&job.org, job.id, open);
        self.whole += usize::from(before.is_none_or(|before| before.job.is_none()));
    }

    fn remove(&mut self, job: &Job) {
        if self.all.remove(&job.org, &job.id).is_some_and(|gone| gone.job.is_some()) {
            self.whole -= 1;
        }
    }
}
