//! Writing what a group decided. Statements are cached; each row is written once, as it
//! stands after the whole group.

use super::arrivals::Arrivals;
use super::inserts::Inserts;
use super::run_rows;
use super::write_jobs::{self, Move};
use super::write_queue;
use super::writer::Inner;
use crate::error::StoreError;
use crate::group::Purge;
use crate::records::row_limit;
use crate::sqlite::store_error;
use baton_core::{Micros, World};
use rusqlite::{Connection, params};
use std::sync::LazyLock;

/// What is to be written, and where.
pub(super) struct Places<'w> {
    /// The place before that of each event, if it is linked.
    links: Vec<Option<i64>>,
    moves: Vec<Move<'w>>,
}

/// All that a later group may look at before this one is committed.
pub(super) fn what_others_look_at<'w>(
    inner: &mut Inner,
    world: &'w World,
    arrivals: &mut Arrivals,
    now: Micros,
) -> Result<Places<'w>, StoreError> {
    let Inner { conn, next_pos, arriving, ranks, .. } = inner;
    let mut moves = write_jobs::arrive(conn, arriving, world, arrivals)?;
    // Rows of jobs say where their history ends, so events get their places first.
    let places = (*next_pos..).zip(world.events());
    let links = places.map(|(pos, event)| arrivals.tell(event, pos)).collect();
    write_jobs::settle(&mut moves, arrivals);
    write_jobs::live((conn, ranks), &moves, now)?;
    for (org, id, payload) in world.payload_writes() {
        let update = "UPDATE job SET payload = ?3 WHERE org = ?1 AND id = ?2";
        let done = conn
            .prepare_cached(update)
            .and_then(|mut update| update.execute((org.as_str(), id.0.as_bytes(), payload.as_str())));
        one(done, "a new payload of a job")?;
    }
    write_queue::world(conn, world).map_err(store_error)?;
    run_rows::write(conn, world)?;
    beside_jobs(conn, world).map_err(store_error)?;
    Ok(Places { links, moves })
}

/// How jobs have ended.
pub(super) fn ends(inner: &Inner, places: &Places<'_>) -> Result<(), StoreError> {
    write_jobs::ends(&inner.conn, &places.moves)
}

/// What happened, and what is forgotten.
pub(super) fn history(inner: &mut Inner, world: &World, places: &Places<'_>) -> Result<(), StoreError> {
    let Inner { conn, next_pos, .. } = inner;
    events(conn, next_pos, world, &places.links).map_err(store_error)?;
    // After the event that says so.
    write_queue::pruned(conn, world)
}

/// A row that was loaded must be there: nobody else writes.
pub(super) fn one(rows: rusqlite::Result<usize>, what: &str) -> Result<(), StoreError> {
    match rows.map_err(store_error)? {
        1 => Ok(()),
        n => Err(StoreError::Rejected(format!("{what} touched {n} rows"))),
    }
}

fn beside_jobs(conn: &Connection, world: &World) -> rusqlite::Result<()> {
    for (org, key, definition) in world.definition_writes() {
        conn.prepare_cached(
            "INSERT INTO definition (org, class, name, id, head_n, head_hash, head_at) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (org, class, name) DO UPDATE SET \
             head_n = excluded.head_n, head_hash = excluded.head_hash, head_at = excluded.head_at",
        )?
        .execute(params![
            org.as_str(),
            key.class.as_str(),
            key.name.as_str(),
            definition.id.0.as_bytes(),
            definition.head.n,
            definition.head.hash.0,
            definition.head.at.0,
        ])?;
    }
    for (org, change) in world.version_writes() {
        conn.prepare_cached(
            "INSERT INTO definition_version (org, id, version, digest, body) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute(params![
            org.as_str(),
            change.id.0.as_bytes(),
            change.version,
            change.body.digest().0,
            change.body.as_str(),
        ])?;
    }
    for (org, key, at) in world.timer_writes() {
        match at {
            Some(at) => conn
                .prepare_cached(
                    "INSERT INTO timer (org, subject, kind, at) VALUES (?1, ?2, ?3, ?4) \
                     ON CONFLICT (org, subject, kind) DO UPDATE SET at = excluded.at",
                )?
                .execute(params![org.as_str(), key.subject.as_bytes(), key.kind.as_str(), at.0])?,
            None => conn
                .prepare_cached("DELETE FROM timer WHERE org = ?1 AND subject = ?2 AND kind = ?3")?
                .execute(params![org.as_str(), key.subject.as_bytes(), key.kind.as_str()])?,
        };
    }
    for (key, record) in world.once_writes() {
        conn.prepare_cached(
            "INSERT OR REPLACE INTO once (org, scope, key, request, status, body, expires_at) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?
        .execute(params![
            key.org.as_str(),
            key.scope,
            key.key,
            record.request.0,
            record.answer.status,
            record.answer.body,
            record.expires_at.0,
        ])?;
    }
    for seal in world.seal_writes() {
        conn.prepare_cached(
            "INSERT INTO seal (org, n, from_pos, to_pos, count, root, prev, at, mac) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        )?
        .execute(params![
            seal.org.as_str(),
            seal.n,
            seal.from_pos,
            seal.to_pos,
            seal.count,
            seal.root.0,
            seal.prev.0,
            seal.at.0,
            seal.mac.0,
        ])?;
    }
    Ok(())
}

static EVENT: LazyLock<Inserts> =
    LazyLock::new(|| Inserts::new("event", "org, pos, subject, n, at, kind, actor, data, hash, prev"));

/// Each with the place of the one before it, if it is linked.
fn events(conn: &Connection, next_pos: &mut i64, world: &World, links: &[Option<i64>]) -> rusqlite::Result<()> {
    let events: Vec<_> = (*next_pos..).zip(world.events()).zip(links).collect();
    EVENT.bring_in(conn, &events, |((pos, event), prev), row| {
        row.put(event.org.as_str()).put(pos).put(event.subject.as_bytes()).put(event.n).put(event.at.0);
        row.put(&event.kind).put(&event.actor).put(event.data.as_str()).put(event.hash.0).put(prev);
    })?;
    *next_pos += i64::try_from(events.len()).unwrap_or(i64::MAX);
    Ok(())
}

/// Removes rows that no longer speak.
pub(super) fn purge(conn: &Connection, what: Purge, limit: usize, now: Micros) -> rusqlite::Result<usize> {
    match what {
        Purge::Onces => conn
            .prepare_cached(
                "DELETE FROM once WHERE (org, scope, key) IN (
                 SELECT org, scope, key FROM once WHERE expires_at <= ?1 ORDER BY expires_at LIMIT ?2)",
            )?
            .execute((now.0, row_limit(limit))),
        Purge::Messages => conn
            .prepare_cached(
                "DELETE FROM message WHERE (org, id) IN (
                 SELECT org, id FROM message WHERE expires_at <= ?1 ORDER BY expires_at LIMIT ?2)",
            )?
            .execute((now.0, row_limit(limit))),
        Purge::Lanes => {
            let lanes = conn
                .prepare_cached(
                    "DELETE FROM lane WHERE (org, key) IN (
                     SELECT org, key FROM lane WHERE running = 0 AND waiting = 0 LIMIT ?1)",
                )?
                .execute([row_limit(limit)])?;
            let ranks = conn
                .prepare_cached(
                    "DELETE FROM rank WHERE id IN (SELECT id FROM rank r WHERE NOT EXISTS
                     (SELECT 1 FROM live l INDEXED BY live_ready WHERE l.rank = r.id) LIMIT ?1)",
                )?
                .execute([row_limit(limit)])?;
            Ok(lanes.max(ranks))
        }
    }
}
