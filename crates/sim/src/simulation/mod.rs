//! Simulation: random workloads, crashes, lost leases, slow workers, skewed and jumping clocks,
//! on virtual time. Everything comes from the seed, so a failure can be looked at again.
//!
//! One thread, paused time, a simulated disk that outlives the nodes on it. After every commit
//! the whole disk is verified; at the end nothing may be lost, stuck or done twice.
//!
//! Clients ask for jobs of every kind in lanes of every kind, alone and in batches, repeat
//! themselves, cancel, wake, answer, pause lanes, keep schedules and make failed jobs anew. Runs have
//! simulations of their own: [`runs`].

mod aging;
mod checker;
mod client;
mod clock;
mod door;
mod kinds;
mod life;
mod luck;
mod order;
mod rest;
mod room;
mod rows;
pub mod runs;
mod watch;
mod work;

use anyhow::{Context, Result, bail};
use baton_core::Digest;
use baton_core::rng::Rng;
use baton_core::rules::Rules;
use baton_core::time::Span;
use baton_store::Disk;
use baton_store::faults::Sabotage;
use checker::Checker;
use client::{Book, Client};
use clock::SimClock;
use life::{Fleet, Trade};
use luck::{Luck, Odds};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Virtual time after which a simulation that has not come to rest is stuck.
const REST_BY: Duration = Duration::from_secs(2 * 60 * 60);

/// What a simulation came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    pub seed: u64,
    /// Over the whole history: the same for the same seed.
    pub history: Digest,
    /// How often each kind of thing happened: events, with their reasons, and what clients were told.
    pub happened: BTreeMap<String, u64>,
    pub commits: u64,
    pub crashes: u64,
    pub lost_answers: u64,
}

/// Runs one seed. An error says what was violated and how to see it again.
pub fn run(seed: u64, sabotage: Option<Sabotage>) -> Result<Summary> {
    on_virtual_time(simulate(seed, sabotage))
        .with_context(|| format!("seed {seed} fails; replay it with: cargo xtask sim --seed {seed}"))
}

/// One thread, on which time passes when there is nothing else to do.
fn on_virtual_time<T>(story: impl Future<Output = Result<T>>) -> Result<T> {
    crate::lab::show_log();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
    runtime.block_on(story)
}

async fn simulate(seed: u64, sabotage: Option<Sabotage>) -> Result<Summary> {
    let mut rng = Rng::new(seed);
    let disk = Disk::empty()?;
    let odds = Odds::draw(&mut rng);
    let nodes = 1 + rng.below(3) as usize;
    let jobs = 6 + rng.below(30);
    let rules = rules(&mut rng);
    let checker = Arc::new(Checker::new(disk.clone(), rules));
    let luck = Arc::new(Luck::new(odds, rng.next_u64(), sabotage, checker.clone()));
    let clocks = (0..nodes).map(|_| Arc::new(SimClock::drawn(&mut rng))).collect::<Vec<_>>();
    let trade: Trade = Arc::new(kinds::registry);
    let fleet = Fleet::launch(&disk, &clocks, &luck, (rules, &trade), &mut rng);
    let play = async {
        let mut client = Client { fleet: &fleet, luck: &luck, clocks: &clocks, book: Book::default() };
        work::play(&mut client, jobs, &mut rng).await?;
        luck.calm();
        rest::rest(&client, &disk, &checker).await
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

/// Now and then little is kept, little may wait, or nobody waits for long.
fn rules(rng: &mut Rng) -> Rules {
    let plain = Rules::default();
    let retained = if rng.chance(1, 3) { 2 } else { plain.retained };
    let max_per_project = if rng.chance(1, 4) { 3 } else { plain.max_per_project };
    let max_global = if rng.chance(1, 4) { 4 } else { plain.max_global };
    let aging = if rng.chance(1, 2) { Span::millis(rng.below(3_000).cast_signed()) } else { plain.aging };
    let burst = if rng.chance(1, 2) { rng.below(3) as u32 } else { plain.burst };
    Rules { retained, max_per_project, max_global, aging, burst, ..plain }
}
