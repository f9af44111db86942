//! Commands that learn only by looking what else they must see.

use super::odd_commands::{Bad, Both, NOWHERE};
use super::steps::{census, claim, clean, done, enqueue, exactly, record};
use crate::lab::{Lab, echo, nobody};
use anyhow::{Context, Result, ensure};
use baton_core::OrgId;
use baton_core::command::Actor;
use baton_core::job::wake::{Wake, WakeError};
use baton_store::{CommitError, StoreError};
use futures_util::future::{join, try_join_all};

pub async fn a_command_gets_to_see_what_it_turns_out_to_need(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let (first, second) = (enqueue(&node).await?.id, enqueue(&node).await?.id);
    ensure!(node.store.commit(Both { first, second }, Actor::Api).await? == (1, 1));
    // The other way round the second comes before the first in the order of locks.
    ensure!(node.store.commit(Both { first: second, second: first }, Actor::Api).await? == (2, 2));
    for (first, second, missing) in [(first, nobody(), nobody()), (nobody(), second, nobody())] {
        let refused = node.store.commit(Both { first, second }, Actor::Api).await;
        ensure!(matches!(refused, Err(CommitError::Refused(WakeError::NotFound(id))) if id == missing), "{refused:?}");
    }
    ensure!(record(&node, first).await?.job.wakes == 2);
    clean(&node.store).await
}

pub async fn needs_that_cross_are_met_while_others_touch_the_same_jobs(lab: Lab) -> Result<()> {
    let nodes = [lab.node_named("node_a").await?, lab.node_named("node_b").await?];
    let (a, b) = (enqueue(&nodes[0]).await?.id, enqueue(&nodes[0]).await?.id);
    nodes.iter().for_each(|node| node.script.group_max(8));
    let both = (0..32).map(|n| {
        let (first, second) = if n % 4 < 2 { (a, b) } else { (b, a) };
        nodes[n % 2].store.commit(Both { first, second }, Actor::Api)
    });
    let single = (0..32).map(|n| {
        let job = if n % 4 < 2 { a } else { b };
        nodes[n % 2].store.commit(Wake { org: OrgId::default(), job }, Actor::Api)
    });
    let (both, single) = join(try_join_all(both), try_join_all(single)).await;
    let (both, single) = (both?, single?);
    ensure!(both.len() == 32 && single.len() == 32);
    for id in [a, b] {
        let wakes = record(&nodes[0], id).await?.job.wakes;
        ensure!(wakes == 32 + 16, "{wakes} wake-ups were counted");
    }
    clean(&nodes[0].store).await
}

pub async fn what_is_needed_may_have_ended(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let (first, second) = (enqueue(&node).await?.id, enqueue(&node).await?.id);
    let leased = claim(&lab, &node, 2).await?;
    node.store.commit(done(leased.get(1).context("two were claimed")?)?, Actor::Engine).await?;
    let ended = record(&node, second).await?.job;
    ensure!(ended.is_ended());
    // Looking at it is fine; that this odd command would also write it is not.
    let rejected = node.store.commit(Both { first, second }, Actor::Api).await;
    ensure!(matches!(rejected, Err(CommitError::Store(StoreError::Rejected(_)))), "{rejected:?}");
    ensure!(record(&node, second).await?.job == ended && record(&node, first).await?.job.wakes == 0);
    clean(&node.store).await
}

pub async fn a_command_that_always_needs_more_is_turned_away(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let mut good = Vec::new();
    for bad in [Bad::Insatiable, Bad::Stubborn] {
        let alone = node.store.commit(bad, Actor::Api).await;
        ensure!(matches!(alone, Err(CommitError::Store(StoreError::Rejected(_)))), "{alone:?}");
        let neighbours = try_join_all((0..32).map(|_| node.store.commit(echo(), Actor::Api)));
        let (among, neighbours) = join(node.store.commit(bad, Actor::Api), neighbours).await;
        ensure!(matches!(among, Err(CommitError::Store(StoreError::Rejected(_)))), "{among:?}");
        good.extend(neighbours?.into_iter().map(|enqueued| enqueued.job.id));
    }
    exactly(&node.store, "p1", good).await
}

pub async fn looking_at_what_was_not_named_fails_that_command_only(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let alone = node.store.commit(Bad::Peeks, Actor::Api).await;
    let named = |e: &CommitError<_>| matches!(e, CommitError::Store(StoreError::Panicked(why)) if why.contains("not among what the command said it reads"));
    ensure!(alone.as_ref().is_err_and(named), "{alone:?}");
    let neighbours = try_join_all((0..32).map(|_| node.store.commit(echo(), Actor::Api)));
    let (among, neighbours) = join(node.store.commit(Bad::Peeks, Actor::Api), neighbours).await;
    ensure!(among.as_ref().is_err_and(named), "{among:?}");
    ensure!(census(&node.store, &OrgId::default(), NOWHERE).await?.is_empty());
    exactly(&node.store, "p1", neighbours?.into_iter().map(|enqueued| enqueued.job.id)).await
}
