//! Writing what a group decided. Statements are cached; each row is written once, as it
//! stands after the whole group.

use super::run_rows;
use super::write_queue;
use super::writer::Inner;
use crate::error::StoreError;
use crate::group::Purge;
use crate::phase;
use crate::records::{ending_columns, row_limit};
use crate::sqlite::store_error;
use baton_core::job::{Aside, Cold, Ending, Job, Status};
use baton_core::world::JobWrite;
use baton_core::{Micros, World};
use rusqlite::{Connection, params};

pub(super) fn world(inner: &mut Inner, world: &World, now: Micros) -> Result<(), StoreError> {
    let Inner { conn, next_pos, next_ord, .. } = inner;
    for write in world.job_writes() {
        match write {
            JobWrite::Insert(job, cold, ending) => {
                insert_job(conn, job, cold, ending).map_err(store_error)?;
                if ending.is_none() {
                    insert_live(conn, job, *next_ord, now).map_err(store_error)?;
                    *next_ord += 1;
                }
            }
            JobWrite::Update(job) => one(update_live(conn, job, now), "an update of a live job")?,
            JobWrite::End(job, ending) => {
                one(delete_live(conn, job), "the removal of a live job")?;
                one(end_job(conn, job, ending), "the end of a job")?;
            }
        }
    }
    for (org, id, payload) in world.payload_writes() {
        let update = "UPDATE job SET payload = ?3 WHERE org = ?1 AND id = ?2";
        let done = conn
            .prepare_cached(update)
            .and_then(|mut update| update.execute((org.as_str(), id.0.as_bytes(), payload.as_str())));
        one(done, "a new payload of a job")?;
    }
    write_queue::world(conn, world).map_err(store_error)?;
    run_rows::write(conn, world)?;
    rest(conn, next_pos, world).map_err(store_error)?;
    // After the event that says so.
    write_queue::pruned(conn, world)
}

/// A row that was loaded in this very transaction must be there.
pub(super) fn one(rows: rusqlite::Result<usize>, what: &str) -> Result<(), StoreError> {
    match rows.map_err(store_error)? {
        1 => Ok(()),
        n => Err(StoreError::Rejected(format!("{what} touched {n} rows"))),
    }
}

fn insert_job(conn: &Connection, job: &Job, cold: &Cold, ending: Option<&Ending>) -> rusqlite::Result<()> {
    conn.prepare_cached(
        "INSERT INTO job (org, id, project, type, version, priority, payload, source_session, deadline_at, \
         created_at, max_attempts, lane, max_failures, dedupe_key, requeued_from, schedule) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)",
    )?
    .execute(params![
        job.org.as_str(),
        job.id.0.as_bytes(),
        job.project.as_str(),
        job.kind.name.as_str(),
        job.kind.version,
        job.priority,
        cold.payload.as_str(),
        cold.source_session.as_ref().map(|s| s.as_str()),
        cold.deadline_at.map(|at| at.0),
        job.created_at.0,
        job.max_attempts,
        job.lane.key.as_str(),
        job.max_failures,
        cold.dedupe_key,
        cold.requeued_from.map(|id| id.0.into_bytes()),
        cold.schedule.map(|id| id.0.into_bytes()),
    ])?;
    if let Some(from) = cold.requeued_from {
        conn.prepare_cached("DELETE FROM dead_letter WHERE org = ?1 AND id = ?2")?
            .execute((job.org.as_str(), from.0.as_bytes()))?;
    }
    if let Some(ending) = ending {
        end_job(conn, job, ending)?;
    }
    Ok(())
}

fn insert_live(conn: &Connection, job: &Job, ord: i64, now: Micros) -> rusqlite::Result<()> {
    let lease = job.status.lease();
    conn.prepare_cached(
        "INSERT INTO live (org, id, project, type, version, priority, ord, phase, state, pause, due_at, worker, \
         lease_until, attempts, max_attempts, token, wakes, created_at, started_at, has_deadline, head_n, head_hash, \
         head_at, class, slot, since, lane, lane_max, kept, outside, dedupe, failures, max_failures, aside) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, \
         ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32, ?33, ?34)",
    )?
    .execute(params![
        job.org.as_str(),
        job.id.0.as_bytes(),
        job.project.as_str(),
        job.kind.name.as_str(),
        job.kind.version,
        job.priority,
        ord,
        phase::of(&job.status, now),
        job.status.state().as_str(),
        pause(&job.status),
        job.status.due_at().map(|at| at.0),
        lease.map(|l| l.worker.as_str()),
        lease.map(|l| l.until.0),
        job.attempts,
        job.max_attempts,
        job.token,
        job.wakes,
        job.created_at.0,
        job.started_at.map(|at| at.0),
        job.has_deadline,
        job.head.n,
        job.head.hash.0,
        job.head.at.0,
        job.class().number(),
        phase::slot(&job.status),
        job.since.0,
        job.lane.key.as_str(),
        job.lane.max,
        job.lane.kept,
        job.outside,
        job.dedupe,
        job.failures,
        job.max_failures,
        Aside::stored(job.aside.as_deref()),
    ])?;
    Ok(())
}

/// What is ready stays ready while its moment is not touched, also if the clock has jumped back.
fn update_live(conn: &Connection, job: &Job, now: Micros) -> rusqlite::Result<usize> {
    let lease = job.status.lease();
    conn.prepare_cached(
        "UPDATE live SET phase = CASE WHEN phase = 1 AND due_at = ?6 THEN 1 ELSE ?3 END, state = ?4, pause = ?5, \
         due_at = ?6, worker = ?7, lease_until = ?8, \
         attempts = ?9, token = ?10, wakes = ?11, started_at = ?12, head_n = ?13, head_hash = ?14, head_at = ?15, \
         slot = ?16, dedupe = ?17, failures = ?18, aside = ?19, max_attempts = ?20 WHERE org = ?1 AND id = ?2",
    )?
    .execute(params![
        job.org.as_str(),
        job.id.0.as_bytes(),
        phase::of(&job.status, now),
        job.status.state().as_str(),
        pause(&job.status),
        job.status.due_at().map(|at| at.0),
        lease.map(|l| l.worker.as_str()),
        lease.map(|l| l.until.0),
        job.attempts,
        job.token,
        job.wakes,
        job.started_at.map(|at| at.0),
        job.head.n,
        job.head.hash.0,
        job.head.at.0,
        phase::slot(&job.status),
        job.dedupe,
        job.failures,
        Aside::stored(job.aside.as_deref()),
        job.max_attempts,
    ])
}

const fn pause(status: &Status) -> Option<&'static str> {
    match status {
        Status::AwaitingTool { pause, .. } => Some(pause.as_str()),
        _ => None,
    }
}

fn delete_live(conn: &Connection, job: &Job) -> rusqlite::Result<usize> {
    conn.prepare_cached("DELETE FROM live WHERE org = ?1 AND id = ?2")?.execute((job.org.as_str(), job.id.0.as_bytes()))
}

fn end_job(conn: &Connection, job: &Job, ending: &Ending) -> rusqlite::Result<usize> {
    let at = match job.status {
        Status::Ended { at, .. } => Some(at.0),
        _ => None,
    };
    let (result, code, message) = ending_columns(ending);
    let done = conn
        .prepare_cached(
            "UPDATE job SET state = ?3, ended_at = ?4, result = ?5, error_code = ?6, error = ?7, attempts = ?8, \
             token = ?9, started_at = ?10, head_n = ?11, head_hash = ?12, head_at = ?13, failures = ?14, aside = ?15, max_attempts = ?16 \
             WHERE org = ?1 AND id = ?2",
        )?
        .execute(params![
            job.org.as_str(),
            job.id.0.as_bytes(),
            job.status.state().as_str(),
            at,
            result,
            code,
            message,
            job.attempts,
            job.token,
            job.started_at.map(|at| at.0),
            job.head.n,
            job.head.hash.0,
            job.head.at.0,
            job.failures,
            Aside::stored(job.aside.as_deref()),
            job.max_attempts,
        ])?;
    write_queue::ended(conn, job, ending)?;
    Ok(done)
}

fn rest(conn: &Connection, next_pos: &mut i64, world: &World) -> rusqlite::Result<()> {
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
    let mut insert = conn.prepare_cached(
        "INSERT INTO event (org, pos, subject, n, at, kind, actor, data, hash) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )?;
    for event in world.events() {
        insert.execute(params![
            event.org.as_str(),
            *next_pos,
            event.subject.as_bytes(),
            event.n,
            event.at.0,
            event.kind,
            event.actor,
            event.data.as_str(),
            event.hash.0,
        ])?;
        *next_pos += 1;
    }
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
        Purge::Lanes => conn
            .prepare_cached(
                "DELETE FROM lane WHERE (org, key) IN (
                 SELECT org, key FROM lane WHERE running = 0 AND waiting = 0 LIMIT ?1)",
            )?
            .execute([row_limit(limit)]),
    }
}
