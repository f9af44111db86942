//! What happens elsewhere between two turns of a worker: whatever a node remembers of its lanes, the next turn goes on as if it
//! had looked.

use super::lanes::{enqueue, roomy};
use super::steps::{ask, clean, done};
use crate::lab::{Lab, Node, name};
use crate::queue_types::job;
use anyhow::{Result, ensure};
use baton_core::command::Actor;
use baton_core::job::beat::Beat;
use baton_core::job::cancel::Cancel;
use baton_core::job::enqueue::Enqueue;
use baton_core::job::settle::{Outcome, Settle};
use baton_core::job::{BACKGROUND, Failure, INTERACTIVE};
use baton_core::lane::Pause;
use baton_core::time::Span;
use baton_core::{JobId, Json, OrgId};
use baton_store::{Ask, Leased, Look};
use serde_json::json;

/// Settles these and takes who follows.
async fn go_on(lab: &Lab, node: &Node, held: &[Leased]) -> Result<Vec<Leased>> {
    let settles = held.iter().map(|l| Ok((done(l)?, Actor::Engine))).collect::<Result<_>>()?;
    let look = if held.is_empty() { Look::Everywhere } else { Look::Successors };
    let turn = node.store.turn(settles, Some(Ask { look, ..ask(lab, node, 9) })).await?;
    for settled in turn.settled {
        settled?;
    }
    Ok(turn.leased)
}

async fn pause(node: &Node, project: &str, paused: bool) -> Result<()> {
    let lane = name(&format!("project:{project}"));
    node.store.commit(Pause { org: OrgId::default(), lane, paused }, Actor::Api).await?;
    Ok(())
}

/// One that waits in the lane, in the order of arrival, and one that runs after turns enough for the lane to be remembered.
async fn warm(lab: &Lab, node: &Node, project: &str) -> Result<(Vec<JobId>, Vec<Leased>)> {
    let mut jobs = Vec::new();
    for _ in 0..8 {
        jobs.push(enqueue(node, "one", project, BACKGROUND).await?.id);
    }
    let mut held = go_on(lab, node, &[]).await?;
    for job in &jobs[..3] {
        ensure!(held.len() == 1 && held[0].job.id == *job, "{held:?}");
        held = go_on(lab, node, &held).await?;
    }
    Ok((jobs[4..].to_vec(), held))
}

fn are(held: &[Leased], ids: &[JobId]) -> bool {
    held.iter().map(|l| l.job.id).eq(ids.iter().copied())
}

pub async fn what_comes_in_between_goes_first_where_it_should(lab: Lab) -> Result<()> {
    let lab = roomy(lab);
    let [node, other] = [lab.node_named("node_a").await?, lab.node_named("node_b").await?];
    for by in [&node, &other] {
        let project = if std::ptr::eq(by, &node) { "p1" } else { "p2" };
        let (next, held) = warm(&lab, &node, project).await?;
        let urgent = enqueue(by, "one", project, INTERACTIVE).await?.id;
        let held = go_on(&lab, &node, &held).await?;
        ensure!(are(&held, &[urgent]), "{held:?}");
        let held = go_on(&lab, &node, &held).await?;
        ensure!(are(&held, &next[..1]), "{held:?}");
        // And who is remembered once more is right as well.
        let held = go_on(&lab, &node, &held).await?;
        ensure!(are(&held, &next[1..2]), "{held:?}");
        go_on(&lab, &node, &held).await?;
    }
    clean(&node.store).await
}

pub async fn who_is_gone_in_between_is_not_handed_out(lab: Lab) -> Result<()> {
    let lab = roomy(lab);
    let [node, other] = [lab.node_named("node_a").await?, lab.node_named("node_b").await?];
    let (next, held) = warm(&lab, &node, "p1").await?;
    other.store.commit(Cancel { org: OrgId::default(), job: next[0], reason: None }, Actor::Api).await?;
    let held = go_on(&lab, &node, &held).await?;
    ensure!(are(&held, &next[1..2]), "{held:?}");
    // One that goes while another comes leaves the counts as they were.
    let (one, two) = futures_util::join!(
        other.store.commit(Cancel { org: OrgId::default(), job: next[2], reason: None }, Actor::Api),
        enqueue(&other, "one", "p1", INTERACTIVE)
    );
    one?;
    let held = go_on(&lab, &node, &held).await?;
    ensure!(are(&held, &[two?.id]), "{held:?}");
    let held = go_on(&lab, &node, &held).await?;
    ensure!(are(&held, &next[3..4]), "{held:?}");
    clean(&node.store).await
}

pub async fn a_lane_that_is_paused_in_between_gives_nothing(lab: Lab) -> Result<()> {
    let lab = roomy(lab);
    let [node, other] = [lab.node_named("node_a").await?, lab.node_named("node_b").await?];
    let (next, held) = warm(&lab, &node, "p1").await?;
    pause(&other, "p1", true).await?;
    ensure!(go_on(&lab, &node, &held).await?.is_empty());
    pause(&other, "p1", false).await?;
    let held = go_on(&lab, &node, &[]).await?;
    ensure!(are(&held, &next[..1]), "{held:?}");
    clean(&node.store).await
}

pub async fn a_lane_that_is_paused_in_between_gives_nothing_for_what_comes_back(lab: Lab) -> Result<()> {
    let lab = roomy(lab);
    let [node, other] = [lab.node_named("node_a").await?, lab.node_named("node_b").await?];
    for (project, outcome) in
        [("p1", Outcome::Release), ("p2", Outcome::Failed(Failure::transient("busy", "once more, please")))]
    {
        let (next, held) = warm(&lab, &node, project).await?;
        pause(&other, project, true).await?;
        let fence = held[0].job.fence().expect("it is held");
        let settle = vec![(Settle { fence, outcome }, Actor::Engine)];
        let turn = node.store.turn(settle, Some(Ask { look: Look::Successors, ..ask(&lab, &node, 9) })).await?;
        ensure!(turn.settled.iter().all(Result::is_ok) && turn.leased.is_empty(), "{:?}", turn.leased);
        pause(&other, project, false).await?;
        let again = go_on(&lab, &node, &[]).await?;
        ensure!(again.len() == 1 && (again[0].job.id == held[0].job.id || again[0].job.id == next[0]), "{again:?}");
    }
    clean(&node.store).await
}

pub async fn a_lease_that_is_lost_in_between_is_refused(lab: Lab) -> Result<()> {
    let lab = roomy(lab);
    let [node, other] = [lab.node_named("node_a").await?, lab.node_named("node_b").await?];
    let (next, held) = warm(&lab, &node, "p1").await?;
    let beat = Beat::of(OrgId::default(), held.iter().filter_map(|l| l.job.fence()).collect());
    ensure!(node.store.commit(beat, Actor::Engine).await?.lost.is_empty());
    other.store.commit(Cancel { org: OrgId::default(), job: held[0].job.id, reason: None }, Actor::Api).await?;
    let settle = vec![(done(&held[0])?, Actor::Engine)];
    let turn = node.store.turn(settle, Some(Ask { look: Look::Successors, ..ask(&lab, &node, 9) })).await?;
    ensure!(turn.settled.len() == 1 && turn.settled[0].is_err(), "{:?}", turn.settled);
    let held = go_on(&lab, &node, &[]).await?;
    ensure!(are(&held, &next[..1]) || are(&turn.leased, &next[..1]), "{held:?}");
    clean(&node.store).await
}

pub async fn one_that_is_to_be_tried_again_at_once_keeps_its_place(lab: Lab) -> Result<()> {
    let lab = roomy(lab);
    let node = lab.node_named("node_a").await?;
    let (next, held) = warm(&lab, &node, "p1").await?;
    let fence = held[0].job.fence().expect("it is held");
    let settle = vec![(Settle { fence, outcome: Outcome::Release }, Actor::Engine)];
    let turn = node.store.turn(settle, Some(Ask { look: Look::Successors, ..ask(&lab, &node, 9) })).await?;
    // Whoever is handed out now, it is next.
    let mut order: Vec<JobId> = turn.leased.iter().map(|l| l.job.id).collect();
    let mut held = turn.leased;
    while order.len() < 1 + next.len() {
        held = go_on(&lab, &node, &held).await?;
        ensure!(held.len() == 1, "{held:?}");
        order.push(held[0].job.id);
    }
    let place = order.iter().position(|id| !next.contains(id));
    ensure!(place.is_some_and(|place| place < 2), "{order:?}");
    clean(&node.store).await
}

pub async fn a_wide_lane_is_remembered_for_as_many_as_end(lab: Lab) -> Result<()> {
    let lab = roomy(lab);
    let [node, other] = [lab.node_named("node_a").await?, lab.node_named("node_b").await?];
    let mut jobs = Vec::new();
    for _ in 0..12 {
        jobs.push(enqueue(&node, "pair", "p1", BACKGROUND).await?.id);
    }
    let mut held = go_on(&lab, &node, &[]).await?;
    let mut order: Vec<JobId> = held.iter().map(|l| l.job.id).collect();
    // One, two, one and none of them ends in a turn.
    for ends in [1, 1, 2, 2, 1, 2] {
        let stay = held.split_off(ends.min(held.len()));
        let next = go_on(&lab, &node, &held).await?;
        order.extend(next.iter().map(|l| l.job.id));
        held = stay.into_iter().chain(next).collect();
        ensure!(held.len() <= 2, "{held:?}");
    }
    ensure!(order == jobs[..order.len()], "{order:?}");
    ensure!(go_on(&lab, &other, &[]).await?.is_empty(), "the lane is full");
    clean(&node.store).await
}

pub async fn a_long_payload_and_a_failure_are_as_ever(lab: Lab) -> Result<()> {
    let lab = roomy(lab);
    let node = lab.node_named("node_a").await?;
    for n in 0..6 {
        let payload = Json::of(&json!({ "text": "x".repeat(if n % 2 == 0 { 1 } else { 10_000 }) }));
        node.store.commit(Enqueue { payload, ..job("one", "p1") }, Actor::Api).await?;
    }
    let mut held = go_on(&lab, &node, &[]).await?;
    for n in 0..6 {
        ensure!(held.len() == 1, "{held:?}");
        let long = held[0].payload.as_str().len() > 10_000;
        ensure!(long == (n % 2 == 1), "{n}: {}", held[0].payload.as_str().len());
        let fence = held[0].job.fence().expect("it is held");
        let failed = Settle { fence, outcome: Outcome::Failed(Failure::new("broken", "it is")) };
        let asked = Ask { look: Look::Successors, ..ask(&lab, &node, 9) };
        let turn = node.store.turn(vec![(failed, Actor::Engine)], Some(asked)).await?;
        ensure!(turn.settled.iter().all(Result::is_ok));
        held = turn.leased;
    }
    ensure!(held.is_empty());
    lab.advance(Span::secs(1));
    clean(&node.store).await
}
