//! Jobs that workers hold, as the last commit left them.
//!
//! A job that was handed out is settled next, as a rule soon. The one writer is alone, so what it wrote last is what
//! the file holds: nothing needs to be read and parsed. Only what was committed is kept here.

use super::arrivals::{Arrivals, Spot};
use baton_core::job::Job;
use baton_core::{JobId, OrgId, World};
use std::collections::BTreeMap;

/// Jobs kept in memory, of half a kilobyte or so each. With more, all are forgotten, and are read again.
const KEPT: usize = 8_192;

#[derive(Default)]
pub struct OpenJobs(BTreeMap<JobId, Open>);

struct Open {
    job: Job,
    spot: Spot,
}

impl OpenJobs {
    /// With where it is.
    pub(super) fn get(&self, org: &OrgId, id: JobId) -> Option<(&Job, Spot)> {
        self.0.get(&id).filter(|open| open.job.org == *org).map(|open| (&open.job, open.spot))
    }

    /// After a commit.
    pub(super) fn learn(&mut self, world: World, arrivals: &Arrivals) {
        for job in world.into_changed_jobs() {
            if job.status.lease().is_none() {
                self.0.remove(&job.id);
                continue;
            }
            if self.0.len() >= KEPT && !self.0.contains_key(&job.id) {
                self.0.clear();
            }
            if let Some(spot) = arrivals.get(&job.org, job.id) {
                self.0.insert(job.id, Open { job, spot });
            }
        }
    }
}
