//! The first round trip of a group: begin, lock and read, all sent at once.
//!
//! Locks that wait come before locks that skip, so two nodes cannot wait for each other.

use super::commit::Patience;
use super::link::Link;
use super::rows::{self, Result, get, parsed};
use crate::group::{Candidate, Found, Plan};
use crate::records::row_limit;
use baton_core::canon::Json;
use baton_core::definition::{Class, Definition, Key};
use baton_core::id::{DefinitionId, JobId};
use baton_core::once::{self, Rendered};
use baton_core::schedule::Place;
use baton_core::seal::SealHead;
use baton_core::{Micros, OrgId, World, timer};
use futures_util::future::join_all;
use futures_util::join;
use std::collections::BTreeMap;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row, Statement};
use uuid::Uuid;

pub(super) struct Loaded {
    pub world: World,
    pub found: Vec<Found>,
    pub now: Micros,
    pub xid: String,
    /// The process that serves this transaction.
    pub backend: i32,
}

pub(super) enum Failed {
    Sql(Error),
    Rows(crate::StoreError),
}

impl From<Error> for Failed {
    fn from(e: Error) -> Self {
        Self::Sql(e)
    }
}

impl From<crate::StoreError> for Failed {
    fn from(e: crate::StoreError) -> Self {
        Self::Rows(e)
    }
}

/// Keys as columns, in the order in which they are locked.
#[derive(Default)]
struct Keys<'a> {
    definitions: (Vec<&'a str>, Vec<&'a str>, Vec<&'a str>),
    jobs: (Vec<&'a str>, Vec<Uuid>),
    seals: Vec<&'a str>,
    timers: (Vec<&'a str>, Vec<Uuid>, Vec<&'a str>),
    onces: (Vec<&'a str>, Vec<&'a str>, Vec<&'a str>),
}

impl<'a> Keys<'a> {
    fn of(plan: &'a Plan) -> Self {
        let mut keys = Self::default();
        for (org, reads) in &plan.reads {
            for key in &reads.definitions {
                keys.definitions.0.push(org.as_str());
                keys.definitions.1.push(key.class.as_str());
                keys.definitions.2.push(key.name.as_str());
            }
            for id in &reads.jobs {
                keys.jobs.0.push(org.as_str());
                keys.jobs.1.push(id.0);
            }
            if reads.seal {
                keys.seals.push(org.as_str());
            }
            for key in &reads.timers {
                keys.timers.0.push(org.as_str());
                keys.timers.1.push(key.subject);
                keys.timers.2.push(key.kind.as_str());
            }
        }
        for key in &plan.onces {
            keys.onces.0.push(key.org.as_str());
            keys.onces.1.push(&key.scope);
            keys.onces.2.push(&key.key);
        }
        keys
    }
}

/// A question that is not sent when there is nothing to ask about.
async fn rows_if(
    link: &Link,
    wanted: bool,
    statement: &Statement,
    params: &[&(dyn ToSql + Sync)],
) -> std::result::Result<Vec<Row>, Error> {
    if wanted { link.client.query(statement, params).await } else { Ok(Vec::new()) }
}

pub(super) async fn load(
    link: &Link,
    plan: &Plan,
    patience: Patience,
    shift: i64,
) -> std::result::Result<Loaded, Failed> {
    let s = &link.statements;
    let k = Keys::of(plan);
    let asking = !plan.asks.is_empty();
    let asks: Vec<(Vec<String>, i64)> = plan
        .asks
        .iter()
        .map(|(ask, want)| (ask.kinds.iter().map(ToString::to_string).collect(), row_limit(*want)))
        .collect();
    type Params<'p, const N: usize> = [&'p (dyn ToSql + Sync); N];
    let definition_keys: Params<'_, 3> = [&k.definitions.0, &k.definitions.1, &k.definitions.2];
    let job_keys: Params<'_, 2> = [&k.jobs.0, &k.jobs.1];
    let seal_keys: Params<'_, 1> = [&k.seals];
    let timer_keys: Params<'_, 3> = [&k.timers.0, &k.timers.1, &k.timers.2];
    let once_keys: Params<'_, 3> = [&k.onces.0, &k.onces.1, &k.onces.2];
    // `join!` polls in order, and a statement is sent when it is first polled.
    let (begun, definitions, jobs, seals, timers, onces, promoted, candidates, next_due, now) = join!(
        link.client.batch_execute(patience.begin()),
        rows_if(link, !k.definitions.0.is_empty(), &s.lock_definitions, &definition_keys),
        rows_if(link, !k.jobs.0.is_empty(), &s.lock_jobs, &job_keys),
        rows_if(link, !k.seals.is_empty(), &s.seals, &seal_keys),
        rows_if(link, !k.timers.0.is_empty(), &s.timers, &timer_keys),
        rows_if(link, !k.onces.0.is_empty(), &s.lock_onces, &once_keys),
        promote(link, asking, &shift),
        join_all(asks.iter().map(|(kinds, want)| candidates(link, kinds, want))),
        rows_if(link, asking, &s.next_due, &[]),
        link.client.query_one(&s.now, &[]),
    );
    // In the order of sending: behind the first that fails, all others only say that one did.
    begun?;
    let (definitions, jobs, seals, timers, onces) = (definitions?, jobs?, seals?, timers?, onces?);
    let promoted = promoted?;
    let candidates = candidates.into_iter().collect::<std::result::Result<Vec<_>, _>>()?;
    let (next_due, now) = (next_due?, now?);
    let mut world = World::default();
    load_definitions(link, &mut world, plan, &definitions).await?;
    load_jobs(link, &mut world, plan, &jobs).await?;
    load_rest(&mut world, plan, &seals, &timers, &onces)?;
    let next_due = match next_due.first() {
        Some(row) => rows::maybe_micros(row, 0)?,
        None => None,
    };
    let mut found = Vec::with_capacity(asks.len());
    for rows in candidates {
        found.push(Found { candidates: rows.iter().map(candidate).collect::<Result<_>>()?, next_due, promoted });
    }
    Ok(Loaded { world, found, now: Micros(get::<i64>(&now, 0)? + shift), xid: get(&now, 1)?, backend: get(&now, 2)? })
}

/// Whether any job was promoted.
async fn promote(link: &Link, asking: bool, shift: &i64) -> std::result::Result<bool, Error> {
    Ok(asking && link.client.execute(&link.statements.promote, &[shift]).await? > 0)
}

async fn candidates(link: &Link, kinds: &[String], want: &i64) -> std::result::Result<Vec<Row>, Error> {
    link.client.query(&link.statements.candidates, &[&kinds, want]).await
}

fn candidate(row: &Row) -> Result<Candidate> {
    let job = rows::live_job(row)?;
    let place = Place { priority: job.priority, order: get(row, 21)? };
    Ok(Candidate { place, job, payload: Json::stored(get::<&str>(row, 22)?) })
}

async fn load_definitions(
    link: &Link,
    world: &mut World,
    plan: &Plan,
    rows: &[Row],
) -> std::result::Result<(), Failed> {
    let mut found: BTreeMap<(OrgId, Key), Definition> = BTreeMap::new();
    let (mut orgs, mut ids) = (Vec::new(), Vec::new());
    for row in rows {
        let class = Class::parse(get(row, 1)?).ok_or_else(|| rows::garbled("not a class of definitions"))?;
        let key = Key { class, name: parsed(row, 2)? };
        let id: Uuid = get(row, 3)?;
        orgs.push(get::<&str>(row, 0)?);
        ids.push(id);
        let definition = Definition { id: DefinitionId(id), versions: BTreeMap::new(), head: rows::head(row, 4)? };
        found.insert((parsed(row, 0)?, key), definition);
    }
    if !ids.is_empty() {
        for row in link.client.query(&link.statements.versions, &[&orgs, &ids]).await? {
            let (org, id): (OrgId, Uuid) = (parsed(&row, 0)?, get(&row, 1)?);
            let mut owners = found.iter_mut().filter(|((o, _), d)| *o == org && d.id.0 == id);
            if let Some((_, definition)) = owners.next() {
                definition.versions.insert(rows::count(&row, 2)?, rows::digest(&row, 3)?);
            }
        }
    }
    for (org, reads) in &plan.reads {
        for key in &reads.definitions {
            let row = found.remove(&(org.clone(), key.clone()));
            world.load_definition(org, key.clone(), row);
        }
    }
    Ok(())
}

async fn load_jobs(link: &Link, world: &mut World, plan: &Plan, rows: &[Row]) -> std::result::Result<(), Failed> {
    for row in rows {
        let job = rows::live_job(row)?;
        world.load_job(&job.org.clone(), job.id, Some(job));
    }
    let missing: Vec<(&OrgId, JobId)> = plan
        .reads
        .iter()
        .flat_map(|(org, reads)| reads.jobs.iter().map(move |id| (org, *id)))
        .filter(|(org, id)| world.job(org, *id).is_none())
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let orgs: Vec<&str> = missing.iter().map(|(org, _)| org.as_str()).collect();
    let ids: Vec<Uuid> = missing.iter().map(|(_, id)| id.0).collect();
    for row in link.client.query(&link.statements.ended_jobs, &[&orgs, &ids]).await? {
        let job = rows::ended_job(&row, 0)?;
        world.load_job(&job.org.clone(), job.id, Some(job));
    }
    for (org, id) in missing {
        world.load_job(org, id, None);
    }
    Ok(())
}

fn load_rest(world: &mut World, plan: &Plan, seals: &[Row], timers: &[Row], onces: &[Row]) -> Result<()> {
    for row in seals {
        let head = SealHead { n: get(row, 1)?, to_pos: get(row, 2)?, mac: rows::digest(row, 3)? };
        world.load_seal(&parsed(row, 0)?, Some(head));
    }
    for row in timers {
        if let Some(kind) = timer::Kind::parse(get(row, 2)?) {
            let key = timer::Key { subject: get(row, 1)?, kind };
            world.load_timer(&parsed(row, 0)?, key, Some(rows::micros(row, 3)?));
        }
    }
    for row in onces {
        let key = once::Key { org: parsed(row, 0)?, scope: get(row, 1)?, key: get(row, 2)? };
        let status = u16::try_from(get::<i32>(row, 4)?).map_err(rows::garbled)?;
        let answer = Rendered { status, body: get(row, 5)? };
        let record = once::Record { request: rows::digest(row, 3)?, answer, expires_at: rows::micros(row, 6)? };
        world.load_once(key, Some(record));
    }
    // What was asked for and not found is known not to exist.
    for (org, reads) in &plan.reads {
        if reads.seal {
            world.load_seal(org, None);
        }
        for key in &reads.timers {
            world.load_timer(org, *key, None);
        }
    }
    for key in &plan.onces {
        world.load_once(key.clone(), None);
    }
    Ok(())
}
