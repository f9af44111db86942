//! Taking jobs back from those who can no longer settle them.

use crate::engine::Shared;
use baton_core::command::Actor;
use baton_core::job::Fence;
use baton_core::job::recover::{Recover, Recovered, Why};
use baton_store::{CommitError, StoreError};
use tokio::task::JoinSet;

/// Own leases taken back at once on start.
const PAGE: usize = 256;

/// On start: what this node held when it last died. Its data directory is ours, so it is dead.
/// A job that cannot be taken back does not keep the others waiting: the sweeper tries it again.
pub(crate) async fn own(shared: &Shared) -> Result<usize, StoreError> {
    let mut total = 0;
    loop {
        let held = shared.store.held_by(&shared.options.node, PAGE).await?;
        let taken = match take_back(shared, held, Why::NodeGone).await {
            Ok(taken) => taken,
            Err(e) if e.is_internal() => {
                tracing::error!(%e, "a job of this node's last life could not be taken back");
                return Ok(total);
            }
            Err(e) => return Err(e),
        };
        if taken == 0 {
            return Ok(total);
        }
        total += taken;
    }
}

/// Takes back what nobody else has by now; how many jobs. All are submitted at once, so they
/// share commits.
pub(crate) async fn take_back(shared: &Shared, fences: Vec<Fence>, why: Why) -> Result<usize, StoreError> {
    let mut commits = JoinSet::new();
    for fence in fences {
        let store = shared.store.clone();
        let recover = Recover { heard_since: Some(shared.alive_since), ..Recover::new(fence, why) };
        commits.spawn(async move {
            let job = recover.fence.job;
            (job, store.commit(recover, Actor::Engine).await)
        });
    }
    let mut taken = 0;
    let mut trouble = None;
    while let Some(ended) = commits.join_next().await {
        match ended {
            Ok((job, Ok(recovered))) => {
                taken += 1;
                let outcome = match recovered {
                    Recovered::Requeued => "requeued",
                    Recovered::Failed => "failed",
                    Recovered::Cancelled => "cancelled",
                };
                metrics::counter!("baton_jobs_recovered_total", "outcome" => outcome).increment(1);
                tracing::warn!(jobId = %job, ?why, outcome, "a job was taken back from a worker that is gone");
            }
            // Somebody else was faster, or the worker came back in time.
            Ok((_, Err(CommitError::Refused(_)))) => {}
            Ok((_, Err(CommitError::Store(e)))) => trouble = Some(e),
            Ok((_, Err(CommitError::KeyReused))) | Err(_) => {}
        }
    }
    trouble.map_or(Ok(taken), Err)
}
