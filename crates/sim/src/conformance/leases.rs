//! Leases: who may speak for a job, for how long, and what becomes of those who fell silent.

use super::steps::{claim, claim_one, clean, done, enqueue, fence, record, settle, story};
use crate::hold::Hold;
use crate::lab::{Lab, echo, name};
use anyhow::{Context, Result, ensure};
use baton_core::command::Actor;
use baton_core::job::beat::Beat;
use baton_core::job::enqueue::Enqueue;
use baton_core::job::recover::{Recover, RecoverError, Recovered, Why};
use baton_core::job::settle::{Outcome, SettleError, Settled};
use baton_core::job::state::Face;
use baton_core::job::wake::Wake;
use baton_core::job::{Failure, Fence, Status};
use baton_core::time::Span;
use baton_core::{JobId, OrgId};
use baton_store::CommitError;
use futures_util::future::{join, join_all};

/// Longer than any lease of the lab.
const LONG: Span = Span::secs(3_600);

fn expired(fence: Fence) -> Recover {
    Recover::new(fence, Why::LeaseExpired)
}

fn lost<T>(answer: &Result<T, CommitError<SettleError>>, id: JobId) -> bool {
    matches!(answer, Err(CommitError::Refused(SettleError::LeaseLost { job, .. })) if *job == id)
}

pub async fn only_the_holder_of_the_lease_can_settle(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let job = enqueue(&node).await?;
    let leased = claim_one(&lab, &node).await?;
    let before = record(&node, job.id).await?.job;
    let changes: [fn(&mut Fence); 3] = [|f| f.token += 1, |f| f.token -= 1, |f| f.worker = name("node_x")];
    for change in changes {
        let mut forged = done(&leased)?;
        change(&mut forged.fence);
        let answer = node.store.commit(forged, Actor::Engine).await;
        ensure!(lost(&answer, job.id), "{answer:?}");
    }
    ensure!(record(&node, job.id).await?.job == before, "nothing was touched");
    ensure!(node.store.commit(done(&leased)?, Actor::Engine).await? == Settled::Now);
    clean(&node.store).await
}

pub async fn settling_twice_with_one_lease_is_told_and_changes_nothing(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let job = enqueue(&node).await?;
    let leased = claim_one(&lab, &node).await?;
    ensure!(node.store.commit(done(&leased)?, Actor::Engine).await? == Settled::Now);
    let ended = record(&node, job.id).await?;
    let failed = settle(&leased, Outcome::Failed(Failure::new("x", "another outcome")))?;
    for again in [done(&leased)?, failed] {
        ensure!(node.store.commit(again, Actor::Engine).await? == Settled::Already);
    }
    let still = record(&node, job.id).await?;
    ensure!(still.job == ended.job && still.result == ended.result && still.error.is_none());
    ensure!(story(&node.store, &job, 3).await?.len() == 3);
    clean(&node.store).await
}

pub async fn a_late_worker_is_refused_and_the_next_is_not_disturbed(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let job = enqueue(&node).await?;
    let first = claim_one(&lab, &node).await?;
    lab.advance(LONG);
    ensure!(node.store.commit(expired(fence(&first)?), Actor::Engine).await? == Recovered::Requeued);
    let late = || async { anyhow::Ok(node.store.commit(done(&first)?, Actor::Engine).await) };
    ensure!(lost(&late().await?, job.id), "before anybody else has it");
    let second = claim_one(&lab, &node).await?;
    ensure!(second.job.id == job.id && second.job.attempts == 2);
    ensure!(lost(&late().await?, job.id), "while another has it");
    let held = record(&node, job.id).await?.job;
    ensure!(held.fence() == second.job.fence() && held.status == second.job.status);
    ensure!(node.store.commit(done(&second)?, Actor::Engine).await? == Settled::Now);
    ensure!(lost(&late().await?, job.id), "after another has ended it");
    clean(&node.store).await
}

pub async fn a_failed_job_keeps_its_error_and_no_result(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let job = enqueue(&node).await?;
    let leased = claim_one(&lab, &node).await?;
    let failure = Failure::new("tool_failed", "it said: \"no\"\0 and ü");
    node.store.commit(settle(&leased, Outcome::Failed(failure.clone()))?, Actor::Engine).await?;
    let found = record(&node, job.id).await?;
    ensure!(found.job.status.face() == Face::Failed && found.result.is_none());
    ensure!(found.error == Some(failure));
    ensure!(story(&node.store, &job, 3).await? == ["job.queued", "job.started", "job.failed"]);
    clean(&node.store).await
}

pub async fn a_beat_extends_what_is_held_and_tells_what_is_lost(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    for _ in 0..3 {
        enqueue(&node).await?;
    }
    let leased = claim(&lab, &node, 3).await?;
    let fences = leased.iter().map(fence).collect::<Result<Vec<_>>>()?;
    let [held, ended, forged] = &fences[..] else { anyhow::bail!("three were claimed") };
    node.store.commit(done(&leased[1])?, Actor::Engine).await?;
    let forged = Fence { worker: name("node_x"), ..forged.clone() };
    lab.advance(Span::secs(20));
    let all = vec![held.clone(), ended.clone(), forged.clone()];
    let beat = Beat::of(OrgId::default(), all);
    let mut gone = node.store.commit(beat, Actor::Engine).await?;
    // Ids of one millisecond are in no order.
    let mut lost = [ended.clone(), forged];
    lost.sort_by_key(|fence| fence.job);
    gone.lost.sort_by_key(|fence| fence.job);
    ensure!(gone.lost == lost, "{gone:?}");
    // The one that was extended outlives the one that was not.
    lab.advance(Span::secs(15));
    let found = node.store.expired(9).await?;
    ensure!(found.iter().map(|f| f.job).eq([leased[2].job.id]), "{found:?}");
    ensure!(node.store.commit(done(&leased[0])?, Actor::Engine).await? == Settled::Now);
    clean(&node.store).await
}

pub async fn expired_leases_are_found_oldest_first(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let mut expected = Vec::new();
    for _ in 0..4 {
        enqueue(&node).await?;
        expected.push(fence(&claim_one(&lab, &node).await?)?);
        lab.advance(Span::secs(1));
    }
    ensure!(node.store.expired(9).await?.is_empty(), "none has run out");
    lab.advance(LONG);
    ensure!(node.store.expired(9).await? == expected);
    ensure!(node.store.expired(2).await? == expected[..2], "no more than asked for");
    Ok(())
}

pub async fn a_lease_that_was_extended_is_not_taken_back(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    enqueue(&node).await?;
    let leased = claim_one(&lab, &node).await?;
    lab.advance(LONG);
    let [found] = &node.store.expired(9).await?[..] else { anyhow::bail!("one has run out") };
    // It was only slow: its beat comes between the look and the recovery.
    let beat = Beat::of(OrgId::default(), vec![fence(&leased)?]);
    ensure!(node.store.commit(beat, Actor::Engine).await?.lost.is_empty());
    let answer = node.store.commit(expired(found.clone()), Actor::Engine).await;
    ensure!(matches!(answer, Err(CommitError::Refused(RecoverError::Gone))), "{answer:?}");
    ensure!(node.store.expired(9).await?.is_empty());
    ensure!(node.store.commit(done(&leased)?, Actor::Engine).await? == Settled::Now);
    clean(&node.store).await
}

pub async fn of_two_nodes_that_recover_a_job_one_wins(lab: Lab) -> Result<()> {
    let nodes = [lab.node_named("node_a").await?, lab.node_named("node_b").await?];
    for _ in 0..10 {
        let job = enqueue(&nodes[0]).await?;
        claim_one(&lab, &nodes[0]).await?;
        lab.advance(LONG);
        let [found] = &nodes[1].store.expired(9).await?[..] else { anyhow::bail!("one has run out") };
        let tries = (0..6).map(|n| nodes[n % 2].store.commit(expired(found.clone()), Actor::Engine));
        let (mut won, mut gone) = (0, 0);
        for answer in join_all(tries).await {
            match answer {
                Ok(Recovered::Requeued) => won += 1,
                Err(CommitError::Refused(RecoverError::Gone)) => gone += 1,
                other => anyhow::bail!("{other:?}"),
            }
        }
        ensure!((won, gone) == (1, 5), "{won} won");
        let again = claim_one(&lab, &nodes[1]).await?;
        ensure!(again.job.id == job.id && again.job.attempts == 2 && again.job.token > found.token);
        nodes[1].store.commit(done(&again)?, Actor::Engine).await?;
    }
    clean(&nodes[0].store).await
}

pub async fn a_worker_that_settles_and_a_node_that_recovers_cannot_both_win(lab: Lab) -> Result<()> {
    let nodes = [lab.node_named("node_a").await?, lab.node_named("node_b").await?];
    for _ in 0..10 {
        let job = enqueue(&nodes[0]).await?;
        let leased = claim_one(&lab, &nodes[0]).await?;
        lab.advance(LONG);
        let settles = nodes[0].store.commit(done(&leased)?, Actor::Engine);
        let recovers = nodes[1].store.commit(expired(fence(&leased)?), Actor::Engine);
        let settled = match join(settles, recovers).await {
            (Ok(Settled::Now), Err(CommitError::Refused(RecoverError::Gone))) => true,
            (late, Ok(Recovered::Requeued)) if lost(&late, job.id) => false,
            other => anyhow::bail!("{other:?}"),
        };
        ensure!(record(&nodes[1], job.id).await?.job.is_ended() == settled);
        for rest in claim(&lab, &nodes[0], 9).await? {
            nodes[0].store.commit(done(&rest)?, Actor::Engine).await?;
        }
    }
    clean(&nodes[0].store).await
}

/// Whoever has handed a job out may remember it, and is not told of all that becomes of it.
pub async fn what_another_node_did_to_a_job_is_seen_by_whoever_handed_it_out(lab: Lab) -> Result<()> {
    let nodes = [lab.node_named("node_a").await?, lab.node_named("node_b").await?];
    for round in 0..4 {
        for _ in 0..4 {
            enqueue(&nodes[0]).await?;
        }
        let leased = claim(&lab, &nodes[0], 4).await?;
        let [beaten, taken, woken, left] = &leased[..] else { anyhow::bail!("four were claimed") };
        let other = &nodes[1].store;
        let beat = Beat::of(OrgId::default(), vec![fence(beaten)?]);
        ensure!(other.commit(beat, Actor::Engine).await?.lost.is_empty());
        other.commit(Recover::new(fence(taken)?, Why::NodeGone), Actor::Engine).await?;
        other.commit(Wake { org: OrgId::default(), job: woken.job.id }, Actor::Api).await?;
        let ends = [done(beaten)?, done(taken)?, settle(woken, Outcome::Park { until: None, seen: 0 })?, done(left)?];
        // Together, or each by itself.
        let answers: Vec<_> = if round % 2 == 0 {
            nodes[0].store.turn(ends.map(|end| (end, Actor::Engine)).into(), None).await?.settled
        } else {
            join_all(ends.map(|end| nodes[0].store.commit(end, Actor::Engine))).await
        };
        for (n, answer) in answers.into_iter().enumerate() {
            ensure!(
                if n == 1 { lost(&answer, taken.job.id) } else { matches!(answer, Ok(Settled::Now)) },
                "{n}: {answer:?}"
            );
        }
        let again = claim(&lab, &nodes[0], 9).await?;
        let rest = [taken, woken].map(|leased| leased.job.id);
        ensure!(again.len() == 2 && again.iter().all(|leased| rest.contains(&leased.job.id)), "{again:?}");
        for leased in &again {
            ensure!(nodes[0].store.commit(done(leased)?, Actor::Engine).await? == Settled::Now);
        }
    }
    clean(&nodes[0].store).await
}

/// It is changed while the one who remembers it waits for its row.
pub async fn what_becomes_of_a_job_that_is_waited_for_is_seen(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    for _ in 0..8 {
        let job = enqueue(&node).await?;
        let leased = claim_one(&lab, &node).await?;
        let somebody = Hold::woken(&lab, job.id).await?;
        let park = settle(&leased, Outcome::Park { until: None, seen: 0 })?;
        let wakes = async {
            somebody.awaited().await?;
            somebody.let_stand().await
        };
        let (parked, woken) = join(node.store.commit(park, Actor::Engine), wakes).await;
        woken?;
        ensure!(matches!(parked, Ok(Settled::Now)), "{parked:?}");
        let again = claim_one(&lab, &node).await?;
        ensure!(again.job.id == job.id && again.job.wakes == 1, "{again:?}");
        node.store.commit(done(&again)?, Actor::Engine).await?;
    }
    clean(&node.store).await
}

pub async fn a_job_whose_workers_keep_dying_fails_in_the_end(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let job = enqueue(&node).await?;
    ensure!(job.max_attempts == 2);
    let mut last = None;
    for expected in [Recovered::Requeued, Recovered::Failed] {
        let leased = claim_one(&lab, &node).await?;
        let gone = Recover::new(fence(&leased)?, Why::NodeGone);
        ensure!(node.store.commit(gone, Actor::Engine).await? == expected);
        last = Some(leased);
    }
    let found = record(&node, job.id).await?;
    ensure!(found.job.status.face() == Face::Failed);
    ensure!(found.error.context("it failed")?.code == "recovery_attempts_exhausted");
    let late = node.store.commit(done(&last.context("claimed twice")?)?, Actor::Engine).await;
    ensure!(lost(&late, job.id), "the dead worker is fenced off: {late:?}");
    ensure!(claim(&lab, &node, 9).await?.is_empty());
    let told = ["job.queued", "job.started", "job.recovered", "job.started", "job.failed"];
    ensure!(story(&node.store, &job, 5).await? == told);
    clean(&node.store).await
}

pub async fn a_node_finds_its_own_leases_only(lab: Lab) -> Result<()> {
    let nodes = [lab.node_named("node_a").await?, lab.node_named("node_b").await?];
    let mut own = [Vec::new(), Vec::new()];
    for n in 0..5 {
        nodes[0].store.commit(Enqueue { project: name("p2"), ..echo() }, Actor::Api).await?;
        own[n % 2].push(fence(&claim_one(&lab, &nodes[n % 2]).await?)?);
    }
    let ended = claim_and_end(&lab, &nodes[0]).await?;
    ensure!(matches!(ended, Status::Ended { .. }));
    for (n, mut own) in own.into_iter().enumerate() {
        own.sort();
        for node in &nodes {
            ensure!(node.store.held_by(&nodes[n].name, 9).await? == own, "whoever asks");
        }
        ensure!(nodes[0].store.held_by(&nodes[n].name, 1).await? == own[..1], "no more than asked for");
    }
    ensure!(nodes[0].store.held_by(&name("node_x"), 9).await?.is_empty());
    Ok(())
}

async fn claim_and_end(lab: &Lab, node: &crate::lab::Node) -> Result<Status> {
    let job = enqueue(node).await?;
    node.store.commit(done(&claim_one(lab, node).await?)?, Actor::Engine).await?;
    Ok(record(node, job.id).await?.job.status)
}
