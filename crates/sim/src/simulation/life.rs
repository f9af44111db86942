//! Nodes that live, die and come back on the same disk.

use super::clock::SimClock;
use super::luck::{Luck, NodeLuck, SeededEntropy};
use crate::lab::name;
use baton_core::rng::Rng;
use baton_core::rules::Rules;
use baton_engine::{Engine, Options, Registry};
use baton_store::{Disk, OpenOptions, SqliteDb, Store};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

/// Nobody runs a node for longer while things go wrong.
const LIFE_MAX_MS: u64 = 180_000;

/// What the nodes can run.
pub(super) type Trade = Arc<dyn Fn() -> Registry + Send + Sync>;

type Slot = Arc<Mutex<Option<Store>>>;

pub(super) struct Fleet {
    slots: Vec<Slot>,
    lives: Vec<JoinHandle<()>>,
    end: watch::Sender<bool>,
    /// Told when a node is up.
    pub up: Arc<Notify>,
}

impl Fleet {
    pub fn launch(
        disk: &Disk,
        clocks: &[Arc<SimClock>],
        luck: &Arc<Luck>,
        (rules, trade): (Rules, &Trade),
        rng: &mut Rng,
    ) -> Self {
        let end = watch::Sender::new(false);
        let up = Arc::new(Notify::new());
        let mut fleet = Self { slots: Vec::new(), lives: Vec::new(), end, up };
        for (n, clock) in clocks.iter().enumerate() {
            let slot = Slot::default();
            let plan = Plan {
                name: format!("node_{n}"),
                disk: disk.clone(),
                clock: clock.clone(),
                luck: luck.clone(),
                rules,
                trade: trade.clone(),
                slots: 1 + rng.below(4) as usize,
                slot: slot.clone(),
                up: fleet.up.clone(),
            };
            fleet.lives.push(tokio::spawn(live(plan, fleet.end.subscribe())));
            fleet.slots.push(slot);
        }
        fleet
    }

    /// The nodes that are up.
    pub fn stores(&self) -> Vec<Store> {
        self.slots.iter().filter_map(|slot| slot.lock().unwrap_or_else(PoisonError::into_inner).clone()).collect()
    }

    pub async fn stop(self) {
        self.end.send_replace(true);
        for life in self.lives {
            // A node that panicked is reported by the checker or by what it left undone.
            let _ = life.await;
        }
    }
}

struct Plan {
    name: String,
    disk: Disk,
    clock: Arc<SimClock>,
    luck: Arc<Luck>,
    rules: Rules,
    trade: Trade,
    slots: usize,
    slot: Slot,
    up: Arc<Notify>,
}

async fn live(plan: Plan, mut end: watch::Receiver<bool>) {
    while !*end.borrow() {
        let faults = Arc::new(NodeLuck { luck: plan.luck.clone(), died: Notify::new() });
        let registry = (plan.trade)();
        let definitions = Arc::new(registry.definitions(plan.rules));
        let entropy = Arc::new(SeededEntropy(plan.luck.clone()));
        let mut options = OpenOptions::new(PathBuf::new(), plan.clock.clone(), entropy, definitions);
        options.faults = Some(faults.clone());
        let store = Store::Sqlite(Arc::new(SqliteDb::on_disk(plan.disk.clone(), options)));
        let mut settings = Options::new(name(&plan.name));
        settings.slots = plan.slots;
        settings.agent_slots = plan.slots;
        settings.seal_key = Some(baton_core::seal::Key::new([3; 32]));
        let engine = tokio::select! {
            biased;
            () = faults.died.notified() => None,
            started = Engine::start(store.clone(), registry, settings) => started.ok(),
        };
        if let Some(engine) = engine {
            *plan.slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(store);
            plan.up.notify_waiters();
            let died = tokio::select! {
                biased;
                () = faults.died.notified() => true,
                _ = end.wait_for(|end| *end) => false,
                () = retired(&plan.luck) => false,
            };
            plan.slot.lock().unwrap_or_else(PoisonError::into_inner).take();
            if !died {
                engine.stop(Duration::from_secs(1)).await;
            }
            // Dropping the engine takes all its tasks along, as death does.
        }
        let pause = plan.luck.draw(|rng| Duration::from_millis(rng.below(40_000)));
        let _ = tokio::time::timeout(pause, end.wait_for(|end| *end)).await;
    }
}

/// Nodes are also stopped in good order now and then, while things go wrong.
async fn retired(luck: &Luck) {
    let after = luck.draw(|rng| Duration::from_millis(rng.below(LIFE_MAX_MS)));
    tokio::time::sleep(after).await;
    if luck.is_calm() {
        std::future::pending().await
    }
}
