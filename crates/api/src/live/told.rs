//! An event as all listeners of its org share it: understood once, and what it leads to looked up
//! once, however many hear it.

use super::Threads;
use crate::job::show;
use crate::limits::RECENT_RESULT;
use crate::wait;
use baton_core::decision;
use baton_core::doc::Class;
use baton_core::event::{Recorded, Subject};
use baton_core::name::SessionId;
use baton_core::{JobId, OrgId};
use baton_store::{Cursor, EventRow, Store, StoreError};
use baton_wire::{JobNews, Object, OrchestratorJob};
use serde::Deserialize as _;
use serde_json::Value;
use tokio::sync::OnceCell;

pub struct Told {
    pub cursor: Cursor,
    pub event: Recorded,
    pub subject: Option<Subject>,
    pub data: Value,
    /// What it is to the orchestrator, if it is anything.
    pub news: Option<JobNews>,
    thread: OnceCell<Option<SessionId>>,
    ended: OnceCell<Kept>,
}

/// What a job came to. The history has digests of it only.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ended {
    pub result: Option<Object>,
    pub error: Option<String>,
    pub cancel_reason: Option<String>,
}

enum Kept {
    Small(Ended),
    /// Sending it costs more than reading it again, and keeping it would cost memory.
    Large,
}

/// What an event costs in memory beside its data, and how often its data is there, roughly.
const OVERHEAD: usize = 512;
const COPIES: usize = 4;

impl Told {
    pub fn new(row: EventRow) -> Self {
        let EventRow { cursor, event } = row;
        let data = event.data.value();
        let subject = Subject::of(&event.kind, event.subject);
        let news = subject.filter(|s| matches!(s, Subject::Job(_))).and_then(|_| JobNews::of(&event.kind, &data));
        Self { cursor, event, subject, data, news, thread: OnceCell::new(), ended: OnceCell::new() }
    }

    /// Bytes in memory, at most and roughly.
    pub fn weight(&self) -> usize {
        let result = if self.news.is_some_and(JobNews::is_end) { RECENT_RESULT } else { 0 };
        OVERHEAD + COPIES * self.event.data.len() + result
    }

    /// The job that it is about, itself or as what a decision is about.
    fn job(&self) -> Option<JobId> {
        match self.subject? {
            Subject::Job(job) => Some(job),
            Subject::Doc(Class::Decision, _) => match decision::Subject::deserialize(&self.data["subject"]).ok()? {
                decision::Subject::Job(job) => Some(job),
                decision::Subject::Step { .. } => None,
            },
            Subject::Doc(..) | Subject::Definition(_) | Subject::Run(_) | Subject::Agent(_) => None,
        }
    }

    /// The chat session that it belongs to.
    pub async fn thread(
        &self,
        store: &Store,
        org: &OrgId,
        threads: &Threads,
    ) -> Result<Option<&SessionId>, StoreError> {
        let Some(job) = self.job() else { return Ok(None) };
        let found = self.thread.get_or_try_init(async || {
            if self.event.kind != "job.queued" {
                return threads.of(store, org, job).await;
            }
            let thread = self.data["session"].as_str().and_then(|text| text.parse().ok());
            threads.learn(job, thread.clone());
            Ok(thread)
        });
        Ok(found.await?.as_ref())
    }

    /// What the job came to, if this is the end of one that is still remembered.
    pub async fn ended(&self, store: &Store, org: &OrgId) -> Result<Ended, StoreError> {
        let (Some(job), true) = (self.job(), self.news.is_some_and(JobNews::is_end)) else {
            return Ok(Ended::default());
        };
        let mut large = None;
        let kept = self.ended.get_or_try_init(async || {
            let ended = look(store, org, job).await?;
            if serde_json::to_string(&ended.result).is_ok_and(|text| text.len() <= RECENT_RESULT) {
                return Ok::<_, StoreError>(Kept::Small(ended));
            }
            large = Some(ended);
            Ok(Kept::Large)
        });
        match (kept.await?, large) {
            (Kept::Small(ended), _) => Ok(ended.clone()),
            (Kept::Large, Some(ended)) => Ok(ended),
            (Kept::Large, None) => look(store, org, job).await,
        }
    }
}

async fn look(store: &Store, org: &OrgId, job: JobId) -> Result<Ended, StoreError> {
    let Some(record) = wait::read(store.job(org, job)).await? else { return Ok(Ended::default()) };
    let OrchestratorJob { job, .. } = show(&record);
    Ok(Ended { result: job.result, error: job.error, cancel_reason: job.cancel_reason })
}
