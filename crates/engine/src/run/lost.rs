//! Agents that nobody works on although somebody could: their run fails.

use crate::engine::Shared;
use baton_core::command::Actor;
use baton_core::run::lost::{Lost, PATIENCE};
use baton_core::time::Span;
use baton_store::{CommitError, StoreError};
use std::sync::Arc;
use std::time::Duration;

/// Between two looks.
const EVERY: Duration = Duration::from_secs(10);
/// Agents looked at at once.
const LOOK_MAX: usize = 100;

pub(crate) async fn run(shared: Arc<Shared>) {
    while shared.rest(EVERY).await {
        if let Err(e) = look(&shared).await {
            shared.trouble(&e);
        }
    }
}

async fn look(shared: &Shared) -> Result<(), StoreError> {
    let now = shared.store.now().await?;
    let since = now.plus(Span(-PATIENCE.0));
    // Whoever has not been here for so long says nothing about others.
    if shared.alive_since > since {
        return Ok(());
    }
    for (org, agent) in shared.store.lost_agents(since, LOOK_MAX).await? {
        let lost = Lost { org, agent, alive_since: shared.alive_since };
        match shared.store.commit(lost, Actor::Engine).await {
            Ok(()) => tracing::error!(%agent, "nobody took over the agent; its run has failed"),
            Err(CommitError::Refused(_) | CommitError::KeyReused) => {}
            Err(CommitError::Store(e)) => return Err(e),
        }
    }
    Ok(())
}
