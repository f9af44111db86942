//! The history against whoever reaches the database past the store: what the database itself
//! refuses, and what the audit names.

use super::steps::{claim_one, clean, done, enqueue, history};
use crate::lab::{Lab, Node, Place};
use anyhow::{Context, Result, ensure};
use baton_core::audit::Report;
use baton_core::command::Actor;
use baton_core::job::Job;
use baton_core::{Digest, OrgId};
use baton_store::{EventRow, StoreError};
use uuid::Uuid;

/// The same bytes as each database writes them.
pub(super) fn uuid(lab: &Lab, id: Uuid) -> String {
    match lab.place {
        Place::Postgres => format!("'{id}'"),
        Place::Sqlite | Place::SqliteDisk => format!("x'{}'", id.simple()),
    }
}

pub(super) fn bytes(lab: &Lab, digest: Digest) -> String {
    match lab.place {
        Place::Postgres => format!("'\\x{digest}'"),
        Place::Sqlite | Place::SqliteDisk => format!("x'{digest}'"),
    }
}

/// Takes away what guards the append-only tables.
pub(super) async fn disarm(lab: &Lab, node: &Node) -> Result<()> {
    let sql = match lab.place {
        Place::Postgres => {
            "ALTER TABLE event DISABLE TRIGGER USER; ALTER TABLE seal DISABLE TRIGGER USER; \
             ALTER TABLE job DISABLE TRIGGER USER; ALTER TABLE pruned DISABLE TRIGGER USER"
        }
        Place::Sqlite | Place::SqliteDisk => {
            "DROP TRIGGER event_is_never_changed; DROP TRIGGER event_is_never_removed; \
             DROP TRIGGER seal_is_never_changed; DROP TRIGGER seal_is_never_removed; \
             DROP TRIGGER job_end_is_final; DROP TRIGGER job_end_is_never_removed; \
             DROP TRIGGER pruned_is_never_changed; DROP TRIGGER pruned_is_never_removed"
        }
    };
    Ok(node.store.raw(sql).await?)
}

/// A job with three events, which have become readable.
pub(super) async fn ended_job(lab: &Lab, node: &Node) -> Result<(Job, Vec<EventRow>)> {
    let job = enqueue(node).await?;
    node.store.commit(done(&claim_one(lab, node).await?)?, Actor::Engine).await?;
    let mut at_least = 3;
    loop {
        let all = history(&node.store, &OrgId::default(), at_least).await?;
        at_least = all.len() + 1;
        let own: Vec<_> = all.into_iter().filter(|row| row.event.subject == job.id.0).collect();
        if own.len() == 3 {
            return Ok((job, own));
        }
    }
}

/// What the report says about one job.
fn codes(report: &Report, job: &Job) -> Vec<String> {
    let hex = job.id.0.simple().to_string();
    let mut codes: Vec<_> =
        report.violations.iter().filter(|v| v.subject.contains(&hex)).map(|v| v.code.clone()).collect();
    codes.sort_unstable();
    codes
}

pub async fn the_database_itself_refuses_to_change_the_past(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let (job, rows) = ended_job(&lab, &node).await?;
    let kinds = lab.definitions.job_types().next().context("there are job types")?;
    node.store.commit(kinds.register(), Actor::Engine).await?;
    super::seals::seal(&node, &super::seals::key(1), rows.len()).await?;
    let id = uuid(&lab, job.id.0);
    for sql in [
        "UPDATE event SET data = '{}'".to_owned(),
        "UPDATE event SET at = at - 1 WHERE n = 2".to_owned(),
        "DELETE FROM event".to_owned(),
        format!("DELETE FROM event WHERE subject = {id} AND n = 3"),
        "UPDATE seal SET count = count + 1".to_owned(),
        "DELETE FROM seal".to_owned(),
        "UPDATE definition_version SET body = '{}'".to_owned(),
        "DELETE FROM definition_version".to_owned(),
        format!("UPDATE job SET state = 'failed', result = NULL, error_code = 'x' WHERE id = {id}"),
        format!("UPDATE job SET result = '{{}}' WHERE id = {id}"),
        format!("UPDATE job SET state = NULL, ended_at = NULL, result = NULL, head_n = NULL WHERE id = {id}"),
        format!("DELETE FROM job WHERE id = {id}"),
    ] {
        let refused = node.store.raw(&sql).await;
        ensure!(matches!(refused, Err(StoreError::Rejected(_))), "{sql}: {refused:?}");
    }
    if lab.place == Place::Postgres {
        for table in ["event", "seal", "definition_version", "job"] {
            let refused = node.store.raw(&format!("TRUNCATE {table}")).await;
            ensure!(matches!(refused, Err(StoreError::Rejected(_))), "{table} can be emptied: {refused:?}");
        }
    }
    clean(&node.store).await
}

pub async fn the_database_itself_refuses_states_that_cannot_be(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    enqueue(&node).await?;
    claim_one(&lab, &node).await?;
    let queued = uuid(&lab, enqueue(&node).await?.id.0);
    for sql in [
        format!("UPDATE live SET state = 'executing' WHERE id = {queued}"),
        format!("UPDATE live SET due_at = NULL WHERE id = {queued}"),
        format!("UPDATE live SET phase = 3 WHERE id = {queued}"),
        "UPDATE live SET worker = NULL WHERE phase = 3".to_owned(),
        "UPDATE live SET lease_until = NULL WHERE phase = 3".to_owned(),
        "UPDATE live SET state = 'completed'".to_owned(),
        "UPDATE live SET phase = 9".to_owned(),
        "UPDATE live SET head_n = 0".to_owned(),
        "UPDATE job SET state = 'completed'".to_owned(),
        "UPDATE job SET ended_at = 1".to_owned(),
        "UPDATE job SET result = '{}'".to_owned(),
        "UPDATE job SET state = 'moon', ended_at = created_at, head_n = 1".to_owned(),
        "UPDATE job SET state = 'cancelled', ended_at = created_at - 1, head_n = 1".to_owned(),
        "UPDATE job SET state = 'failed', ended_at = created_at, head_n = 1".to_owned(),
    ] {
        let refused = node.store.raw(&sql).await;
        ensure!(matches!(refused, Err(StoreError::Rejected(_))), "{sql}: {refused:?}");
    }
    clean(&node.store).await
}

pub async fn every_kind_of_tampering_with_a_job_is_named(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    disarm(&lab, &node).await?;
    let tampering: [(&str, &[&str]); 15] = [
        ("UPDATE event SET data = '{}' WHERE subject = ID AND n = 2", &["chain_broken"]),
        ("UPDATE event SET kind = 'job.failed' WHERE subject = ID AND n = 3", &["chain_broken"]),
        ("UPDATE event SET actor = 'somebody' WHERE subject = ID AND n = 1", &["chain_broken"]),
        ("UPDATE event SET at = at + 1 WHERE subject = ID AND n = 3", &["chain_broken"]),
        ("UPDATE event SET at = 1 WHERE subject = ID AND n = 2", &["chain_broken", "time_backwards"]),
        (
            "UPDATE event SET org = 'acme' WHERE subject = ID",
            &["chain_broken", "chain_broken", "chain_broken", "no_history", "orphan_chain"],
        ),
        ("DELETE FROM event WHERE subject = ID AND n = 2", &["chain_gap"]),
        ("DELETE FROM event WHERE subject = ID AND n = 3", &["head_mismatch"]),
        ("DELETE FROM event WHERE subject = ID", &["no_history"]),
        ("UPDATE job SET head_n = 2 WHERE id = ID", &["head_mismatch"]),
        ("UPDATE job SET state = 'cancelled', result = NULL WHERE id = ID", &["state_mismatch"]),
        ("UPDATE job SET payload = '{}' WHERE id = ID", &["body_changed"]),
        ("UPDATE job SET result = '{}' WHERE id = ID", &["body_changed"]),
        ("UPDATE job SET payload = '{}', result = '{}' WHERE id = ID", &["body_changed", "body_changed"]),
        ("DELETE FROM job WHERE id = ID", &["orphan_chain"]),
    ];
    let mut tampered = 0;
    for (sql, expected) in tampering {
        let job = enqueue(&node).await?;
        node.store.commit(done(&claim_one(&lab, &node).await?)?, Actor::Engine).await?;
        node.store.raw(&sql.replace("ID", &uuid(&lab, job.id.0))).await?;
        tampered += expected.len() as u64;
        let report = node.store.audit(None).await?;
        let found = codes(&report, &job);
        ensure!(found == expected, "{sql}: {found:?} instead of {expected:?}");
        ensure!(report.violations_total == tampered, "only what was touched is named: {:?}", report.violations);
    }
    Ok(())
}

/// Only where jobs stand in ranks of their own.
pub async fn a_job_that_stands_where_nobody_looks_for_it_is_named(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let [job, other] = [enqueue(&node).await?, enqueue(&node).await?];
    clean(&node.store).await?;
    node.store.raw(&format!("UPDATE live SET rank = rank + 1 WHERE id = {}", uuid(&lab, job.id.0))).await?;
    let report = node.store.audit(None).await?;
    ensure!(codes(&report, &job) == ["job_misplaced"], "{:?}", report.violations);
    ensure!(codes(&report, &other).is_empty());
    Ok(())
}

pub async fn a_job_that_lost_half_of_its_rows_is_named(lab: Lab) -> Result<()> {
    let node = lab.node().await?;
    let lost = enqueue(&node).await?;
    node.store.raw(&format!("DELETE FROM live WHERE id = {}", uuid(&lab, lost.id.0))).await?;
    let undead = enqueue(&node).await?;
    node.store.raw(&format!("DELETE FROM job WHERE id = {}", uuid(&lab, undead.id.0))).await?;
    let report = node.store.audit(None).await?;
    ensure!(codes(&report, &lost) == ["job_lost", "orphan_chain"], "{:?}", report.violations);
    // Where the history is led to its job by the row that is gone, it belongs to nobody too.
    ensure!(codes(&report, &undead).iter().any(|code| code == "job_undead"), "{:?}", report.violations);
    Ok(())
}
