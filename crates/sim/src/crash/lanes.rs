//! Lanes: never more jobs than the limit at once, and one that waits for its tool keeps its slot.

use super::actor::{act, kind, lane};
use super::client::{order, parked};
use super::{Client, Story, Witness};
use anyhow::{Result, ensure};
use baton_core::OrgId;
use baton_core::definition::JobType;
use baton_core::job::INTERACTIVE;
use baton_core::job::enqueue::Enqueue;
use baton_core::job::state::Face;
use baton_engine::Registry;
use baton_store::{LaneRecord, ListLanes, Order};
use serde_json::json;

pub struct Lanes;

/// Key, project, type, what it does.
const JOBS: [(&str, &str, &str, &str); 8] = [
    ("tool", "a", "step", "wait"),
    ("behind", "a", "step", ""),
    ("stumbles", "a", "step", "stumble"),
    ("beside", "b", "step", ""),
    ("wrong", "b", "step", "wrong"),
    ("pair 1", "a", "pair", ""),
    ("pair 2", "b", "pair", "wait"),
    ("pair 3", "b", "pair", ""),
];

const KEYS: [&str; 9] = ["tool", "behind", "stumbles", "beside", "wrong", "pair 1", "pair 2", "pair 3", "urgent"];

impl Story for Lanes {
    const PROJECTS: &'static [&'static str] = &["a", "b"];

    fn registry() -> Registry {
        let mut registry = Registry::empty();
        registry.add(kind("step"), act);
        registry.add(JobType { lane: lane("two:all", 2), ..kind("pair") }, act);
        registry
    }

    async fn play(client: &mut Client<'_>) -> Result<()> {
        for (n, (key, project, kind, act)) in JOBS.into_iter().enumerate() {
            client.ask(key, order(project, kind, &json!({ "n": n, "do": act }))).await?;
        }
        // However urgent: the lane is taken.
        let urgent = Enqueue { priority: Some(INTERACTIVE), ..order("a", "step", &json!({ "n": 8 })) };
        client.ask("urgent", urgent).await?;
        let tool = client.until("tool", |record| parked(record) || record.job.is_ended()).await?;
        if parked(&tool) {
            client.ended(&["beside", "wrong", "pair 1"]).await?;
            let behind = client.record("behind").await?.job;
            ensure!(behind.status.waits() || behind.is_ended(), "{behind:?} runs beside one that holds the slot");
            let ask = ListLanes { org: OrgId::default(), order: Order::Rising, after: None, limit: 10 };
            let lanes = client.store.lanes(ask).await?.items;
            let full = |lane: &LaneRecord| lane.max.is_none_or(|max| lane.running <= max);
            ensure!(lanes.iter().all(full), "{lanes:?}");
        }
        client.wake("pair 2").await?;
        client.wake("tool").await?;
        client.ended(&KEYS).await
    }

    async fn check(witness: &Witness<'_>) -> Result<()> {
        witness.exactly(&KEYS)?;
        for key in KEYS {
            let face = if key == "wrong" { Face::Failed } else { Face::Completed };
            witness.ended_as(key, face)?;
        }
        Ok(())
    }
}
