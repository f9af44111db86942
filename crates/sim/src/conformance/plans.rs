//! What the planner knows about these tables is always old. The committer's statements must
//! not care: no table is ever read from end to end.

use super::once::{key, once};
use super::runs::{self, document, working};
use super::steps::{ask, done, fence};
use crate::hold::connect;
use crate::lab::{Lab, Node, echo, name};
use crate::run_lab::{Deeds, begin, grant, toolbox, until_is};
use anyhow::{Context, Result, ensure};
use baton_core::OrgId;
use baton_core::command::Actor;
use baton_core::job::beat::Beat;
use baton_core::job::deadline::Deadline;
use baton_core::job::enqueue::Enqueue;
use baton_core::job::settle::Settled;
use baton_core::job::wake::Wake;
use baton_core::lane::LaneKey;
use baton_core::once::KEPT_FOR;
use baton_core::run::State;
use baton_core::time::Span;
use baton_store::{Answer, Ask, Leased, Scope, Store};
use futures_util::future::{join_all, try_join_all};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio_postgres::Client;

const TABLES: [&str; 6] = ["live", "job", "event", "timer", "once", "lane"];
const ROWS: i64 = 50_000;
/// Each with a limit of one.
const LANES: i64 = 1_000;
const TURNS: usize = 20;
const SLOTS: usize = 50;
/// For a node to stop.
const STOP: Duration = Duration::from_secs(10);
/// Looks at the statistics until everything that was done has been counted.
const LOOKS_MAX: usize = 20_000;

/// Nobody may tidy up or look: the planner shall believe that everything is empty.
async fn freeze(store: &Store, tables: &[&str]) -> Result<()> {
    for table in tables {
        store.raw(&format!("ALTER TABLE {table} SET (autovacuum_enabled = off)")).await?;
    }
    Ok(())
}

/// A backlog, as far as claiming cares. Its history is made up.
async fn fill(node: &Node) -> Result<()> {
    let job = format!(
        "INSERT INTO job (org, id, project, type, version, priority, payload, created_at, max_attempts) \
         SELECT 'default', ('01900000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, 'p1', 'echo', 1, 200, '{{}}', \
         baton_now(), 2 FROM generate_series(1, {ROWS}) n"
    );
    let live = format!(
        "INSERT INTO live (org, id, project, type, version, priority, ord, phase, state, due_at, attempts, \
         max_attempts, token, wakes, created_at, has_deadline, head_n, head_hash, head_at, class, slot, since, lane, \
         lane_max, outside, max_failures) \
         SELECT org, id, project, type, version, priority, nextval('job_order'), 1, 'queued', created_at, 0, max_attempts, \
         0, 0, created_at, false, 1, decode(repeat('00', 32), 'hex'), created_at, 1, 1, created_at, \
         'lane:' || (row_number() OVER () % {LANES}), 1, false, 1 FROM job WHERE state IS NULL"
    );
    let lane = "INSERT INTO lane SELECT org, lane, 1, 0, count(*), 0, 0 FROM live GROUP BY org, lane";
    node.store.raw(&job).await?;
    node.store.raw(&live).await?;
    Ok(node.store.raw(lane).await?)
}

#[derive(Clone, Debug, Default)]
struct Usage {
    seq_scan: i64,
    idx_tup_read: i64,
    written: i64,
}

/// How often each table was read from end to end, and how many index entries were looked at.
async fn usage(client: &Client) -> Result<BTreeMap<String, Usage>> {
    let sql = "SELECT relname::text, seq_scan, (SELECT coalesce(sum(i.idx_tup_read), 0)::bigint FROM \
               pg_stat_user_indexes i WHERE i.relid = t.relid), n_tup_ins + n_tup_upd + n_tup_del \
               FROM pg_stat_user_tables t WHERE schemaname = current_schema()";
    let rows = client.query(sql, &[]).await?;
    let usage =
        |row: &tokio_postgres::Row| Usage { seq_scan: row.get(1), idx_tup_read: row.get(2), written: row.get(3) };
    Ok(rows.iter().map(|row| (row.get(0), usage(row))).collect())
}

/// Backends report what they did when they are idle or end; waits until so much was reported.
async fn reported(client: &Client, least: &BTreeMap<&str, i64>) -> Result<BTreeMap<String, Usage>> {
    for _ in 0..LOOKS_MAX {
        let usage = usage(client).await?;
        if least.iter().all(|(table, n)| usage.get(*table).is_some_and(|u| u.written >= *n)) {
            return Ok(usage);
        }
        tokio::task::yield_now().await;
    }
    anyhow::bail!("the statistics never arrived: {:?}", usage(client).await?)
}

/// One turn of everything that commits.
async fn turn(lab: &Lab, node: &Node, held: Vec<Leased>) -> Result<Vec<Leased>> {
    let fences = held.iter().map(fence).collect::<Result<Vec<_>>>()?;
    let beat = Beat::of(OrgId::default(), fences);
    ensure!(node.store.commit(beat, Actor::Engine).await?.lost.is_empty());
    let wakes = held.iter().take(10).map(|l| Wake { org: l.job.org.clone(), job: l.job.id });
    try_join_all(wakes.map(|wake| node.store.commit(wake, Actor::Api))).await?;
    let settles = held.iter().map(|l| Ok((done(l)?, Actor::Engine))).collect::<Result<_>>()?;
    let turn = node.store.turn(settles, Some(ask(lab, node, SLOTS))).await?;
    for settled in turn.settled {
        ensure!(settled? == Settled::Now);
    }
    ensure!(turn.leased.len() == SLOTS);
    // Of workers outside: nothing here is theirs, but it is looked for.
    let (project, org) = (name("p1"), OrgId::default());
    let one = Scope {
        org: org.clone(),
        lanes: Some(BTreeSet::from([LaneKey::of_project(&project)])),
        projects: Some(BTreeSet::from([project])),
    };
    for scope in [one, Scope { org, lanes: None, projects: None }] {
        let outside = Ask { scope: Some(scope), ..ask(lab, node, 10) };
        ensure!(node.store.claim(outside).await?.leased.is_empty());
    }
    Ok(turn.leased)
}

pub async fn no_statement_of_the_committer_reads_a_table_from_end_to_end(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    freeze(&node.store, &TABLES).await?;
    fill(&node).await?;
    node.store.close().await;
    drop(node);
    let client = connect(&lab).await?;
    let before = reported(&client, &BTreeMap::from([("live", ROWS), ("job", ROWS)])).await?;

    let node = lab.node().await?;
    let mut held = Vec::new();
    let mut timers = Vec::new();
    for n in 0..TURNS {
        timers.push(timed(&node, &format!("k{n}")).await?);
        held = turn(&lab, &node, held).await?;
    }
    lab.advance(Span::secs(700));
    for fire in timers {
        node.store.commit(fire, Actor::Engine).await?;
    }
    lab.advance(KEPT_FOR);
    ensure!(node.store.purge_onces(100).await? == TURNS);
    node.store.close().await;
    drop(node);

    let turned = i64::try_from((TURNS - 1) * SLOTS)?;
    // A claim updates `live`, a settlement removes from it and updates `job`.
    let least = BTreeMap::from([("live", ROWS + 2 * turned), ("job", ROWS + turned), ("once", 2 * TURNS as i64)]);
    let after = reported(&client, &least).await?;
    unread(&TABLES, &before, &after)
}

fn unread(tables: &[&str], before: &BTreeMap<String, Usage>, after: &BTreeMap<String, Usage>) -> Result<()> {
    for table in tables {
        let usage = |of: &BTreeMap<String, Usage>| of.get(*table).cloned().unwrap_or_default();
        let (before, after) = (usage(before), usage(after));
        ensure!(after.seq_scan == before.seq_scan, "{table} was read from end to end: {before:?} {after:?}");
        // A walk over a whole index is no better; one for each statement would be a million.
        let read = after.idx_tup_read - before.idx_tup_read;
        ensure!(read < ROWS, "{read} index entries of {table} were looked at: {before:?} {after:?}");
    }
    Ok(())
}

/// Runs that nobody works on, with what has ended of them. Made up.
async fn fill_runs(store: &Store) -> Result<()> {
    let id = "('01900000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid";
    let head = "1, decode(repeat('00', 32), 'hex'), baton_now()";
    for rows in [
        format!("run SELECT 'default', {id}, 'p1', 'created', false, '{{}}', {head}"),
        format!("run_plan SELECT 'default', {id}, '{{}}', '{{}}'"),
        format!("run_agent SELECT 'default', {id}, {id}, 1, 0, 'paused', NULL, '{{}}', {head}"),
        format!("run_step SELECT 'default', {id}, 1, {id}, 1, 0, 1, 0, 'skipped', baton_now(), '{{}}', NULL"),
        format!("run_task SELECT 'default', {id}, 1, {id}, '{{}}'"),
        format!("run_attempt SELECT 'default', {id}, 1, '{{}}'"),
        format!("ledger SELECT 'default', 'agent:' || n, 1, 'charge', 1, 0, 'k', {id}, baton_now()"),
    ] {
        store.raw(&format!("INSERT INTO {rows} FROM generate_series(1, {ROWS}) n")).await?;
    }
    Ok(())
}

pub async fn no_statement_of_runs_reads_a_table_from_end_to_end(mut lab: Lab) -> Result<()> {
    let engine = working(&mut lab).await?;
    freeze(engine.store(), &runs::ALL).await?;
    grant(engine.store(), 1_000).await?;
    fill_runs(engine.store()).await?;
    engine.stop(STOP).await;
    let client = connect(&lab).await?;
    let before = reported(&client, &runs::ALL.iter().map(|table| (*table, ROWS)).collect()).await?;

    let engine = working(&mut lab).await?;
    let begun = (0..TURNS).map(|_| async {
        let tools = toolbox(&Deeds::default());
        let id = begin(engine.store(), &document(), tools.known()).await?;
        until_is(engine.store(), id, State::Completed).await
    });
    try_join_all(begun).await?;
    engine.stop(STOP).await;

    let (runs, steps) = (i64::try_from(TURNS)?, 2 * i64::try_from(TURNS)?);
    let least = BTreeMap::from([("run", ROWS + runs), ("run_agent", ROWS + steps), ("run_step", ROWS + steps)]);
    let after = reported(&client, &least).await?;
    unread(&runs::ALL, &before, &after)
}

/// A job with a deadline, asked for five times at once under one key; what fires its timer.
async fn timed(node: &Node, name: &str) -> Result<Deadline> {
    let at = node.store.now().await?.plus(Span::secs(600));
    let job = Enqueue { deadline: Some(at), ..echo() };
    let said = (0..5).map(|_| node.store.commit_once(job.clone(), Actor::Api, once(key(name), "r")));
    let mut made = None;
    for answer in join_all(said).await {
        if let Answer::Fresh(enqueued) = answer? {
            made = Some(enqueued.job);
        }
    }
    let job = made.context("one of them made it")?;
    Ok(Deadline { org: job.org, job: job.id, at })
}
