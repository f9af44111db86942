//! What reading gives back: whole records for showing, pages for lists.

use crate::cursor::Cursor;
use baton_core::canon::Json;
use baton_core::event::Recorded;
use baton_core::job::state::Face;
use baton_core::job::{Cold, Failure, Job};
use baton_core::{JobId, OrgId, ProjectId};

/// A job with everything that is known about it.
#[derive(Clone, Debug)]
pub struct JobRecord {
    pub job: Job,
    pub cold: Cold,
    pub result: Option<Json>,
    pub error: Option<Failure>,
}

#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Any of these; empty means all.
    pub states: Vec<Face>,
}

impl Filter {
    pub fn matches(&self, record: &JobRecord) -> bool {
        self.states.is_empty() || self.states.contains(&record.job.status.face())
    }
}

/// One page of a project's jobs, newest first.
#[derive(Clone, Debug)]
pub struct ListJobs {
    pub org: OrgId,
    pub project: ProjectId,
    pub filter: Filter,
    /// Older than this one.
    pub before: Option<JobId>,
    pub limit: usize,
}

#[derive(Clone, Debug)]
pub struct Page<T, C> {
    pub items: Vec<T>,
    /// Where to go on; `None` at the end.
    pub next: Option<C>,
}

/// An event with the place to resume after it.
#[derive(Clone, Debug)]
pub struct EventRow {
    pub cursor: Cursor,
    pub event: Recorded,
}

/// How many jobs a project has in each state that is not an end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Depth {
    pub org: OrgId,
    pub project: ProjectId,
    pub state: &'static str,
    pub jobs: i64,
}

/// Both databases count rows in 64 bits.
pub(crate) fn row_limit(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}
