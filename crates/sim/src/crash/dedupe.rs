//! Duplicates: one job for a key, however often it was asked for and whoever heard the answer.
//!
//! Everything is said under a message id and said again under the same one.

use super::actor::{act, free, kind, lane};
use super::client::{order, parked};
use super::{Client, Story, Witness};
use crate::lab::name;
use anyhow::{Result, ensure};
use baton_core::dedupe::{Mode, Rule};
use baton_core::definition::JobType;
use baton_core::job::Failure;
use baton_core::job::state::Face;
use baton_core::lane::Pause;
use baton_core::{Json, OrgId};
use baton_engine::{Done, JobCx, JobDefinition, Registry};
use serde_json::{Value, json};

pub struct Duplicates;

const PROJECT: &str = "dedupe";
const LANE: &str = "one:merge";

fn deduped(mode: Mode, kind: JobType) -> JobType {
    JobType { dedupe: Rule { mode, key: Some(name("{payload.k}")) }, ..kind }
}

/// Adds up: what is merged twice shows.
struct Sum;

impl JobDefinition for Sum {
    type Payload = Value;
    type Output = Value;

    fn job_type(&self) -> JobType {
        deduped(Mode::MergeDuplicate, JobType { lane: lane(LANE, 1), ..kind("merge") })
    }

    async fn run(&self, cx: JobCx, order: Value) -> Result<Done<Value>, Failure> {
        if order["do"] == "wait" && cx.job.wakes == 0 {
            return Ok(Done::Park { until: None, seen: 0 });
        }
        Ok(Done::Result(json!({ "order": order })))
    }

    fn merge(&self, waiting: &Value, incoming: &Value) -> Value {
        let sum = [waiting, incoming].map(|payload| payload["sum"].as_i64().unwrap_or(0)).iter().sum::<i64>();
        let mut merged = waiting.clone();
        merged["sum"] = json!(sum);
        merged
    }
}

async fn pause(client: &Client<'_>, paused: bool) -> Result<()> {
    client.tell(Pause { org: OrgId::default(), lane: name(LANE), paused }).await?;
    Ok(())
}

async fn say(client: &mut Client<'_>, message: &str, kind: &str, payload: Value) -> Result<()> {
    client.say(message, order(PROJECT, kind, &payload)).await?;
    Ok(())
}

/// While one has not ended there is no other; afterwards there is.
async fn single(client: &mut Client<'_>) -> Result<()> {
    say(client, "single", "single", json!({ "k": 1, "do": "wait" })).await?;
    say(client, "single again", "single", json!({ "k": 1, "do": "wait" })).await?;
    say(client, "single other", "single", json!({ "k": 2 })).await?;
    client.wake("single").await?;
    client.ended(&["single", "single other"]).await?;
    say(client, "single anew", "single", json!({ "k": 1 })).await
}

/// There is no other afterwards either.
async fn drop(client: &mut Client<'_>) -> Result<()> {
    say(client, "drop", "drop", json!({ "k": 1, "do": "stumble" })).await?;
    say(client, "drop again", "drop", json!({ "k": 1 })).await?;
    client.ended(&["drop"]).await?;
    say(client, "drop late", "drop", json!({ "k": 1 })).await
}

/// What waits takes in, what runs gets a follow-up, which takes in.
async fn merge(client: &mut Client<'_>) -> Result<()> {
    if !client.taken("pause") {
        pause(client, true).await?;
        client.first_time("pause");
    }
    say(client, "merge", "merge", json!({ "k": 1, "do": "wait", "sum": 1 })).await?;
    say(client, "merge again", "merge", json!({ "k": 1, "sum": 2 })).await?;
    say(client, "merge more", "merge", json!({ "k": 1, "sum": 4 })).await?;
    pause(client, false).await?;
    client.until("merge", |record| parked(record) || record.job.is_ended()).await?;
    say(client, "follow", "merge", json!({ "k": 1, "sum": 8 })).await?;
    say(client, "follow more", "merge", json!({ "k": 1, "sum": 16 })).await?;
    client.wake("merge").await
}

impl Story for Duplicates {
    const PROJECTS: &'static [&'static str] = &[PROJECT];

    fn registry() -> Registry {
        let mut registry = Registry::empty();
        registry.add(deduped(Mode::SingleFlight, free("single")), act);
        registry.add(deduped(Mode::DropDuplicate, free("drop")), act);
        registry.define(Sum);
        registry
    }

    async fn play(client: &mut Client<'_>) -> Result<()> {
        single(client).await?;
        drop(client).await?;
        merge(client).await?;
        client.ended(&["single anew", "drop", "merge", "follow"]).await
    }

    async fn check(witness: &Witness<'_>) -> Result<()> {
        let jobs = ["single", "single other", "single anew", "drop", "merge", "follow"];
        witness.exactly(&jobs)?;
        for key in jobs {
            witness.ended_as(key, Face::Completed)?;
        }
        for (again, first) in [
            ("single again", "single"),
            ("drop again", "drop"),
            ("drop late", "drop"),
            ("merge again", "merge"),
            ("merge more", "merge"),
            ("follow more", "follow"),
        ] {
            ensure!(witness.id(again)? == witness.id(first)?, "{again} is not {first}");
        }
        for (key, payload) in
            [("merge", json!({ "k": 1, "do": "wait", "sum": 7 })), ("follow", json!({ "k": 1, "sum": 24 }))]
        {
            let record = witness.record(key)?;
            ensure!(record.cold.payload == Json::of(&payload), "{key} has {:?}", record.cold.payload);
            let answered = record.result.as_ref().map(|r| r.value()["order"].clone());
            ensure!(answered == Some(payload), "{key} was run with {answered:?}");
        }
        Ok(())
    }
}
