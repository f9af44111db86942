//! Saying the same thing twice has one effect and one answer.

use super::odd_commands::{Bad, NOWHERE};
use super::steps::{census, clean, counts, echo_in, exactly};
use crate::lab::{Lab, Node, echo, name};
use anyhow::{Context, Result, ensure};
use baton_core::command::Actor;
use baton_core::job::enqueue::{Enqueue, EnqueueError, Enqueued};
use baton_core::once::{KEPT_FOR, Key, Rendered};
use baton_core::time::Span;
use baton_core::{Digest, JobId, OrgId};
use baton_store::{Answer, CommitError, Once, StoreError};
use futures_util::future::{join, join_all, try_join_all};

pub(super) fn key(text: &str) -> Key {
    Key { org: OrgId::default(), scope: "POST /api/v1/jobs".to_owned(), key: text.to_owned() }
}

/// The record of an enqueue; the request is told by one word.
pub(super) fn once(key: Key, request: &str) -> Once<Enqueued> {
    let render = |out: &Enqueued| Rendered { status: 202, body: format!("{{ \"id\":\"{}\",\"ü\":1}}\n", out.job.id) };
    Once { key, request: Digest::of(&[request.as_bytes()]), render: Box::new(render) }
}

type Said = Result<Answer<Enqueued>, CommitError<EnqueueError>>;

async fn say(node: &Node, key: Key, request: &str) -> Said {
    node.store.commit_once(echo(), Actor::Api, once(key, request)).await
}

pub(super) fn fresh(said: Said) -> Result<JobId> {
    match said? {
        Answer::Fresh(enqueued) => Ok(enqueued.job.id),
        Answer::Replayed(again) => anyhow::bail!("replayed {again:?}"),
    }
}

pub(super) fn replayed(said: Said, id: JobId) -> Result<()> {
    match said? {
        Answer::Replayed(again) => {
            let enqueued = Rendered { status: 202, body: format!("{{ \"id\":\"{id}\",\"ü\":1}}\n") };
            ensure!(again == enqueued, "replayed {again:?} instead of {enqueued:?}");
            Ok(())
        }
        Answer::Fresh(other) => anyhow::bail!("{} was made a second time as {}", id, other.job.id),
    }
}

/// Of many answers to the same words, one is fresh and the others repeat it.
fn one_effect(all: Vec<Said>) -> Result<JobId> {
    let is_fresh = |said: &Said| matches!(said, Ok(Answer::Fresh(_)));
    let (mut made, again): (Vec<_>, Vec<_>) = all.into_iter().partition(is_fresh);
    ensure!(made.len() == 1, "{} effects", made.len());
    let id = fresh(made.pop().context("there is one")?)?;
    again.into_iter().try_for_each(|said| replayed(said, id))?;
    Ok(id)
}

pub async fn a_repetition_gets_the_same_bytes_and_does_nothing(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let id = fresh(say(&node, key("k"), "r").await)?;
    let commits = node.script.commits();
    for _ in 0..3 {
        replayed(say(&node, key("k"), "r").await, id)?;
    }
    ensure!(node.script.commits() == commits, "a repetition writes nothing");
    exactly(&node.store, "p1", [id]).await
}

pub async fn a_key_that_was_used_for_another_request_is_refused(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let id = fresh(say(&node, key("k"), "r").await)?;
    let other = say(&node, key("k"), "another").await;
    ensure!(matches!(other, Err(CommitError::KeyReused)), "{other:?}");
    replayed(say(&node, key("k"), "r").await, id)?;
    exactly(&node.store, "p1", [id]).await
}

pub async fn a_refusal_is_not_remembered(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let unknown = Enqueue { kind: name("moon"), ..echo() };
    let refused = node.store.commit_once(unknown, Actor::Api, once(key("k"), "r")).await;
    ensure!(matches!(refused, Err(CommitError::Refused(EnqueueError::UnknownType { .. }))), "{refused:?}");
    counts(&node.store, "SELECT count(*) FROM once", 0).await?;
    let id = fresh(say(&node, key("k"), "another").await)?;
    exactly(&node.store, "p1", [id]).await
}

pub async fn a_failure_is_not_remembered(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    for bad in [Bad::Panics, Bad::BreaksAConstraint] {
        let render = |(): &()| Rendered { status: 200, body: String::new() };
        let once = Once { key: key("k"), request: Digest::of(&[b"r"]), render: Box::new(render) };
        let failed = node.store.commit_once(bad, Actor::Api, once).await;
        ensure!(matches!(failed, Err(CommitError::Store(StoreError::Panicked(_) | StoreError::Rejected(_)))));
    }
    counts(&node.store, "SELECT count(*) FROM once", 0).await?;
    fresh(say(&node, key("k"), "r").await)?;
    exactly(&node.store, NOWHERE, []).await
}

pub async fn an_answer_that_cannot_be_rendered_is_not_committed(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let render = |_: &Enqueued| -> Rendered { panic!("no words") };
    let once = Once { key: key("k"), request: Digest::of(&[b"r"]), render: Box::new(render) };
    let neighbours = try_join_all((0..8).map(|_| node.store.commit(echo(), Actor::Api)));
    let (failed, neighbours) = join(node.store.commit_once(echo_in(NOWHERE), Actor::Api, once), neighbours).await;
    ensure!(matches!(failed, Err(CommitError::Store(StoreError::Panicked(_)))), "{failed:?}");
    exactly(&node.store, NOWHERE, []).await?;
    exactly(&node.store, "p1", neighbours?.into_iter().map(|e| e.job.id)).await
}

pub async fn fifty_at_once_with_one_key_have_one_effect(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let id = one_effect(join_all((0..50).map(|_| say(&node, key("k"), "r"))).await)?;
    exactly(&node.store, "p1", [id]).await?;
    counts(&node.store, "SELECT count(*) FROM once", 1).await
}

pub async fn two_requests_at_once_with_one_key_have_one_effect(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    for n in 0..20 {
        let key = key(&format!("k{n}"));
        let (a, b) = join(say(&node, key.clone(), "a"), say(&node, key.clone(), "b")).await;
        let winner = match (a, b) {
            (Ok(Answer::Fresh(a)), Err(CommitError::KeyReused)) => ("a", a),
            (Err(CommitError::KeyReused), Ok(Answer::Fresh(b))) => ("b", b),
            other => anyhow::bail!("{other:?}"),
        };
        replayed(say(&node, key, winner.0).await, winner.1.job.id)?;
    }
    ensure!(census(&node.store, &OrgId::default(), "p1").await?.len() == 20);
    clean(&node.store).await
}

pub async fn two_nodes_racing_with_one_key_have_one_effect(lab: Lab) -> Result<()> {
    let nodes = [lab.node_named("node_a").await?, lab.node_named("node_b").await?];
    let mut made = Vec::new();
    for n in 0..20 {
        let key = key(&format!("k{n}"));
        made.push(one_effect(join_all((0..8).map(|i| say(&nodes[i % 2], key.clone(), "r"))).await)?);
    }
    exactly(&nodes[0].store, "p1", made).await?;
    counts(&nodes[1].store, "SELECT count(*) FROM once", 20).await
}

pub async fn two_nodes_racing_for_an_expired_key_have_one_effect(lab: Lab) -> Result<()> {
    let nodes = [lab.node_named("node_a").await?, lab.node_named("node_b").await?];
    let mut made = Vec::new();
    for _ in 0..10 {
        made.push(one_effect(join_all((0..8).map(|i| say(&nodes[i % 2], key("k"), "r"))).await)?);
        lab.advance(KEPT_FOR);
    }
    exactly(&nodes[0].store, "p1", made).await
}

pub async fn an_expired_key_may_be_used_anew(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let first = fresh(say(&node, key("k"), "r").await)?;
    lab.advance(Span(KEPT_FOR.0 - Span::secs(600).0));
    replayed(say(&node, key("k"), "r").await, first)?;
    lab.advance(Span::secs(600));
    let second = fresh(say(&node, key("k"), "another").await)?;
    replayed(say(&node, key("k"), "another").await, second)?;
    ensure!(matches!(say(&node, key("k"), "r").await, Err(CommitError::KeyReused)));
    exactly(&node.store, "p1", [first, second]).await
}

pub async fn only_expired_keys_are_purged(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    for n in 0..5 {
        fresh(say(&node, key(&format!("old{n}")), "r").await)?;
    }
    ensure!(node.store.purge_onces(100).await? == 0, "none has expired");
    lab.advance(KEPT_FOR);
    let mut young = Vec::new();
    for n in 0..3 {
        young.push(fresh(say(&node, key(&format!("young{n}")), "r").await)?);
    }
    ensure!(node.store.purge_onces(2).await? == 2, "no more than asked for");
    ensure!(node.store.purge_onces(100).await? == 3);
    ensure!(node.store.purge_onces(100).await? == 0);
    counts(&node.store, "SELECT count(*) FROM once", 3).await?;
    for (n, id) in young.into_iter().enumerate() {
        replayed(say(&node, key(&format!("young{n}")), "r").await, id)?;
    }
    Ok(())
}

pub async fn purging_beside_a_key_that_is_used_anew_loses_no_record(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    for n in 0..20 {
        fresh(say(&node, key(&format!("k{n}")), "r").await)?;
    }
    lab.advance(KEPT_FOR);
    let names: Vec<_> = (0..20).map(|n| format!("k{n}")).collect();
    let again = join_all(names.iter().map(|name| say(&node, key(name), "another")));
    let (again, purged) = join(again, join_all((0..4).map(|_| node.store.purge_onces(7)))).await;
    for purged in purged {
        purged?;
    }
    for (name, said) in names.iter().zip(again) {
        replayed(say(&node, key(name), "another").await, fresh(said)?)?;
    }
    counts(&node.store, "SELECT count(*) FROM once", 20).await
}

pub async fn the_same_key_in_another_scope_or_org_is_another_key(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let elsewhere = Key { scope: "POST /api/v1/runs".to_owned(), ..key("k") };
    let abroad = Key { org: name("acme"), ..key("k") };
    let mut made = Vec::new();
    for (key, request) in [(key("k"), "a"), (elsewhere.clone(), "b"), (abroad.clone(), "c")] {
        made.push(fresh(say(&node, key, request).await)?);
    }
    for ((key, request), id) in [(key("k"), "a"), (elsewhere, "b"), (abroad, "c")].into_iter().zip(&made) {
        replayed(say(&node, key, request).await, *id)?;
    }
    exactly(&node.store, "p1", made).await
}
