//! Lists of jobs: newest first, page by page, filtered by the face that users know. Both orders of
//! every list are in `orders`.

use super::steps::{census, claim, clean, done, echo_in, enqueue, settle};
use crate::lab::{Lab, Node, echo, name};
use anyhow::{Context, Result, ensure};
use baton_core::command::Actor;
use baton_core::job::Failure;
use baton_core::job::settle::Outcome;
use baton_core::job::state::Face;
use baton_core::time::Span;
use baton_core::{JobId, OrgId};
use baton_store::{Filter, ListJobs, Order};
use std::collections::{BTreeMap, BTreeSet};

fn page_of(states: &[Face], after: Option<JobId>, limit: usize) -> ListJobs {
    let filter = Filter { states: states.to_vec(), kind: None };
    let order = Order::Falling;
    ListJobs { org: OrgId::default(), project: name("p1"), filter, order, after, limit, bytes: usize::MAX }
}

async fn listed(node: &Node, states: &[Face]) -> Result<Vec<JobId>> {
    let page = node.store.jobs(page_of(states, None, 100)).await?;
    ensure!(page.next.is_none());
    Ok(page.items.into_iter().map(|r| r.job.id).collect())
}

/// Ids sort by the millisecond of their making, so each is made in its own.
async fn enqueue_apart(lab: &Lab, node: &Node) -> Result<JobId> {
    lab.advance(Span::millis(2));
    Ok(enqueue(node).await?.id)
}

pub async fn the_newest_come_first(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let mut expected = Vec::new();
    for _ in 0..10 {
        expected.insert(0, enqueue_apart(&lab, &node).await?);
    }
    node.store.commit(echo_in("p2"), Actor::Api).await?;
    ensure!(listed(&node, &[]).await? == expected);
    ensure!(census(&node.store, &OrgId::default(), "p3").await?.is_empty());
    Ok(())
}

pub async fn pages_have_no_gap_and_no_repetition_while_jobs_are_added(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    ensure!(listed(&node, &[]).await?.is_empty());
    for _ in 0..12 {
        enqueue_apart(&lab, &node).await?;
    }
    for limit in [1, 3, 4, 5, 1_000] {
        let there = listed(&node, &[]).await?;
        let (mut seen, mut after) = (Vec::new(), None);
        loop {
            let page = node.store.jobs(page_of(&[], after, limit)).await?;
            ensure!(page.items.len() <= limit);
            seen.extend(page.items.into_iter().map(|r| r.job.id));
            // Somebody adds while this reader turns the page: that one belongs before the first.
            enqueue_apart(&lab, &node).await?;
            match page.next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
        ensure!(seen == there, "in pages of {limit}: {seen:?} instead of {there:?}");
    }
    clean(&node.store).await
}

pub async fn filters_go_by_the_face_that_users_know(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    for _ in 0..6 {
        enqueue_apart(&lab, &node).await?;
    }
    let leased = claim(&lab, &node, 6).await?;
    let outcomes = [
        (Outcome::Done(echo().payload), Face::Completed),
        (Outcome::Failed(Failure::new("x", "y")), Face::Failed),
        // A retry waits to be executed again; a parked job has a tool at work.
        (Outcome::Release, Face::Queued),
        (Outcome::Park { until: None, seen: 0 }, Face::Running),
        (Outcome::Park { until: Some(node.store.now().await?.plus(Span::secs(600))), seen: 0 }, Face::Running),
    ];
    let mut expected: BTreeMap<Face, BTreeSet<JobId>> = BTreeMap::new();
    for (leased, (outcome, face)) in leased.iter().zip(outcomes) {
        node.store.commit(settle(leased, outcome)?, Actor::Engine).await?;
        expected.entry(face).or_default().insert(leased.job.id);
    }
    expected.entry(Face::Running).or_default().insert(leased.last().context("six were claimed")?.job.id);
    expected.entry(Face::Queued).or_default().insert(enqueue_apart(&lab, &node).await?);
    let all: BTreeSet<_> = expected.values().flatten().copied().collect();
    ensure!(all.len() == 7);
    for face in Face::ALL {
        let found: BTreeSet<_> = listed(&node, &[face]).await?.into_iter().collect();
        ensure!(found == expected.remove(&face).unwrap_or_default(), "{face:?}: {found:?}");
    }
    ensure!(listed(&node, &Face::ALL).await?.len() == 7 && listed(&node, &[]).await?.len() == 7);
    ensure!(listed(&node, &[Face::Completed, Face::Failed]).await?.len() == 2);
    clean(&node.store).await
}

pub async fn a_filter_finds_what_stands_far_behind(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let mut ended = Vec::new();
    for _ in 0..3 {
        ended.insert(0, enqueue_apart(&lab, &node).await?);
        for leased in claim(&lab, &node, 1).await? {
            node.store.commit(done(&leased)?, Actor::Engine).await?;
        }
    }
    let many = (0..700).map(|_| node.store.commit(echo(), Actor::Api));
    futures_util::future::try_join_all(many).await?;
    // Ids of one millisecond are not in order of arrival, but all of these are younger.
    let mut seen = Vec::new();
    let mut after = None;
    for _ in 0..9 {
        let page = node.store.jobs(page_of(&[Face::Completed], after, 2)).await?;
        seen.extend(page.items.into_iter().map(|r| r.job.id));
        match page.next {
            Some(next) => after = Some(next),
            None => break,
        }
    }
    ensure!(seen == ended);
    Ok(())
}

pub async fn a_page_ends_when_it_is_large_enough(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let each = echo().payload.len();
    let mut expected = Vec::new();
    for _ in 0..7 {
        expected.insert(0, enqueue_apart(&lab, &node).await?);
    }
    // One at least, however little is wanted.
    for (bytes, most) in [(1, 1), (each, 1), (2 * each, 2), (3 * each + 1, 3), (7 * each, 7)] {
        let (mut seen, mut after) = (Vec::new(), None);
        loop {
            let page = node.store.jobs(ListJobs { bytes, ..page_of(&[], after, 100) }).await?;
            ensure!((1..=most).contains(&page.items.len()), "{} jobs for {bytes} bytes", page.items.len());
            seen.extend(page.items.into_iter().map(|r| r.job.id));
            match page.next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
        ensure!(seen == expected, "for {bytes} bytes: {seen:?}");
    }
    Ok(())
}

pub async fn depths_count_what_has_not_ended_by_project_and_state(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    for project in ["p1", "p1", "p1", "p2"] {
        node.store.commit(echo_in(project), Actor::Api).await?;
    }
    let leased = claim(&lab, &node, 2).await?;
    node.store.commit(done(&leased[0])?, Actor::Engine).await?;
    let mut depths: Vec<_> =
        node.store.depths().await?.into_iter().map(|d| (d.project.to_string(), d.state, d.jobs)).collect();
    depths.sort_unstable();
    let expected = [("p1", "executing", 1), ("p1", "queued", 1), ("p2", "queued", 1)];
    ensure!(depths.iter().map(|(p, s, n)| (p.as_str(), *s, *n)).eq(expected), "{depths:?}");
    Ok(())
}
