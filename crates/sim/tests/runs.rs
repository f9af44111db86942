//! Runs through the engine, on both databases.

use anyhow::{Result, ensure};
use baton_core::credits::Credits;
use baton_core::run::State;
use baton_engine::Registry;
use baton_sim::lab::Lab;
use baton_sim::on_both;
use baton_sim::run_lab::{Deeds, begin, even, grant, toolbox, until_is};
use baton_sim::stage::{clean, start};

fn registry(deeds: &Deeds) -> Registry {
    let mut registry = Registry::builtin();
    registry.work(toolbox(deeds));
    registry
}

fn lab_of(mut lab: Lab, registry: &Registry) -> Lab {
    lab.definitions = std::sync::Arc::new(registry.definitions(baton_core::rules::Rules::default()));
    lab
}

on_both! { a_run_is_executed_and_paid_for }

async fn a_run_is_executed_and_paid_for(lab: Lab) -> Result<()> {
    let deeds = Deeds::default();
    let registry = registry(&deeds);
    let lab = lab_of(lab, &registry);
    let engine = start(&lab, "node_a", registry.clone()).await?;
    let store = engine.store();
    grant(store, 1_000).await?;
    let id = begin(store, &even(3, 3, 3, "priced"), toolbox(&deeds).known()).await?;
    let run = until_is(store, id, State::Completed).await?;
    ensure!(run.money.charged == Credits::whole(27), "{:?}", run.money);
    ensure!(run.counts.steps == 27 && run.counts.tasks == 9 && run.counts.completed == 3, "{:?}", run.counts);
    clean(store).await
}
