//! Heartbeats for what the pool holds, and stopping what was lost.

use crate::engine::Shared;
use baton_core::command::Actor;
use baton_core::job::Fence;
use baton_core::job::beat::Beat;
use baton_core::limits::JOBS_PER_COMMAND;
use baton_core::time::Span;
use baton_core::{JobId, OrgId};
use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) async fn run(shared: Arc<Shared>) {
    while shared.rest(shared.options.beat_every).await {
        beat(&shared).await;
    }
}

async fn beat(shared: &Shared) {
    let mut groups: BTreeMap<(OrgId, Span), BTreeMap<JobId, Fence>> = BTreeMap::new();
    for (fence, lease) in shared.held.fences() {
        groups.entry((fence.org.clone(), lease)).or_default().insert(fence.job, fence);
    }
    for ((org, lease), fences) in groups {
        let fences: Vec<Fence> = fences.into_values().collect();
        for held in fences.chunks(JOBS_PER_COMMAND) {
            let beat = Beat { org: org.clone(), held: held.to_vec(), lease };
            match shared.store.commit(beat, Actor::Worker(shared.options.node.clone())).await {
                Ok(lost) if lost.is_empty() => {}
                Ok(lost) => {
                    metrics::counter!("baton_leases_lost_total").increment(lost.len() as u64);
                    tracing::warn!(lost = lost.len(), "leases were lost; their handlers are stopped");
                    shared.held.stop(&lost);
                }
                Err(e) => tracing::warn!(%e, "a heartbeat failed; the next one may still be in time"),
            }
        }
    }
}
