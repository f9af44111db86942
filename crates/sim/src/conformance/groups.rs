//! Commands that are committed together: all or nothing for each, and nobody pays for another.

use super::odd_commands::{Bad, NOWHERE, Watched};
use super::steps::{ask, census, claim, clean, done, echo_in, enqueue, exactly, live, record, settle, settled_tail};
use crate::hold::Hold;
use crate::lab::{Lab, Node, echo, name};
use anyhow::{Context, Result, ensure};
use baton_core::OrgId;
use baton_core::command::{Actor, Command};
use baton_core::job::enqueue::{Enqueue, EnqueueError};
use baton_core::job::settle::{Outcome, SettleError, Settled};
use baton_core::job::state::Face;
use baton_core::job::wake::{Wake, Woken};
use baton_core::job::{Pause, Status};
use baton_store::{CommitError, StoreError};
use futures_util::future::{join, try_join_all};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Whether two commands meet in a group is up to the scheduler; this often we try.
const ROUNDS: usize = 50;
const NEIGHBOURS: usize = 63;

pub async fn many_at_once_share_few_commits_and_all_succeed(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let before = node.script.commits();
    let all = try_join_all((0..256).map(|_| node.store.commit(echo(), Actor::Api))).await?;
    let commits = node.script.commits() - before;
    ensure!(commits < 128, "{commits} commits for 256 commands that waited together");
    exactly(&node.store, "p1", all.into_iter().map(|enqueued| enqueued.job.id)).await?;
    settled_tail(&node.store, 256).await.map(drop)
}

/// Lets a bad command sit among good ones until they have really shared a group, and looks
/// whether the good ones are committed exactly once.
async fn among_good_ones<C: Command + Clone>(
    node: &Node,
    bad: C,
    expected: fn(&CommitError<C::No>) -> bool,
    spoils: bool,
) -> Result<()> {
    let mut good = Vec::new();
    for round in 0.. {
        let decided = Arc::new(AtomicU64::new(0));
        let before = (0..NEIGHBOURS / 2).map(|_| Watched { command: echo(), decided: decided.clone() });
        let after = (NEIGHBOURS / 2..NEIGHBOURS).map(|_| Watched { command: echo(), decided: decided.clone() });
        let commit = |command| node.store.commit(command, Actor::Api);
        // Futures are polled in order, so the bad one is submitted in the middle.
        let around = join(
            try_join_all(before.map(commit)),
            join(node.store.commit(bad.clone(), Actor::Api), try_join_all(after.map(commit))),
        );
        let (first, (answer, last)) = around.await;
        good.extend(first?.into_iter().chain(last?).map(|enqueued| enqueued.job.id));
        let Err(error) = answer else { anyhow::bail!("the bad command was committed") };
        ensure!(expected(&error), "the bad command got {error:?}");
        // A neighbour that was decided twice was in the group that was spoiled.
        if !spoils || decided.load(Ordering::SeqCst) > NEIGHBOURS as u64 {
            break;
        }
        ensure!(round < ROUNDS, "the bad command never shared a group");
    }
    let events = good.len();
    exactly(&node.store, "p1", good).await?;
    ensure!(census(&node.store, &OrgId::default(), NOWHERE).await?.is_empty(), "something bad was written");
    ensure!(settled_tail(&node.store, events).await?.len() == events);
    Ok(())
}

pub async fn a_refused_member_does_not_touch_its_neighbours(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let bad = Enqueue { kind: name("moon"), ..echo_in(NOWHERE) };
    let unknown = |e: &CommitError<EnqueueError>| matches!(e, CommitError::Refused(EnqueueError::UnknownType { .. }));
    among_good_ones(&node, bad, unknown, false).await
}

pub async fn a_panicking_member_does_not_touch_its_neighbours(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let panicked =
        |e: &CommitError<_>| matches!(e, CommitError::Store(StoreError::Panicked(why)) if why.contains("on purpose"));
    among_good_ones(&node, Bad::Panics, panicked, true).await
}

pub async fn a_member_that_panics_while_naming_what_it_reads_does_not_touch_its_neighbours(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let panicked = |e: &CommitError<_>| matches!(e, CommitError::Store(StoreError::Panicked(_)));
    let mut good = Vec::new();
    for _ in 0..8 {
        let neighbours = try_join_all((0..16).map(|_| node.store.commit(echo(), Actor::Api)));
        let (bad, neighbours) = join(node.store.commit(Bad::PanicsEarly, Actor::Api), neighbours).await;
        ensure!(bad.as_ref().is_err_and(panicked), "{bad:?}");
        good.extend(neighbours?.into_iter().map(|enqueued| enqueued.job.id));
    }
    exactly(&node.store, "p1", good).await
}

pub async fn a_member_that_panics_while_it_is_applied_does_not_touch_its_neighbours(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let panicked = |e: &CommitError<_>| matches!(e, CommitError::Store(StoreError::Panicked(_)));
    among_good_ones(&node, Bad::TellsOfAStranger, panicked, true).await
}

pub async fn a_member_that_breaks_a_constraint_does_not_touch_its_neighbours(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let rejected = |e: &CommitError<_>| matches!(e, CommitError::Store(StoreError::Rejected(_)));
    among_good_ones(&node, Bad::BreaksAConstraint, rejected, true).await
}

pub async fn a_member_that_takes_an_id_that_is_taken_does_not_touch_its_neighbours(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let taken = node.store.commit(echo_in("p2"), Actor::Api).await?.job.id;
    let rejected = |e: &CommitError<_>| matches!(e, CommitError::Store(StoreError::Rejected(_)));
    let answer = node.store.commit(Bad::TakesAnId(taken), Actor::Api).await;
    ensure!(answer.as_ref().is_err_and(rejected), "{answer:?}");
    let good = try_join_all((0..4).map(|_| node.store.commit(echo(), Actor::Api))).await?;
    exactly(&node.store, "p1", good.into_iter().map(|e| e.job.id)).await?;
    exactly(&node.store, "p2", [taken]).await?;
    exactly(&node.store, NOWHERE, []).await
}

pub async fn a_member_that_waits_for_a_row_that_is_held_does_not_touch_its_neighbours(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let held = node.store.commit(echo_in("p2"), Actor::Api).await?.job;
    let somebody = Hold::row(&lab, held.id).await?;
    let wake = Wake { org: held.org.clone(), job: held.id };
    let blocked = |e: &CommitError<_>| matches!(e, CommitError::Store(StoreError::Unavailable(_)));
    let good = try_join_all((0..NEIGHBOURS).map(|_| node.store.commit(echo(), Actor::Api)));
    let (answer, good) = join(node.store.commit(wake.clone(), Actor::Api), good).await;
    ensure!(answer.as_ref().is_err_and(blocked), "{answer:?}");
    exactly(&node.store, "p1", good?.into_iter().map(|enqueued| enqueued.job.id)).await?;
    somebody.let_go().await?;
    ensure!(node.store.commit(wake, Actor::Api).await? == Woken::Noted);
    clean(&node.store).await
}

pub async fn several_bad_members_of_one_group_each_get_their_own_error(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    for _ in 0..8 {
        let bad = |bad: Bad| node.store.commit(bad, Actor::Api);
        let good = try_join_all((0..16).map(|_| node.store.commit(echo(), Actor::Api)));
        let ((panics, breaks), (peeks, good)) =
            join(join(bad(Bad::Panics), bad(Bad::BreaksAConstraint)), join(bad(Bad::Peeks), good)).await;
        ensure!(matches!(panics, Err(CommitError::Store(StoreError::Panicked(_)))), "{panics:?}");
        ensure!(matches!(breaks, Err(CommitError::Store(StoreError::Rejected(_)))), "{breaks:?}");
        ensure!(matches!(peeks, Err(CommitError::Store(StoreError::Panicked(_)))), "{peeks:?}");
        good?;
    }
    ensure!(census(&node.store, &OrgId::default(), "p1").await?.len() == 128);
    exactly(&node.store, NOWHERE, []).await
}

pub async fn a_turn_answers_each_settlement_by_itself(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    for _ in 0..40 {
        enqueue(&node).await?;
    }
    let leased = claim(&lab, &node, 40).await?;
    ensure!(leased.len() == 40);
    // Of four, the first is somebody else's by now, the second was settled before.
    for (n, leased) in leased.iter().enumerate() {
        let before = match n % 4 {
            0 => Outcome::Release,
            1 => Outcome::Park { until: None, seen: 0 },
            _ => continue,
        };
        node.store.commit(settle(leased, before)?, Actor::Engine).await?;
    }
    ensure!(claim(&lab, &node, 40).await?.len() == 10);
    let settles = leased.iter().map(|l| Ok((done(l)?, Actor::Engine))).collect::<Result<_>>()?;
    let turn = node.store.turn(settles, None).await?;
    ensure!(turn.settled.len() == 40 && turn.leased.is_empty());
    for (n, (settled, leased)) in turn.settled.iter().zip(&leased).enumerate() {
        let right = match settled {
            Ok(Settled::Now) => n % 4 > 1,
            Ok(Settled::Already) => n % 4 == 1,
            Err(CommitError::Refused(SettleError::LeaseLost { job, token })) => {
                n % 4 == 0 && *job == leased.job.id && *token == leased.job.token
            }
            Err(_) => false,
        };
        ensure!(right, "settlement {n} was answered {settled:?}");
        let face = record(&node, leased.job.id).await?.job.status.face();
        ensure!(face == if n % 4 > 1 { Face::Completed } else { Face::Running }, "job {n} is {face:?}");
    }
    clean(&node.store).await
}

pub async fn settling_and_claiming_in_one_turn_is_one_commit(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    for _ in 0..20 {
        enqueue(&node).await?;
    }
    let first = claim(&lab, &node, 10).await?;
    let before = node.script.commits();
    let settles = first.iter().map(|l| Ok((done(l)?, Actor::Engine))).collect::<Result<_>>()?;
    let turn = node.store.turn(settles, Some(ask(&lab, &node, 10))).await?;
    ensure!(node.script.commits() == before + 1, "one commit");
    ensure!(turn.settled.iter().all(|settled| matches!(settled, Ok(Settled::Now))));
    ensure!(turn.leased.len() == 10);
    ensure!(live(&node.store).await?.into_iter().eq([("executing", 10)]));
    clean(&node.store).await
}

pub async fn a_member_sees_what_those_before_it_decided(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    enqueue(&node).await?;
    let leased = claim(&lab, &node, 1).await?.pop().context("there is one")?;
    // A turn sits together in one group, in its order.
    let outcomes = [Outcome::Park { until: None, seen: 0 }, Outcome::Release];
    let mut settles = Vec::new();
    for outcome in outcomes {
        settles.push((settle(&leased, outcome)?, Actor::Engine));
    }
    settles.push((done(&leased)?, Actor::Engine));
    let turn = node.store.turn(settles, None).await?;
    ensure!(matches!(turn.settled[..], [Ok(Settled::Now), Ok(Settled::Already), Ok(Settled::Already)]));
    let parked = record(&node, leased.job.id).await?.job.status;
    ensure!(parked == Status::AwaitingTool { pause: Pause::Tool, due_at: None }, "{parked:?}");
    enqueue(&node).await?;
    let leased = claim(&lab, &node, 1).await?.pop().context("there is one")?;
    let twice = vec![(done(&leased)?, Actor::Engine), (done(&leased)?, Actor::Engine)];
    let turn = node.store.turn(twice, None).await?;
    ensure!(matches!(turn.settled[..], [Ok(Settled::Now), Ok(Settled::Already)]), "{:?}", turn.settled);
    clean(&node.store).await
}

pub async fn a_group_of_one_is_as_good_as_any(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    node.script.group_max(1);
    let before = node.script.commits();
    let all = try_join_all((0..16).map(|_| node.store.commit(echo(), Actor::Api))).await?;
    // More where a second committer stepped in and made the lane for the first time, too: who comes second looks again.
    let commits = node.script.commits() - before;
    ensure!(commits >= 16, "{commits} commits for 16 groups");
    exactly(&node.store, "p1", all.into_iter().map(|enqueued| enqueued.job.id)).await
}
