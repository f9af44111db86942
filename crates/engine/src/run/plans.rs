//! Plans that this node works on, read once each: they never change.

use baton_core::canon::Digest;
use baton_core::plan::Plan;
use baton_core::{OrgId, RunId};
use baton_store::{Store, StoreError};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Plans kept in memory; with more, those that were looked at longest ago go.
const KEPT: usize = 256;

/// A plan as it was pinned, and what inputs may name of its run.
pub(super) struct Pinned {
    pub plan: Arc<Plan>,
    pub digest: Digest,
    pub name: Value,
    pub task: Value,
}

#[derive(Default)]
pub(super) struct Plans {
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    looks: u64,
    plans: BTreeMap<(OrgId, RunId), (u64, Arc<Pinned>)>,
}

impl Plans {
    /// `None` if there is no such run, or nobody can read its plan.
    pub async fn get(&self, store: &Store, org: &OrgId, run: RunId) -> Result<Option<Arc<Pinned>>, StoreError> {
        let key = (org.clone(), run);
        if let Some(known) = self.known(&key) {
            return Ok(Some(known));
        }
        let Some((document, plan)) = store.run_plan(org, run).await? else { return Ok(None) };
        let Ok(read) = serde_json::from_str::<Plan>(plan.as_str()) else { return Ok(None) };
        let document = document.value();
        let pinned = Arc::new(Pinned {
            plan: Arc::new(read),
            digest: plan.digest(),
            name: document["name"].clone(),
            task: document["task"].clone(),
        });
        self.keep(key, pinned.clone());
        Ok(Some(pinned))
    }

    fn known(&self, key: &(OrgId, RunId)) -> Option<Arc<Pinned>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.looks += 1;
        let looks = kept.looks;
        let (last, pinned) = kept.plans.get_mut(key)?;
        *last = looks;
        Some(pinned.clone())
    }

    fn keep(&self, key: (OrgId, RunId), pinned: Arc<Pinned>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.looks += 1;
        let looks = kept.looks;
        kept.plans.insert(key, (looks, pinned));
        if kept.plans.len() > KEPT {
            let oldest = kept.plans.iter().min_by_key(|(_, (last, _))| *last).map(|(key, _)| key.clone());
            oldest.and_then(|key| kept.plans.remove(&key));
        }
    }
}
