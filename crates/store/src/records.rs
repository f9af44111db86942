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

/// Rows that one page of a filtered list may look at; then it ends early and says where to go on.
const SCAN_MAX: usize = 10_000;

#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Any of these; empty means all.
    pub states: Vec<Face>,
}

impl Filter {
    pub fn matches(&self, face: Face) -> bool {
        self.states.is_empty() || self.states.contains(&face)
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
    /// Payloads and results in one page, together. A page holds at least one job.
    pub bytes: usize,
}

/// Fills a page of jobs up to its limits. Both databases look through narrow rows first and
/// fetch whole records only for what will be shown.
pub(crate) struct Filling<'a> {
    ask: &'a ListJobs,
    page: Page<JobRecord, JobId>,
    /// The last one looked at.
    pub last: Option<JobId>,
    scanned: usize,
    bytes: usize,
}

impl<'a> Filling<'a> {
    pub const fn new(ask: &'a ListJobs) -> Self {
        let page = Page { items: Vec::new(), next: None };
        Self { ask, page, last: ask.before, scanned: 0, bytes: 0 }
    }

    /// Asked before each row: whether the page ends before it.
    pub const fn is_full(&self) -> bool {
        self.page.items.len() == self.ask.limit || self.scanned == SCAN_MAX
    }

    /// Takes a row in; without a record, one that does not match. `false` if it does not fit.
    pub fn take(&mut self, id: JobId, record: Option<JobRecord>) -> bool {
        if let Some(record) = record {
            self.bytes += record.cold.payload.len() + record.result.as_ref().map_or(0, Json::len);
            if self.bytes > self.ask.bytes && !self.page.items.is_empty() {
                return false;
            }
            self.page.items.push(record);
        }
        self.scanned += 1;
        self.last = Some(id);
        true
    }

    /// There is more after this page.
    pub fn cut(mut self) -> Page<JobRecord, JobId> {
        self.page.next = self.last;
        self.page
    }

    /// There is nothing after this page.
    pub fn whole(self) -> Page<JobRecord, JobId> {
        self.page
    }
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
