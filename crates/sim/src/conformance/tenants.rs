//! Tenants: what belongs to another org does not exist.

use super::once::{fresh, key, once, replayed};
use super::steps::{census, claim, clean, done, fence, history};
use crate::lab::{Lab, Node, Place, echo, name};
use anyhow::{Context, Result, ensure};
use baton_core::command::Actor;
use baton_core::job::Job;
use baton_core::job::beat::Beat;
use baton_core::job::deadline::{Deadline, DeadlineError};
use baton_core::job::enqueue::Enqueue;
use baton_core::job::recover::{Recover, RecoverError, Why};
use baton_core::job::settle::{Settle, SettleError};
use baton_core::job::wake::{Wake, WakeError};
use baton_core::once::Key;
use baton_core::time::Span;
use baton_core::{Json, OrgId};
use baton_store::{CommitError, Cursor, Filter, ListJobs, Order};
use serde_json::json;
use std::collections::BTreeSet;

fn orgs() -> [OrgId; 2] {
    [name("acme"), name("globex")]
}

/// Two jobs for each org, in projects of the same name.
async fn settle_in(node: &Node) -> Result<Vec<Job>> {
    let mut jobs = Vec::new();
    for _ in 0..2 {
        for org in orgs() {
            let payload = Json::of(&json!({ "message": org }));
            let deadline = Some(node.store.now().await?.plus(Span::secs(600)));
            jobs.push(node.store.commit(Enqueue { org, payload, deadline, ..echo() }, Actor::Api).await?.job);
        }
    }
    Ok(jobs)
}

pub async fn reading_shows_only_what_is_ones_own(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let jobs = settle_in(&node).await?;
    for org in orgs() {
        let (own, foreign): (Vec<_>, Vec<_>) = jobs.iter().partition(|job| job.org == org);
        for job in &own {
            let found = node.store.job(&org, job.id).await?.context("it is there")?;
            ensure!(found.cold.payload == Json::of(&json!({ "message": org })));
        }
        for job in &foreign {
            ensure!(node.store.job(&org, job.id).await?.is_none());
        }
        let own: BTreeSet<_> = own.iter().map(|job| job.id).collect();
        let listed = census(&node.store, &org, "p1").await?;
        ensure!(listed.iter().map(|r| r.job.id).collect::<BTreeSet<_>>() == own && listed.len() == 2);
        // A place in another's list is no way in.
        for after in foreign.iter().map(|job| Some(job.id)) {
            let ask = ListJobs {
                org: org.clone(),
                project: name("p1"),
                filter: Filter::default(),
                order: Order::Falling,
                after,
                limit: 9,
                bytes: usize::MAX,
            };
            ensure!(node.store.jobs(ask).await?.items.iter().all(|r| r.job.org == org));
        }
        let rows = history(&node.store, &org, 2).await?;
        ensure!(rows.len() == 2 && rows.iter().all(|row| row.event.org == org));
        ensure!(rows.iter().all(|row| own.iter().any(|id| id.0 == row.event.subject)));
        ensure!(node.store.unsealed(&org, 9).await?.root.count == 2);
    }
    ensure!(node.store.events(&OrgId::default(), Cursor::START, 9).await?.items.is_empty());
    ensure!(census(&node.store, &OrgId::default(), "p1").await?.is_empty());
    ensure!(node.store.orgs().await? == orgs());
    clean(&node.store).await
}

pub async fn commands_reach_only_what_is_ones_own(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let jobs = settle_in(&node).await?;
    let [acme, globex] = orgs();
    let leased = claim(&lab, &node, 3).await?;
    let leased = leased.iter().find(|l| l.job.org == globex).context("three of four")?;
    let foreign = baton_core::job::Fence { org: acme.clone(), ..fence(leased)? };
    let before = node.store.job(&globex, leased.job.id).await?.context("it is there")?;
    let commits = node.script.commits();

    let settled = node.store.commit(Settle { fence: foreign.clone(), ..done(leased)? }, Actor::Engine).await;
    ensure!(matches!(settled, Err(CommitError::Refused(SettleError::NotFound(_)))), "{settled:?}");
    let woken = node.store.commit(Wake { org: acme.clone(), job: leased.job.id }, Actor::Api).await;
    ensure!(matches!(woken, Err(CommitError::Refused(WakeError::NotFound(_)))), "{woken:?}");
    for held in [foreign.clone(), fence(leased)?] {
        let beat = Beat::of(acme.clone(), vec![held.clone()]);
        ensure!(node.store.commit(beat, Actor::Engine).await?.lost == [held], "it is not acme's to hold");
    }
    let recover = Recover::new(foreign, Why::NodeGone);
    let recovered = node.store.commit(recover, Actor::Engine).await;
    ensure!(matches!(recovered, Err(CommitError::Refused(RecoverError::Gone))), "{recovered:?}");
    lab.advance(Span::secs(601));
    let at = node.store.due_timers(9).await?.0.first().context("they are due")?.at;
    for job in jobs.iter().filter(|job| job.org == globex) {
        let fired = node.store.commit(Deadline { org: acme.clone(), job: job.id, at }, Actor::Engine).await;
        ensure!(matches!(fired, Err(CommitError::Refused(DeadlineError::TimerGone))), "{fired:?}");
    }
    ensure!(node.script.commits() == commits, "nothing was written");
    let after = node.store.job(&globex, leased.job.id).await?.context("it is there")?;
    ensure!(after.job == before.job);
    clean(&node.store).await
}

pub async fn the_same_id_in_two_orgs_is_two_jobs(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let jobs = settle_in(&node).await?;
    let [acme, globex] = orgs();
    let twin = jobs.iter().find(|job| job.org == globex).context("there are two")?;
    // Ids are unique by chance only: whoever could make one up gains nothing by it.
    for table in ["job", "live"] {
        let copied = format!("SELECT * FROM {table} WHERE org = 'globex'");
        // What the database works out by itself cannot be said, and the embedded one knows rows by a number of their own.
        let apart = match lab.place {
            Place::Postgres if table == "live" => "ALTER TABLE copied DROP COLUMN needs; ",
            Place::Postgres => "",
            Place::Sqlite | Place::SqliteDisk => "UPDATE copied SET ord = ord + 1000; ",
        };
        let sql = format!(
            "CREATE TEMPORARY TABLE copied AS {copied}; {apart}UPDATE copied SET org = 'acme'; \
             INSERT INTO {table} SELECT * FROM copied; DROP TABLE copied"
        );
        node.store.raw(&sql).await?;
    }
    node.store.commit(Wake { org: acme.clone(), job: twin.id }, Actor::Api).await?;
    for (org, wakes) in [(acme, 1), (globex, 0)] {
        let found = node.store.job(&org, twin.id).await?.context("it is there")?.job;
        ensure!(found.wakes == wakes, "{org} was woken {} times", found.wakes);
    }
    Ok(())
}

pub async fn a_key_of_another_org_is_another_key(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let mut made = Vec::new();
    for org in orgs() {
        let say = |request: &str| {
            let job = Enqueue { org: org.clone(), ..echo() };
            node.store.commit_once(job, Actor::Api, once(Key { org: org.clone(), ..key("k") }, request))
        };
        let request = org.as_str();
        let id = fresh(say(request).await)?;
        replayed(say(request).await, id)?;
        made.push(id);
    }
    for (org, id) in orgs().iter().zip(made) {
        ensure!(census(&node.store, org, "p1").await?.iter().map(|r| r.job.id).eq([id]));
    }
    clean(&node.store).await
}
