//! Loading what a group must see. The one writer is alone, so nothing needs locking.

use super::rows::{self, garbled, live_job, uuid};
use crate::group::{Ask, Candidate, Found, Plan};
use crate::phase;
use baton_core::canon::Json;
use baton_core::definition::{self, Definition};
use baton_core::event::Head;
use baton_core::id::DefinitionId;
use baton_core::job::Job;
use baton_core::once::{self, Rendered};
use baton_core::schedule::Place;
use baton_core::seal::SealHead;
use baton_core::{JobId, Micros, OrgId, World};
use rusqlite::{Connection, OptionalExtension};
use std::collections::BTreeMap;

/// Ready rows that a claim looks at to fill its slots, should it be able to run few of them.
const SCAN_MAX: i64 = 10_000;
/// Scheduled rows that one claim makes ready.
const PROMOTE_MAX: i64 = 1_000;

pub(super) fn world(conn: &Connection, plan: &Plan) -> rusqlite::Result<World> {
    let mut world = World::default();
    for (org, reads) in &plan.reads {
        for key in &reads.definitions {
            world.load_definition(org, key.clone(), definition(conn, org, key)?);
        }
        for id in &reads.jobs {
            world.load_job(org, *id, job(conn, org, *id)?);
        }
        if reads.seal {
            world.load_seal(org, seal(conn, org)?);
        }
        for key in &reads.timers {
            let at = conn
                .prepare_cached("SELECT at FROM timer WHERE org = ?1 AND subject = ?2 AND kind = ?3")?
                .query_row((org.as_str(), key.subject.as_bytes(), key.kind.as_str()), |row| rows::micros(row, 0))
                .optional()?;
            world.load_timer(org, *key, at);
        }
    }
    for key in &plan.onces {
        world.load_once(key.clone(), once(conn, key)?);
    }
    Ok(world)
}

fn job(conn: &Connection, org: &OrgId, id: JobId) -> rusqlite::Result<Option<Job>> {
    let live = conn
        .prepare_cached(&format!("SELECT {} FROM live l WHERE l.org = ?1 AND l.id = ?2", rows::LIVE))?
        .query_row((org.as_str(), id.0.as_bytes()), live_job)
        .optional()?;
    if live.is_some() {
        return Ok(live);
    }
    conn.prepare_cached(&format!(
        "SELECT {} FROM job j WHERE j.org = ?1 AND j.id = ?2 AND j.state IS NOT NULL",
        rows::ENDED
    ))?
    .query_row((org.as_str(), id.0.as_bytes()), |row| rows::ended_job(row, 0))
    .optional()
}

fn definition(conn: &Connection, org: &OrgId, key: &definition::Key) -> rusqlite::Result<Option<Definition>> {
    let found = conn
        .prepare_cached(
            "SELECT id, head_n, head_hash, head_at FROM definition WHERE org = ?1 AND class = ?2 AND name = ?3",
        )?
        .query_row((org.as_str(), key.class.as_str(), key.name.as_str()), |row| {
            let head = Head { n: row.get(1)?, hash: rows::digest(row, 2)?, at: rows::micros(row, 3)? };
            Ok(Definition { id: DefinitionId(uuid(row, 0)?), versions: BTreeMap::new(), head })
        })
        .optional()?;
    let Some(mut definition) = found else { return Ok(None) };
    let mut versions =
        conn.prepare_cached("SELECT version, digest FROM definition_version WHERE org = ?1 AND id = ?2")?;
    let pairs = versions.query_map((org.as_str(), definition.id.0.as_bytes()), |row| {
        Ok((row.get::<_, u32>(0)?, rows::digest(row, 1)?))
    })?;
    for pair in pairs {
        let (version, digest) = pair?;
        definition.versions.insert(version, digest);
    }
    Ok(Some(definition))
}

pub(super) fn seal(conn: &Connection, org: &OrgId) -> rusqlite::Result<Option<SealHead>> {
    conn.prepare_cached("SELECT n, to_pos, mac FROM seal WHERE org = ?1 ORDER BY n DESC LIMIT 1")?
        .query_row([org.as_str()], |row| {
            Ok(SealHead { n: row.get(0)?, to_pos: row.get(1)?, mac: rows::digest(row, 2)? })
        })
        .optional()
}

fn once(conn: &Connection, key: &once::Key) -> rusqlite::Result<Option<once::Record>> {
    conn.prepare_cached(
        "SELECT request, status, body, expires_at FROM once WHERE org = ?1 AND scope = ?2 AND key = ?3",
    )?
    .query_row((key.org.as_str(), &key.scope, &key.key), |row| {
        Ok(once::Record {
            request: rows::digest(row, 0)?,
            answer: Rendered { status: row.get(1)?, body: row.get(2)? },
            expires_at: rows::micros(row, 3)?,
        })
    })
    .optional()
}

/// Due jobs for an ask, best first.
pub(super) fn candidates(conn: &Connection, ask: &Ask, want: usize, now: Micros) -> rusqlite::Result<Found> {
    let promoted = conn
        .prepare_cached(
            "UPDATE live SET phase = ?1 WHERE (org, id) IN (
             SELECT org, id FROM live INDEXED BY live_scheduled
             WHERE phase = 2 AND due_at <= ?2 ORDER BY due_at LIMIT ?3)",
        )?
        .execute((phase::READY, now.0, PROMOTE_MAX))?;
    let mut found = Found { promoted: promoted > 0, ..Found::default() };
    {
        let mut ready = conn.prepare_cached(&format!(
            "SELECT {} FROM live l INDEXED BY live_ready WHERE l.phase = 1 ORDER BY l.priority, l.ord LIMIT ?1",
            rows::LIVE
        ))?;
        let mut payload = conn.prepare_cached("SELECT payload FROM job WHERE org = ?1 AND id = ?2")?;
        let mut scan = ready.query([SCAN_MAX])?;
        while found.candidates.len() < want
            && let Some(row) = scan.next()?
        {
            let job = live_job(row)?;
            if !ask.kinds.contains(&job.kind) {
                continue;
            }
            let order = row.get(rows::LIVE_ORD)?;
            let text: Option<String> =
                payload.query_row((job.org.as_str(), job.id.0.as_bytes()), |row| row.get(0)).optional()?;
            let text = text.ok_or_else(|| garbled(0, format!("{} is live but has no job row", job.id)))?;
            let place = Place { priority: job.priority, order };
            found.candidates.push(Candidate { place, job, payload: Json::stored(text) });
        }
    }
    if found.candidates.len() < want {
        found.next_due = conn
            .prepare_cached("SELECT min(due_at) FROM live INDEXED BY live_scheduled WHERE phase = 2")?
            .query_row([], |row| rows::maybe_micros(row, 0))?;
    }
    Ok(found)
}
