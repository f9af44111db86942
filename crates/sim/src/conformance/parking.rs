//! Parking and waking: no wake-up is lost, whichever comes first.

use super::steps::{ask, claim, claim_one, clean, done, enqueue, record, settle, story};
use crate::lab::{Lab, Node};
use anyhow::{Result, ensure};
use baton_core::command::Actor;
use baton_core::job::settle::{Outcome, SettleError, Settled};
use baton_core::job::wake::{Wake, WakeError, Woken};
use baton_core::job::{Face, Job, Pause, Status};
use baton_core::time::Span;
use baton_core::{JobId, OrgId};
use baton_store::{CommitError, Leased};
use futures_util::future::{join, join_all};

const WAKES: usize = 200;

async fn park(node: &Node, leased: &Leased, until: Option<baton_core::Micros>, seen: i64) -> Result<Settled> {
    Ok(node.store.commit(settle(leased, Outcome::Park { until, seen })?, Actor::Engine).await?)
}

fn wake(job: JobId) -> Wake {
    Wake { org: OrgId::default(), job }
}

/// A job that has been claimed.
async fn running(lab: &Lab, node: &Node) -> Result<(Job, Leased)> {
    let job = enqueue(node).await?;
    let leased = claim_one(lab, node).await?;
    ensure!(leased.job.id == job.id);
    Ok((job, leased))
}

pub async fn a_parked_job_waits_until_it_is_woken(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let (job, leased) = running(&lab, &node).await?;
    ensure!(park(&node, &leased, None, 0).await? == Settled::Now);
    let parked = record(&node, job.id).await?.job;
    ensure!(parked.status == Status::AwaitingTool { pause: Pause::Tool, due_at: None });
    ensure!(parked.status.face() == Face::Running);
    lab.advance(Span::secs(100_000));
    let turn = node.store.claim(ask(&lab, &node, 9)).await?;
    ensure!(turn.leased.is_empty() && turn.next_due.is_none(), "time alone does not wake it");
    ensure!(node.store.expired(9).await?.is_empty(), "it is nobody's lease");
    ensure!(node.store.commit(wake(job.id), Actor::Api).await? == Woken::Due);
    let again = claim_one(&lab, &node).await?;
    ensure!(again.job.id == job.id && (again.job.attempts, again.job.token, again.job.wakes) == (1, 2, 1));
    node.store.commit(done(&again)?, Actor::Engine).await?;
    let told = ["job.queued", "job.started", "job.parked", "job.woken", "job.resumed", "job.completed"];
    ensure!(story(&node.store, &job, 6).await? == told);
    clean(&node.store).await
}

pub async fn a_wake_up_before_parking_makes_the_job_due_at_once(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let (job, leased) = running(&lab, &node).await?;
    ensure!(node.store.commit(wake(job.id), Actor::Api).await? == Woken::Noted);
    ensure!(park(&node, &leased, None, leased.job.wakes).await? == Settled::Now);
    let again = claim_one(&lab, &node).await?;
    ensure!(again.job.id == job.id && again.job.wakes == 1);
    // This time it has seen the wake-up, so parking holds.
    park(&node, &again, None, again.job.wakes).await?;
    ensure!(claim(&lab, &node, 9).await?.is_empty());
    clean(&node.store).await
}

pub async fn a_wake_up_while_queued_is_not_forgotten(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let job = enqueue(&node).await?;
    ensure!(node.store.commit(wake(job.id), Actor::Api).await? == Woken::Noted);
    let leased = claim_one(&lab, &node).await?;
    ensure!(leased.job.wakes == 1, "the handler is told");
    park(&node, &leased, None, 0).await?;
    ensure!(claim_one(&lab, &node).await?.job.id == job.id, "it had not looked");
    Ok(())
}

pub async fn parking_until_a_moment_ends_at_that_moment_or_with_a_wake_up(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let (job, leased) = running(&lab, &node).await?;
    let until = node.store.now().await?.plus(Span::secs(600));
    park(&node, &leased, Some(until), 0).await?;
    let turn = node.store.claim(ask(&lab, &node, 9)).await?;
    ensure!(turn.leased.is_empty() && turn.next_due == Some(until), "{turn:?}");
    lab.advance(Span::secs(601));
    let again = claim_one(&lab, &node).await?;
    ensure!(again.job.id == job.id && again.job.wakes == 0);
    let until = node.store.now().await?.plus(Span::secs(600));
    park(&node, &again, Some(until), 0).await?;
    ensure!(claim(&lab, &node, 9).await?.is_empty());
    ensure!(node.store.commit(wake(job.id), Actor::Api).await? == Woken::Due);
    ensure!(claim_one(&lab, &node).await?.job.id == job.id, "long before the moment");
    clean(&node.store).await
}

pub async fn two_wake_ups_wake_once(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let (job, leased) = running(&lab, &node).await?;
    park(&node, &leased, None, 0).await?;
    ensure!(node.store.commit(wake(job.id), Actor::Api).await? == Woken::Due);
    ensure!(node.store.commit(wake(job.id), Actor::Api).await? == Woken::Noted);
    let again = claim(&lab, &node, 9).await?;
    ensure!(again.len() == 1 && again[0].job.wakes == 2);
    ensure!(claim(&lab, &node, 9).await?.is_empty());
    ensure!(story(&node.store, &job, 5).await?.iter().filter(|kind| *kind == "job.woken").count() == 1);
    clean(&node.store).await
}

pub async fn many_wake_ups_at_once_are_all_counted(lab: Lab) -> Result<()> {
    let nodes = [lab.node_named("node_a").await?, lab.node_named("node_b").await?];
    let (job, leased) = running(&lab, &nodes[0]).await?;
    park(&nodes[0], &leased, None, 0).await?;
    // Many small groups meet more often than few large ones.
    nodes.iter().for_each(|node| node.script.group_max(2));
    let mut due = 0;
    for woken in join_all((0..WAKES).map(|n| nodes[n % 2].store.commit(wake(job.id), Actor::Api))).await {
        due += usize::from(woken? == Woken::Due);
    }
    ensure!(due == 1, "woken {due} times");
    let wakes = record(&nodes[1], job.id).await?.job.wakes;
    ensure!(wakes == WAKES as i64, "{wakes} of {WAKES} were counted");
    clean(&nodes[0].store).await
}

pub async fn parking_and_waking_at_once_never_leaves_a_job_asleep(lab: Lab) -> Result<()> {
    let nodes = [lab.node_named("node_a").await?, lab.node_named("node_b").await?];
    let (job, mut leased) = running(&lab, &nodes[0]).await?;
    for _ in 0..20 {
        let parks = park(&nodes[0], &leased, None, leased.job.wakes);
        let (parked, woken) = join(parks, nodes[1].store.commit(wake(job.id), Actor::Api)).await;
        ensure!(parked? == Settled::Now);
        woken?;
        leased = claim_one(&lab, &nodes[0]).await?;
    }
    ensure!(leased.job.wakes == 20 && leased.job.attempts == 1);
    clean(&nodes[0].store).await
}

pub async fn a_parked_job_is_no_longer_its_workers(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let (job, leased) = running(&lab, &node).await?;
    park(&node, &leased, None, 0).await?;
    let parked = record(&node, job.id).await?.job;
    let more = || anyhow::Ok([done(&leased)?, settle(&leased, Outcome::Release)?]);
    for again in more()? {
        ensure!(node.store.commit(again, Actor::Engine).await? == Settled::Already, "this lease has spoken");
    }
    ensure!(node.store.held_by(&node.name, 9).await?.is_empty());
    ensure!(record(&node, job.id).await?.job == parked, "nothing was touched");
    node.store.commit(wake(job.id), Actor::Api).await?;
    let second = claim_one(&lab, &node).await?;
    for late in more()? {
        let late = node.store.commit(late, Actor::Engine).await;
        ensure!(matches!(late, Err(CommitError::Refused(SettleError::LeaseLost { .. }))), "{late:?}");
    }
    ensure!(node.store.commit(done(&second)?, Actor::Engine).await? == Settled::Now);
    clean(&node.store).await
}

pub async fn an_ended_job_cannot_be_woken(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let (job, leased) = running(&lab, &node).await?;
    node.store.commit(done(&leased)?, Actor::Engine).await?;
    let refused = node.store.commit(wake(job.id), Actor::Api).await;
    ensure!(matches!(refused, Err(CommitError::Refused(WakeError::AlreadyEnded { .. }))), "{refused:?}");
    ensure!(story(&node.store, &job, 3).await?.len() == 3);
    clean(&node.store).await
}
