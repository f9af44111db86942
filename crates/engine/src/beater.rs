//! Heartbeats for what the pool holds, and stopping what was lost.
//!
//! Beats go on while the engine stops: what is being drained is still ours.

use crate::crew::Crew;
use crate::engine::Shared;
use baton_core::command::Actor;
use baton_core::job::Fence;
use baton_core::job::beat::{Beat, Beaten};
use baton_core::limits::JOBS_PER_COMMAND;
use baton_core::{JobId, OrgId};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Between two looks for leases that no beat got through for, at most.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Beats that a lease lasts for: one may be lost, and the next one late.
const BEATS_PER_LEASE: u32 = 3;
/// Looks between two beats, at least.
const LOOKS_PER_BEAT: u32 = 3;
/// However short a lease is, there is no more to do than this.
const REST_MIN: Duration = Duration::from_millis(5);

/// Ends by being aborted, after the pool has ended.
pub(crate) async fn run(shared: Arc<Shared>, crew: Arc<Crew>) {
    // Side by side: a beat that hangs in a database that has gone silent must not keep us from
    // noticing that our leases run out.
    tokio::join!(beats(&shared, &crew), overdue(&shared, &crew));
}

async fn beats(shared: &Shared, crew: &Crew) {
    let mut leases = shared.store.watch_leases();
    let mut added = crew.held.watch_added();
    let mut last = Instant::now();
    loop {
        added.mark_unchanged();
        tokio::select! {
            biased;
            () = tokio::time::sleep_until(last + rest(shared, crew)) => {}
            // Somebody wants jobs to end, perhaps ours: a beat tells.
            Ok(()) = leases.changed() => {}
            () = crew.beat_again.notified() => {}
            // Its lease may be shorter than all before it.
            Ok(()) = added.changed() => continue,
        }
        leases.mark_unchanged();
        last = Instant::now();
        beat(shared, crew).await;
    }
}

/// Between two beats, as long as what is held now allows.
fn rest(shared: &Shared, crew: &Crew) -> Duration {
    let lease = crew.held.shortest_lease().map(|lease| lease.to_std() / BEATS_PER_LEASE);
    lease.map_or(shared.options.beat_every, |lease| lease.max(REST_MIN).min(shared.options.beat_every))
}

/// Stops handlers before somebody else can begin their jobs.
async fn overdue(shared: &Shared, crew: &Crew) {
    let mut added = crew.held.watch_added();
    let mut last = Instant::now();
    loop {
        added.mark_unchanged();
        // Often enough that a handler whose next beat is on its way is not stopped.
        let look_every = LOOK_EVERY.min(rest(shared, crew) / LOOKS_PER_BEAT);
        tokio::select! {
            biased;
            () = tokio::time::sleep_until(last + look_every) => {}
            Ok(()) = added.changed() => continue,
        }
        last = Instant::now();
        let stopped = crew.held.stop_overdue(last + look_every);
        if stopped > 0 {
            metrics::counter!("baton_leases_lost_total").increment(stopped as u64);
            tracing::warn!(stopped, "no heartbeat got through in time; handlers are stopped");
        }
    }
}

async fn beat(shared: &Shared, crew: &Crew) {
    let mut groups: BTreeMap<OrgId, BTreeMap<JobId, Fence>> = BTreeMap::new();
    for fence in crew.held.fences() {
        groups.entry(fence.org.clone()).or_default().insert(fence.job, fence);
    }
    for (org, fences) in groups {
        let fences: Vec<Fence> = fences.into_values().collect();
        for held in fences.chunks(JOBS_PER_COMMAND) {
            let beat = Beat::of(org.clone(), held.to_vec());
            let sent_at = Instant::now();
            match shared.store.commit(beat, Actor::Worker(shared.options.node.clone())).await {
                Ok(Beaten { lost, cancelled }) => {
                    let kept = held.iter().filter(|fence| !lost.contains(fence)).cloned().collect::<Vec<_>>();
                    crew.held.beaten(&kept, sent_at);
                    cancelled.iter().for_each(|fence| crew.held.cancel(fence));
                    // What was settled meanwhile is not lost.
                    let lost = crew.held.lost(&lost);
                    if lost > 0 {
                        metrics::counter!("baton_leases_lost_total").increment(lost as u64);
                        tracing::warn!(lost, "leases were lost; their handlers are stopped");
                    }
                }
                Err(e) => tracing::warn!(%e, "a heartbeat failed; the next one may still be in time"),
            }
        }
    }
}
