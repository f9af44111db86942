//! What must be true when a story is over, whatever happened on the way.

use super::client::Memory;
use super::{NODE, Story, actor, key};
use crate::lab::{Lab, name};
use crate::replay::Replay;
use anyhow::{Context, Result, ensure};
use baton_core::job::state::Face;
use baton_core::{JobId, OrgId};
use baton_store::{Cursor, Filter, JobRecord, ListJobs, ListLanes, Order, Store};
use std::collections::BTreeSet;
use std::time::Duration;

/// How long the last events may take to become readable.
const READABLE: Duration = Duration::from_secs(10);

/// Looks at what a story left behind.
pub struct Witness<'a> {
    pub store: &'a Store,
    /// Of the story's projects.
    pub jobs: Vec<JobRecord>,
    memory: &'a Memory,
}

/// Everything ended, nothing is counted that is not there, and the history is whole.
pub(super) async fn look<S: Story>(lab: &Lab, memory: &Memory) -> Result<()> {
    let node = lab.node_named(NODE).await?;
    let store = &node.store;
    let mut jobs = Vec::new();
    for project in S::PROJECTS {
        jobs.extend(census(store, project).await?);
    }
    let witness = Witness { store, jobs, memory };
    for record in &witness.jobs {
        let job = &record.job;
        ensure!(job.is_ended(), "{} is still {:?}", job.id, job.status);
        ensure!(job.attempts <= job.max_attempts && job.failures <= job.max_failures, "{job:?} is over its budget");
    }
    let ask = ListLanes { org: OrgId::default(), order: Order::Rising, after: None, limit: 1_000 };
    for lane in store.lanes(ask).await?.items {
        ensure!(lane.running == 0 && lane.waiting == 0 && !lane.paused, "{lane:?}");
    }
    if !S::SCHEDULES {
        let (due, next) = store.due_timers(10).await?;
        ensure!(due.is_empty() && next.is_none(), "timers are left: {due:?} {next:?}");
    }
    let report = store.audit(Some(key())).await?;
    ensure!(report.is_clean(), "{:?}", report.violations);
    witness.replayed().await?;
    S::check(&witness).await?;
    store.close().await;
    Ok(())
}

async fn census(store: &Store, project: &str) -> Result<Vec<JobRecord>> {
    let ask = ListJobs {
        org: OrgId::default(),
        project: name(project),
        filter: Filter::default(),
        order: Order::Falling,
        after: None,
        limit: 1_000,
        bytes: usize::MAX,
    };
    Ok(store.jobs(ask).await?.items)
}

impl Witness<'_> {
    pub fn id(&self, key: &str) -> Result<JobId> {
        self.memory.promised.get(key).copied().with_context(|| format!("{key} was never promised"))
    }

    pub fn record(&self, key: &str) -> Result<&JobRecord> {
        let id = self.id(key)?;
        self.jobs.iter().find(|r| r.job.id == id).with_context(|| format!("{key} is lost"))
    }

    /// There are these jobs and no others.
    pub fn exactly(&self, keys: &[&str]) -> Result<()> {
        let expected = keys.iter().map(|key| self.id(key)).collect::<Result<BTreeSet<_>>>()?;
        let found = self.jobs.iter().map(|r| r.job.id).collect::<BTreeSet<_>>();
        ensure!(found == expected, "there should be {expected:?}, but there are {found:?}");
        ensure!(found.len() == self.jobs.len(), "a job is listed twice");
        Ok(())
    }

    pub fn ended_as(&self, key: &str, face: Face) -> Result<&JobRecord> {
        let record = self.record(key)?;
        ensure!(record.job.status.face() == face, "{key} ended as {:?}, {:?}", record.job.status, record.error);
        Ok(record)
    }

    /// It failed or was cancelled, for one of these reasons.
    pub fn ended_for(&self, key: &str, face: Face, reasons: &[&str]) -> Result<&JobRecord> {
        let record = self.ended_as(key, face)?;
        let code = record.error.as_ref().map(|e| e.code.as_str());
        ensure!(code.is_some_and(|code| reasons.contains(&code)), "{key} ended for {code:?}, not {reasons:?}");
        Ok(record)
    }

    /// At no moment was a lane over its limit, or a job in two hands.
    async fn replayed(&self) -> Result<()> {
        let whole = async {
            loop {
                let mut replay = Replay::new(actor::limits);
                let page = self.store.events(&OrgId::default(), Cursor::START, 100_000).await?;
                for row in &page.items {
                    replay.step(&row.event)?;
                }
                let told = |r: &JobRecord| replay.life(r.job.id).is_some_and(|life| life.events == r.job.head.n);
                if self.jobs.iter().all(told) {
                    return anyhow::Ok(());
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(READABLE, whole).await.context("the history is not readable to its end")?
    }
}
