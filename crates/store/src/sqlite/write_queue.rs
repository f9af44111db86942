//! Writing what belongs to the queue around the jobs: lanes, counts, keys, messages, documents, sinks,
//! and what retention removes.

use super::many::Many;
use super::store_error;
use super::write::one;
use crate::error::StoreError;
use baton_core::job::{Ending, Job};
use baton_core::{OrgId, World};
use rusqlite::{Connection, params};

/// There is one writer, so there is one row of the crowd.
const WRITER: &str = "sqlite";

const PUT_LANE: &str = "INSERT INTO lane (org, key, max, running, waiting, outside, burst) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (org, key) DO UPDATE SET max = excluded.max, \
    running = excluded.running, waiting = excluded.waiting, outside = excluded.outside, burst = excluded.burst";

pub(super) fn world(conn: &Connection, world: &World) -> rusqlite::Result<()> {
    let mut lane = Many::new(conn, PUT_LANE);
    for (org, key, row) in world.lane_writes() {
        lane.get()?.execute(params![
            org.as_str(),
            key.as_str(),
            row.max,
            row.running,
            row.waiting,
            row.outside,
            row.burst
        ])?;
    }
    if world.crowd_delta() != 0 {
        conn.prepare_cached(
            "INSERT INTO crowd (writer, waiting) VALUES (?1, ?2) \
             ON CONFLICT (writer) DO UPDATE SET waiting = waiting + excluded.waiting",
        )?
        .execute((WRITER, world.crowd_delta()))?;
    }
    for (org, key, doc) in world.doc_writes() {
        conn.prepare_cached(
            "INSERT INTO doc (org, class, key, id, flag, body, head_n, head_hash, head_at) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT (org, class, key) DO UPDATE SET \
             flag = excluded.flag, body = excluded.body, head_n = excluded.head_n, head_hash = excluded.head_hash, \
             head_at = excluded.head_at",
        )?
        .execute(params![
            org.as_str(),
            key.class.as_str(),
            key.key,
            doc.id.0.as_bytes(),
            doc.flag,
            doc.body.as_str(),
            doc.head.n,
            doc.head.hash.0,
            doc.head.at.0,
        ])?;
    }
    for (org, id, message) in world.message_writes() {
        conn.prepare_cached("INSERT OR REPLACE INTO message (org, id, job, expires_at) VALUES (?1, ?2, ?3, ?4)")?
            .execute(params![org.as_str(), id, message.job.0.as_bytes(), message.expires_at.0])?;
    }
    for (org, key, row) in world.sink_writes() {
        conn.prepare_cached("INSERT OR REPLACE INTO sink (org, space, key, value, at) VALUES (?1, ?2, ?3, ?4, ?5)")?
            .execute(params![org.as_str(), key.space, key.key, row.value.as_str(), row.at.0])?;
    }
    Ok(())
}

/// What an ended job still stands for.
pub(super) fn ended(conn: &Connection, job: &Job, ending: &Ending) -> rusqlite::Result<()> {
    if let Some(key) = &job.dedupe {
        conn.prepare_cached("INSERT OR REPLACE INTO dropped (org, type, key, job) VALUES (?1, ?2, ?3, ?4)")?
            .execute(params![job.org.as_str(), job.kind.name.as_str(), key, job.id.0.as_bytes()])?;
    }
    if matches!(ending, Ending::Error(_)) {
        conn.prepare_cached("INSERT INTO dead_letter (org, id, project, type) VALUES (?1, ?2, ?3, ?4)")?
            .execute(params![job.org.as_str(), job.id.0.as_bytes(), job.project.as_str(), job.kind.name.as_str()])?;
    }
    Ok(())
}

pub(super) fn pruned(conn: &Connection, world: &World) -> Result<(), StoreError> {
    for (org, pruned) in world.prune_writes() {
        for candidate in &pruned.jobs {
            let mut gone = 0;
            for stub in &candidate.events {
                conn.prepare_cached("INSERT INTO pruned (org, pos, hash, by, n) VALUES (?1, ?2, ?3, ?4, ?5)")
                    .and_then(|mut insert| {
                        insert.execute(params![org.as_str(), stub.pos, stub.hash, pruned.by.0.as_bytes(), pruned.n])
                    })
                    .map_err(store_error)?;
                gone += conn
                    .prepare_cached("DELETE FROM event WHERE org = ?1 AND pos = ?2 AND subject = ?3")
                    .and_then(|mut delete| delete.execute((org.as_str(), stub.pos, candidate.job.0.as_bytes())))
                    .map_err(store_error)?;
            }
            if gone != candidate.events.len() {
                let why = format!("{} events of {} were to go, not {gone}", candidate.events.len(), candidate.job);
                return Err(StoreError::Rejected(why));
            }
            delete(conn, org, candidate.job.0.as_bytes())?;
        }
    }
    Ok(())
}

/// A job without a history, with everything that names it.
fn delete(conn: &Connection, org: &OrgId, job: &[u8]) -> Result<(), StoreError> {
    let run = |sql: &str| conn.prepare_cached(sql).and_then(|mut delete| delete.execute((org.as_str(), job)));
    run("DELETE FROM dead_letter WHERE org = ?1 AND id = ?2").map_err(store_error)?;
    run("DELETE FROM dropped WHERE org = ?1 AND job = ?2").map_err(store_error)?;
    one(run("DELETE FROM job WHERE org = ?1 AND id = ?2"), "the removal of an ended job")
}
