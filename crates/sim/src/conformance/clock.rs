//! A clock that jumps back: nothing's own time does, and work goes on.

use super::steps::{claim, claim_one, clean, done, enqueue, fence, history, record, settle};
use crate::lab::{Lab, echo};
use anyhow::{Context, Result, ensure};
use baton_core::OrgId;
use baton_core::command::Actor;
use baton_core::job::Status;
use baton_core::job::beat::Beat;
use baton_core::job::enqueue::Enqueue;
use baton_core::job::recover::{Recover, Recovered, Why};
use baton_core::job::settle::{Outcome, Settled};
use baton_core::job::wake::{Wake, Woken};
use baton_core::time::Span;
use std::collections::BTreeMap;

const BACK: Span = Span::secs(-3_600);

pub async fn the_time_of_a_subject_never_goes_backwards(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let (ended, parked) = (enqueue(&node).await?, enqueue(&node).await?);
    let leased = claim(&lab, &node, 2).await?;
    lab.advance(BACK);
    node.store.commit(done(&leased[0])?, Actor::Engine).await?;
    node.store.commit(settle(&leased[1], Outcome::Park { until: None, seen: 0 })?, Actor::Engine).await?;
    lab.advance(BACK);
    node.store.commit(Wake { org: parked.org.clone(), job: parked.id }, Actor::Api).await?;
    let young = enqueue(&node).await?;
    ensure!(young.created_at < ended.created_at, "the clock did jump back");
    let rows = history(&node.store, &OrgId::default(), 8).await?;
    let mut last = BTreeMap::new();
    for row in &rows {
        let before = last.insert(row.event.subject, row.event.at);
        ensure!(before.is_none_or(|before| before <= row.event.at), "event {} of {}", row.event.n, row.event.subject);
    }
    let found = record(&node, ended.id).await?.job;
    let Status::Ended { at, .. } = found.status else { anyhow::bail!("it has ended") };
    ensure!(
        at >= found.created_at && found.started_at.is_some_and(|started| started >= found.created_at && at >= started)
    );
    ensure!(Some(&at) == last.get(&ended.id.0), "it ended when its last event says");
    clean(&node.store).await
}

pub async fn what_was_due_stays_due_when_the_clock_jumps_back(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let (queued, retried, woken) = (enqueue(&node).await?, enqueue(&node).await?, enqueue(&node).await?);
    let leased = claim(&lab, &node, 3).await?;
    node.store.commit(settle(&leased[0], Outcome::Release)?, Actor::Engine).await?;
    node.store.commit(settle(&leased[1], Outcome::Release)?, Actor::Engine).await?;
    node.store.commit(settle(&leased[2], Outcome::Park { until: None, seen: 0 })?, Actor::Engine).await?;
    let wake = Wake { org: woken.org.clone(), job: woken.id };
    ensure!(node.store.commit(wake, Actor::Api).await? == Woken::Due);
    lab.advance(BACK);
    // Being touched does not take it from the queue either.
    let wake = Wake { org: queued.org.clone(), job: queued.id };
    ensure!(node.store.commit(wake, Actor::Api).await? == Woken::Noted);
    let young = enqueue(&node).await?;
    // One at a time: those that were due before must not stand in the way of those that are now.
    for expected in [queued, retried, woken, young] {
        let leased = claim_one(&lab, &node).await.with_context(|| format!("{} is due", expected.id))?;
        ensure!(leased.job.id == expected.id, "{} is next", expected.id);
        let until = leased.job.status.lease().context("leased")?.until;
        ensure!(until < leased.at.plus(Span::secs(600)), "its lease counts from the clock as it is now");
        ensure!(node.store.commit(done(&leased)?, Actor::Engine).await? == Settled::Now);
    }
    clean(&node.store).await
}

pub async fn a_delayed_job_waits_for_its_moment_whatever_the_clock_did(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let at = node.store.now().await?.plus(Span::secs(600));
    node.store.commit(Enqueue { not_before: Some(at), ..echo() }, Actor::Api).await?;
    lab.advance(BACK);
    let turn = node.store.claim(super::steps::ask(&lab, &node, 9)).await?;
    ensure!(turn.leased.is_empty() && turn.next_due == Some(at));
    lab.advance(Span::secs(3_600 + 601));
    claim_one(&lab, &node).await.map(drop)
}

pub async fn leases_hold_when_the_clock_jumps_back(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    enqueue(&node).await?;
    let leased = claim_one(&lab, &node).await?;
    let until = leased.job.status.lease().context("leased")?.until;
    lab.advance(BACK);
    let beat = Beat::of(OrgId::default(), vec![fence(&leased)?]);
    ensure!(node.store.commit(beat, Actor::Engine).await?.lost.is_empty());
    let held = record(&node, leased.job.id).await?.job;
    ensure!(held.status.lease().context("leased")?.until >= until, "what was promised is not taken back");
    ensure!(node.store.expired(9).await?.is_empty());
    let gone = Recover::new(fence(&leased)?, Why::NodeGone);
    ensure!(node.store.commit(gone, Actor::Engine).await? == Recovered::Requeued);
    let again = claim_one(&lab, &node).await?;
    ensure!(again.job.id == leased.job.id && again.job.token > leased.job.token);
    ensure!(node.store.commit(done(&again)?, Actor::Engine).await? == Settled::Now);
    clean(&node.store).await
}

pub async fn a_deadline_waits_for_its_moment_whatever_the_clock_did(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let at = node.store.now().await?.plus(Span::secs(600));
    node.store.commit(Enqueue { deadline: Some(at), ..echo() }, Actor::Api).await?;
    lab.advance(Span::secs(700));
    let (due, _) = node.store.due_timers(9).await?;
    let due = due.first().context("it is due")?;
    lab.advance(BACK);
    let fire = baton_core::job::deadline::Deadline {
        org: due.org.clone(),
        job: baton_core::JobId(due.key.subject),
        at: due.at,
    };
    ensure!(node.store.commit(fire.clone(), Actor::Engine).await.is_err(), "it is not due any more");
    ensure!(node.store.due_timers(9).await? == (vec![], Some(at)));
    lab.advance(Span::secs(3_600));
    node.store.commit(fire, Actor::Engine).await?;
    clean(&node.store).await
}
