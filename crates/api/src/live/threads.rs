//! Which chat session a job belongs to. That never changes, so it is asked once.

use crate::limits::THREADS_KNOWN;
use crate::wait;
use baton_core::name::SessionId;
use baton_core::{JobId, OrgId};
use baton_store::{Store, StoreError};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

#[derive(Default)]
pub struct Threads(Mutex<BTreeMap<JobId, Option<SessionId>>>);

impl Threads {
    pub async fn of(&self, store: &Store, org: &OrgId, job: JobId) -> Result<Option<SessionId>, StoreError> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&job).cloned();
        if let Some(thread) = known {
            return Ok(thread);
        }
        // One that is gone belongs to nobody any more.
        let Some(record) = wait::read(store.job(org, job)).await? else { return Ok(None) };
        let thread = record.cold.source_session;
        self.learn(job, thread.clone());
        Ok(thread)
    }

    /// A job's first event says it.
    pub fn learn(&self, job: JobId, thread: Option<SessionId>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= THREADS_KNOWN {
            all.clear();
        }
        all.insert(job, thread);
    }
}
