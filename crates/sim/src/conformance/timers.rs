//! Timers: set in the commit that needs them, fired once.

use super::odd_commands::MoveDeadline;
use super::steps::{claim_one, clean, done, record, settle, story};
use crate::lab::{Lab, Node, Place, echo};
use anyhow::{Context, Result, ensure};
use baton_core::command::Actor;
use baton_core::job::Job;
use baton_core::job::deadline::{Deadline, DeadlineError};
use baton_core::job::enqueue::{Enqueue, EnqueueError};
use baton_core::job::settle::{Outcome, SettleError};
use baton_core::job::state::Face;
use baton_core::time::Span;
use baton_core::timer::{Due, Kind};
use baton_core::{JobId, Micros};
use baton_store::CommitError;
use futures_util::future::{join, join_all};

async fn with_deadline(node: &Node, at: Micros) -> Result<Job> {
    Ok(node.store.commit(Enqueue { deadline: Some(at), ..echo() }, Actor::Api).await?.job)
}

fn fire(due: &Due) -> Deadline {
    Deadline { org: due.org.clone(), job: JobId(due.key.subject), at: due.at }
}

fn gone(answer: &Result<(), CommitError<DeadlineError>>) -> bool {
    matches!(answer, Err(CommitError::Refused(DeadlineError::TimerGone)))
}

pub async fn a_timer_is_found_when_it_is_due_and_the_next_is_told(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    ensure!(node.store.due_timers(9).await? == (vec![], None));
    let now = node.store.now().await?;
    let (soon, late) = (now.plus(Span::secs(600)), now.plus(Span::secs(1_200)));
    let (second, first) = (with_deadline(&node, late).await?, with_deadline(&node, soon).await?);
    ensure!(node.store.due_timers(9).await? == (vec![], Some(soon)));
    lab.advance(Span::secs(700));
    let (due, next) = node.store.due_timers(9).await?;
    ensure!(next == Some(late));
    let [found] = &due[..] else { anyhow::bail!("{due:?}") };
    ensure!(found.org == first.org && found.key == first.deadline_timer() && found.at == soon);
    ensure!(found.key.kind == Kind::JobDeadline);
    lab.advance(Span::secs(700));
    let (due, next) = node.store.due_timers(9).await?;
    ensure!(next.is_none() && due.iter().map(|d| d.key).eq([first.deadline_timer(), second.deadline_timer()]));
    let (due, next) = node.store.due_timers(1).await?;
    ensure!(due.len() == 1 && next == Some(late), "there is more than was asked for: {due:?} {next:?}");
    Ok(())
}

pub async fn kinds_of_a_newer_baton_do_not_hide_ours(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let soon = node.store.now().await?.plus(Span::secs(60));
    let job = with_deadline(&node, soon).await?;
    let id = match lab.place {
        Place::Postgres => format!("'{}'", job.id.0),
        _ => format!("x'{}'", job.id.0.simple()),
    };
    for n in 0..9 {
        let sql =
            format!("INSERT INTO timer (org, subject, kind, at) VALUES ('default', {id}, 'of.the.future.{n}', {n})");
        node.store.raw(&sql).await?;
    }
    ensure!(node.store.due_timers(4).await? == (vec![], Some(soon)));
    lab.advance(Span::secs(61));
    let (due, next) = node.store.due_timers(4).await?;
    ensure!(next.is_none() && due.iter().map(|d| d.key).eq([job.deadline_timer()]), "{due:?}");
    Ok(())
}

pub async fn a_refused_command_sets_no_timer(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let refused = with_deadline(&node, Micros(1)).await;
    let no = refused.err().context("it is past")?.downcast::<CommitError<EnqueueError>>()?;
    ensure!(matches!(no, CommitError::Refused(EnqueueError::DeadlinePast)), "{no:?}");
    ensure!(node.store.due_timers(9).await? == (vec![], None));
    Ok(())
}

pub async fn a_timer_that_fires_fails_the_job_and_fences_its_worker(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let job = with_deadline(&node, node.store.now().await?.plus(Span::secs(600))).await?;
    let leased = claim_one(&lab, &node).await?;
    lab.advance(Span::secs(601));
    let (due, _) = node.store.due_timers(9).await?;
    let early = Deadline { at: due[0].at.plus(Span(1)), ..fire(&due[0]) };
    ensure!(gone(&node.store.commit(early, Actor::Engine).await), "another moment is another timer");
    node.store.commit(fire(&due[0]), Actor::Engine).await?;
    let found = record(&node, job.id).await?;
    ensure!(found.job.status.face() == Face::Failed);
    ensure!(found.error.context("it failed")?.code == "deadline_exceeded");
    ensure!(node.store.due_timers(9).await? == (vec![], None), "it is used up");
    ensure!(gone(&node.store.commit(fire(&due[0]), Actor::Engine).await), "once");
    let late = node.store.commit(done(&leased)?, Actor::Engine).await;
    ensure!(matches!(late, Err(CommitError::Refused(SettleError::LeaseLost { .. }))), "{late:?}");
    ensure!(story(&node.store, &job, 3).await? == ["job.queued", "job.started", "job.failed"]);
    clean(&node.store).await
}

pub async fn of_two_nodes_that_fire_a_timer_one_wins(lab: Lab) -> Result<()> {
    let nodes = [lab.node_named("node_a").await?, lab.node_named("node_b").await?];
    let now = nodes[0].store.now().await?;
    let mut jobs = Vec::new();
    for n in 0..20 {
        jobs.push(with_deadline(&nodes[n % 2], now.plus(Span::secs(600))).await?);
    }
    lab.advance(Span::secs(700));
    // Both look, and then both fire everything they found, as two engines do.
    let mut shots = Vec::new();
    for node in &nodes {
        let (due, _) = node.store.due_timers(99).await?;
        ensure!(due.len() == 20);
        shots.extend(due.iter().map(|due| node.store.commit(fire(due), Actor::Engine)));
    }
    let (mut won, mut lost) = (0, 0);
    for answer in join_all(shots).await {
        lost += usize::from(gone(&answer));
        won += usize::from(answer.is_ok());
    }
    ensure!((won, lost) == (20, 20), "{won} timers were fired, {lost} were gone");
    for job in jobs {
        ensure!(story(&nodes[0].store, &job, 2).await? == ["job.queued", "job.failed"]);
    }
    ensure!(nodes[1].store.due_timers(9).await? == (vec![], None));
    clean(&nodes[1].store).await
}

pub async fn ending_a_job_takes_its_timer_along(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let at = node.store.now().await?.plus(Span::secs(600));
    let job = with_deadline(&node, at).await?;
    let leased = claim_one(&lab, &node).await?;
    node.store.commit(settle(&leased, Outcome::Release)?, Actor::Engine).await?;
    ensure!(node.store.due_timers(9).await? == (vec![], Some(at)), "it has not ended yet");
    let leased = claim_one(&lab, &node).await?;
    node.store.commit(done(&leased)?, Actor::Engine).await?;
    ensure!(node.store.due_timers(9).await? == (vec![], None));
    lab.advance(Span::secs(700));
    let fired = Deadline { org: job.org.clone(), job: job.id, at };
    ensure!(gone(&node.store.commit(fired, Actor::Engine).await));
    ensure!(record(&node, job.id).await?.job.status.face() == Face::Completed);
    clean(&node.store).await
}

pub async fn a_worker_that_settles_and_a_timer_that_fires_cannot_both_win(lab: Lab) -> Result<()> {
    let nodes = [lab.node_named("node_a").await?, lab.node_named("node_b").await?];
    for _ in 0..10 {
        let job = with_deadline(&nodes[0], nodes[0].store.now().await?.plus(Span::secs(600))).await?;
        let leased = claim_one(&lab, &nodes[0]).await?;
        lab.advance(Span::secs(601));
        let (due, _) = nodes[1].store.due_timers(9).await?;
        let due = due.first().context("it is due")?;
        let settles = nodes[0].store.commit(done(&leased)?, Actor::Engine);
        let (settled, fired) = join(settles, nodes[1].store.commit(fire(due), Actor::Engine)).await;
        ensure!(settled.is_ok() != fired.is_ok(), "{settled:?} and {fired:?}");
        let face = record(&nodes[0], job.id).await?.job.status.face();
        ensure!(face == if settled.is_ok() { Face::Completed } else { Face::Failed });
        ensure!(nodes[0].store.due_timers(9).await? == (vec![], None));
    }
    clean(&nodes[1].store).await
}

pub async fn a_timer_that_was_moved_or_cleared_is_not_fired(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let now = node.store.now().await?;
    let (soon, late) = (now.plus(Span::secs(600)), now.plus(Span::secs(6_000)));
    let (moved, cleared) = (with_deadline(&node, soon).await?, with_deadline(&node, soon).await?);
    lab.advance(Span::secs(700));
    let (due, _) = node.store.due_timers(9).await?;
    ensure!(due.len() == 2);
    // Between the look and the shot.
    node.store.commit(MoveDeadline { job: moved.id, to: Some(late) }, Actor::Api).await?;
    node.store.commit(MoveDeadline { job: cleared.id, to: None }, Actor::Api).await?;
    for due in &due {
        ensure!(gone(&node.store.commit(fire(due), Actor::Engine).await));
    }
    ensure!(node.store.due_timers(9).await? == (vec![], Some(late)));
    for job in [&moved, &cleared] {
        ensure!(record(&node, job.id).await?.job.status.face() == Face::Queued);
    }
    lab.advance(Span::secs(6_000));
    let (due, next) = node.store.due_timers(9).await?;
    ensure!(due.len() == 1 && due[0].at == late && next.is_none(), "{due:?}");
    node.store.commit(fire(&due[0]), Actor::Engine).await?;
    ensure!(record(&node, moved.id).await?.job.status.face() == Face::Failed);
    clean(&node.store).await
}

pub async fn setting_a_timer_is_told_to_whoever_watches(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let mut timers = node.store.watch_timers();
    timers.mark_unchanged();
    with_deadline(&node, node.store.now().await?.plus(Span::secs(600))).await?;
    timers.changed().await?;
    Ok(())
}
