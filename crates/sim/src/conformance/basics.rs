//! The way of one job, and what a commit promises.

use crate::lab::{Lab, Node, echo, name, nobody};
use anyhow::{Context, Result, ensure};
use baton_core::command::Actor;
use baton_core::job::enqueue::{Enqueue, EnqueueError};
use baton_core::job::settle::{Outcome, Settle, Settled};
use baton_core::job::state::Face;
use baton_core::job::wake::{Wake, WakeError};
use baton_core::{Json, OrgId};
use baton_store::{Ask, CommitError, Cursor, Leased, Store};
use serde_json::json;

/// Asks for jobs of every kind the lab knows.
pub(super) fn ask(lab: &Lab, node: &Node, slots: usize) -> Ask {
    let kinds = lab.definitions.job_types().map(|t| t.kind()).collect();
    Ask { worker: node.name.clone(), kinds, slots }
}

pub(super) async fn claim_one(lab: &Lab, node: &Node) -> Result<Leased> {
    let mut turn = node.store.claim(ask(lab, node, 1)).await?;
    turn.leased.pop().context("nothing to claim")
}

pub(super) fn done(leased: &Leased) -> Result<Settle> {
    let fence = leased.job.fence().context("a leased job has a fence")?;
    Ok(Settle { fence, outcome: Outcome::Done(Json::of(&json!({ "ok": true }))) })
}

pub(super) async fn events(store: &Store) -> Result<Vec<String>> {
    let page = store.events(&OrgId::default(), Cursor::START, 1_000).await?;
    Ok(page.items.into_iter().map(|row| row.event.kind).collect())
}

/// Nothing is wrong with the whole history.
pub(super) async fn clean(store: &Store) -> Result<()> {
    let report = store.audit(None).await?;
    ensure!(report.is_clean(), "{:?}", report.violations);
    Ok(())
}

/// On PostgreSQL events become readable a moment after the commit, when they are final.
pub(super) async fn settled_tail(store: &Store, at_least: usize) -> Result<Vec<String>> {
    let mut tail = store.watch_events();
    loop {
        tail.mark_unchanged();
        let kinds = events(store).await?;
        if kinds.len() >= at_least {
            return Ok(kinds);
        }
        tail.changed().await?;
    }
}

pub async fn an_enqueued_job_can_be_read_back(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let job = node.store.commit(echo(), Actor::Api).await?.job;
    let found = node.store.job(&job.org, job.id).await?.context("it was committed")?;
    ensure!(found.job.status == job.status && found.job.status.face() == Face::Queued);
    ensure!(found.cold.payload == echo().payload);
    ensure!(found.result.is_none() && found.error.is_none());
    ensure!(node.store.job(&job.org, nobody()).await?.is_none());
    clean(&node.store).await
}

pub async fn a_refusal_writes_nothing(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let before = node.script.commits();
    let refused = node.store.commit(Enqueue { kind: name("moon"), ..echo() }, Actor::Api).await;
    ensure!(matches!(refused, Err(CommitError::Refused(EnqueueError::UnknownType { .. }))));
    let refused = node.store.commit(Wake { org: OrgId::default(), job: nobody() }, Actor::Api).await;
    ensure!(matches!(refused, Err(CommitError::Refused(WakeError::NotFound(_)))));
    ensure!(node.script.commits() == before, "nothing was committed");
    ensure!(events(&node.store).await?.is_empty());
    Ok(())
}

pub async fn a_job_goes_from_enqueue_over_claim_to_done(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let job = node.store.commit(echo(), Actor::Api).await?.job;
    let leased = claim_one(&lab, &node).await?;
    ensure!(leased.job.id == job.id && leased.payload == echo().payload);
    ensure!(node.store.claim(ask(&lab, &node, 9)).await?.leased.is_empty(), "it is taken");
    ensure!(node.store.commit(done(&leased)?, Actor::Engine).await? == Settled::Now);
    ensure!(node.store.commit(done(&leased)?, Actor::Engine).await? == Settled::Already);
    let found = node.store.job(&job.org, job.id).await?.context("still there")?;
    ensure!(found.job.status.face() == Face::Completed);
    ensure!(found.result == Some(Json::of(&json!({ "ok": true }))));
    ensure!(settled_tail(&node.store, 3).await? == ["job.queued", "job.started", "job.completed"]);
    clean(&node.store).await
}
