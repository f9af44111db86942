//! Limits: what is too large is refused, and too many only wait.

use super::steps::{claim_one, clean, done, live, record, settle};
use crate::lab::{Lab, echo};
use anyhow::{Context, Result, ensure};
use baton_core::Json;
use baton_core::command::Actor;
use baton_core::job::enqueue::{Enqueue, EnqueueError};
use baton_core::job::settle::{Outcome, Settled};
use baton_core::job::state::Face;
use baton_core::limits;
use baton_store::{CommitError, StoreError};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use serde_json::json;

/// A JSON text of exactly so many bytes.
fn text(bytes: usize) -> Json {
    Json::of(&json!("x".repeat(bytes - 2)))
}

pub async fn a_payload_may_be_large_but_not_too_large(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let refused = Enqueue { payload: text(limits::PAYLOAD_BYTES + 1), ..echo() };
    let refused = node.store.commit(refused, Actor::Api).await;
    ensure!(
        matches!(refused, Err(CommitError::Refused(EnqueueError::PayloadTooLarge { bytes, .. })) if bytes == limits::PAYLOAD_BYTES + 1)
    );
    let largest = Enqueue { payload: text(limits::PAYLOAD_BYTES), ..echo() };
    let id = node.store.commit(largest.clone(), Actor::Api).await?.job.id;
    ensure!(record(&node, id).await?.cold.payload == largest.payload);
    ensure!(claim_one(&lab, &node).await?.payload == largest.payload);
    clean(&node.store).await
}

pub async fn a_result_may_be_large_but_not_too_large(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    for (bytes, face) in [(limits::RESULT_BYTES, Face::Completed), (limits::RESULT_BYTES + 1, Face::Failed)] {
        let id = node.store.commit(echo(), Actor::Api).await?.job.id;
        let leased = claim_one(&lab, &node).await?;
        let settled = settle(&leased, Outcome::Done(text(bytes)))?;
        ensure!(node.store.commit(settled, Actor::Engine).await? == Settled::Now);
        let found = record(&node, id).await?;
        ensure!(found.job.status.face() == face);
        match face {
            Face::Completed => ensure!(found.result == Some(text(bytes))),
            _ => ensure!(found.error.context("it failed")?.code == "result_too_large" && found.result.is_none()),
        }
        ensure!(node.store.commit(done(&leased)?, Actor::Engine).await? == Settled::Already);
    }
    clean(&node.store).await
}

pub async fn any_text_survives(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    for text in
        ["\0", "\u{feff}", "\"\\/\u{8}\n'; DROP TABLE job; --", "\u{1F3BC}\u{301}\u{202e}", "\u{ffff}\u{7f}", ""]
    {
        let payload = Json::of(&json!({ text: text, "n": [0, -1, 1.5, i64::MAX, u64::MAX] }));
        let job = Enqueue { payload: payload.clone(), ..echo() };
        let id = node.store.commit(job, Actor::Api).await?.job.id;
        ensure!(record(&node, id).await?.cold.payload == payload);
        let leased = claim_one(&lab, &node).await?;
        ensure!(leased.payload == payload);
        node.store.commit(settle(&leased, Outcome::Done(payload.clone()))?, Actor::Engine).await?;
        ensure!(record(&node, id).await?.result == Some(payload));
    }
    clean(&node.store).await
}

pub async fn ten_thousand_at_once_are_all_answered_and_none_is_lost(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let mut waiting: FuturesUnordered<_> = (0..10_000).map(|_| node.store.commit(echo(), Actor::Api)).collect();
    let (mut made, mut turned_away) = (0, 0);
    while let Some(answer) = waiting.next().await {
        match answer {
            Ok(_) => made += 1,
            // Not let in for a long time: nothing was written, and the caller knows.
            Err(CommitError::Store(StoreError::Overloaded)) => turned_away += 1,
            Err(other) => anyhow::bail!("{other:?}"),
        }
    }
    ensure!(made + turned_away == 10_000 && made > 0);
    let queued = live(&node.store).await?;
    ensure!(queued.into_iter().eq([("queued", made)]), "{made} were promised");
    Ok(())
}
