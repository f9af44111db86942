//! Standing by: whoever has nothing to do is handed what comes in by the commit that brings it in, and nothing else.

use super::lanes::{enqueue, roomy};
use super::steps::{ask, clean, done, story};
use crate::hold::Hold;
use crate::lab::{Lab, Node, name};
use crate::queue_types::job;
use anyhow::{Context, Result, ensure};
use baton_core::command::Actor;
use baton_core::job::batch::Batch;
use baton_core::job::enqueue::Enqueue;
use baton_core::job::settle::{Outcome, Settle};
use baton_core::job::{BACKGROUND, INTERACTIVE};
use baton_core::lane::Pause;
use baton_core::time::Span;
use baton_core::{JobId, OrgId};
use baton_store::{Ask, Leased};

async fn batch(node: &Node, kind: &str, count: usize) -> Result<Vec<JobId>> {
    let jobs = (0..count).map(|_| job(kind, "p1")).collect();
    let made = node.store.commit(Batch { org: OrgId::default(), jobs }, Actor::Api).await?;
    Ok(made.into_iter().map(|enqueued| enqueued.job.id).collect())
}

async fn settle(node: &Node, held: &[Leased]) -> Result<()> {
    for leased in held {
        node.store.commit(done(leased)?, Actor::Engine).await?;
    }
    Ok(())
}

async fn claim(lab: &Lab, node: &Node) -> Result<Vec<Leased>> {
    Ok(node.store.claim(ask(lab, node, 50)).await?.leased)
}

fn are(held: &[Leased], ids: &[JobId]) -> bool {
    held.iter().map(|l| l.job.id).eq(ids.iter().copied())
}

pub async fn who_stands_by_is_handed_what_comes_in(lab: Lab) -> Result<()> {
    let lab = roomy(lab);
    let node = lab.node().await?;
    for kind in ["one", "wide"] {
        let mut standing = node.store.stand_by(ask(&lab, &node, 3));
        let job = enqueue(&node, kind, "p1", BACKGROUND).await?;
        ensure!(job.attempts == 0, "whoever brought it in is told of it as it came");
        let handed = standing.handed().await.context("it was handed over")?;
        ensure!(are(&handed.leased, &[job.id]), "{:?}", handed.leased);
        let leased = &handed.leased[0];
        ensure!(leased.job.attempts == 1 && leased.job.held_by(&leased.job.fence().context("it is held")?));
        ensure!(claim(&lab, &node).await?.is_empty(), "nobody else has it");
        settle(&node, &handed.leased).await?;
        let told = story(&node.store, &job, 3).await?;
        ensure!(told == ["job.queued", "job.started", "job.completed"], "{told:?}");
    }
    clean(&node.store).await
}

pub async fn as_many_as_fit_are_handed_over_and_the_rest_waits(lab: Lab) -> Result<()> {
    let lab = roomy(lab);
    let node = lab.node().await?;
    for (kind, slots, fit) in [("wide", 2, 2), ("pair", 9, 2), ("one", 9, 1)] {
        let mut standing = node.store.stand_by(ask(&lab, &node, slots));
        let jobs = batch(&node, kind, 5).await?;
        let handed = standing.handed().await.context("some were handed over")?.leased;
        ensure!(are(&handed, &jobs[..fit]), "{kind}: {handed:?}");
        settle(&node, &handed).await?;
        let mut rest = Vec::new();
        while rest.len() < jobs.len() - fit {
            let next = claim(&lab, &node).await?;
            ensure!(!next.is_empty(), "{kind}: {rest:?}");
            settle(&node, &next).await?;
            rest.extend(next.iter().map(|l| l.job.id));
        }
        ensure!(rest == jobs[fit..], "{kind}: {rest:?}");
    }
    clean(&node.store).await
}

pub async fn who_stands_by_is_not_handed_what_is_not_theirs_or_not_its_turn(lab: Lab) -> Result<()> {
    let lab = roomy(lab);
    let node = lab.node().await?;
    let lane = || name("project:p1");
    let pause = |paused| Pause { org: OrgId::default(), lane: lane(), paused };
    // Somebody waits there already, even if whoever comes is more urgent: whose turn it is a look decides.
    let first = enqueue(&node, "one", "p1", BACKGROUND).await?.id;
    let standing = node.store.stand_by(ask(&lab, &node, 9));
    let urgent = enqueue(&node, "one", "p1", INTERACTIVE).await?.id;
    ensure!(standing.leave().await.is_none());
    let held = claim(&lab, &node).await?;
    ensure!(are(&held, &[urgent]));
    settle(&node, &held).await?;
    let held = claim(&lab, &node).await?;
    ensure!(are(&held, &[first]));
    // The lane is full.
    let standing = node.store.stand_by(ask(&lab, &node, 9));
    let next = enqueue(&node, "one", "p1", BACKGROUND).await?.id;
    settle(&node, &held).await?;
    let held = claim(&lab, &node).await?;
    ensure!(are(&held, &[next]));
    settle(&node, &held).await?;
    // The lane is paused, it is not due, or of a type that was not asked for.
    node.store.commit(pause(true), Actor::Api).await?;
    let paused = enqueue(&node, "one", "p1", BACKGROUND).await?.id;
    let at = node.store.now().await?.plus(Span::secs(60));
    let later = Enqueue { not_before: Some(at), ..job("wide", "p1") };
    let later = node.store.commit(later, Actor::Api).await?.job;
    ensure!(standing.leave().await.is_none());
    let wide: Vec<_> = ask(&lab, &node, 9).kinds.into_iter().filter(|kind| kind.name.as_str() == "wide").collect();
    let standing = node.store.stand_by(Ask { kinds: wide, ..ask(&lab, &node, 9) });
    let other = enqueue(&node, "pair", "p1", BACKGROUND).await?.id;
    ensure!(standing.leave().await.is_none());
    let held = claim(&lab, &node).await?;
    ensure!(are(&held, &[other]), "{held:?}");
    settle(&node, &held).await?;
    node.store.commit(pause(false), Actor::Api).await?;
    let held = claim(&lab, &node).await?;
    ensure!(are(&held, &[paused]), "{held:?}");
    settle(&node, &held).await?;
    lab.advance(Span::secs(61));
    ensure!(are(&claim(&lab, &node).await?, &[later.id]));
    clean(&node.store).await
}

pub async fn whoever_leaves_while_something_comes_in_has_it_or_it_waits(lab: Lab) -> Result<()> {
    let lab = roomy(lab);
    let node = lab.node().await?;
    let mut handed = 0;
    for n in 0..40 {
        let standing = node.store.stand_by(ask(&lab, &node, 9));
        let leave = async {
            for _ in 0..n {
                tokio::task::yield_now().await;
            }
            standing.leave().await
        };
        let (job, left) = futures_util::join!(enqueue(&node, "wide", "p1", BACKGROUND), leave);
        let job = job?.id;
        let held = match left {
            Some(left) => {
                handed += 1;
                left.leased
            }
            None => claim(&lab, &node).await?,
        };
        ensure!(are(&held, &[job]), "{held:?}");
        settle(&node, &held).await?;
    }
    // One who went away without a word is handed nothing.
    drop(node.store.stand_by(ask(&lab, &node, 9)));
    let job = enqueue(&node, "wide", "p1", BACKGROUND).await?.id;
    ensure!(are(&claim(&lab, &node).await?, &[job]), "{handed} were handed over");
    clean(&node.store).await
}

pub async fn who_waits_already_goes_before_who_comes_in(lab: Lab) -> Result<()> {
    let lab = roomy(lab);
    let node = lab.node().await?;
    let first = enqueue(&node, "wide", "p1", BACKGROUND).await?.id;
    let held = claim(&lab, &node).await?;
    let mut standing = node.store.stand_by(ask(&lab, &node, 1));
    let fence = held[0].job.fence().context("it is held")?;
    node.store.commit(Settle { fence, outcome: Outcome::Release }, Actor::Engine).await?;
    // Somebody was told that there is something, and nobody has looked yet.
    enqueue(&node, "wide", "p1", INTERACTIVE).await?;
    ensure!(standing.handed().await.is_none());
    ensure!(claim(&lab, &node).await?.iter().any(|leased| leased.job.id == first));
    // Of those that come in together the best go first.
    let standing = node.store.stand_by(ask(&lab, &node, 2));
    let of = |priority| Enqueue { priority: Some(priority), ..job("wide", "p1") };
    let jobs = [BACKGROUND, BACKGROUND, INTERACTIVE, BACKGROUND, INTERACTIVE].map(of).to_vec();
    let made = node.store.commit(Batch { org: OrgId::default(), jobs }, Actor::Api).await?;
    let handed = standing.leave().await.context("some were handed over")?.leased;
    ensure!(are(&handed, &[made[2].job.id, made[4].job.id]), "{handed:?}");
    clean(&node.store).await
}

pub async fn whoever_leaves_does_not_wait_for_a_group_that_is_held_up(lab: Lab) -> Result<()> {
    let lab = roomy(lab);
    let node = lab.node().await?;
    enqueue(&node, "one", "p1", BACKGROUND).await?;
    settle(&node, &claim(&lab, &node).await?).await?;
    let held = Hold::lane(&lab, "project:p1").await?;
    let standing = node.store.stand_by(ask(&lab, &node, 9));
    let store = node.store.clone();
    let asked = tokio::spawn(async move { store.commit(job("one", "p1"), Actor::Api).await });
    held.awaited().await?;
    ensure!(standing.leave().await.is_none());
    ensure!(!asked.is_finished(), "it was not waited for");
    held.let_go().await?;
    let id = asked.await??.job.id;
    ensure!(are(&claim(&lab, &node).await?, &[id]));
    clean(&node.store).await
}
