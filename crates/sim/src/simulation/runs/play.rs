//! What people do while things go wrong.

use super::document::{self, SIGNAL};
use super::people::People;
use crate::lab::name;
use anyhow::Result;
use baton_core::credits::Credits;
use baton_core::ledger::grant::Grant;
use baton_core::plan::Tools;
use baton_core::rng::Rng;
use baton_core::run::cancel::{Cancel, Delete};
use baton_core::run::hold::Hold;
use baton_core::run::retry::Retry;
use baton_core::run::signal::Signal;
use baton_core::run::start::Start;
use baton_core::{Json, OrgId, RunId};
use serde_json::json;
use std::time::Duration;

/// What an org has to begin with.
pub(super) const GRANTED: u32 = 250;

/// Asks for some runs, and meddles with them. Those that there are.
pub(super) async fn play(people: &People<'_>, tools: &Tools, rng: &mut Rng) -> Result<Vec<RunId>> {
    let grant = Grant { org: OrgId::default(), amount: Credits::whole(GRANTED), key: "first".to_owned(), note: None };
    people.insist(&grant).await?;
    let mut runs = Vec::new();
    for n in 0..1 + rng.below(4) {
        if let Some(run) = people.create(n, &document::draw(n, rng), tools).await? {
            runs.push(run);
            if !rng.chance(1, 12) {
                people.insist(&Start { org: OrgId::default(), run }).await?;
            }
        }
        for _ in 0..rng.below(20) {
            meddle(people, &runs, rng).await?;
            tokio::time::sleep(Duration::from_millis(rng.below(15_000))).await;
        }
    }
    Ok(runs)
}

async fn meddle(people: &People<'_>, runs: &[RunId], rng: &mut Rng) -> Result<()> {
    let client = &people.client;
    if rng.below(1_000) < client.luck.odds.jump {
        client.clocks[rng.below(client.clocks.len() as u64) as usize].jump(rng);
    }
    if runs.is_empty() {
        return Ok(());
    }
    let run = runs[rng.below(runs.len() as u64) as usize];
    let org = OrgId::default();
    match rng.below(16) {
        0 | 1 => client.shout(Hold { org, run, agent: None, pause: true }).await,
        2..=4 => client.shout(Hold { org, run, agent: None, pause: false }).await,
        5 | 6 => {
            let Some((_, _, agents)) = people.look(run).await else { return Ok(()) };
            if !agents.is_empty() {
                let agent = agents[rng.below(agents.len() as u64) as usize].id;
                client.shout(Hold { org, run, agent: Some(agent), pause: rng.chance(1, 2) }).await;
            }
        }
        7 if rng.chance(1, 3) => client.shout(Cancel { org, run, reason: None }).await,
        8 | 9 => client.shout(Retry { org, run }).await,
        10 => client.shout(Start { org, run }).await,
        11 => client.shout(Signal { org, run, name: name(SIGNAL), data: Json::of(&json!(rng.below(9))) }).await,
        12 if rng.chance(1, 4) => client.shout(Delete { org, run }).await,
        _ => people.answer(run, Some(rng)).await?,
    }
    Ok(())
}
