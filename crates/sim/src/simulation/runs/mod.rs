//! Simulation of runs: random plans, tools that fail in every way they can, people who pause, resume,
//! cancel, retry, signal and answer, while nodes die, answers get lost and clocks jump.
//!
//! The audit is clean after every commit. At the end every run has ended, the ledger adds up, and nothing
//! that must not happen twice did.

mod checker;
mod deeds;
mod document;
mod people;
mod play;
mod rest;
mod tools;

use super::client::{Book, Client};
use super::clock::SimClock;
use super::life::{Fleet, Trade};
use super::luck::{Luck, Odds};
use super::{REST_BY, Summary, on_virtual_time};
use anyhow::{Context, Result, bail};
use baton_core::rng::Rng;
use baton_core::rules::Rules;
use baton_engine::Registry;
use baton_store::Disk;
use baton_store::faults::Sabotage;
use checker::Checker;
use deeds::Deeds;
use people::People;
use std::sync::Arc;

/// Runs one seed. An error says what was violated and how to see it again.
pub fn run(seed: u64, sabotage: Option<Sabotage>) -> Result<Summary> {
    on_virtual_time(simulate(seed, sabotage))
        .with_context(|| format!("seed {seed} of runs fails; replay it with: cargo xtask sim --of runs --seed {seed}"))
}

async fn simulate(seed: u64, sabotage: Option<Sabotage>) -> Result<Summary> {
    let mut rng = Rng::new(seed);
    let disk = Disk::empty()?;
    let odds = Odds::draw(&mut rng);
    let nodes = 1 + rng.below(3) as usize;
    let checker = Arc::new(Checker::new(disk.clone()));
    let luck = Arc::new(Luck::new(odds, rng.next_u64(), sabotage, checker.clone()));
    let clocks = (0..nodes).map(|_| Arc::new(SimClock::drawn(&mut rng))).collect::<Vec<_>>();
    let deeds = Arc::new(Deeds::default());
    let toolbox = tools::toolbox(&luck, &deeds);
    let known = toolbox.known().clone();
    let trade: Trade = Arc::new(move || {
        let mut registry = Registry::empty();
        registry.work(toolbox.clone());
        registry
    });
    let fleet = Fleet::launch(&disk, &clocks, &luck, (Rules::default(), &trade), &mut rng);
    let play = async {
        let client = Client { fleet: &fleet, luck: &luck, clocks: &clocks, book: Book::default() };
        let people = People { client, deeds: &deeds };
        let runs = play::play(&people, &known, &mut rng).await?;
        luck.calm();
        rest::rest(&people, &runs, &disk, &checker).await
    };
    tokio::select! {
        biased;
        violation = checker.violated() => bail!("{violation}"),
        played = tokio::time::timeout(REST_BY, play) => match played {
            Ok(result) => result?,
            Err(_) => bail!("it did not come to rest within {REST_BY:?} of virtual time"),
        },
    }
    fleet.stop().await;
    checker.check()?;
    let (history, happened) = checker.story();
    Ok(Summary {
        seed,
        history,
        happened,
        commits: luck.commits(),
        crashes: luck.crashes(),
        lost_answers: luck.lost_answers(),
    })
}
