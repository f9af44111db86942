//! Steps that many cases take.

use crate::lab::{Lab, Node, echo, name};
use anyhow::{Context, Result, bail, ensure};
use baton_core::command::Actor;
use baton_core::job::enqueue::Enqueue;
use baton_core::job::settle::{Outcome, Settle};
use baton_core::job::{Fence, Job};
use baton_core::rng::Rng;
use baton_core::schedule::Turns;
use baton_core::{JobId, Json, OrgId};
use baton_store::{Ask, Cursor, Entropy, EventRow, Filter, JobRecord, Leased, ListJobs, Look, Order, Store};
use serde_json::json;
use std::collections::BTreeMap;

/// Repeats the random choices of a case.
const SEED: &str = "BATON_SEED";
/// Longer than any list of a case.
const PAGES_MAX: usize = 10_000;

/// Chance for one case. The seed belongs into whatever the case complains about.
pub(super) fn chance() -> Result<(u64, Rng)> {
    let seed = match std::env::var(SEED) {
        Ok(text) => text.parse().with_context(|| format!("{SEED} must be a number"))?,
        Err(_) => baton_engine::OsEntropy::default().words().0,
    };
    Ok((seed, Rng::new(seed)))
}

/// Asks for jobs of every kind the lab knows.
pub(super) fn ask(lab: &Lab, node: &Node, slots: usize) -> Ask {
    let kinds = lab.definitions.job_types().map(|t| t.kind()).collect();
    Ask { worker: node.name.clone(), kinds, slots, turns: Turns::default(), scope: None, look: Look::Everywhere }
}

pub(super) async fn claim(lab: &Lab, node: &Node, slots: usize) -> Result<Vec<Leased>> {
    Ok(node.store.claim(ask(lab, node, slots)).await?.leased)
}

pub(super) async fn claim_one(lab: &Lab, node: &Node) -> Result<Leased> {
    claim(lab, node, 1).await?.pop().context("nothing to claim")
}

pub(super) async fn enqueue(node: &Node) -> Result<Job> {
    Ok(node.store.commit(echo(), Actor::Api).await?.job)
}

/// An echo job of a project of its own.
pub(super) fn echo_in(project: &str) -> Enqueue {
    Enqueue { project: name(project), ..echo() }
}

pub(super) fn fence(leased: &Leased) -> Result<Fence> {
    leased.job.fence().context("a leased job has a fence")
}

pub(super) fn settle(leased: &Leased, outcome: Outcome) -> Result<Settle> {
    Ok(Settle { fence: fence(leased)?, outcome })
}

pub(super) fn done(leased: &Leased) -> Result<Settle> {
    settle(leased, Outcome::Done(Json::of(&json!({ "ok": true }))))
}

pub(super) async fn record(node: &Node, id: JobId) -> Result<JobRecord> {
    node.store.job(&OrgId::default(), id).await?.with_context(|| format!("{id} is not there"))
}

/// The kinds of all events of the default org that can be read now.
pub(super) async fn events(store: &Store) -> Result<Vec<String>> {
    let page = store.events(&OrgId::default(), Cursor::START, 100_000).await?;
    Ok(page.items.into_iter().map(|row| row.event.kind).collect())
}

/// On PostgreSQL events become readable a moment after the commit, when they are final.
pub(super) async fn settled_tail(store: &Store, at_least: usize) -> Result<Vec<String>> {
    let rows = history(store, &OrgId::default(), at_least).await?;
    Ok(rows.into_iter().map(|row| row.event.kind).collect())
}

/// The whole history of an org, as soon as there are so many events to read.
pub(super) async fn history(store: &Store, org: &OrgId, at_least: usize) -> Result<Vec<EventRow>> {
    let mut tail = store.watch_events();
    loop {
        tail.mark_unchanged();
        let page = store.events(org, Cursor::START, 100_000).await?;
        if page.items.len() >= at_least {
            return Ok(page.items);
        }
        tail.changed().await?;
    }
}

/// What happened to one job, in order.
pub(super) async fn story(store: &Store, job: &Job, at_least: usize) -> Result<Vec<String>> {
    let mut tail = store.watch_events();
    loop {
        tail.mark_unchanged();
        let page = store.events(&job.org, Cursor::START, 100_000).await?;
        let own = page.items.into_iter().filter(|row| row.event.subject == job.id.0);
        let kinds: Vec<_> = own.map(|row| row.event.kind).collect();
        if kinds.len() >= at_least {
            return Ok(kinds);
        }
        tail.changed().await?;
    }
}

/// Nothing is wrong with the whole history.
pub(super) async fn clean(store: &Store) -> Result<()> {
    let report = store.audit(None).await?;
    ensure!(report.is_clean(), "{:?}", report.violations);
    Ok(())
}

/// Exactly these jobs stand in a project, and nothing is wrong with the history.
pub(super) async fn exactly(store: &Store, project: &str, expected: impl IntoIterator<Item = JobId>) -> Result<()> {
    let found: Vec<_> = census(store, &OrgId::default(), project).await?.into_iter().map(|r| r.job.id).collect();
    let mut expected: Vec<_> = expected.into_iter().collect();
    expected.sort_by(|a, b| b.cmp(a));
    ensure!(found == expected, "in {project} there should be {expected:?}, but there are {found:?}");
    clean(store).await
}

/// All jobs of a project, newest first.
pub(super) async fn census(store: &Store, org: &OrgId, project: &str) -> Result<Vec<JobRecord>> {
    let mut all = Vec::new();
    let mut after = None;
    for _ in 0..PAGES_MAX {
        let ask = ListJobs {
            org: org.clone(),
            project: name(project),
            filter: Filter::default(),
            order: Order::Falling,
            after,
            limit: 1_000,
            bytes: usize::MAX,
        };
        let page = store.jobs(ask).await?;
        all.extend(page.items);
        match page.next {
            Some(next) => after = Some(next),
            None => return Ok(all),
        }
    }
    bail!("the list of {project} has no end")
}

/// How many jobs of all projects have not ended, by state.
pub(super) async fn live(store: &Store) -> Result<BTreeMap<&'static str, i64>> {
    let mut all = BTreeMap::new();
    for depth in store.depths().await? {
        *all.entry(depth.state).or_default() += depth.jobs;
    }
    Ok(all)
}

/// Fails unless the query, which must yield one number, yields this one. Both databases can
/// check it themselves, so that no other way to read past the store is needed.
pub(crate) async fn counts(store: &Store, query: &str, expected: i64) -> Result<()> {
    let sql = format!(
        "CREATE TEMPORARY TABLE answer (n bigint CHECK (n = {expected})); \
         INSERT INTO answer {query}; DROP TABLE answer"
    );
    store.raw(&sql).await.with_context(|| format!("{query} is not {expected}"))
}
