//! What reading gives back: whole records for showing, pages for lists.

use crate::cursor::Cursor;
use crate::order::Order;
use baton_core::canon::Json;
use baton_core::doc::{self, Doc};
use baton_core::event::Recorded;
use baton_core::job::prune::Candidate;
use baton_core::job::state::Face;
use baton_core::job::{Cold, End, Ending, Failure, Job, Status};
use baton_core::lane::LaneKey;
use baton_core::limits::{PRUNE_EVENTS, PRUNE_JOBS};
use baton_core::retry::Class;
use baton_core::{JobId, OrgId, ProjectId, TypeName};
use uuid::Uuid;

/// A job with everything that is known about it.
#[derive(Clone, Debug)]
pub struct JobRecord {
    pub job: Job,
    pub cold: Cold,
    pub result: Option<Json>,
    /// Of a cancelled job the code is the reason.
    pub error: Option<Failure>,
    /// What it was made anew as, if it failed and was.
    pub requeued_as: Option<JobId>,
}

impl JobRecord {
    /// What it left behind, if it ended.
    pub fn ending(&self) -> Option<Ending> {
        let Status::Ended { how, .. } = self.job.status else { return None };
        match how {
            End::Completed => self.result.clone().map(Ending::Result),
            End::Failed => self.error.clone().map(|failure| Ending::Error(self.whole(failure))),
            End::Cancelled => self.error.as_ref().map(|e| Ending::Cancelled(e.code.clone())),
        }
    }
}

impl JobRecord {
    /// A failure with what its columns have no room for.
    fn whole(&self, failure: Failure) -> Failure {
        let Some(aside) = &self.job.aside else { return failure };
        Failure { class: aside.class.unwrap_or(failure.class), idle: aside.idle, ..failure }
    }
}

/// A failure as it was stored.
pub(crate) fn failure(code: String, message: Option<String>) -> Failure {
    let class = Class::of_code(&code);
    Failure { code, message: message.unwrap_or_default(), class, idle: false }
}

/// What an ending puts into the columns of an ended job: result, code, message.
pub(crate) fn ending_columns(ending: &Ending) -> (Option<&str>, Option<&str>, Option<&str>) {
    match ending {
        Ending::Result(json) => (Some(json.as_str()), None, None),
        Ending::Error(failure) => (None, Some(&failure.code), Some(&failure.message)),
        Ending::Cancelled(reason) => (None, Some(reason), None),
    }
}

/// A lane as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneRecord {
    pub key: LaneKey,
    /// `None` has no limit.
    pub max: Option<u32>,
    pub running: u32,
    pub waiting: u32,
    pub paused: bool,
}

/// One page of the failed jobs that were not made anew, by when they were made.
#[derive(Clone, Debug)]
pub struct DeadLetters {
    pub org: OrgId,
    pub project: Option<ProjectId>,
    pub kind: Option<TypeName>,
    pub order: Order,
    /// Beyond this one, in that order.
    pub after: Option<JobId>,
    pub limit: usize,
    /// Payloads in one page, together. A page holds at least one job.
    pub bytes: usize,
}

/// Ended jobs of one project that may be forgotten.
#[derive(Clone, Debug)]
pub struct Prunable {
    pub org: OrgId,
    pub project: ProjectId,
    pub jobs: Vec<Candidate>,
    /// The project has more of them.
    pub more: bool,
}

/// Which of these jobs, with the numbers of their events, go in one commit; whether all do. One that
/// has very many goes alone.
pub(crate) fn one_batch(found: Vec<(Uuid, i64)>) -> (Vec<Uuid>, bool) {
    let full = found.len() >= PRUNE_JOBS;
    let (mut batch, mut events, mut cut) = (Vec::new(), 0, false);
    for (id, n) in found {
        events += n;
        if events > row_limit(PRUNE_EVENTS) && !batch.is_empty() {
            cut = true;
            break;
        }
        batch.push(id);
    }
    (batch, !full && !cut)
}

/// Rows that one page of a filtered list may look at; then it ends early and says where to go on.
const SCAN_MAX: usize = 10_000;

#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Any of these; empty means all.
    pub states: Vec<Face>,
    pub kind: Option<TypeName>,
}

impl Filter {
    pub fn matches(&self, face: Face, kind: &str) -> bool {
        (self.states.is_empty() || self.states.contains(&face))
            && self.kind.as_ref().is_none_or(|wanted| wanted.as_str() == kind)
    }
}

/// One page of a project's jobs, by when they were made.
#[derive(Clone, Debug)]
pub struct ListJobs {
    pub org: OrgId,
    pub project: ProjectId,
    pub filter: Filter,
    pub order: Order,
    /// Beyond this one, in that order.
    pub after: Option<JobId>,
    pub limit: usize,
    /// Payloads and results in one page, together. A page holds at least one job.
    pub bytes: usize,
}

/// Fills a page of jobs up to its limits. Both databases look through narrow rows first and
/// fetch whole records only for what will be shown.
pub(crate) struct Filling {
    limit: usize,
    most_bytes: usize,
    page: Page<JobRecord, JobId>,
    /// The last one looked at.
    pub last: Option<JobId>,
    scanned: usize,
    bytes: usize,
}

impl Filling {
    pub const fn new(limit: usize, most_bytes: usize, after: Option<JobId>) -> Self {
        let page = Page { items: Vec::new(), next: None };
        Self { limit, most_bytes, page, last: after, scanned: 0, bytes: 0 }
    }

    /// Asked before each row: whether the page ends before it.
    pub const fn is_full(&self) -> bool {
        self.page.items.len() == self.limit || self.scanned == SCAN_MAX
    }

    /// Takes a row in; without a record, one that does not match. `false` if it does not fit.
    pub fn take(&mut self, id: JobId, record: Option<JobRecord>) -> bool {
        if let Some(record) = record {
            self.bytes += record.cold.payload.len() + record.result.as_ref().map_or(0, Json::len);
            if self.bytes > self.most_bytes && !self.page.items.is_empty() {
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

impl<T, C> Page<T, C> {
    /// A page of what was found, which is one more than asked for if there is more.
    pub(crate) fn cut(mut items: Vec<T>, limit: usize, at: impl Fn(&T) -> C) -> Self {
        let more = items.len() > limit;
        items.truncate(limit);
        let next = if more { items.last().map(at) } else { None };
        Self { items, next }
    }
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

/// Which documents to list.
#[derive(Clone, Debug)]
pub struct ListDocs {
    pub org: OrgId,
    pub class: doc::Class,
    /// What their keys begin with.
    pub prefix: String,
    pub flag: Option<bool>,
    pub order: Order,
    /// Beyond this key, in that order.
    pub after: Option<String>,
    pub limit: usize,
}

impl ListDocs {
    /// The key beyond which to look.
    pub(crate) fn beyond(&self) -> &str {
        self.after.as_deref().unwrap_or(self.order.before_texts())
    }

    pub(crate) fn page(&self, items: Vec<(doc::Key, Doc)>) -> Page<(doc::Key, Doc), String> {
        Page::cut(items, self.limit, |(key, _)| key.key.clone())
    }
}

/// Which lanes of an org to list.
#[derive(Clone, Debug)]
pub struct ListLanes {
    pub org: OrgId,
    pub order: Order,
    /// Beyond this one, in that order.
    pub after: Option<LaneKey>,
    pub limit: usize,
}

/// Which orgs to list.
#[derive(Clone, Debug)]
pub struct ListOrgs {
    pub order: Order,
    /// Beyond this one, in that order.
    pub after: Option<OrgId>,
    pub limit: usize,
}

impl ListOrgs {
    /// Every one.
    pub(crate) const ALL: Self = Self { order: Order::Rising, after: None, limit: usize::MAX };

    /// The name beyond which to look.
    pub(crate) fn beyond(&self) -> &str {
        self.after.as_ref().map_or(self.order.before_texts(), OrgId::as_str)
    }

    pub(crate) fn page(&self, items: Vec<OrgId>) -> Page<OrgId, OrgId> {
        Page::cut(items, self.limit, OrgId::clone)
    }
}
