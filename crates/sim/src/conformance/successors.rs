//! Successors: whoever has looked everywhere and was not told of anything since asks only for what follows the jobs that
//! it settles.

use super::lanes::{enqueue, roomy};
use super::steps::{ask, clean, done};
use crate::lab::{Lab, Node, name};
use anyhow::{Context, Result, ensure};
use baton_core::command::Actor;
use baton_core::job::{BACKGROUND, INTERACTIVE};
use baton_core::lane::Pause;
use baton_core::schedule::Turns;
use baton_core::time::Span;
use baton_core::{JobId, OrgId};
use baton_store::{Ask, Leased, Look};
use std::collections::BTreeSet;

/// Settles these and looks there for so many more.
async fn go_on(lab: &Lab, node: &Node, held: &[Leased], slots: usize, look: Look) -> Result<Vec<Leased>> {
    let settles = held.iter().map(|l| Ok((done(l)?, Actor::Engine))).collect::<Result<_>>()?;
    let turn = node.store.turn(settles, Some(Ask { look, ..ask(lab, node, slots) })).await?;
    for settled in turn.settled {
        settled?;
    }
    ensure!(!turn.more, "there is nothing else where it looked");
    Ok(turn.leased)
}

/// In no order: ids do not tell that of jobs that came in the same millisecond.
fn ids(leased: &[Leased]) -> BTreeSet<JobId> {
    leased.iter().map(|l| l.job.id).collect()
}

pub async fn successors_come_from_the_lanes_of_jobs_that_end_and_no_other(lab: Lab) -> Result<()> {
    let lab = roomy(lab);
    let node = lab.node().await?;
    let mut jobs = Vec::new();
    for kind in ["one", "pair", "wide"] {
        for _ in 0..4 {
            jobs.push(enqueue(&node, kind, "p1", BACKGROUND).await?.id);
        }
    }
    let [one, pair, wide] = [&jobs[..4], &jobs[4..8], &jobs[8..]];
    let held = go_on(&lab, &node, &[], 50, Look::Everywhere).await?;
    let of = |jobs: &[&[JobId]]| jobs.concat().into_iter().collect::<BTreeSet<_>>();
    ensure!(ids(&held) == of(&[&one[..1], &pair[..2], wide]), "{held:?}");
    // Nobody who looks for successors finds them.
    let elsewhere = enqueue(&node, "one", "p2", BACKGROUND).await?.id;
    let beside = enqueue(&node, "wide", "p1", BACKGROUND).await?.id;
    let later = enqueue(&node, "pair", "p1", BACKGROUND).await?.id;
    let next = go_on(&lab, &node, &held, 50, Look::Successors).await?;
    ensure!(ids(&next) == of(&[&one[1..2], &pair[2..]]), "{next:?}");
    ensure!(go_on(&lab, &node, &[], 50, Look::Successors).await?.is_empty(), "nothing ends");
    let rest = go_on(&lab, &node, &[], 50, Look::Everywhere).await?;
    ensure!(ids(&rest) == of(&[&[elsewhere, beside]]), "{rest:?}");
    // One of two ends: one follows.
    let one_of_two = next.iter().find(|l| pair.contains(&l.job.id)).context("two")?;
    let last = go_on(&lab, &node, std::slice::from_ref(one_of_two), 50, Look::Successors).await?;
    ensure!(ids(&last) == of(&[&[later]]), "{last:?}");
    clean(&node.store).await
}

pub async fn a_paused_lane_has_no_successors(lab: Lab) -> Result<()> {
    let lab = roomy(lab);
    let node = lab.node().await?;
    enqueue(&node, "one", "p1", BACKGROUND).await?;
    let next = enqueue(&node, "one", "p1", BACKGROUND).await?.id;
    let held = go_on(&lab, &node, &[], 9, Look::Everywhere).await?;
    let pause = |paused| Pause { org: OrgId::default(), lane: name("project:p1"), paused };
    node.store.commit(pause(true), Actor::Api).await?;
    ensure!(go_on(&lab, &node, &held, 9, Look::Successors).await?.is_empty());
    node.store.commit(pause(false), Actor::Api).await?;
    ensure!(ids(&go_on(&lab, &node, &[], 9, Look::Everywhere).await?) == BTreeSet::from([next]));
    clean(&node.store).await
}

pub async fn successors_of_other_kinds_are_left_where_they_are(lab: Lab) -> Result<()> {
    let lab = roomy(lab);
    let node = lab.node().await?;
    let first = enqueue(&node, "one", "p1", BACKGROUND).await?;
    enqueue(&node, "one", "p1", BACKGROUND).await?;
    let held = go_on(&lab, &node, &[], 9, Look::Everywhere).await?;
    let mut heard = node.store.watch_jobs();
    heard.mark_unchanged();
    let others = Ask { look: Look::Successors, ..ask(&lab, &node, 9) };
    let others = Ask { kinds: others.kinds.iter().filter(|kind| **kind != first.kind).cloned().collect(), ..others };
    let settles = held.iter().map(|l| Ok((done(l)?, Actor::Engine))).collect::<Result<_>>()?;
    ensure!(node.store.turn(settles, Some(others)).await?.leased.is_empty());
    ensure!(heard.has_changed()?, "the lane has a free slot and jobs that wait: whoever can run them is told");
    ensure!(go_on(&lab, &node, &[], 9, Look::Everywhere).await?.len() == 1);
    clean(&node.store).await
}

pub async fn successors_come_in_the_same_order_as_with_a_look_everywhere(lab: Lab) -> Result<()> {
    let lab = roomy(lab);
    let node = lab.node().await?;
    let mut orders = Vec::new();
    for (project, look) in [("wide", Look::Everywhere), ("near", Look::Successors)] {
        // An old one of a high number, fresh ones, and interactive ones that must not keep it waiting for ever.
        let old = enqueue(&node, "one", project, 300).await?;
        lab.advance(Span::secs(16));
        for priority in [BACKGROUND, BACKGROUND, INTERACTIVE, INTERACTIVE, INTERACTIVE, INTERACTIVE, INTERACTIVE] {
            enqueue(&node, "one", project, priority).await?;
        }
        let mut held = go_on(&lab, &node, &[], 1, Look::Everywhere).await.unwrap_or_default();
        let (mut turns, mut order) = (Turns::default(), Vec::new());
        while let Some(job) = held.first() {
            order.push((job.job.priority, job.job.id == old.id));
            let settle = vec![(done(job)?, Actor::Engine)];
            let ask = Ask { look, turns, ..ask(&lab, &node, 1) };
            let turn = node.store.turn(settle, Some(ask)).await?;
            (held, turns) = (turn.leased, turn.turns);
        }
        ensure!(order.len() == 8, "{look:?}: {order:?}");
        ensure!(order.iter().any(|(_, is_old)| *is_old));
        orders.push(order);
    }
    ensure!(orders[0] == orders[1], "{orders:?}");
    clean(&node.store).await
}
