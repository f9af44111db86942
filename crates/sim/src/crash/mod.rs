//! Crash points: a story is killed at every commit, once before it and once after it but before
//! anybody hears, and must still come to the same end.
//!
//! A story is told from outside, as a client would live it: it remembers what it was promised,
//! repeats what was never answered under the same key, and at the end looks whether everything
//! promised is there exactly once. Two more mishaps, where the process lives but the answer to a
//! commit is lost, go through the same mill.
//!
//! Each feature of the queue has a story of its own, so that each stays short: [`Spine`] is about
//! jobs as such, the others are named after what they are about.

mod actor;
mod batch;
mod cancel;
mod client;
mod dedupe;
mod door;
mod full;
mod lanes;
mod retention;
mod retry;
mod runs;
mod schedule;
mod sinks;
mod spine;
mod witness;
mod workers;

pub use batch::Batches;
pub use cancel::Cancels;
pub use client::Client;
pub use dedupe::Duplicates;
pub use door::Door;
pub use full::Full;
pub use lanes::Lanes;
pub use retention::Retention;
pub use retry::Retries;
pub use runs::Runs;
pub use schedule::Schedules;
pub use sinks::Sinks;
pub use spine::Spine;
pub use witness::Witness;
pub use workers::Workers;

use crate::lab::{Lab, Place, name};
use crate::script::Script;
use anyhow::{Context, Result, bail, ensure};
use baton_core::rules::Rules;
use baton_core::seal;
use baton_engine::{Engine, Options, Registry};
use baton_store::Store;
use baton_store::faults::{Mishap, Sabotage};
use client::Memory;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// No story has more commits than this; one that does never ends.
const POINTS_MAX: u64 = 500;
/// A story that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between a store that turns somebody away and the news that it has crashed.
const LAST_BREATH: Duration = Duration::from_secs(2);
/// Enough that no job of a story waits for another's worker.
const WORKERS: usize = 8;

const NODE: &str = "node_a";

/// See the module.
pub trait Story {
    /// The projects whose jobs it is about.
    const PROJECTS: &'static [&'static str];
    /// It leaves schedules behind, and so timers.
    const SCHEDULES: bool = false;

    fn registry() -> Registry;

    fn rules() -> Rules {
        Rules::default()
    }

    fn tune(_: &mut Options) {}

    /// What the client does. Told anew in every life, so each step must bear repeating.
    fn play(client: &mut Client<'_>) -> impl Future<Output = Result<()>>;

    /// What must be true in the end, besides what holds after every story.
    fn check(witness: &Witness<'_>) -> impl Future<Output = Result<()>>;
}

/// Tries every commit of a story with one mishap; how many points there were.
pub fn explore<S: Story>(place: Place, mishap: Mishap, sabotage: Option<Sabotage>) -> Result<u64> {
    for n in 1..=POINTS_MAX {
        let Some(mut lab) = runtime()?.block_on(Lab::new(place, sabotage))? else { return Ok(0) };
        lab.definitions = Arc::new(registry::<S>().definitions(S::rules()));
        let told = one_point::<S>(&lab, n, mishap);
        if !told.with_context(|| format!("{mishap:?} at commit {n} on {place:?}"))? {
            return Ok(n - 1);
        }
    }
    bail!("the story has more than {POINTS_MAX} commits")
}

/// Whether the story had an nth commit.
fn one_point<S: Story>(lab: &Lab, n: u64, mishap: Mishap) -> Result<bool> {
    let mut memory = Memory::default();
    let script = Arc::new(lab.script());
    script.group_max(1);
    script.at(n, mishap);
    let first = life::<S>(lab, &script, &mut memory)?;
    let reached = script.commits() >= n;
    if first == Life::Crashed {
        let healthy = Arc::new(lab.script());
        ensure!(life::<S>(lab, &healthy, &mut memory)? == Life::Finished, "it crashed without being asked to");
    }
    runtime()?.block_on(witness::look::<S>(lab, &memory))?;
    Ok(reached)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Life {
    Finished,
    Crashed,
}

/// One life of the server: a runtime of its own, so that a crash takes every task with it.
fn life<S: Story>(lab: &Lab, script: &Arc<Script>, memory: &mut Memory) -> Result<Life> {
    let runtime = runtime()?;
    runtime.block_on(async {
        let store = lab.open(NODE, script.clone()).await?;
        tokio::select! {
            biased;
            () = script.crash() => Ok(Life::Crashed),
            ended = tokio::time::timeout(PATIENCE, live::<S>(lab, store, memory)) => match ended {
                Ok(Ok(())) => Ok(Life::Finished),
                // A dying store may turn somebody away a moment before it is seen to be dead.
                Ok(Err(e)) => match tokio::time::timeout(LAST_BREATH, script.crash()).await {
                    Ok(()) => Ok(Life::Crashed),
                    Err(_) => Err(e),
                },
                Err(_) => bail!("the story hangs"),
            },
        }
    })
}

async fn live<S: Story>(lab: &Lab, store: Store, memory: &mut Memory) -> Result<()> {
    let mut options = Options::new(name(NODE));
    options.slots = WORKERS;
    options.seal_key = Some(key());
    S::tune(&mut options);
    let engine = Engine::start(store, registry::<S>(), options).await?;
    S::play(&mut Client::new(lab, &engine, memory)).await?;
    engine.stop(Duration::from_secs(5)).await;
    Ok(())
}

fn registry<S: Story>() -> Registry {
    let mut registry = S::registry();
    client::add_nudge(&mut registry);
    registry
}

fn runtime() -> Result<Runtime> {
    Ok(Builder::new_current_thread().enable_all().build()?)
}

fn key() -> seal::Key {
    seal::Key::new([5; 32])
}
