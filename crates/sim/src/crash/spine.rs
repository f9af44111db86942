//! Jobs as such: done, delayed, parked, woken, failed, and ended by their deadline.

use super::client::{order, parked};
use super::{Client, Story, Witness};
use anyhow::{Result, ensure};
use baton_core::job::enqueue::Enqueue;
use baton_core::job::state::Face;
use baton_core::time::Span;
use baton_engine::Registry;
use serde_json::{Value, json};

pub struct Spine;

/// How a job of the story must end.
struct Plan {
    key: &'static str,
    payload: Value,
    /// After an hour it fails if it has not ended.
    deadline: bool,
    ends: Face,
}

fn plans() -> [Plan; 6] {
    let plan = |key, payload, deadline, ends| Plan { key, payload, deadline, ends };
    [
        plan("plain", json!({ "message": 1 }), false, Face::Completed),
        plan("more", json!({ "message": 2 }), true, Face::Completed),
        plan("sleeps", json!({ "message": 3, "delay_ms": 1_800_000 }), false, Face::Completed),
        plan("woken", json!({ "message": 4, "wait": true }), false, Face::Completed),
        plan("forgotten", json!({ "message": 5, "wait": true }), true, Face::Failed),
        plan("wrong", json!({ "message": 6, "fail": "deterministic" }), false, Face::Failed),
    ]
}

impl Story for Spine {
    const PROJECTS: &'static [&'static str] = &["spine"];

    fn registry() -> Registry {
        crate::open_lane::registry()
    }

    async fn play(client: &mut Client<'_>) -> Result<()> {
        let plans = plans();
        for plan in &plans {
            let hour = client.store.now().await?.plus(Span::secs(3_600));
            let deadline = plan.deadline.then_some(hour);
            client.ask(plan.key, Enqueue { deadline, ..order("spine", "echo", &plan.payload) }).await?;
        }
        client.wake("woken").await?;
        client.ended(&["plain", "more", "woken", "wrong"]).await?;
        for key in ["sleeps", "forgotten"] {
            client.until(key, |record| parked(record) || record.job.is_ended()).await?;
        }
        client.advance("two hours", Span::secs(7_200)).await?;
        client.ended(&plans.map(|plan| plan.key)).await
    }

    async fn check(witness: &Witness<'_>) -> Result<()> {
        let plans = plans();
        witness.exactly(&plans.each_ref().map(|plan| plan.key))?;
        for plan in &plans {
            let record = witness.ended_as(plan.key, plan.ends)?;
            let message = record.result.as_ref().map(|r| r.value()["message"].clone());
            let expected = (plan.ends == Face::Completed).then(|| plan.payload["message"].clone());
            ensure!(message == expected, "{} answered {message:?}", plan.key);
        }
        Ok(())
    }
}
