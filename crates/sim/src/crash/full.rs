//! Being full: what has no room is refused and leaves nothing behind, in one project and over all of
//! them, and is taken in once there is room.

use super::actor::{act, kind};
use super::client::{once, order, parked};
use super::{Client, Story, Witness};
use crate::lab::name;
use anyhow::{Result, bail, ensure};
use baton_core::OrgId;
use baton_core::command::{Actor, Refusal};
use baton_core::job::batch::Batch;
use baton_core::job::enqueue::{Enqueue, Enqueued};
use baton_core::job::state::Face;
use baton_core::once::Rendered;
use baton_core::rules::Rules;
use baton_engine::Registry;
use baton_store::{CommitError, LaneRecord, ListLanes, Order};
use serde_json::json;

pub struct Full;

const PER_PROJECT: u32 = 2;
const GLOBAL: u32 = 3;

/// The jobs that hold their project's slot, while others wait behind them.
const HOLDERS: [(&str, &str); 2] = [("holds a", "a"), ("holds b", "b")];
const KEYS: [&str; 7] = ["holds a", "holds b", "first", "second", "too many", "third", "too many in all"];

fn step(project: &str) -> Enqueue {
    order(project, "step", &json!({}))
}

/// Under its key it is refused, because this has no room.
async fn refused(client: &Client<'_>, key: &str, project: &str, what: &str) -> Result<()> {
    let render = |out: &Enqueued| Rendered { status: 201, body: out.job.id.to_string() };
    match client.store.commit_once(step(project), Actor::Api, once(key, render)).await {
        Err(CommitError::Refused(no)) => ensure!(no.code() == "queue_full" && no.to_string().starts_with(what), "{no}"),
        other => bail!("{key} has no room, and yet: {other:?}"),
    }
    Ok(())
}

async fn waiting(client: &Client<'_>, project: &str) -> Result<u32> {
    let ask = ListLanes { org: OrgId::default(), order: Order::Rising, after: None, limit: 10 };
    let lanes = client.store.lanes(ask).await?.items;
    let own = baton_core::lane::LaneKey::of_project(&name(project));
    Ok(lanes.iter().find(|lane: &&LaneRecord| lane.key == own).map_or(0, |lane| lane.waiting))
}

impl Story for Full {
    const PROJECTS: &'static [&'static str] = &["a", "b", "c"];

    fn registry() -> Registry {
        let mut registry = Registry::empty();
        registry.add(kind("step"), act);
        registry
    }

    fn rules() -> Rules {
        Rules { max_per_project: PER_PROJECT, max_global: GLOBAL, ..Rules::default() }
    }

    async fn play(client: &mut Client<'_>) -> Result<()> {
        for (key, project) in HOLDERS {
            client.ask(key, order(project, "step", &json!({ "do": "wait" }))).await?;
            client.until(key, |record| parked(record) || record.job.is_ended()).await?;
        }
        // Nobody lets the holders go before it was seen to be full.
        for key in ["first", "second"] {
            client.ask(key, step("a")).await?;
        }
        if !client.taken("a is full") {
            refused(client, "too many", "a", "lane project:a").await?;
            let batch = Batch { org: OrgId::default(), jobs: vec![step("c"), step("a")] };
            ensure!(client.tell(batch).await?.is_none(), "one of the batch has no room");
            client.first_time("a is full");
        }
        client.ask("third", step("b")).await?;
        if !client.taken("all is full") {
            refused(client, "too many in all", "b", "the queue of all projects").await?;
            ensure!((waiting(client, "a").await?, waiting(client, "b").await?) == (PER_PROJECT, GLOBAL - PER_PROJECT));
            // What is known is not turned away.
            client.ask("first", step("a")).await?;
            client.first_time("all is full");
        }
        for (key, _) in HOLDERS {
            client.wake(key).await?;
        }
        client.ended(&["first", "second", "third"]).await?;
        for (key, project) in [("too many", "a"), ("too many in all", "b")] {
            client.ask(key, step(project)).await?;
        }
        client.ended(&KEYS).await
    }

    async fn check(witness: &Witness<'_>) -> Result<()> {
        witness.exactly(&KEYS)?;
        for key in KEYS {
            witness.ended_as(key, Face::Completed)?;
        }
        Ok(())
    }
}
