//! Batches, all of a batch or nothing; and dead letters, which are made anew once.

use super::actor::{act, kind};
use super::client::{once, order};
use super::{Client, Story, Witness};
use anyhow::{Context, Result, bail, ensure};
use baton_core::command::Actor;
use baton_core::job::batch::Batch;
use baton_core::job::enqueue::Enqueued;
use baton_core::job::requeue::{Requeue, RequeueError};
use baton_core::job::state::Face;
use baton_core::once::Rendered;
use baton_core::{JobId, OrgId};
use baton_engine::Registry;
use baton_store::{Answer, CommitError, DeadLetters, Order};
use serde_json::json;

pub struct Batches;

const PROJECT: &str = "batch";
const KEYS: [&str; 3] = ["one", "wrong", "three"];

/// What each job does; the batch's order is that of the keys.
fn batch(more: Option<&str>) -> Batch {
    let act = |key: &str| if key == "wrong" { "wrong" } else { "" };
    let jobs = KEYS.iter().map(|key| order(PROJECT, "step", &json!({ "key": key, "do": act(key) })));
    Batch { org: OrgId::default(), jobs: jobs.chain(more.map(|kind| order(PROJECT, kind, &json!({})))).collect() }
}

async fn enqueue(client: &mut Client<'_>) -> Result<()> {
    let render = |out: &Vec<Enqueued>| {
        let ids = out.iter().map(|taken| taken.job.id.to_string()).collect::<Vec<_>>();
        Rendered { status: 201, body: ids.join(" ") }
    };
    let ids = match client.store.commit_once(batch(None), Actor::Api, once("batch", render)).await? {
        Answer::Fresh(out) => out.iter().map(|taken| taken.job.id).collect(),
        Answer::Replayed(before) => {
            before.body.split(' ').map(str::parse).collect::<Result<Vec<JobId>, _>>().context("an id")?
        }
    };
    ensure!(ids.len() == KEYS.len());
    for (key, id) in KEYS.into_iter().zip(ids) {
        client.promised(key, id)?;
    }
    Ok(())
}

/// Once: whoever comes second is told what became of it.
async fn requeue(client: &mut Client<'_>) -> Result<()> {
    let command = Requeue { org: OrgId::default(), jobs: vec![client.id("wrong")?] };
    let anew = match client.store.commit(command, Actor::Api).await {
        Ok(made) => made.first().context("one was asked for")?.job.id,
        Err(CommitError::Refused(RequeueError::Before { into, .. })) => into,
        Err(e) => bail!("{e}"),
    };
    client.promised("anew", anew)?;
    Ok(())
}

impl Story for Batches {
    const PROJECTS: &'static [&'static str] = &[PROJECT];

    fn registry() -> Registry {
        let mut registry = Registry::empty();
        registry.add(kind("step"), act);
        registry
    }

    async fn play(client: &mut Client<'_>) -> Result<()> {
        ensure!(client.tell(batch(Some("moon"))).await?.is_none(), "one of the batch cannot be taken");
        enqueue(client).await?;
        client.ended(&KEYS).await?;
        requeue(client).await?;
        requeue(client).await?;
        client.ended(&["anew"]).await
    }

    async fn check(witness: &Witness<'_>) -> Result<()> {
        witness.exactly(&["one", "wrong", "three", "anew"])?;
        for key in ["one", "three"] {
            witness.ended_as(key, Face::Completed)?;
        }
        // It is as wrong as it was.
        let (dead, anew) = (witness.ended_as("wrong", Face::Failed)?, witness.ended_as("anew", Face::Failed)?);
        ensure!(dead.requeued_as == Some(anew.job.id) && anew.cold.requeued_from == Some(dead.job.id));
        ensure!(anew.cold.payload == dead.cold.payload && anew.requeued_as.is_none());
        let ask = DeadLetters {
            org: OrgId::default(),
            project: Some(crate::lab::name(PROJECT)),
            kind: None,
            order: Order::Falling,
            after: None,
            limit: 10,
            bytes: usize::MAX,
        };
        let letters = witness.store.dead_letters(ask).await?.items;
        ensure!(letters.iter().map(|r| r.job.id).eq([anew.job.id]), "{letters:?}");
        Ok(())
    }
}
