//! Races on PostgreSQL that are not left to chance: somebody is held where it matters.

use super::steps::{ask, clean, done};
use crate::hold::{Hold, connect};
use crate::lab::Lab;
use crate::queue_types::{job, lab_with};
use anyhow::{Context, Result, ensure};
use baton_core::canon::Json;
use baton_core::command::Actor;
use baton_core::job::enqueue::{Enqueue, How};
use baton_core::rules::Rules;
use serde_json::json;
use tokio_postgres::error::SqlState;

/// A job of one key, in a lane of its own choice.
fn placed(lane: &str, key: &str) -> Enqueue {
    Enqueue { payload: Json::of(&json!({ "lane": lane, "k": key })), ..job("placed", "p1") }
}

pub async fn a_key_that_was_free_is_looked_at_again_after_waiting_for_a_lane(lab: Lab) -> Result<()> {
    let lab = lab_with(lab, Rules::default());
    let (a, b) = (lab.node_named("node_a").await?, lab.node_named("node_b").await?);
    // Both lanes have a row to wait for.
    for lane in ["here", "there"] {
        a.store.commit(placed(lane, &format!("first-{lane}")), Actor::Api).await?;
    }
    let hold = Hold::lane(&lab, "there").await?;
    // It has seen that nobody stands for the key, and waits for its lane.
    let store = b.store.clone();
    let late = tokio::spawn(async move { store.commit(placed("there", "k"), Actor::Api).await });
    hold.awaited().await?;
    // Meanwhile the job of the key is made, done and gone.
    let first = a.store.commit(placed("here", "k"), Actor::Api).await?.job.id;
    let leased = a.store.claim(ask(&lab, &a, 10)).await?.leased;
    let ours = leased.iter().find(|leased| leased.job.id == first).context("it is claimed")?;
    a.store.commit(done(ours)?, Actor::Engine).await?;
    hold.let_go().await?;
    let late = late.await??;
    ensure!(late.how == How::Dropped && late.job.id == first, "{:?} {}", late.how, late.job.id);
    clean(&a.store).await
}

/// As many as may take in side by side.
const PLACES: usize = 32;
const CAP: i64 = 640;

pub async fn no_more_take_in_side_by_side_than_the_room_is_divided_among(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let ask = "SELECT baton_crowd($1, $2)";
    let share = CAP / 64;
    let mut inside = Vec::new();
    for n in 0..PLACES {
        let client = connect(&lab).await?;
        client.batch_execute("BEGIN; SET LOCAL lock_timeout = '30s'").await?;
        let waiting: i64 = client.query_one(ask, &[&CAP, &share]).await?.get(0);
        ensure!(waiting == 0, "number {n} sees {waiting}");
        inside.push(client);
    }
    // One more could find no room after all of them, so it counts alone, and waits to do so.
    let further = connect(&lab).await?;
    further.batch_execute("BEGIN; SET LOCAL lock_timeout = '50ms'").await?;
    let refused = further.query_one(ask, &[&CAP, &share]).await.err().context("it must wait")?;
    ensure!(refused.code() == Some(&SqlState::LOCK_NOT_AVAILABLE), "{refused}");
    further.batch_execute("ROLLBACK").await?;
    for client in &inside {
        client.batch_execute("ROLLBACK").await?;
    }
    further.batch_execute("BEGIN; SET LOCAL lock_timeout = '30s'").await?;
    further.query_one(ask, &[&CAP, &share]).await?;
    // Whoever wants more than a share waits for everybody.
    let greedy = connect(&lab).await?;
    greedy.batch_execute("BEGIN; SET LOCAL lock_timeout = '50ms'").await?;
    let refused = greedy.query_one(ask, &[&CAP, &(share + 1)]).await.err().context("it must wait")?;
    ensure!(refused.code() == Some(&SqlState::LOCK_NOT_AVAILABLE), "{refused}");
    clean(&node.store).await
}
