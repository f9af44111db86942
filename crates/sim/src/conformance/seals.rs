//! Seals: what only they can find, and who may make them.

use super::steps::{claim_one, clean, done, enqueue, history};
use super::tampering::{bytes, disarm, ended_job, uuid};
use crate::lab::{Lab, Node, Place, echo, name};
use anyhow::{Context, Result, ensure};
use baton_core::audit::Report;
use baton_core::command::Actor;
use baton_core::event::Recorded;
use baton_core::job::enqueue::Enqueue;
use baton_core::seal::{Close, CloseError, Key, Seal, SealHead};
use baton_core::{Digest, Json, OrgId};
use baton_store::CommitError;
use futures_util::future::join_all;
use serde_json::json;

pub(super) fn key(n: u8) -> Key {
    Key::new([n; 32])
}

/// The next seal over at most `limit` events, as the engine makes it.
async fn next_seal(node: &Node, key: &Key, limit: usize) -> Result<Seal> {
    let unsealed = node.store.unsealed(&OrgId::default(), limit).await?;
    let last = unsealed.last.as_ref().map_or(SealHead::NONE, Seal::head);
    let at = node.store.now().await?;
    Ok(Seal::next(&OrgId::default(), last, unsealed.to_pos, unsealed.root, at, key))
}

pub(super) async fn seal(node: &Node, key: &Key, limit: usize) -> Result<Seal> {
    let seal = next_seal(node, key, limit).await?;
    node.store.commit(Close { seal: seal.clone() }, Actor::Engine).await?;
    Ok(seal)
}

fn codes(report: &Report) -> Vec<&str> {
    report.violations.iter().map(|v| v.code.as_str()).collect()
}

/// What the audit under the right key says now.
async fn says(node: &Node, expected: &[&str]) -> Result<()> {
    let report = node.store.audit(Some(key(1))).await?;
    ensure!(codes(&report) == expected, "{:?} instead of {expected:?}", report.violations);
    Ok(())
}

pub async fn a_sealed_history_verifies_under_its_key(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    for n in 1..=3 {
        let (_, _) = ended_job(&lab, &node).await?;
        ensure!(history(&node.store, &OrgId::default(), 3 * n).await?.len() == 3 * n);
        // In two bites: the second begins where the first ended.
        let (first, second) = (seal(&node, &key(1), 2).await?, seal(&node, &key(1), 99).await?);
        ensure!((first.count, second.count) == (2, 1) && second.from_pos == first.to_pos);
        ensure!(node.store.unsealed(&OrgId::default(), 9).await?.root.count == 0);
    }
    let report = node.store.audit(Some(key(1))).await?;
    ensure!(report.is_clean(), "{:?}", report.violations);
    ensure!((report.chains, report.events, report.seals, report.macs_checked) == (3, 9, 6, 6), "{report:?}");
    let report = node.store.audit(None).await?;
    ensure!(report.is_clean() && report.macs_checked == 0, "without the key there is nothing to check MACs with");
    Ok(())
}

pub async fn a_seal_must_follow_the_one_before(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    ended_job(&lab, &node).await?;
    let first = seal(&node, &key(1), 2).await?;
    let good = next_seal(&node, &key(1), 9).await?;
    let changes: [fn(&mut Seal); 5] =
        [|s| s.n += 1, |s| s.n -= 1, |s| s.from_pos -= 1, |s| s.prev = Digest::ZERO, |s| s.to_pos = s.from_pos];
    for change in changes {
        let mut bad = good.clone();
        change(&mut bad);
        bad.mac = bad.mac_under(&key(1));
        let refused = node.store.commit(Close { seal: bad }, Actor::Engine).await;
        ensure!(matches!(refused, Err(CommitError::Refused(CloseError::Stale))), "{refused:?}");
    }
    let again = node.store.commit(Close { seal: first }, Actor::Engine).await;
    ensure!(matches!(again, Err(CommitError::Refused(CloseError::Stale))), "{again:?}");
    node.store.commit(Close { seal: good }, Actor::Engine).await?;
    says(&node, &[]).await
}

pub async fn of_two_nodes_that_close_a_range_one_wins(lab: Lab) -> Result<()> {
    let nodes = [lab.node_named("node_a").await?, lab.node_named("node_b").await?];
    for n in 1..=10 {
        enqueue(&nodes[n % 2]).await?;
        // Both must see the end of the history before they can close it.
        let mut seals = Vec::new();
        for node in &nodes {
            history(&node.store, &OrgId::default(), n).await?;
            seals.push(next_seal(node, &key(1), 9).await?);
        }
        let close = (0..6).map(|i| nodes[i % 2].store.commit(Close { seal: seals[i % 2].clone() }, Actor::Engine));
        let (mut won, mut stale) = (0, 0);
        for answer in join_all(close).await {
            match answer {
                Ok(()) => won += 1,
                Err(CommitError::Refused(CloseError::Stale)) => stale += 1,
                other => anyhow::bail!("{other:?}"),
            }
        }
        ensure!((won, stale) == (1, 5), "{won} won");
    }
    says(&nodes[0], &[]).await?;
    ensure!(nodes[1].store.audit(Some(key(1))).await?.seals == 10);
    Ok(())
}

pub async fn seals_made_with_another_key_are_found(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    ended_job(&lab, &node).await?;
    seal(&node, &key(1), 2).await?;
    seal(&node, &key(2), 9).await?;
    says(&node, &["seal_mac"]).await?;
    let other = node.store.audit(Some(key(2))).await?;
    ensure!(codes(&other) == ["seal_mac"], "under the other key the first is the wrong one");
    clean(&node.store).await
}

pub async fn a_history_rewritten_with_all_its_hashes_is_found(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let (job, rows) = ended_job(&lab, &node).await?;
    seal(&node, &key(1), 9).await?;
    says(&node, &[]).await?;
    disarm(&lab, &node).await?;
    // As somebody would who knows how it is made, but has no key.
    let mut prev = Digest::ZERO;
    let mut sql = String::new();
    for row in &rows {
        let mut data = row.event.data.value();
        data["attempt"] = json!(9);
        let mut forged = Recorded { data: Json::of(&data), ..row.event.clone() };
        forged.hash = forged.hash_after(prev);
        prev = forged.hash;
        sql += &format!(
            "UPDATE event SET data = '{}', hash = {} WHERE subject = {} AND n = {};",
            forged.data.as_str(),
            bytes(&lab, forged.hash),
            uuid(&lab, forged.subject),
            forged.n
        );
    }
    sql += &format!("UPDATE job SET head_hash = {} WHERE id = {}", bytes(&lab, prev), uuid(&lab, job.id.0));
    node.store.raw(&sql).await?;
    says(&node, &["seal_root"]).await?;
    // Sealing it anew without the key does not help either.
    node.store.raw("DELETE FROM seal").await?;
    seal(&node, &key(2), 9).await?;
    says(&node, &["seal_mac"]).await
}

pub async fn a_job_removed_without_a_trace_is_found(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let (job, _) = ended_job(&lab, &node).await?;
    ended_job(&lab, &node).await?;
    seal(&node, &key(1), 99).await?;
    disarm(&lab, &node).await?;
    let id = uuid(&lab, job.id.0);
    node.store.raw(&format!("DELETE FROM event WHERE subject = {id}; DELETE FROM job WHERE id = {id}")).await?;
    says(&node, &["seal_count"]).await
}

pub async fn a_whole_history_removed_without_a_trace_is_found(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    ended_job(&lab, &node).await?;
    seal(&node, &key(1), 99).await?;
    disarm(&lab, &node).await?;
    node.store.raw("DELETE FROM event; DELETE FROM job; DELETE FROM live").await?;
    says(&node, &["seal_count"]).await
}

pub async fn a_tail_cut_off_with_its_rows_turned_back_is_found(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let job = enqueue(&node).await?;
    let queued = history(&node.store, &OrgId::default(), 1).await?;
    claim_one(&lab, &node).await?;
    history(&node.store, &OrgId::default(), 2).await?;
    seal(&node, &key(1), 99).await?;
    disarm(&lab, &node).await?;
    // The claim never happened.
    let id = uuid(&lab, job.id.0);
    let head = bytes(&lab, queued.first().context("it was queued")?.event.hash);
    let links = match lab.place {
        Place::Postgres => String::new(),
        Place::Sqlite | Place::SqliteDisk => {
            format!(", rank = (SELECT id FROM rank), head_pos = (SELECT pos FROM event WHERE subject = {id} AND n = 1)")
        }
    };
    node.store
        .raw(&format!(
            "DELETE FROM event WHERE subject = {id} AND n = 2; \
             UPDATE live SET state = 'queued', phase = 1, slot = 1, due_at = since, worker = NULL, lease_until = NULL, \
             attempts = 0, token = 0, started_at = NULL, head_n = 1, head_hash = {head}{links} WHERE id = {id}"
        ))
        .await?;
    says(&node, &["seal_count"]).await
}

pub async fn a_seal_that_was_changed_or_removed_is_found(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    for _ in 0..3 {
        ended_job(&lab, &node).await?;
        seal(&node, &key(1), 99).await?;
    }
    disarm(&lab, &node).await?;
    node.store.raw("UPDATE seal SET at = at + 1 WHERE n = 3").await?;
    says(&node, &["seal_mac"]).await?;
    node.store.raw("DELETE FROM seal WHERE n = 2").await?;
    says(&node, &["seal_gap", "seal_mac"]).await
}

pub async fn other_orgs_are_sealed_apart(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let abroad = Enqueue { org: name("acme"), ..echo() };
    node.store.commit(abroad, Actor::Api).await?;
    let leased = claim_one(&lab, &node).await?;
    node.store.commit(done(&leased)?, Actor::Engine).await?;
    ended_job(&lab, &node).await?;
    let sealed = seal(&node, &key(1), 99).await?;
    ensure!(sealed.count == 3, "the others' events are not counted");
    ensure!(node.store.unsealed(&name("acme"), 99).await?.root.count == 3, "nor are they closed");
    says(&node, &[]).await
}
