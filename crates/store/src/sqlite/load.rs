//! Loading what a group must see. The one writer is alone, so nothing needs locking.

use super::arrivals::Arrivals;
use super::many::Many;
use super::open_agents::OpenAgents;
use super::open_jobs::OpenJobs;
use super::open_lanes::OpenLanes;
use super::query;
use super::rows::{self, live_job, uuid};
use super::run_rows;
use super::writer::Inner;
use crate::group::Plan;
use crate::known::Stored;
use baton_core::canon::Json;
use baton_core::command::Reads;
use baton_core::definition::{self, Definition, Definitions};
use baton_core::doc::{self, Doc};
use baton_core::event::Head;
use baton_core::id::DefinitionId;
use baton_core::job::Job;
use baton_core::lane::{self, LaneKey};
use baton_core::once::{self, Rendered};
use baton_core::schedule::LaneId;
use baton_core::seal::SealHead;
use baton_core::world::Message;
use baton_core::{JobId, OrgId, World, dedupe};
use rusqlite::{Connection, OptionalExtension};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

static LIVE_BY_ID: LazyLock<String> = LazyLock::new(|| {
    format!("SELECT {} FROM job j CROSS JOIN live l ON l.ord = j.ord WHERE j.org = ?1 AND j.id = ?2", rows::LIVE)
});

/// A group that has written what others look at, but for how its jobs have ended.
#[derive(Clone, Copy)]
pub(super) struct After<'a> {
    pub world: &'a World,
    pub arrivals: &'a Arrivals,
}

impl After<'_> {
    /// A job that the group knows, as it leaves it.
    fn job(&self, org: &OrgId, id: JobId) -> Option<&Arc<Job>> {
        self.world.job(org, id)
    }
}

/// How a job has ended is written later, and the one who asks must wait for that.
const NOT_WRITTEN: rusqlite::Error = rusqlite::Error::QueryReturnedNoRows;

/// Fails if something is to be seen that the group before it has not written yet.
pub(super) fn world(
    inner: &Inner,
    plan: &Plan,
    defs: &Definitions,
    arrivals: &mut Arrivals,
    after: Option<After<'_>>,
) -> rusqlite::Result<World> {
    let Inner { conn, open_agents, open_jobs, open_lanes, .. } = inner;
    let mut world = World::default();
    for (org, reads) in &plan.reads {
        let live = Many::new(conn, &LIVE_BY_ID);
        Loading { conn, open_agents, open_jobs, open_lanes, org, defs, world: &mut world, arrivals, after, live }
            .reads(reads)?;
    }
    for key in &plan.onces {
        world.load_once(key.clone(), once(conn, key)?);
    }
    Ok(world)
}

/// What one org's commands must see.
struct Loading<'a> {
    conn: &'a Connection,
    open_agents: &'a OpenAgents,
    open_jobs: &'a OpenJobs,
    open_lanes: &'a OpenLanes,
    org: &'a OrgId,
    defs: &'a Definitions,
    world: &'a mut World,
    arrivals: &'a mut Arrivals,
    after: Option<After<'a>>,
    live: Many<'a>,
}

impl Loading<'_> {
    fn reads(&mut self, reads: &Reads) -> rusqlite::Result<()> {
        let Self { conn, open_agents, org, .. } = *self;
        for key in &reads.definitions {
            self.world.load_definition(org, key.clone(), definition(conn, org, key)?);
        }
        for key in &reads.docs {
            self.world.load_doc(org, key.clone(), doc(conn, org, key)?);
        }
        for id in &reads.runs {
            self.world.load_run(org, *id, run_rows::load_run(conn, org, *id)?);
        }
        for id in &reads.agents {
            let agent = match open_agents.get(org, *id) {
                Some(agent) => Some(agent.clone()),
                None => run_rows::load_agent(conn, org, *id)?,
            };
            self.world.load_agent(org, *id, agent);
        }
        if reads.crowd > 0 {
            let sum = "SELECT coalesce(sum(waiting), 0) FROM crowd";
            self.world.load_crowd(conn.prepare_cached(sum)?.query_row([], |row| row.get(0))?);
        }
        for id in &reads.jobs {
            self.job(*id)?;
        }
        for id in &reads.records {
            self.record(*id)?;
        }
        for key in &reads.dedupes {
            let holder = holder(conn, org, key)?;
            if let Some(id) = holder {
                self.record(id)?;
            }
            self.world.load_dedupe(org, key.clone(), holder);
        }
        for id in &reads.messages {
            let message = message(conn, org, id)?;
            if let Some(message) = message {
                self.record(message.job)?;
            }
            self.world.load_message(org, id.clone(), message);
        }
        for id in &reads.requeued {
            let into = conn
                .prepare_cached("SELECT id FROM job WHERE org = ?1 AND requeued_from = ?2")?
                .query_row((org.as_str(), id.0.as_bytes()), |row| uuid(row, 0))
                .optional()?;
            self.world.load_requeued(org, *id, into.map(JobId));
        }
        for key in &reads.lanes {
            self.world.load_lane(org, key, lane(conn, self.open_lanes, org, key)?);
        }
        if reads.seal {
            self.world.load_seal(org, seal(conn, org)?);
        }
        for key in &reads.timers {
            let at = conn
                .prepare_cached("SELECT at FROM timer WHERE org = ?1 AND subject = ?2 AND kind = ?3")?
                .query_row((org.as_str(), key.subject.as_bytes(), key.kind.as_str()), |row| rows::micros(row, 0))
                .optional()?;
            self.world.load_timer(org, *key, at);
        }
        Ok(())
    }

    /// A job with its lane, and with its payload if its type has hooks.
    fn job(&mut self, id: JobId) -> rusqlite::Result<()> {
        let Self { conn, org, defs, .. } = *self;
        let found = self.hot(id)?;
        if let Some(job) = &found {
            if job.lane.kept && !self.world.knows_lane(org, &job.lane.key) {
                self.world.load_lane(org, &job.lane.key, lane(conn, self.open_lanes, org, &job.lane.key)?);
            }
            if defs.wants_payload(org, &job.kind) {
                let text: String = conn
                    .prepare_cached("SELECT payload FROM job WHERE org = ?1 AND id = ?2")?
                    .query_row((org.as_str(), id.0.as_bytes()), |row| row.get(0))?;
                self.world.load_payload(org, id, Json::stored(text));
            }
        }
        self.world.load_job(org, id, found);
        Ok(())
    }

    fn hot(&mut self, id: JobId) -> rusqlite::Result<Option<Arc<Job>>> {
        let Self { conn, org, open_jobs, after, .. } = *self;
        if let Some(after) = after
            && let Some(job) = after.job(org, id)
        {
            if let Some(spot) = after.arrivals.get(org, id) {
                self.arrivals.note(org, id, spot);
            }
            return Ok(Some(job.clone()));
        }
        if let Some((job, spot)) = open_jobs.get(org, id) {
            self.arrivals.note(org, id, spot);
            return Ok(Some(job));
        }
        let key = (org.as_str(), id.0.as_bytes());
        let live = self.live.get()?.query_row(key, |row| Ok((live_job(row)?, rows::spot(row)?))).optional()?;
        if let Some((job, spot)) = live {
            self.arrivals.note(org, id, spot);
            return Ok(Some(Arc::new(job)));
        }
        conn.prepare_cached(&format!(
            "SELECT {} FROM job j WHERE j.org = ?1 AND j.id = ?2 AND j.state IS NOT NULL",
            rows::ENDED
        ))?
        .query_row(key, |row| rows::ended_job(row, 0).map(Arc::new))
        .optional()
    }

    /// The same with all that is known of it.
    fn record(&mut self, id: JobId) -> rusqlite::Result<()> {
        let Self { conn, org, .. } = *self;
        if self.after.is_some_and(|after| after.job(org, id).is_some()) {
            return Err(NOT_WRITTEN);
        }
        self.job(id)?;
        let found = conn
            .prepare_cached(&query::records_sql("WHERE j.org = ?1 AND j.id = ?2"))?
            .query_row((org.as_str(), id.0.as_bytes()), rows::record)
            .optional()?;
        if let Some(record) = found {
            let ending = record.ending();
            self.world.load_record(org, id, record.cold, ending);
        }
        Ok(())
    }
}

pub(super) fn lane(
    conn: &Connection,
    open_lanes: &OpenLanes,
    org: &OrgId,
    key: &LaneKey,
) -> rusqlite::Result<Option<lane::Row>> {
    if let Some(row) = open_lanes.get(org, key) {
        return Ok(Some(row));
    }
    conn.prepare_cached("SELECT max, running, waiting, outside, burst FROM lane WHERE org = ?1 AND key = ?2")?
        .query_row((org.as_str(), key.as_str()), |row| {
            Ok(lane::Row {
                max: row.get(0)?,
                running: row.get(1)?,
                waiting: row.get(2)?,
                outside: row.get(3)?,
                burst: row.get(4)?,
            })
        })
        .optional()
}

/// Whoever holds a key, or held it when it completed.
fn holder(conn: &Connection, org: &OrgId, key: &dedupe::Key) -> rusqlite::Result<Option<JobId>> {
    let by = (org.as_str(), key.kind.as_str(), &key.text);
    let live = conn
        .prepare_cached("SELECT id FROM live WHERE org = ?1 AND type = ?2 AND dedupe = ?3")?
        .query_row(by, |row| uuid(row, 0))
        .optional()?;
    if live.is_some() {
        return Ok(live.map(JobId));
    }
    let done = conn
        .prepare_cached("SELECT job FROM dropped WHERE org = ?1 AND type = ?2 AND key = ?3")?
        .query_row(by, |row| uuid(row, 0))
        .optional()?;
    Ok(done.map(JobId))
}

fn message(conn: &Connection, org: &OrgId, id: &str) -> rusqlite::Result<Option<Message>> {
    conn.prepare_cached("SELECT job, expires_at FROM message WHERE org = ?1 AND id = ?2")?
        .query_row((org.as_str(), id), |row| {
            Ok(Message { job: JobId(uuid(row, 0)?), expires_at: rows::micros(row, 1)? })
        })
        .optional()
}

pub(super) fn doc(conn: &Connection, org: &OrgId, key: &doc::Key) -> rusqlite::Result<Option<Doc>> {
    conn.prepare_cached(&format!("SELECT {} FROM doc WHERE org = ?1 AND class = ?2 AND key = ?3", rows::DOC))?
        .query_row((org.as_str(), key.class.as_str(), &key.key), |row| rows::doc(row, 0))
        .optional()
}

/// Few are, as a rule none: looking for all at once is less than looking for each.
pub(super) fn paused_lanes(conn: &Connection) -> rusqlite::Result<BTreeSet<LaneId>> {
    conn.prepare_cached("SELECT org, key FROM doc INDEXED BY doc_paused WHERE class = 'lane' AND flag = 1")?
        .query_map([], |row| Ok((rows::parsed(row, 0)?, rows::parsed(row, 1)?)))?
        .collect()
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

/// Every job type that was registered.
pub(super) fn registered(conn: &Connection) -> rusqlite::Result<Vec<Stored>> {
    let mut all = conn.prepare(
        "SELECT d.org, d.name, v.version, v.body FROM definition d
         JOIN definition_version v ON v.org = d.org AND v.id = d.id WHERE d.class = 'job_type'",
    )?;
    let rows = all.query_map([], |row| {
        Ok(Stored { org: rows::parsed(row, 0)?, name: rows::parsed(row, 1)?, version: row.get(2)?, body: row.get(3)? })
    })?;
    rows.collect()
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
