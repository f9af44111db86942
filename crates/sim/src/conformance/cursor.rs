//! Readers of the history beside its writers: nothing skipped, nothing twice, one order.

use super::steps::{ask, chance, clean, done, enqueue, history, live};
use crate::lab::{Lab, Node, Place, echo, name};
use anyhow::{Context, Result, ensure};
use baton_core::OrgId;
use baton_core::command::Actor;
use baton_core::definition::JobType;
use baton_core::job::enqueue::Enqueue;
use baton_core::rng::Rng;
use baton_store::faults::Mishap;
use baton_store::{Cursor, EventRow, Store};
use futures_util::future::{try_join, try_join_all};
use std::collections::BTreeMap;
use uuid::Uuid;

/// Each is queued, started and completed: three events.
const JOBS: usize = 720;
const EVENTS: usize = 3 * JOBS;
const WRITERS: usize = 8;
/// Looks without anything new before a reader is thought to be stuck.
const IDLE_MAX: u32 = 1_000_000;
/// Commits before somebody should have been told of his jobs alone.
const TRIES: usize = 20;

/// Enqueues its share and then works with the others until all is done.
async fn write(lab: &Lab, node: &Node) -> Result<()> {
    for _ in 0..JOBS / WRITERS / 10 {
        try_join_all((0..10).map(|_| node.store.commit(echo(), Actor::Api))).await?;
    }
    let mut settles = Vec::new();
    loop {
        let turn = node.store.turn(std::mem::take(&mut settles), Some(ask(lab, node, 5))).await?;
        for settled in turn.settled {
            settled?;
        }
        settles = turn.leased.iter().map(|l| Ok((done(l)?, Actor::Engine))).collect::<Result<_>>()?;
        if settles.is_empty() && !live(&node.store).await?.contains_key("queued") {
            return Ok(());
        }
    }
}

/// Pages through the history from its beginning until it has seen all there will be.
async fn read(lab: &Lab, store: &Store, limit: usize) -> Result<Vec<EventRow>> {
    let mut seen: Vec<EventRow> = Vec::new();
    let mut tail = store.watch_events();
    let mut after = Cursor::START;
    let mut idle = 0;
    while seen.len() < EVENTS {
        tail.mark_unchanged();
        let page = store.events(&OrgId::default(), after, limit).await?;
        ensure!(page.items.len() <= limit);
        ensure!(page.next.is_some() == (page.items.len() == limit), "a full page tells where to go on");
        if let Some(last) = page.items.last() {
            if lab.place == Place::Postgres {
                ensure!(last.cursor <= store.tail()?, "an event beyond the tail was readable");
            }
            ensure!(page.next.is_none_or(|next| next == last.cursor));
            // As a client would: through text.
            after = last.cursor.to_string().parse()?;
            seen.extend(page.items);
            idle = 0;
        } else if lab.place == Place::SqliteDisk {
            // A simulated node does not hear of the others' commits.
            idle += 1;
            ensure!(idle < IDLE_MAX, "only {} of {EVENTS} events appeared", seen.len());
            tokio::task::yield_now().await;
        } else {
            tail.changed().await?;
        }
    }
    Ok(seen)
}

/// Every event once, and each subject's in its order without a gap.
fn whole(seen: &[EventRow]) -> Result<()> {
    ensure!(seen.len() == EVENTS, "{} events instead of {EVENTS}", seen.len());
    ensure!(seen.windows(2).all(|w| w[0].cursor < w[1].cursor), "cursors rise");
    let mut subjects: BTreeMap<Uuid, i64> = BTreeMap::new();
    for row in seen {
        let n = subjects.entry(row.event.subject).or_default();
        *n += 1;
        ensure!(row.event.n == *n, "event {} of {} came as number {n}", row.event.n, row.event.subject);
    }
    ensure!(subjects.len() == JOBS && subjects.values().all(|n| *n == 3));
    Ok(())
}

/// Some commits go wrong. Those that never arrive have taken positions that stay empty.
fn sprinkle(node: &Node, rng: &mut Rng) {
    for mishap in [Mishap::CommitLost, Mishap::CommitLost, Mishap::CommitLost, Mishap::Conflict, Mishap::AnswerLost] {
        node.script.at(1 + rng.below(40), mishap);
    }
}

async fn race(lab: &Lab, writers: &[&Node], readers: &[&Node]) -> Result<()> {
    let (seed, mut rng) = chance()?;
    let ran = async {
        writers.iter().for_each(|node| sprinkle(node, &mut rng));
        let limits: Vec<_> = readers.iter().map(|_| 1 + rng.below(12) as usize).collect();
        let write = (0..WRITERS).map(|n| write(lab, writers[n % writers.len()]));
        let read = readers.iter().zip(limits).map(|(node, limit)| read(lab, &node.store, limit));
        let (_, seen) = try_join(try_join_all(write), try_join_all(read)).await?;
        let all = history(&readers[0].store, &OrgId::default(), EVENTS).await?;
        whole(&all)?;
        let order = |rows: &[EventRow]| rows.iter().map(|row| (row.cursor, row.event.hash)).collect::<Vec<_>>();
        for seen in &seen {
            whole(seen)?;
            ensure!(order(seen) == order(&all), "two readers saw two orders");
        }
        clean(&readers[0].store).await
    };
    ran.await.with_context(|| format!("BATON_SEED={seed}"))
}

pub async fn readers_beside_eight_writers_on_two_nodes_see_every_event_once(lab: Lab) -> Result<()> {
    let nodes = [lab.node_named("node_a").await?, lab.node_named("node_b").await?];
    // The third only reads: it hears of commits from the others alone.
    let third = lab.node_named("node_c").await?;
    race(&lab, &[&nodes[0], &nodes[1]], &[&nodes[0], &nodes[1], &third]).await
}

pub async fn readers_beside_eight_writers_on_one_node_see_every_event_once(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    race(&lab, &[&node], &[&node, &node]).await
}

pub async fn positions_that_were_taken_and_never_used_do_not_stop_readers(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let mut made = Vec::new();
    for _ in 0..5 {
        node.script.at(1, Mishap::CommitLost);
        made.push(enqueue(&node).await?.id.0);
    }
    let seen = history(&node.store, &OrgId::default(), 5).await?;
    ensure!(seen.iter().map(|row| row.event.subject).eq(made));
    ensure!(node.store.tail()? >= seen[4].cursor);
    Ok(())
}

pub async fn a_reader_goes_on_where_it_was_after_a_restart(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    for _ in 0..3 {
        enqueue(&node).await?;
    }
    let first = history(&node.store, &OrgId::default(), 3).await?;
    node.store.close().await;
    drop(node);
    let node = lab.node().await?;
    for _ in 0..2 {
        enqueue(&node).await?;
    }
    let all = history(&node.store, &OrgId::default(), 5).await?;
    ensure!(all[..3].iter().map(|row| row.cursor).eq(first.iter().map(|row| row.cursor)));
    let rest = node.store.events(&OrgId::default(), first[2].cursor, 9).await?;
    ensure!(rest.next.is_none() && rest.items.iter().map(|row| row.cursor).eq(all[3..].iter().map(|row| row.cursor)));
    let end = node.store.events(&OrgId::default(), all[4].cursor, 9).await?;
    ensure!(end.items.is_empty() && end.next.is_none());
    Ok(())
}

pub async fn whoever_watches_is_told_of_events_and_jobs(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let (mut events, mut jobs) = (node.store.watch_events(), node.store.watch_jobs());
    for _ in 0..3 {
        // What was written before may still be on its way to those who watch.
        jobs.mark_unchanged();
        let before = *events.borrow_and_update();
        enqueue(&node).await?;
        jobs.changed().await?;
        events.wait_for(|tail| *tail > before).await?;
    }
    Ok(())
}

pub async fn pools_and_workers_outside_are_told_only_of_jobs_they_can_do(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    node.store.declare(JobType { lane: crate::open_lane::rule(), ..JobType::new(name("afar"), 1, "") });
    let (mut here, mut outside) = (node.store.watch_jobs(), node.store.watch_jobs_outside());
    for (kind, told) in [("echo", (true, false)), ("afar", (false, true))] {
        let mut heard = Vec::new();
        // Who has just begun to listen to other nodes looks at everything once.
        for _ in 0..TRIES {
            here.mark_unchanged();
            outside.mark_unchanged();
            node.store.commit(Enqueue { kind: name(kind), ..echo() }, Actor::Api).await?;
            heard.push((here.has_changed()?, outside.has_changed()?));
            if heard.last() == Some(&told) {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        ensure!(heard.last() == Some(&told), "{kind}: {heard:?}");
        ensure!(heard.iter().all(|heard| (heard.0 || !told.0) && (heard.1 || !told.1)), "{kind}: {heard:?}");
    }
    Ok(())
}

pub async fn another_node_is_told_of_jobs_and_events(lab: Lab) -> Result<()> {
    let (here, there) = (lab.node_named("node_a").await?, lab.node_named("node_b").await?);
    let (mut events, mut jobs) = (there.store.watch_events(), there.store.watch_jobs());
    jobs.mark_unchanged();
    enqueue(&here).await?;
    jobs.changed().await?;
    let mark = history(&here.store, &OrgId::default(), 1).await?;
    events.wait_for(|tail| *tail > 0).await?;
    ensure!(there.store.tail()? >= mark[0].cursor);
    Ok(())
}

pub async fn a_place_that_was_never_reached_is_told_apart(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    ensure!(node.store.reaches(Cursor::START).await?, "the beginning is always there");
    enqueue(&node).await?;
    let seen = history(&node.store, &OrgId::default(), 1).await?;
    let last = seen.last().context("one event")?.cursor;
    ensure!(node.store.reaches(last).await?);
    let far: Cursor = "c100000000000f4240".parse()?;
    ensure!(!node.store.reaches(far).await?);
    Ok(())
}
