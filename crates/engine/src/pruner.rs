//! Forgetting ended jobs beyond those that are kept of each project, in small batches.

use crate::engine::Shared;
use baton_core::command::Actor;
use baton_core::job::prune::Prune;
use baton_core::{OrgId, ProjectId};
use baton_store::{CommitError, StoreError};
use std::sync::Arc;
use std::time::Duration;

/// Between two batches, so that work goes first.
const BREATH: Duration = Duration::from_millis(5);

pub(crate) async fn run(shared: Arc<Shared>) {
    while shared.rest(shared.options.prune_every).await {
        match round(&shared).await {
            Ok(0) => {}
            Ok(jobs) => tracing::info!(jobs, "ended jobs beyond those that are kept were forgotten"),
            Err(e) => shared.trouble(&e),
        }
    }
}

/// Every project once; how many jobs went.
async fn round(shared: &Shared) -> Result<usize, StoreError> {
    let keep = shared.store.definitions().rules.retained;
    let mut after: Option<(OrgId, ProjectId)> = None;
    let mut total = 0;
    while let Some(found) = shared.store.prunable(after.clone(), keep).await? {
        let place = (found.org.clone(), found.project.clone());
        let more = found.more;
        let prune = Prune { org: found.org, project: found.project, jobs: found.jobs };
        match shared.store.commit(prune, Actor::Engine).await {
            Ok(gone) => {
                metrics::counter!("baton_jobs_pruned_total").increment(gone as u64);
                total += gone;
                // The same project again while it has more.
                if !more {
                    after = Some(place);
                }
            }
            // Another node was faster: its next batch is another one.
            Err(CommitError::Refused(_) | CommitError::KeyReused) => after = Some(place),
            Err(CommitError::Store(e)) => return Err(e),
        }
        if !shared.rest(BREATH).await {
            break;
        }
    }
    Ok(total)
}
