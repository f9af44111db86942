//! Leases on virtual time: a job may take as long as it likes, however short its lease.

use baton_core::command::Actor;
use baton_core::definition::{JobType, Timeout};
use baton_core::job::enqueue::Enqueue;
use baton_core::job::state::Face;
use baton_core::rules::Rules;
use baton_core::time::Span;
use baton_core::{Json, OrgId};
use baton_engine::{Engine, JobCx, Options, Outcome, Registry};
use baton_sim::lab::{Lab, Place, name};
use baton_sim::stage::{clean, until_ended};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// Longer than some of the leases, and than the time between two beats where nothing is hurried.
const WORK: Duration = Duration::from_secs(25);

/// Runs jobs with these leases side by side, begun a while after each other.
async fn check(leases: &[Span]) -> anyhow::Result<()> {
    let mut lab = Lab::new(Place::SqliteDisk, None).await?.expect("a disk needs no database");
    let mut registry = Registry::empty();
    for (n, lease) in leases.iter().enumerate() {
        let plain = JobType::new(name(&format!("work-{n}")), 1, "");
        registry.add(JobType { lease: *lease, timeout: Timeout::Never, ..plain }, |_: JobCx, _: Json| async {
            tokio::time::sleep(WORK).await;
            Outcome::Done(Json::of(&json!({})))
        });
    }
    lab.definitions = Arc::new(registry.definitions(Rules::default()));
    let node = lab.node().await?;
    let engine =
        Engine::start(node.store, registry, Options { slots: leases.len(), ..Options::new(node.name) }).await?;
    let mut jobs = Vec::new();
    for n in 0..leases.len() {
        let kind = name(&format!("work-{n}"));
        let order = Enqueue::new(OrgId::default(), name(&format!("p{n}")), kind, Json::of(&json!({})));
        jobs.push(engine.store().commit(order, Actor::Api).await?.job.id);
        // The beater rests for as long as what is held already allows.
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
    for job in jobs {
        let ended = tokio::time::timeout(4 * WORK, until_ended(engine.store(), job)).await;
        let done = ended.map_err(|_| anyhow::anyhow!("it is begun again and again"))??.job;
        anyhow::ensure!(done.status.face() == Face::Completed && done.attempts == 1, "{done:?}");
    }
    clean(engine.store()).await
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_shorter_than_the_beat_is_beaten_for_in_time() {
    check(&[Span::secs(5)]).await.expect("it runs once");
}

#[tokio::test(start_paused = true)]
async fn the_shortest_lease_sets_the_pace_whatever_was_held_before() {
    check(&[Span::secs(30), Span::secs(5), Span::millis(300), Span::secs(9)]).await.expect("each runs once");
}
