//! Agents that nobody works on although somebody could: their run fails.

use crate::engine::Shared;
use crate::registry::agent_type;
use baton_core::Micros;
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
    // Since when somebody here has had time for one more agent, as far as was looked.
    let mut idle_since = shared.alive_since;
    while shared.rest(EVERY).await {
        if let Err(e) = look(&shared, &mut idle_since).await {
            shared.trouble(&e);
        }
    }
}

/// Whether nobody here could take another agent on.
fn is_full(shared: &Shared) -> bool {
    let agents = agent_type().kind();
    let mut crews = shared.crews.iter().filter(|crew| crew.kinds.contains(&agents));
    crews.all(|crew| crew.held.handlers().busy >= crew.slots)
}

async fn look(shared: &Shared, idle_since: &mut Micros) -> Result<(), StoreError> {
    let now = shared.store.now().await?;
    if is_full(shared) {
        *idle_since = now;
    }
    let since = now.plus(Span(-PATIENCE.0));
    // Whoever has not been here for so long, or had no time, says nothing about others.
    if *idle_since > since {
        return Ok(());
    }
    for (org, agent) in shared.store.lost_agents(since, LOOK_MAX).await? {
        let lost = Lost { org, agent, alive_since: *idle_since };
        match shared.store.commit(lost, Actor::Engine).await {
            Ok(()) => tracing::error!(%agent, "nobody took over the agent; its run has failed"),
            Err(CommitError::Refused(_) | CommitError::KeyReused) => {}
            Err(CommitError::Store(e)) => return Err(e),
        }
    }
    Ok(())
}
