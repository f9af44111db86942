//! Who gets which job, and when.

use super::steps::{ask, claim, claim_one, clean, done, enqueue, live, settle};
use crate::lab::{Lab, echo, name};
use crate::open_lane::VERSION;
use anyhow::{Context, Result, ensure};
use baton_core::OrgId;
use baton_core::command::Actor;
use baton_core::job::Kind;
use baton_core::job::enqueue::Enqueue;
use baton_core::job::settle::Outcome;
use baton_core::schedule::Turns;
use baton_core::time::Span;
use baton_store::{Ask, Look};
use futures_util::future::try_join_all;
use std::collections::BTreeSet;

pub async fn lower_priority_numbers_go_first_and_then_whoever_came_first(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let mut enqueued = Vec::new();
    for (order, priority) in [200, 100, 200, -5, 100, 200, i32::MAX, i32::MIN].into_iter().enumerate() {
        let job = Enqueue { priority: Some(priority), ..echo() };
        enqueued.push((priority, order, node.store.commit(job, Actor::Api).await?.job.id));
    }
    enqueued.sort_unstable();
    let expected: Vec<_> = enqueued.into_iter().map(|(_, _, id)| id).collect();
    let mut claimed = Vec::new();
    // In bites of different sizes: the order must not depend on how many are taken at once.
    for slots in [1, 3, 2, 9] {
        claimed.extend(claim(&lab, &node, slots).await?.into_iter().map(|leased| leased.job.id));
    }
    ensure!(claimed == expected, "claimed {claimed:?} instead of {expected:?}");
    clean(&node.store).await
}

pub async fn a_claim_never_takes_more_jobs_than_it_has_slots(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    for _ in 0..7 {
        enqueue(&node).await?;
    }
    for (slots, expected) in [(0, 0), (1, 1), (4, 4), (100, 2), (1, 0)] {
        let claimed = claim(&lab, &node, slots).await?.len();
        ensure!(claimed == expected, "{claimed} jobs for {slots} slots");
    }
    clean(&node.store).await
}

pub async fn only_the_kinds_asked_for_are_claimed(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let kind = |of: &str, version| Kind { name: name(of), version };
    for of in ["echo", "noop", "echo"] {
        node.store.commit(Enqueue { kind: name(of), ..echo() }, Actor::Api).await?;
    }
    let of = |kinds: Vec<Kind>| {
        node.store.claim(Ask {
            worker: node.name.clone(),
            kinds,
            slots: 9,
            turns: Turns::default(),
            scope: None,
            look: Look::Everywhere,
        })
    };
    ensure!(of(vec![]).await?.leased.is_empty(), "a worker that can do nothing gets nothing");
    ensure!(of(vec![kind("echo", 1), kind("moon", 9)]).await?.leased.is_empty(), "the version is part of the kind");
    let noops = of(vec![kind("noop", VERSION)]).await?.leased;
    ensure!(noops.len() == 1 && noops.iter().all(|l| l.job.kind == kind("noop", VERSION)));
    let rest = of(vec![kind("noop", VERSION), kind("echo", VERSION)]).await?.leased;
    ensure!(rest.len() == 2 && rest.iter().all(|l| l.job.kind == kind("echo", VERSION)));
    Ok(())
}

pub async fn jobs_of_other_kinds_do_not_stand_in_the_way(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    for _ in 0..50 {
        node.store.commit(Enqueue { kind: name("noop"), priority: Some(1), ..echo() }, Actor::Api).await?;
    }
    let last = enqueue(&node).await?;
    let echoes = Ask {
        worker: node.name.clone(),
        kinds: vec![last.kind.clone()],
        slots: 1,
        turns: Turns::default(),
        scope: None,
        look: Look::Everywhere,
    };
    let leased = node.store.claim(echoes).await?.leased;
    ensure!(leased.iter().map(|l| l.job.id).eq([last.id]));
    Ok(())
}

pub async fn a_delayed_job_is_claimed_only_after_its_moment_which_is_told_meanwhile(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let now = node.store.now().await?;
    let (soon, late) = (now.plus(Span::secs(600)), now.plus(Span::secs(1_200)));
    for at in [late, soon] {
        node.store.commit(Enqueue { not_before: Some(at), ..echo() }, Actor::Api).await?;
    }
    let turn = node.store.claim(ask(&lab, &node, 9)).await?;
    ensure!(turn.leased.is_empty() && turn.next_due == Some(soon), "{turn:?}");
    lab.advance(Span::secs(900));
    let turn = node.store.claim(ask(&lab, &node, 9)).await?;
    ensure!(turn.leased.len() == 1 && turn.next_due == Some(late), "{turn:?}");
    ensure!(turn.leased.iter().all(|l| l.at >= soon), "not before its moment");
    lab.advance(Span::secs(900));
    let turn = node.store.claim(ask(&lab, &node, 9)).await?;
    ensure!(turn.leased.len() == 1 && turn.next_due.is_none(), "{turn:?}");
    clean(&node.store).await
}

pub async fn a_delayed_job_has_its_place_by_priority_and_arrival_once_it_is_due(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let now = node.store.now().await?;
    let delayed = Enqueue { not_before: Some(now.plus(Span::secs(60))), ..echo() };
    let first = node.store.commit(delayed, Actor::Api).await?.job;
    let second = enqueue(&node).await?;
    lab.advance(Span::secs(120));
    let claimed = claim(&lab, &node, 2).await?;
    ensure!(claimed.iter().map(|l| l.job.id).eq([first.id, second.id]));
    Ok(())
}

pub async fn a_job_that_is_given_back_keeps_its_place(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let (first, second) = (enqueue(&node).await?, enqueue(&node).await?);
    let leased = claim_one(&lab, &node).await?;
    ensure!(leased.job.id == first.id);
    node.store.commit(settle(&leased, Outcome::Release)?, Actor::Engine).await?;
    let again = claim(&lab, &node, 2).await?;
    ensure!(again.iter().map(|l| l.job.id).eq([first.id, second.id]), "whoever was first is still first");
    let retried = again.first().context("there are two")?;
    ensure!(retried.job.attempts == 2 && retried.job.token == 2);
    clean(&node.store).await
}

pub async fn those_who_are_let_in_together_are_served_as_they_came(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    // Of orgs in any order: who came first does not depend on its name.
    let job = |n: usize| Enqueue { org: name(["zeta", "acme", "mid"][n % 3]), ..echo() };
    let all = try_join_all((0..100).map(|n| node.store.commit(job(n), Actor::Api))).await?;
    let claimed = claim(&lab, &node, 100).await?;
    for org in ["zeta", "acme", "mid"] {
        let org: OrgId = name(org);
        let came = all.iter().filter(|enqueued| enqueued.job.org == org).map(|enqueued| enqueued.job.id);
        ensure!(claimed.iter().filter(|l| l.job.org == org).map(|l| l.job.id).eq(came), "{org}");
    }
    clean(&node.store).await
}

pub async fn no_job_is_claimed_twice_however_many_ask_at_once(lab: Lab) -> Result<()> {
    let nodes = [lab.node_named("node_a").await?, lab.node_named("node_b").await?];
    let all = try_join_all((0..200).map(|n| nodes[n % 2].store.commit(echo(), Actor::Api))).await?;
    let worker = |n: usize| {
        let (lab, node) = (&lab, &nodes[n % 2]);
        async move {
            let mut mine = Vec::new();
            loop {
                // Another may hold the candidates just now, so nothing to claim is not yet the end.
                let leased = claim(lab, node, 7).await?;
                if leased.is_empty() && !live(&node.store).await?.contains_key("queued") {
                    return anyhow::Ok(mine);
                }
                let settles = leased.iter().map(|l| Ok((done(l)?, Actor::Engine))).collect::<Result<_>>()?;
                for settled in node.store.turn(settles, None).await?.settled {
                    settled?;
                }
                mine.extend(leased.into_iter().map(|l| l.job.id));
            }
        }
    };
    let claimed: Vec<_> = try_join_all((0..8).map(worker)).await?.into_iter().flatten().collect();
    ensure!(claimed.len() == all.len(), "{} claims of {} jobs", claimed.len(), all.len());
    let different: BTreeSet<_> = claimed.into_iter().collect();
    ensure!(different == all.into_iter().map(|enqueued| enqueued.job.id).collect());
    ensure!(live(&nodes[0].store).await?.is_empty());
    clean(&nodes[0].store).await
}
