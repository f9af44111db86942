//! Commits whose answer never came, that never arrived, or that must be tried again: whoever
//! asked hears the truth, and nothing happens twice.

use super::odd_commands::{Bad, MoveDeadline, NOWHERE, Quietly};
use super::once::{fresh, key, once, replayed};
use super::steps::{ask, census, claim, claim_one, clean, done, enqueue, events, exactly, fence, live, record, story};
use crate::lab::{Lab, Node, echo};
use anyhow::{Context, Result, ensure};
use baton_core::OrgId;
use baton_core::command::Actor;
use baton_core::job::beat::Beat;
use baton_core::job::enqueue::Enqueue;
use baton_core::job::settle::Settled;
use baton_core::job::state::Face;
use baton_core::job::wake::{Wake, Woken};
use baton_core::once::KEPT_FOR;
use baton_core::time::Span;
use baton_store::faults::Mishap;
use baton_store::{CommitError, StoreError};
use futures_util::future::{join, join_all, try_join_all};

/// Each with the attempts it takes until somebody can be answered.
const MISHAPS: [(Mishap, u64); 3] = [(Mishap::AnswerLost, 1), (Mishap::CommitLost, 2), (Mishap::Conflict, 2)];

pub async fn a_lost_commit_is_there_once_and_its_caller_hears_so(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let mut made = Vec::new();
    for (mishap, attempts) in MISHAPS {
        let before = node.script.commits();
        node.script.at(1, mishap);
        made.push(enqueue(&node).await?.id);
        let took = node.script.commits() - before;
        ensure!(took == attempts, "{mishap:?} took {took} attempts");
    }
    exactly(&node.store, "p1", made).await
}

/// Jobs that nobody else can know of yet, so there is nothing to see before they are written; with a timer each, so that it
/// takes more than one statement.
pub async fn a_lost_commit_that_had_nothing_to_see_is_there_once(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let deadline = node.store.now().await?.plus(Span::secs(600));
    let dated = || Enqueue { deadline: Some(deadline), ..echo() };
    let mut made = Vec::new();
    for (mishap, attempts) in MISHAPS {
        // The time has just been heard.
        made.push(enqueue(&node).await?.id);
        let before = node.script.commits();
        node.script.at(1, mishap);
        made.push(node.store.commit(dated(), Actor::Api).await?.job.id);
        let took = node.script.commits() - before;
        ensure!(took == attempts, "{mishap:?} took {took} attempts");
    }
    let timers = node.store.due_timers(9).await?;
    ensure!(timers == (vec![], Some(deadline)), "{timers:?}");
    exactly(&node.store, "p1", made).await?;
    clean(&node.store).await
}

pub async fn a_commit_that_is_lost_again_and_again_is_there_once(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let luck = [Mishap::Conflict, Mishap::CommitLost, Mishap::Conflict, Mishap::CommitLost, Mishap::AnswerLost];
    for (n, mishap) in (1..).zip(luck) {
        node.script.at(n, mishap);
    }
    let id = enqueue(&node).await?.id;
    ensure!(node.script.commits() == 5);
    exactly(&node.store, "p1", [id]).await
}

pub async fn a_lost_commit_under_a_key_is_there_once_and_is_replayed(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let mut made = Vec::new();
    for (mishap, _) in MISHAPS {
        node.script.at(1, mishap);
        let say = || node.store.commit_once(echo(), Actor::Api, once(key(&format!("{mishap:?}")), "r"));
        let id = fresh(say().await)?;
        replayed(say().await, id)?;
        made.push(id);
    }
    exactly(&node.store, "p1", made).await
}

pub async fn a_turn_whose_commit_is_lost_is_taken_once(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    for (mishap, attempts) in MISHAPS {
        let (first, second) = (enqueue(&node).await?, enqueue(&node).await?);
        let leased = claim_one(&lab, &node).await?;
        ensure!(leased.job.id == first.id);
        let before = node.script.commits();
        node.script.at(1, mishap);
        let turn = node.store.turn(vec![(done(&leased)?, Actor::Engine)], Some(ask(&lab, &node, 9))).await?;
        ensure!(node.script.commits() - before == attempts, "{mishap:?}");
        ensure!(matches!(turn.settled[..], [Ok(Settled::Now)]), "{mishap:?}: {:?}", turn.settled);
        let [next] = &turn.leased[..] else { anyhow::bail!("{mishap:?}: {:?}", turn.leased) };
        ensure!(next.job.id == second.id && next.job.attempts == 1 && next.job.token == 1);
        ensure!(story(&node.store, &first, 3).await? == ["job.queued", "job.started", "job.completed"]);
        ensure!(story(&node.store, &second, 2).await? == ["job.queued", "job.started"]);
        ensure!(node.store.commit(done(next)?, Actor::Engine).await? == Settled::Now, "the lease that was told holds");
    }
    clean(&node.store).await
}

pub async fn commits_lost_among_many_are_each_there_once(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let mut made = Vec::new();
    for (mishap, _) in MISHAPS {
        // The first group is small, the second holds those who came meanwhile.
        node.script.at(1, mishap);
        node.script.at(2, mishap);
        let all = try_join_all((0..32).map(|_| node.store.commit(echo(), Actor::Api))).await?;
        made.extend(all.into_iter().map(|enqueued| enqueued.job.id));
    }
    exactly(&node.store, "p1", made).await
}

pub async fn commits_lost_beside_a_bad_member_are_each_there_once(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let mut made = Vec::new();
    for (mishap, _) in MISHAPS {
        // The group is spoiled and run one by one; some of those commits go wrong as well.
        for n in [2, 5, 6] {
            node.script.at(n, mishap);
        }
        let good = try_join_all((0..16).map(|_| node.store.commit(echo(), Actor::Api)));
        let (bad, good) = join(node.store.commit(Bad::BreaksAConstraint, Actor::Api), good).await;
        ensure!(matches!(bad, Err(CommitError::Store(StoreError::Rejected(_)))), "{mishap:?}: {bad:?}");
        made.extend(good?.into_iter().map(|enqueued| enqueued.job.id));
    }
    exactly(&node.store, "p1", made).await?;
    exactly(&node.store, NOWHERE, []).await
}

pub async fn two_nodes_losing_commits_get_along(lab: Lab) -> Result<()> {
    let nodes = [lab.node_named("node_a").await?, lab.node_named("node_b").await?];
    let jobs = try_join_all((0..40).map(|n| nodes[n % 2].store.commit(echo(), Actor::Api))).await?;
    for node in &nodes {
        for (n, (mishap, _)) in (1..).step_by(2).zip(MISHAPS.iter().cycle().take(9)) {
            node.script.at(n, *mishap);
        }
    }
    let (a, b) = join(drain(&lab, &nodes[0]), drain(&lab, &nodes[1])).await;
    a.and(b)?;
    for enqueued in jobs {
        let found = record(&nodes[0], enqueued.job.id).await?.job;
        ensure!(found.status.face() == Face::Completed && found.attempts == 1 && found.token == 1, "{found:?}");
    }
    clean(&nodes[1].store).await
}

/// Claims and settles until nothing is queued any more.
async fn drain(lab: &Lab, node: &Node) -> Result<()> {
    let mut settles = Vec::new();
    while live(&node.store).await?.contains_key("queued") || !settles.is_empty() {
        let turn = node.store.turn(std::mem::take(&mut settles), Some(ask(lab, node, 5))).await?;
        for settled in turn.settled {
            ensure!(settled? == Settled::Now);
        }
        settles = turn.leased.iter().map(|l| Ok((done(l)?, Actor::Engine))).collect::<Result<_>>()?;
    }
    Ok(())
}

pub async fn a_lost_commit_that_tells_no_event_is_accounted_for_too(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    for (mishap, _) in MISHAPS {
        let id = enqueue(&node).await?.id;
        let leased = claim_one(&lab, &node).await?;
        let at = |n| node.script.at(n, mishap);
        at(1);
        let wake = Wake { org: OrgId::default(), job: id };
        ensure!(node.store.commit(wake, Actor::Api).await? == Woken::Noted);
        ensure!(record(&node, id).await?.job.wakes == 1, "{mishap:?}: woken once");
        lab.advance(Span::secs(10));
        at(1);
        let beat = Beat::of(OrgId::default(), vec![fence(&leased)?]);
        ensure!(node.store.commit(beat, Actor::Engine).await?.lost.is_empty(), "{mishap:?}: still held");
        let (was, is) = (leased.job.status.lease(), record(&node, id).await?.job.status);
        ensure!(is.lease().context("leased")?.until > was.context("leased")?.until, "{mishap:?}: extended");
        ensure!(node.store.commit(done(&leased)?, Actor::Engine).await? == Settled::Now);
        fresh(node.store.commit_once(echo(), Actor::Api, once(key(&format!("{mishap:?}")), "r")).await)?;
        lab.advance(KEPT_FOR);
        at(1);
        node.store.purge_onces(9).await?;
        ensure!(node.store.purge_onces(9).await? == 0, "{mishap:?}: purged");
        for rest in claim(&lab, &node, 9).await? {
            node.store.commit(done(&rest)?, Actor::Engine).await?;
        }
    }
    clean(&node.store).await
}

pub async fn a_lost_commit_is_not_taken_for_made_because_some_rows_were_to_stay_as_they_are(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let (a, b) = (enqueue(&node).await?.id, enqueue(&node).await?.id);
    let at = node.store.now().await?.plus(Span::secs(600));
    for (n, (mishap, _)) in (1..).zip(MISHAPS) {
        for (woken, beside) in [(a, b), (b, a)] {
            node.script.at(1, mishap);
            node.store.commit(Quietly { woken, beside }, Actor::Api).await?;
        }
        for id in [a, b] {
            let wakes = record(&node, id).await?.job.wakes;
            ensure!(wakes == n, "{mishap:?}: {wakes} wake-ups of {n} are there");
        }
        // Nothing but a timer is written.
        for to in [Some(at), None] {
            node.script.at(1, mishap);
            node.store.commit(MoveDeadline { job: a, to }, Actor::Api).await?;
            ensure!(node.store.due_timers(9).await? == (vec![], to), "{mishap:?}: {to:?}");
        }
    }
    clean(&node.store).await
}

pub async fn a_conflict_without_end_is_given_up_and_leaves_nothing(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    for mishap in [Mishap::Conflict, Mishap::CommitLost] {
        let before = node.script.commits();
        node.script.always(Some(mishap));
        let alone = node.store.commit(echo(), Actor::Api).await;
        ensure!(matches!(alone, Err(CommitError::Store(StoreError::Unavailable(_)))), "{mishap:?}: {alone:?}");
        let took = node.script.commits() - before;
        ensure!((2..=32).contains(&took), "{mishap:?} was tried {took} times");
        if mishap == Mishap::Conflict {
            for answer in join_all((0..16).map(|_| node.store.commit(echo(), Actor::Api))).await {
                ensure!(matches!(answer, Err(CommitError::Store(StoreError::Unavailable(_)))), "{answer:?}");
            }
        }
        let turn = node.store.claim(ask(&lab, &node, 1)).await;
        ensure!(turn.is_ok_and(|turn| turn.leased.is_empty()), "nothing to claim is nothing to commit");
        node.script.always(None);
        ensure!(census(&node.store, &OrgId::default(), "p1").await?.is_empty());
        ensure!(events(&node.store).await?.is_empty());
    }
    let id = enqueue(&node).await?.id;
    exactly(&node.store, "p1", [id]).await
}

pub async fn answers_that_are_always_lost_are_always_found(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    node.script.always(Some(Mishap::AnswerLost));
    let mut made = Vec::new();
    for _ in 0..10 {
        made.push(enqueue(&node).await?.id);
    }
    ensure!(node.script.commits() == 10);
    exactly(&node.store, "p1", made).await
}
