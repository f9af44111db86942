//! Both orders of every list: pages of any length make the whole, and one order is the other
//! reversed.

use super::steps::{claim, clean, settle};
use crate::lab::{Lab, Node, echo, name};
use crate::queue_types::{job, lab_with};
use anyhow::{Context, Result, ensure};
use baton_core::command::Actor;
use baton_core::doc::Class;
use baton_core::job::Failure;
use baton_core::job::enqueue::Enqueue;
use baton_core::job::settle::Outcome;
use baton_core::lane::Pause;
use baton_core::rules::Rules;
use baton_core::time::Span;
use baton_core::{JobId, OrgId};
use baton_store::{DeadLetters, Filter, JobRecord, ListDocs, ListJobs, ListLanes, ListOrgs, Order, Page, StoreError};
use std::fmt::Debug;

/// One page of a list.
struct Turn<C> {
    order: Order,
    after: Option<C>,
    limit: usize,
}

async fn both_ways<T, C, F>(rising: &[T], read: impl Fn(Turn<C>) -> F) -> Result<()>
where
    T: Clone + PartialEq + Debug,
    F: Future<Output = Result<Page<T, C>, StoreError>>,
{
    for order in [Order::Rising, Order::Falling] {
        let mut expected = rising.to_vec();
        if order == Order::Falling {
            expected.reverse();
        }
        for limit in [1, 2, 3, 100] {
            let (mut seen, mut after) = (Vec::new(), None);
            // One page more than the shortest ones could need.
            for _ in 0..=expected.len() {
                let page = read(Turn { order, after, limit }).await?;
                ensure!(page.items.len() <= limit);
                seen.extend(page.items);
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
            ensure!(after.is_none(), "{order:?} in pages of {limit} has no end");
            ensure!(seen == expected, "{order:?} in pages of {limit}: {seen:?} instead of {expected:?}");
        }
    }
    Ok(())
}

fn ids(page: Page<JobRecord, JobId>) -> Page<JobId, JobId> {
    Page { items: page.items.into_iter().map(|record| record.job.id).collect(), next: page.next }
}

/// Ids sort by the millisecond of their making, so each is made in its own.
async fn make(lab: &Lab, node: &Node, order: Enqueue) -> Result<JobId> {
    lab.advance(Span::millis(2));
    Ok(node.store.commit(order, Actor::Api).await?.job.id)
}

pub async fn jobs_are_listed_both_ways(lab: Lab) -> Result<()> {
    let lab = lab_with(lab, Rules::default());
    let node = lab.node().await?;
    let (mut all, mut wide) = (Vec::new(), Vec::new());
    for kind in ["wide", "one", "one", "wide", "one", "wide", "wide"] {
        let id = make(&lab, &node, job(kind, "p1")).await?;
        make(&lab, &node, job(kind, "p2")).await?;
        all.push(id);
        if kind == "wide" {
            wide.push(id);
        }
    }
    for (kind, expected) in [(None, &all), (Some("wide"), &wide), (Some("moon"), &Vec::new())] {
        both_ways(expected, |turn: Turn<JobId>| {
            let ask = ListJobs {
                org: OrgId::default(),
                project: name("p1"),
                filter: Filter { states: Vec::new(), kind: kind.map(name) },
                order: turn.order,
                after: turn.after,
                limit: turn.limit,
                bytes: usize::MAX,
            };
            let store = node.store.clone();
            async move { Ok(ids(store.jobs(ask).await?)) }
        })
        .await?;
    }
    clean(&node.store).await
}

pub async fn dead_letters_are_listed_both_ways(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let (mut all, mut p1) = (Vec::new(), Vec::new());
    for project in ["p1", "p2", "p1", "p1", "p2"] {
        let id = make(&lab, &node, Enqueue { project: name(project), ..echo() }).await?;
        let leased = claim(&lab, &node, 1).await?;
        let failed = Outcome::Failed(Failure::fatal("broken", "no"));
        node.store.commit(settle(leased.first().context("one")?, failed)?, Actor::Engine).await?;
        all.push(id);
        if project == "p1" {
            p1.push(id);
        }
    }
    for (project, expected) in [(None, &all), (Some("p1"), &p1)] {
        both_ways(expected, |turn: Turn<JobId>| {
            let ask = DeadLetters {
                org: OrgId::default(),
                project: project.map(name),
                kind: None,
                order: turn.order,
                after: turn.after,
                limit: turn.limit,
                bytes: usize::MAX,
            };
            let store = node.store.clone();
            async move { Ok(ids(store.dead_letters(ask).await?)) }
        })
        .await?;
    }
    clean(&node.store).await
}

pub async fn lanes_and_documents_are_listed_both_ways(lab: Lab) -> Result<()> {
    let lab = lab_with(lab, Rules::default());
    let node = lab.node().await?;
    for project in ["b", "d", "a", "c"] {
        make(&lab, &node, job("one", project)).await?;
    }
    // One stands in both tables, the others before, between and after the rest. No character is
    // beyond the last one.
    let paused = ["project:b", "a quiet one", "project:bb", "zz", "\u{10FFFF}\u{10FFFF}"];
    for key in paused {
        node.store.commit(Pause { org: OrgId::default(), lane: name(key), paused: true }, Actor::Api).await?;
    }
    let mut lanes = [&paused[..], &["project:a", "project:c", "project:d"]].concat();
    lanes.sort_unstable();
    let lanes: Vec<_> = lanes.into_iter().map(|key| (key.to_owned(), paused.contains(&key))).collect();
    both_ways(&lanes, |turn: Turn<_>| {
        let ask = ListLanes { org: OrgId::default(), order: turn.order, after: turn.after, limit: turn.limit };
        let store = node.store.clone();
        async move {
            let page = store.lanes(ask).await?;
            let items = page.items.into_iter().map(|lane| (lane.key.to_string(), lane.paused)).collect();
            Ok(Page { items, next: page.next })
        }
    })
    .await?;

    let mut docs = ["project:b", "a quiet one", "project:bb", "zz"].map(str::to_owned);
    docs.sort_unstable();
    both_ways(&docs[1..3], |turn: Turn<_>| {
        let ask = ListDocs {
            org: OrgId::default(),
            class: Class::Lane,
            prefix: "project:".to_owned(),
            flag: Some(true),
            order: turn.order,
            after: turn.after,
            limit: turn.limit,
        };
        let store = node.store.clone();
        async move {
            let page = store.docs(ask).await?;
            Ok(Page { items: page.items.into_iter().map(|(key, _)| key.key).collect(), next: page.next })
        }
    })
    .await?;
    clean(&node.store).await
}

pub async fn orgs_are_listed_both_ways(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let orgs: [OrgId; 5] = ["acme", "beta", "default", "globex", "zz"].map(name);
    for org in orgs.iter().rev().chain(&orgs) {
        node.store.commit(Enqueue { org: org.clone(), ..echo() }, Actor::Api).await?;
    }
    let there = node.store.orgs().await?;
    ensure!(there.iter().filter(|org| orgs.contains(org)).eq(&orgs) && there.is_sorted(), "{there:?}");
    both_ways(&there, |turn: Turn<_>| {
        let store = node.store.clone();
        let ask = ListOrgs { order: turn.order, after: turn.after, limit: turn.limit };
        async move { store.list_orgs(ask).await }
    })
    .await
}
