//! Forgetting ended jobs: whole, told, and without making the seals lie.

use super::seals;
use super::steps::{ask, counts, done, history};
use super::tampering::{disarm, uuid};
use crate::lab::{Lab, Node, name};
use crate::queue_types::{job, keyed, lab_with};
use anyhow::{Context, Result, ensure};
use baton_core::command::Actor;
use baton_core::job::enqueue::{Enqueue, How};
use baton_core::job::prune::Prune;
use baton_core::rules::Rules;
use baton_core::seal::Key;
use baton_core::{JobId, OrgId};
use baton_store::Prunable;
use futures_util::future::join_all;

async fn run(lab: &Lab, node: &Node, order: Enqueue) -> Result<JobId> {
    let id = node.store.commit(order, Actor::Api).await?.job.id;
    let leased = node.store.claim(ask(lab, node, 1)).await?.leased.pop().context("one")?;
    node.store.commit(done(&leased)?, Actor::Engine).await?;
    Ok(id)
}

fn prune(found: Prunable) -> Prune {
    Prune { org: found.org, project: found.project, jobs: found.jobs }
}

fn key() -> Key {
    seals::key(5)
}

/// Seals everything, as soon as there are so many events to seal.
async fn seal(node: &Node, events: usize) -> Result<()> {
    history(&node.store, &OrgId::default(), events).await?;
    seals::seal(node, &key(), 100_000).await?;
    Ok(())
}

async fn verified(node: &Node) -> Result<()> {
    let report = node.store.audit(Some(key())).await?;
    ensure!(report.is_clean(), "{:?}", report.violations);
    Ok(())
}

pub async fn the_oldest_go_with_their_history_and_the_seals_still_hold(lab: Lab) -> Result<()> {
    let lab = lab_with(lab, Rules::default());
    let node = lab.node().await?;
    let mut jobs = Vec::new();
    for n in 0..30 {
        jobs.push(run(&lab, &node, job("wide", ["p1", "p2"][n % 2])).await?);
    }
    let waiting = node.store.commit(job("wide", "p1"), Actor::Api).await?.job.id;
    ensure!(node.store.prunable(None, 5).await?.is_none(), "nothing is sealed yet");
    seal(&node, 91).await?;
    let (mut after, mut gone) = (None, 0);
    while let Some(found) = node.store.prunable(after.take(), 5).await? {
        after = Some((found.org.clone(), found.project.clone()));
        gone += node.store.commit(prune(found), Actor::Engine).await?;
    }
    ensure!(gone == 20, "{gone} went");
    for (n, id) in jobs.iter().enumerate() {
        let there = node.store.job(&OrgId::default(), *id).await?.is_some();
        ensure!(there == (n >= 20), "job {n}");
    }
    ensure!(node.store.job(&OrgId::default(), waiting).await?.is_some());
    counts(&node.store, "SELECT count(*) FROM pruned", 60).await?;
    verified(&node).await?;
    // What is left of the ended ones, the one that waits, and two that tell of what went.
    seal(&node, 33).await?;
    verified(&node).await
}

pub async fn what_was_dropped_as_a_duplicate_may_come_again_after_that(lab: Lab) -> Result<()> {
    let lab = lab_with(lab, Rules::default());
    let node = lab.node().await?;
    run(&lab, &node, keyed("drop", "a", "x")).await?;
    run(&lab, &node, job("wide", "p1")).await?;
    ensure!(node.store.commit(keyed("drop", "a", "x"), Actor::Api).await?.how == How::Dropped);
    seal(&node, 6).await?;
    let found = node.store.prunable(None, 1).await?.context("there is one too many")?;
    node.store.commit(prune(found), Actor::Engine).await?;
    ensure!(node.store.commit(keyed("drop", "a", "x"), Actor::Api).await?.how == How::Enqueued);
    verified(&node).await
}

pub async fn of_two_nodes_that_prune_the_same_one_does(lab: Lab) -> Result<()> {
    let lab = lab_with(lab, Rules::default());
    let nodes = [lab.node_named("node_a").await?, lab.node_named("node_b").await?];
    for _ in 0..10 {
        run(&lab, &nodes[0], job("wide", "p1")).await?;
    }
    seal(&nodes[0], 30).await?;
    let found = nodes[0].store.prunable(None, 2).await?.context("there are too many")?;
    let tries = (0..4).map(|n| nodes[n % 2].store.commit(prune(found.clone()), Actor::Engine));
    let won = join_all(tries).await.into_iter().filter(Result::is_ok).count();
    ensure!(won == 1, "{won} won");
    verified(&nodes[0]).await
}

pub async fn removing_events_without_saying_so_is_found(lab: Lab) -> Result<()> {
    let lab = lab_with(lab, Rules::default());
    let node = lab.node().await?;
    let kept = run(&lab, &node, job("wide", "p1")).await?;
    for _ in 0..3 {
        run(&lab, &node, job("wide", "p1")).await?;
    }
    seal(&node, 12).await?;
    let kept = uuid(&lab, kept.0);
    ensure!(node.store.raw(&format!("DELETE FROM event WHERE subject = {kept}")).await.is_err(), "not just so");
    ensure!(node.store.raw(&format!("DELETE FROM job WHERE id = {kept}")).await.is_err());
    // Somebody who writes the stubs, too, has told nobody under a digest.
    let stub = uuid(&lab, name::<JobId>("job_01900000000070008000000000000009").0);
    node.store
        .raw(&format!(
            "INSERT INTO pruned (org, pos, hash, by, n) SELECT org, pos, hash, {stub}, 1 FROM event WHERE subject = {kept}; \
             DELETE FROM event WHERE subject = {kept}; DELETE FROM job WHERE id = {kept}"
        ))
        .await?;
    let codes = |report: baton_core::audit::Report| report.violations.into_iter().map(|v| v.code).collect::<Vec<_>>();
    ensure!(codes(node.store.audit(Some(key())).await?) == ["prune_untold"]);
    disarm(&lab, &node).await?;
    node.store.raw("DELETE FROM pruned").await?;
    ensure!(codes(node.store.audit(Some(key())).await?) == ["seal_count"]);
    Ok(())
}

pub async fn a_job_that_ended_late_is_kept_although_it_is_old(lab: Lab) -> Result<()> {
    let lab = lab_with(lab, Rules::default());
    let node = lab.node().await?;
    let old = node.store.commit(job("wide", "p1"), Actor::Api).await?.job.id;
    let held = node.store.claim(ask(&lab, &node, 1)).await?.leased.pop().context("the old one")?;
    for _ in 0..10 {
        run(&lab, &node, job("wide", "p1")).await?;
    }
    node.store.commit(done(&held)?, Actor::Engine).await?;
    seal(&node, 33).await?;
    let found = node.store.prunable(None, 3).await?.context("there are too many")?;
    ensure!(found.jobs.iter().all(|candidate| candidate.job != old), "it has only just ended");
    ensure!(found.jobs.len() == 7 && !found.more, "{} and {}", found.jobs.len(), found.more);
    node.store.commit(prune(found), Actor::Engine).await?;
    for _ in 0..5 {
        run(&lab, &node, job("wide", "p1")).await?;
    }
    seal(&node, 28).await?;
    let found = node.store.prunable(None, 3).await?.context("there are too many")?;
    ensure!(found.jobs.iter().any(|candidate| candidate.job == old), "others have ended since");
    verified(&node).await
}
