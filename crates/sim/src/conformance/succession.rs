//! Groups close behind each other: the next may be decided before the one before it is committed, and nobody can tell.

use super::odd_commands::{Bad, Watched};
use super::steps::{ask, claim_one, clean, done, exactly, settle, settled_tail};
use crate::lab::{Lab, Node, Place, echo};
use crate::queue_types::{job, keyed, lab_with};
use anyhow::{Result, ensure};
use baton_core::OrgId;
use baton_core::command::Actor;
use baton_core::job::Failure;
use baton_core::job::enqueue::How;
use baton_core::job::requeue::Requeue;
use baton_core::job::settle::{Outcome, Settled};
use baton_core::rules::Rules;
use baton_store::Leased;
use baton_store::faults::Mishap;
use futures_util::future::{join, join_all, join3, try_join_all};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const MANY: usize = 40;

/// A node on which each command is a group of its own, so that those that come at once follow each other closely.
async fn node(lab: &Lab) -> Result<Node> {
    let node = lab.node().await?;
    node.script.group_max(1);
    Ok(node)
}

pub async fn whatever_goes_wrong_who_waits_behind_it_is_done_once(lab: Lab) -> Result<()> {
    let node = node(&lab).await?;
    let mut made = Vec::new();
    for mishap in [Mishap::Conflict, Mishap::CommitLost, Mishap::AnswerLost] {
        let decided = Arc::new(AtomicU64::new(0));
        for n in [3, 4, 9, 30] {
            node.script.at(n, mishap);
        }
        let all = (0..MANY).map(|_| Watched { command: echo(), decided: decided.clone() });
        let all = try_join_all(all.map(|command| node.store.commit(command, Actor::Api))).await?;
        ensure!(decided.load(Ordering::SeqCst) >= MANY as u64);
        made.extend(all.into_iter().map(|enqueued| enqueued.job.id));
    }
    let events = made.len();
    exactly(&node.store, "p1", made).await?;
    ensure!(settled_tail(&node.store, events).await?.len() == events);
    clean(&node.store).await
}

/// Conflicts until a command is given up; more do no harm.
const GIVEN_UP: u64 = 8;

pub async fn what_rests_on_one_that_was_given_up_is_decided_anew(lab: Lab) -> Result<()> {
    let lab = lab_with(lab, Rules::default());
    let node = node(&lab).await?;
    for round in 0..20 {
        // There is room for one more.
        let project = format!("p{round}");
        let say = || node.store.commit(job("deep", &project), Actor::Api);
        let mut there = vec![say().await?.job.id, say().await?.job.id];
        for n in 1..=GIVEN_UP {
            node.script.at(n, Mishap::Conflict);
        }
        let answers = join_all([say(), say()]).await;
        ensure!(answers.iter().any(Result::is_ok), "there is room left: {answers:?}");
        there.extend(answers.into_iter().flatten().map(|enqueued| enqueued.job.id));
        exactly(&node.store, &project, there).await?;
    }
    clean(&node.store).await
}

/// It is told so, and those behind it are decided over what was there before.
pub async fn who_waits_behind_one_that_is_rejected_is_not_touched(lab: Lab) -> Result<()> {
    let node = node(&lab).await?;
    let echoes = || try_join_all((0..MANY).map(|_| node.store.commit(echo(), Actor::Api)));
    let bad = node.store.commit(Bad::BreaksAConstraint, Actor::Api);
    let (before, bad, after) = join3(echoes(), bad, echoes()).await;
    ensure!(bad.is_err(), "{bad:?}");
    exactly(&node.store, "p1", before?.into_iter().chain(after?).map(|enqueued| enqueued.job.id)).await?;
    clean(&node.store).await
}

pub async fn who_is_there_is_seen_by_those_who_come_behind(lab: Lab) -> Result<()> {
    let lab = lab_with(lab, Rules { max_per_project: 10, ..Rules::default() });
    let node = node(&lab).await?;
    let commit = |order| node.store.commit(order, Actor::Api);
    let said = try_join_all((0..MANY).map(|_| commit(keyed("single", "a", "x")))).await?;
    ensure!(said.iter().filter(|enqueued| enqueued.how.is_new()).count() == 1);
    ensure!(said.iter().all(|enqueued| enqueued.job.id == said[0].job.id));
    let merged = try_join_all((0..MANY).map(|n| commit(keyed("merge", "a", &format!("n{n}"))))).await?;
    ensure!(merged.iter().filter(|enqueued| enqueued.how.is_new()).count() == 1);
    let asked = join_all((0..MANY).map(|_| commit(job("one", "full")))).await;
    ensure!(asked.iter().filter(|answer| answer.is_ok()).count() == 10, "there is room for ten");
    clean(&node.store).await
}

/// Settles a job twice, with something behind that which must see how it ended.
async fn settled_twice(node: &Node, leased: &Leased, outcome: Outcome) -> Result<()> {
    let settle = || -> Result<_> { Ok(node.store.commit(settle(leased, outcome.clone())?, Actor::Engine)) };
    let (first, second) = join(settle()?, settle()?).await;
    ensure!(matches!((first?, second?), (Settled::Now, Settled::Already) | (Settled::Already, Settled::Now)));
    Ok(())
}

pub async fn what_has_ended_has_ended_for_those_who_come_behind(lab: Lab) -> Result<()> {
    let lab = lab_with(lab, Rules::default());
    let node = node(&lab).await?;
    let store = &node.store;
    // On PostgreSQL whoever steps in for a committer that is held up may overtake it.
    let in_order = lab.place != Place::Postgres;
    for round in 0..20 {
        // A duplicate of one that completes just before it is dropped.
        let key = format!("k{round}");
        let first = store.commit(keyed("drop", &key, "x"), Actor::Api).await?;
        let leased = claim_one(&lab, &node).await?;
        let again = store.commit(keyed("drop", &key, "y"), Actor::Api);
        let outcome = Outcome::Done(leased.payload.clone());
        let (settled, again) = join(settled_twice(&node, &leased, outcome), again).await;
        settled?;
        let again = again?;
        ensure!(again.how == How::Dropped && again.job.id == first.job.id, "{again:?}");
        ensure!(again.ending.is_some() || !in_order, "{again:?}");
        // One that fails just before that is made anew.
        store.commit(job("wide", "p2"), Actor::Api).await?;
        let leased = claim_one(&lab, &node).await?;
        let requeue = || store.commit(Requeue { org: OrgId::default(), jobs: vec![leased.job.id] }, Actor::Api);
        let failed = settled_twice(&node, &leased, Outcome::Failed(Failure::fatal("x", "x")));
        let (failed, mut anew) = join(failed, requeue()).await;
        failed?;
        if anew.is_err() && !in_order {
            anew = requeue().await;
        }
        ensure!(anew?.len() == 1);
        let leased = claim_one(&lab, &node).await?;
        store.commit(done(&leased)?, Actor::Engine).await?;
    }
    clean(store).await
}

/// How often those who ask at once may be skipped.
const SKIPPED_MAX: usize = 100;

/// Nobody is handed out twice, and nobody is overlooked.
pub async fn claims_behind_each_other_share_what_there_is(lab: Lab) -> Result<()> {
    let lab = lab_with(lab, Rules { max_per_project: 1_000, ..Rules::default() });
    let node = node(&lab).await?;
    let store = &node.store;
    let orders = (0..MANY).map(|n| store.commit(job("one", &format!("p{}", n % 4)), Actor::Api));
    try_join_all(orders).await?;
    // On PostgreSQL a second committer may step in, and each skips the lanes that the other is at.
    let may_skip = lab.place == Place::Postgres;
    let mut ran = BTreeSet::new();
    while ran.len() < MANY {
        node.script.at(2, Mishap::Conflict);
        let mut leased: Vec<Leased> = Vec::new();
        for _ in 0..if may_skip { SKIPPED_MAX } else { 1 } {
            if leased.len() == 4 {
                break;
            }
            let claims = try_join_all((0..8).map(|_| store.claim(ask(&lab, &node, 1)))).await?;
            leased.extend(claims.into_iter().flat_map(|claimed| claimed.leased));
        }
        ensure!(leased.len() == 4, "each of four lanes gives one, not {}", leased.len());
        ensure!(leased.iter().all(|leased| ran.insert(leased.job.id)), "one was handed out twice");
        let ends = leased.iter().map(done).collect::<Result<Vec<_>>>()?;
        try_join_all(ends.into_iter().map(|end| store.commit(end, Actor::Engine))).await?;
    }
    clean(store).await
}
