//! What clients do while things go wrong.

use super::client::Client;
use super::door::{hook, lock};
use super::order::{Order, PROJECTS, pick};
use crate::lab::name;
use anyhow::Result;
use baton_core::command::Actor;
use baton_core::cron::put::{self, Put};
use baton_core::cron::{CatchUp, Spec, When};
use baton_core::job::Fence;
use baton_core::job::cancel::Cancel;
use baton_core::job::settle::{self, Settle};
use baton_core::job::wake::Wake;
use baton_core::lane::{LaneKey, Pause};
use baton_core::rng::Rng;
use baton_core::{JobId, Json, OrgId};
use baton_store::{CommitError, Store};
use serde_json::json;
use std::time::Duration;

/// The project whose schedule this is.
pub(super) const SCHEDULED: &str = "p0";
pub(super) const SCHEDULE: &str = "often";

/// Asks for so many jobs, and meddles with them.
pub(super) async fn play(client: &mut Client<'_>, jobs: u64, rng: &mut Rng) -> Result<()> {
    if rng.chance(1, 4) {
        hook(client).await?;
    }
    let scheduled = rng.chance(1, 3);
    if scheduled {
        let spec = spec(rng);
        schedule(client, put::Act::Put(Box::new(spec))).await?;
    }
    let mut n = 0;
    while n < jobs {
        if rng.chance(1, 6) {
            let size = 2 + rng.below(3);
            let orders = (n..n + size).map(|n| Order::draw(n, rng)).collect();
            client.batch(orders).await?;
            n += size;
        } else {
            let by_message = rng.chance(1, 3);
            client.enqueue(Order::draw(n, rng), by_message).await?;
            n += 1;
        }
        if rng.chance(1, 2) && !client.book.jobs.is_empty() {
            // The last one is most likely still to be bothered.
            let last = client.book.jobs.len() - 1;
            let job = client.book.jobs[if rng.chance(1, 2) { last } else { rng.below(last as u64 + 1) as usize }];
            bother(client, job, rng).await?;
        }
        if rng.below(1_000) < client.luck.odds.jump {
            client.clocks[rng.below(client.clocks.len() as u64) as usize].jump(rng);
        }
        if rng.chance(1, 3) {
            tokio::time::sleep(Duration::from_millis(rng.below(20_000))).await;
        }
    }
    if scheduled {
        schedule(client, put::Act::Delete).await?;
    }
    Ok(())
}

fn spec(rng: &mut Rng) -> Spec {
    Spec {
        when: When { cron: "*/15 * * * * *".to_owned(), time_zone: "UTC".to_owned() },
        kind: name(pick(rng, &["work", "open"])),
        payload: json!({ "n": "scheduled", "ms": pick(rng, &[0, 3_000]), "then": pick(rng, &["done", "stumble"]), "times": 1 }),
        priority: None,
        source_session: None,
        catch_up: pick(rng, &[CatchUp::Skip, CatchUp::One, CatchUp::All]),
        single_flight: rng.chance(1, 2),
    }
}

/// Again and again until it is answered: making it once more only sets its timer anew, and what is
/// not there any more was deleted.
async fn schedule(client: &Client<'_>, act: put::Act) -> Result<()> {
    let said = |store: Store| {
        let put = Put { org: OrgId::default(), project: name(SCHEDULED), name: name(SCHEDULE), act: act.clone() };
        async move { (!matches!(store.commit(put, Actor::Api).await, Err(CommitError::Store(_)))).then_some(()) }
    };
    client.until_answered(said).await
}

/// Something that may happen to a job at any time.
async fn bother(client: &mut Client<'_>, job: JobId, rng: &mut Rng) -> Result<()> {
    let org = OrgId::default();
    match rng.below(8) {
        7 => {
            for _ in 0..3 {
                lock(client, rng).await;
            }
        }
        0 => client.shout(Wake { org, job }).await,
        1 => {
            // A stranger who claims to be the worker.
            let fence = Fence { org, job, token: rng.below(4).cast_signed(), worker: name("node_stranger") };
            let outcome = settle::Outcome::Done(Json::of(&json!({ "n": "a lie" })));
            client.shout(Settle { fence, outcome }).await;
        }
        2 | 3 => {
            client.book.cancelled.insert(job);
            client.shout(Cancel { org, job, reason: None }).await;
        }
        4 => client.answer(job, pick(rng, &["confirm", "confirm", "stop", "break", "neither"])).await,
        5 => {
            let lane = LaneKey::of_project(&name(pick(rng, &PROJECTS)));
            client.shout(Pause { org, lane, paused: rng.chance(1, 2) }).await;
        }
        _ => client.requeue(job).await?,
    }
    Ok(())
}
