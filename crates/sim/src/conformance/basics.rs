//! The way of one job, and what a commit promises.

use super::steps::{ask, claim_one, clean, done, events, settled_tail};
use crate::lab::{Lab, echo, name, nobody};
use anyhow::{Context, Result, ensure};
use baton_core::command::Actor;
use baton_core::job::enqueue::{Enqueue, EnqueueError};
use baton_core::job::settle::Settled;
use baton_core::job::state::Face;
use baton_core::job::wake::{Wake, WakeError};
use baton_core::{Json, OrgId};
use baton_store::CommitError;
use serde_json::json;

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
