//! Opening and closing: one process for each data directory, and nothing forgotten between.

use super::once::{fresh, key, once, replayed};
use super::steps::{census, claim, claim_one, clean, done, enqueue, exactly, record, settled_tail};
use crate::lab::{Lab, Place, echo};
use anyhow::{Context, Result, ensure};
use baton_core::OrgId;
use baton_core::command::Actor;
use baton_core::job::enqueue::Enqueue;
use baton_core::job::settle::Settled;
use baton_core::time::Span;
use baton_store::faults::Mishap;
use baton_store::{Backend, CommitError, Corrupt, OpenError, Store, StoreError};
use futures_util::future::{join, join_all, try_join_all};

/// How opening failed.
fn failed(opened: Result<Store, OpenError>) -> Result<OpenError> {
    opened.err().context("it should not have been opened")
}

pub async fn a_store_that_is_opened_again_has_forgotten_nothing(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let deadline = node.store.now().await?.plus(Span::secs(600));
    let with_deadline = Enqueue { deadline: Some(deadline), ..echo() };
    let held = node.store.commit(with_deadline, Actor::Api).await?.job;
    let leased = claim_one(&lab, &node).await?;
    let queued = [enqueue(&node).await?.id, enqueue(&node).await?.id];
    let said = fresh(node.store.commit_once(echo(), Actor::Api, once(key("k"), "r")).await)?;
    let before = census(&node.store, &OrgId::default(), "p1").await?;
    node.store.close().await;
    drop(node);

    let node = lab.node().await?;
    let after = census(&node.store, &OrgId::default(), "p1").await?;
    ensure!(before.len() == 4 && after.iter().map(|r| &r.job).eq(before.iter().map(|r| &r.job)));
    ensure!(node.store.due_timers(9).await? == (vec![], Some(deadline)));
    replayed(node.store.commit_once(echo(), Actor::Api, once(key("k"), "r")).await, said)?;
    ensure!(node.store.held_by(&node.name, 9).await?.iter().map(|f| f.job).eq([held.id]));
    ensure!(node.store.commit(done(&leased)?, Actor::Engine).await? == Settled::Now, "a lease outlives its node");
    let young = enqueue(&node).await?.id;
    let order: Vec<_> = claim(&lab, &node, 9).await?.into_iter().map(|l| l.job.id).collect();
    ensure!(order == [queued[0], queued[1], said, young], "the order of arrival is kept: {order:?}");
    ensure!(settled_tail(&node.store, 11).await?.len() == 11);
    clean(&node.store).await
}

pub async fn a_closed_store_says_so(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let id = enqueue(&node).await?.id;
    let other_handle = node.store.clone();
    ensure!(!other_handle.is_closed());
    node.store.close().await;
    other_handle.closed().await;
    ensure!(other_handle.is_closed());
    for store in [&node.store, &other_handle] {
        let answer = store.commit(echo(), Actor::Api).await;
        ensure!(matches!(answer, Err(CommitError::Store(StoreError::Closed))), "{answer:?}");
        let claimed = store.claim(super::steps::ask(&lab, &node, 1)).await;
        ensure!(matches!(claimed, Err(StoreError::Closed)), "{claimed:?}");
        ensure!(matches!(store.purge_onces(1).await, Err(StoreError::Closed)));
        let found = store.job(&OrgId::default(), id).await;
        ensure!(matches!(found, Err(StoreError::Closed)), "{found:?}");
        ensure!(matches!(store.audit(None).await, Err(StoreError::Closed)));
        store.close().await;
    }
    let node = lab.node().await?;
    exactly(&node.store, "p1", [id]).await
}

pub async fn whoever_is_promised_something_while_the_store_closes_has_it(lab: Lab) -> Result<()> {
    let mut promised = Vec::new();
    let mut turned_away = 0;
    // In small groups, others are still at work when it is the turn of the closing.
    for group_max in [512, 1, 2, 1, 8] {
        let node = lab.node().await?;
        node.script.group_max(group_max);
        let many = join_all((0..50).map(|_| node.store.commit(echo(), Actor::Api)));
        let more = async {
            node.store.close().await;
            join_all((0..10).map(|_| node.store.commit(echo(), Actor::Api))).await
        };
        let (many, more) = join(many, more).await;
        for answer in many.into_iter().chain(more) {
            match answer {
                Ok(enqueued) => promised.push(enqueued.job.id),
                Err(CommitError::Store(StoreError::Closed)) => turned_away += 1,
                Err(other) => anyhow::bail!("{other:?}"),
            }
        }
    }
    ensure!(promised.len() + turned_away == 300 && turned_away >= 50);
    let node = lab.node().await?;
    exactly(&node.store, "p1", promised).await
}

pub async fn a_data_directory_has_one_user_at_a_time(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let dir = lab.data_dir(node.name.as_str());
    let no = failed(Store::open(lab.options(node.name.as_str())).await)?;
    ensure!(matches!(&no, OpenError::InUse(path) if *path == dir), "{no:?}");
    ensure!(no.to_string().contains("--data-dir"), "it says what to do: {no}");
    let id = enqueue(&node).await?.id;
    node.store.close().await;
    let again = Store::open(lab.options(node.name.as_str())).await?;
    exactly(&again, "p1", [id]).await
}

pub async fn a_schema_of_the_future_is_refused_unless_it_says_otherwise(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let id = enqueue(&node).await?.id;
    let nothing = if lab.place == Place::Postgres { "'\\x00'" } else { "x'00'" };
    let newer = |oldest| format!("INSERT INTO schema_version VALUES (99, 'of the future', {oldest}, {nothing})");
    node.store.raw(&newer(1)).await?;
    node.store.close().await;
    let node = lab.node().await.context("it says that this binary can still work with it")?;
    exactly(&node.store, "p1", [id]).await?;
    node.store.raw("DELETE FROM schema_version WHERE version = 99").await?;
    node.store.raw(&newer(98)).await?;
    node.store.close().await;
    for _ in 0..2 {
        let no = failed(Store::open(lab.options(node.name.as_str())).await)?;
        ensure!(matches!(no, OpenError::TooNew { found: 99, oldest: 98, known } if known < 98), "{no:?}");
        ensure!(no.to_string().contains("Start the newer Baton again"), "it says what to do: {no}");
    }
    Ok(())
}

pub async fn a_migration_that_was_edited_is_noticed(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let nothing = if lab.place == Place::Postgres { "'\\x00'" } else { "x'00'" };
    node.store.raw(&format!("UPDATE schema_version SET checksum = {nothing} WHERE version = 1")).await?;
    node.store.close().await;
    let no = failed(Store::open(lab.options(node.name.as_str())).await)?;
    ensure!(matches!(no, OpenError::Edited { version: 1 }), "{no:?}");
    Ok(())
}

pub async fn nodes_that_open_an_empty_database_at_once_all_succeed(lab: Lab) -> Result<()> {
    let names = ["node_a", "node_b", "node_c", "node_d"];
    let nodes = try_join_all(names.iter().map(|name| lab.node_named(name))).await?;
    let mut made = Vec::new();
    for node in &nodes {
        made.push(enqueue(node).await?.id);
    }
    for node in &nodes {
        exactly(&node.store, "p1", made.clone()).await?;
    }
    super::steps::counts(&nodes[0].store, "SELECT count(*) FROM schema_version WHERE version = 1", 1).await
}

pub async fn a_url_that_cannot_be_used_is_not_repeated(lab: Lab) -> Result<()> {
    for url in [
        "postgres://baton:s3cret@localhost:port/baton",
        "postgres://baton:s3cret@localhost/baton?moon=s3cret",
        "postgres:/baton:s3cret",
        "s3cret",
        "",
    ] {
        let mut options = lab.options("node_u");
        options.backend = Backend::Postgres(url.to_owned());
        let no = failed(Store::open(options).await)?;
        ensure!(matches!(no, OpenError::Url(_) | OpenError::Database(_)), "{url}: {no:?}");
        ensure!(!format!("{no} {no:?}").contains("s3cret"), "{no:?}");
    }
    Ok(())
}

pub async fn a_server_that_cannot_be_reached_is_said_to_be_so(lab: Lab) -> Result<()> {
    // Nobody listens on a port that was just given back.
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    drop(listener);
    let mut options = lab.options("node_u");
    options.backend = Backend::Postgres(format!("postgres://baton:s3cret@127.0.0.1:{port}/baton"));
    let no = failed(Store::open(options.clone()).await)?;
    let said = no.to_string();
    ensure!(matches!(no, OpenError::Database(_)) && said.contains("refused") && !said.contains("s3cret"), "{said}");
    // A database that the server does not have.
    let url = lab.url().context("a lab on PostgreSQL has a URL")?;
    let (server, _) = url.split_once('?').context("with its schema")?;
    let (server, _) = server.rsplit_once('/').context("and its database")?;
    options.backend = Backend::Postgres(format!("{server}/moon"));
    let no = failed(Store::open(options).await)?.to_string();
    ensure!(no.contains("moon") && no.contains("does not exist"), "{no}");
    let node = lab.node_named("node_u").await.context("a failed opening leaves nothing behind")?;
    record(&node, enqueue(&node).await?.id).await.map(drop)
}

pub async fn looking_changes_nothing(lab: Lab) -> Result<()> {
    let mut look = lab.options("node_l");
    look.corrupt = Corrupt::LeaveAlone;
    // A lab's file or schema is empty until somebody opens it to work with it.
    for _ in 0..2 {
        let no = failed(Store::open(look.clone()).await)?;
        ensure!(matches!(no, OpenError::NoDatabase(_)), "{no:?}");
    }
    let node = lab.node_named("node_l").await?;
    let id = enqueue(&node).await?.id;
    node.store.close().await;
    let store = Store::open(look.clone()).await?;
    exactly(&store, "p1", [id]).await?;
    store.raw("DELETE FROM schema_version").await?;
    store.close().await;
    let no = failed(Store::open(look).await)?;
    ensure!(matches!(no, OpenError::TooOld { found: 0, .. }), "{no:?}");
    Ok(())
}

/// Nobody takes it for a good end: whoever closes hears nothing but that it is over.
pub async fn a_crash_while_closing_is_a_crash(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let kept = enqueue(&node).await?.id;
    node.script.at(1, Mishap::CrashBefore);
    tokio::select! {
        biased;
        answer = node.store.commit(echo(), Actor::Api) => anyhow::bail!("a dead process answers nobody: {answer:?}"),
        () = async {
            node.store.close().await;
            node.script.crash().await;
        } => {}
    }
    drop(node);
    exactly(&lab.node().await?.store, "p1", [kept]).await
}
