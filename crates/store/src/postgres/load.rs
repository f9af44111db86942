//! The first round trip of a group: begin, lock and read, all sent at once.
//!
//! Locks that wait come before locks that skip, so two nodes cannot wait for each other.

use super::claim::{self, Asking};
use super::commit::Patience;
use super::link::Link;
use super::rows::{self, Result, get, parsed};
use super::run_rows;
use super::statements::{LIVE_LEN, PAUSED_MAX};
use super::trusted::Trusted;
use crate::group::Plan;
use crate::hand_out::Found;
use baton_core::canon::Json;
use baton_core::dedupe::Mode;
use baton_core::definition::{Class, Definition, Definitions, Key};
use baton_core::id::{DefinitionId, JobId};
use baton_core::job::Job;
use baton_core::once::{self, Rendered};
use baton_core::schedule::LaneId;
use baton_core::seal::SealHead;
use baton_core::world::Message;
use baton_core::{Micros, OrgId, World, dedupe, doc, timer};
use futures_util::future::join_all;
use futures_util::join;
use std::collections::{BTreeMap, BTreeSet};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row, Statement};
use uuid::Uuid;

pub(super) struct Loaded {
    pub world: World,
    pub found: Vec<Found>,
    /// For those who stand by.
    pub paused: Option<BTreeSet<LaneId>>,
    pub now: Micros,
    /// The transaction, if it has begun.
    pub xid: Option<String>,
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
    docs: (Vec<&'a str>, Vec<&'a str>, Vec<&'a str>),
    runs: (Vec<&'a str>, Vec<Uuid>),
    agents: (Vec<&'a str>, Vec<Uuid>),
    crowd: i64,
    jobs: (Vec<&'a str>, Vec<Uuid>),
    dedupes: (Vec<&'a str>, Vec<&'a str>, Vec<&'a str>),
    messages: (Vec<&'a str>, Vec<&'a str>),
    requeued: (Vec<&'a str>, Vec<Uuid>),
    lanes: (Vec<&'a str>, Vec<&'a str>),
    seals: Vec<&'a str>,
    timers: (Vec<&'a str>, Vec<Uuid>, Vec<&'a str>),
    onces: (Vec<&'a str>, Vec<&'a str>, Vec<&'a str>),
}

impl<'a> Keys<'a> {
    /// But for jobs that are trusted.
    fn of(plan: &'a Plan, trusted: &Trusted) -> Self {
        let mut keys = Self::default();
        for (org, reads) in &plan.reads {
            for key in &reads.definitions {
                keys.definitions.0.push(org.as_str());
                keys.definitions.1.push(key.class.as_str());
                keys.definitions.2.push(key.name.as_str());
            }
            for key in &reads.docs {
                keys.docs.0.push(org.as_str());
                keys.docs.1.push(key.class.as_str());
                keys.docs.2.push(&key.key);
            }
            for id in &reads.runs {
                keys.runs.0.push(org.as_str());
                keys.runs.1.push(id.0);
            }
            for id in &reads.agents {
                keys.agents.0.push(org.as_str());
                keys.agents.1.push(id.0);
            }
            keys.crowd += i64::from(reads.crowd);
            for id in reads.jobs.union(&reads.records).filter(|id| !trusted.has(org, **id)) {
                keys.jobs.0.push(org.as_str());
                keys.jobs.1.push(id.0);
            }
            for key in &reads.dedupes {
                keys.dedupes.0.push(org.as_str());
                keys.dedupes.1.push(key.kind.as_str());
                keys.dedupes.2.push(&key.text);
            }
            for id in &reads.messages {
                keys.messages.0.push(org.as_str());
                keys.messages.1.push(id);
            }
            for id in &reads.requeued {
                keys.requeued.0.push(org.as_str());
                keys.requeued.1.push(id.0);
            }
            for key in &reads.lanes {
                keys.lanes.0.push(org.as_str());
                keys.lanes.1.push(key.as_str());
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

/// What `now` and whoever says the same tell before anything else: the time and the transaction.
pub(super) const NOW_LEN: usize = 2;

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
    defs: &Definitions,
    (patience, shift): (Patience, i64),
    trusted: &Trusted,
) -> std::result::Result<Loaded, Failed> {
    let s = &link.statements;
    let k = Keys::of(plan, trusted);
    let begin = if trusted.is_empty() { patience } else { Patience::Little }.begin();
    // Who only looks for successors is told the time with them.
    let (asking, ticking) = (!plan.asks.is_empty(), plan.asks.iter().any(|(ask, _)| ask.is_everywhere()));
    let asks: Vec<Asking> = plan.asks.iter().map(|(ask, want)| Asking::new(ask, *want)).collect();
    type Params<'p, const N: usize> = [&'p (dyn ToSql + Sync); N];
    let definition_keys: Params<'_, 3> = [&k.definitions.0, &k.definitions.1, &k.definitions.2];
    let doc_keys: Params<'_, 3> = [&k.docs.0, &k.docs.1, &k.docs.2];
    let run_keys: Params<'_, 2> = [&k.runs.0, &k.runs.1];
    let agent_keys: Params<'_, 2> = [&k.agents.0, &k.agents.1];
    let cap = i64::from(defs.rules.max_global);
    let crowd_keys: Params<'_, 2> = [&cap, &k.crowd];
    let job_keys: Params<'_, 7> =
        [&k.jobs.0, &k.jobs.1, &k.dedupes.0, &k.dedupes.1, &k.dedupes.2, &k.lanes.0, &k.lanes.1];
    let dedupe_keys: Params<'_, 3> = [&k.dedupes.0, &k.dedupes.1, &k.dedupes.2];
    let message_keys: Params<'_, 2> = [&k.messages.0, &k.messages.1];
    let requeued_keys: Params<'_, 2> = [&k.requeued.0, &k.requeued.1];
    let seal_keys: Params<'_, 1> = [&k.seals];
    let timer_keys: Params<'_, 3> = [&k.timers.0, &k.timers.1, &k.timers.2];
    let tick_keys: Params<'_, 1> = [&shift];
    let once_keys: Params<'_, 3> = [&k.onces.0, &k.onces.1, &k.onces.2];
    let deduping = !k.dedupes.0.is_empty();
    let more = deduping || !k.lanes.0.is_empty();
    let locking = more || !k.jobs.0.is_empty();
    let only_agents = plan.only_agents();
    // `join!` polls in order, and a statement is sent when it is first polled.
    let reading = async {
        join!(
            link.client.batch_execute(&begin),
            rows_if(link, !k.definitions.0.is_empty(), &s.lock_definitions, &definition_keys),
            rows_if(link, !k.docs.0.is_empty(), &s.lock_docs, &doc_keys),
            rows_if(link, !k.runs.0.is_empty(), &s.lock_runs, &run_keys),
            rows_if(
                link,
                !k.agents.0.is_empty(),
                if only_agents { &s.lock_agents_now } else { &s.lock_agents },
                &agent_keys
            ),
            rows_if(link, k.crowd > 0, &s.crowd, &crowd_keys),
            rows_if(
                link,
                locking,
                if more { &s.lock_more } else { &s.lock_jobs },
                &job_keys[..if more { 7 } else { 2 }]
            ),
            rows_if(link, deduping, &s.dropped, &dedupe_keys),
            rows_if(link, !k.messages.0.is_empty(), &s.messages, &message_keys),
            rows_if(link, !k.requeued.0.is_empty(), &s.requeued, &requeued_keys),
            rows_if(link, !k.seals.is_empty(), &s.seals, &seal_keys),
            rows_if(link, !k.timers.0.is_empty(), &s.timers, &timer_keys),
            rows_if(link, !k.onces.0.is_empty(), &s.lock_onces, &once_keys),
        )
    };
    // Behind every lock that waits.
    let claiming = async {
        join!(
            rows_if(link, ticking, &s.tick, &tick_keys),
            rows_if(link, !asking && !only_agents, &s.now, &[]),
            rows_if(link, plan.stands_by, &s.paused, &[]),
            join_all(asks.iter().map(|ask| ask.send(link, &k.jobs))),
        )
    };
    let (read, (tick, now, paused, answers)) = join!(reading, claiming);
    let (begun, definitions, docs, runs, agents, crowd, locked, dropped, messages, requeued, seals, timers, onces) =
        read;
    // In the order of sending: behind the first that fails, all others only say that one did.
    begun?;
    let (definitions, docs, runs, agents) = (definitions?, docs?, runs?, agents?);
    let (crowd, mut jobs) = (crowd?, locked?);
    let (dropped, messages, requeued) = (dropped?, messages?, requeued?);
    let (seals, timers, onces) = (seals?, timers?, onces?);
    let (tick, now, paused) = (tick?, now?, paused?);
    let answers = answers.into_iter().collect::<std::result::Result<Vec<_>, _>>()?;
    let mut world = World::default();
    load_definitions(link, &mut world, plan, &definitions).await?;
    load_docs(&mut world, &docs)?;
    for row in &runs {
        let run = run_rows::run(row)?;
        world.load_run(&run.org.clone(), run.id, Some(run));
    }
    let before = if only_agents { NOW_LEN } else { 0 };
    for row in &agents {
        // With the time comes one row per agent, also for one that is not there.
        if !only_agents || row.try_get::<_, Option<Uuid>>(before + 1)?.is_some() {
            let agent = run_rows::agent(row, before)?;
            world.load_agent(&agent.org.clone(), agent.id, Some(agent));
        }
    }
    if let Some(row) = crowd.first() {
        world.load_crowd(get(row, 0)?);
    }
    let lanes = jobs.split_off(jobs.partition_point(|row| matches!(get::<Option<&str>>(row, LIVE_LEN), Ok(None))));
    for row in &lanes {
        let (org, key) = (parsed(row, LIVE_LEN)?, parsed(row, LIVE_LEN + 1)?);
        world.load_lane(&org, &key, Some(claim::lane_row(row, LIVE_LEN + 2)?));
    }
    for row in &jobs {
        let job = rows::live_job(row)?;
        world.load_job(&job.org.clone(), job.id, Some(job));
    }
    trusted.load(&mut world);
    let mut known = Known::default();
    known.holders(&mut world, plan, &jobs, &dropped)?;
    known.messages(&mut world, &messages)?;
    for row in &requeued {
        world.load_requeued(&parsed(row, 0)?, JobId(get(row, 1)?), Some(JobId(get(row, 2)?)));
    }
    known.load(link, &mut world, plan, defs).await?;
    load_rest(&mut world, plan, &seals, &timers, &onces)?;
    for (org, reads) in &plan.reads {
        world.load_nothing(org, reads);
    }
    let (promoted, next_due) = match tick.first() {
        Some(row) => (get::<i64>(row, NOW_LEN)? > 0, rows::maybe_micros(row, NOW_LEN + 1)?),
        None => (false, None),
    };
    let mut found = Vec::with_capacity(asks.len());
    for (ask, answers) in asks.iter().zip(&answers) {
        found.push(Found { next_due, promoted, ..claim::found(&mut world, ask, answers)? });
    }
    freshen(link, &mut found, defs).await?;
    let told = tick.first().or(now.first()).or_else(|| answers.first()?.first());
    let Some(now) = (if only_agents { agents.last() } else { told }) else {
        return Err(rows::garbled("no time").into());
    };
    let paused = (plan.stands_by && paused.len() <= PAUSED_MAX)
        .then(|| paused.iter().map(|row| Ok((parsed(row, 0)?, parsed(row, 1)?))).collect::<Result<_>>())
        .transpose()?;
    Ok(Loaded { world, found, paused, now: Micros(get::<i64>(now, 0)? + shift), xid: Some(get(now, 1)?) })
}

/// A candidate's payload was read in the snapshot from before it was locked. Where payloads can be
/// merged into, it is read again.
async fn freshen(link: &Link, found: &mut [Found], defs: &Definitions) -> std::result::Result<(), Failed> {
    let merges =
        |job: &Job| defs.pinned(&job.org, &job.kind).is_some_and(|kind| kind.dedupe.mode == Mode::MergeDuplicate);
    let candidates = || found.iter().flat_map(|found| found.lanes.values().flatten());
    let (orgs, ids): (Vec<String>, Vec<Uuid>) =
        candidates().filter(|c| merges(&c.job)).map(|c| (c.job.org.to_string(), c.job.id.0)).unzip();
    if ids.is_empty() {
        return Ok(());
    }
    let mut fresh: BTreeMap<(OrgId, JobId), Json> = BTreeMap::new();
    for row in link.client.query(&link.statements.payloads, &[&orgs, &ids]).await? {
        fresh.insert((parsed(&row, 0)?, JobId(get(&row, 1)?)), Json::stored(get::<&str>(&row, 2)?));
    }
    for candidate in found.iter_mut().flat_map(|found| found.lanes.values_mut().flatten()) {
        if let Some(payload) = fresh.get(&(candidate.job.org.clone(), candidate.job.id)) {
            candidate.payload = payload.clone();
        }
    }
    Ok(())
}

fn load_docs(world: &mut World, rows: &[Row]) -> Result<()> {
    for row in rows {
        let class = doc::Class::parse(get(row, 1)?).ok_or_else(|| rows::garbled("not a class of documents"))?;
        world.load_doc(&parsed(row, 0)?, doc::Key { class, key: get(row, 2)? }, Some(rows::doc(row, 3)?));
    }
    Ok(())
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

/// Jobs that are found by what is known of them, and jobs that are wanted whole.
#[derive(Default)]
struct Known {
    whole: BTreeSet<(OrgId, JobId)>,
}

impl Known {
    fn holders(&mut self, world: &mut World, plan: &Plan, locked: &[Row], dropped: &[Row]) -> Result<()> {
        for row in locked {
            let job = rows::live_job(row)?;
            let Some(text) = job.dedupe.clone() else { continue };
            let key = dedupe::Key { kind: job.kind.name.clone(), text };
            if plan.reads.get(&job.org).is_some_and(|reads| reads.dedupes.contains(&key)) {
                world.load_dedupe(&job.org, key, Some(job.id));
                self.whole.insert((job.org, job.id));
            }
        }
        // Behind whoever holds the key now.
        for row in dropped {
            let (org, id): (OrgId, JobId) = (parsed(row, 0)?, JobId(get(row, 3)?));
            world.load_dedupe(&org, dedupe::Key { kind: parsed(row, 1)?, text: get(row, 2)? }, Some(id));
            self.whole.insert((org, id));
        }
        Ok(())
    }

    fn messages(&mut self, world: &mut World, messages: &[Row]) -> Result<()> {
        for row in messages {
            let (org, job): (OrgId, JobId) = (parsed(row, 0)?, JobId(get(row, 2)?));
            world.load_message(&org, get(row, 1)?, Some(Message { job, expires_at: rows::micros(row, 3)? }));
            self.whole.insert((org, job));
        }
        Ok(())
    }

    /// What needs another question, asked only if there is anything to ask about.
    async fn load(
        mut self,
        link: &Link,
        world: &mut World,
        plan: &Plan,
        defs: &Definitions,
    ) -> std::result::Result<(), Failed> {
        let mut missing = BTreeSet::new();
        for (org, reads) in &plan.reads {
            self.whole.extend(reads.records.iter().map(|id| (org.clone(), *id)));
            let absent = reads.jobs.union(&reads.records).filter(|id| world.job(org, **id).is_none());
            missing.extend(absent.map(|id| (org.clone(), *id)));
        }
        missing.extend(self.whole.iter().filter(|(org, id)| world.job(org, *id).is_none()).cloned());
        let columns = |keys: &BTreeSet<(OrgId, JobId)>| -> (Vec<String>, Vec<Uuid>) {
            keys.iter().map(|(org, id)| (org.to_string(), id.0)).unzip()
        };
        let s = &link.statements;
        if !missing.is_empty() {
            let (orgs, ids) = columns(&missing);
            for row in link.client.query(&s.ended_jobs, &[&orgs, &ids]).await? {
                let job = rows::ended_job(&row, 0)?;
                world.load_job(&job.org.clone(), job.id, Some(job));
            }
        }
        if !self.whole.is_empty() {
            let (orgs, ids) = columns(&self.whole);
            for row in link.client.query(&s.records, &[&orgs, &ids]).await? {
                let record = rows::record(&row)?;
                // A message's job is looked at without a lock.
                world.load_job(&record.job.org.clone(), record.job.id, Some(record.job.clone()));
                let ending = record.ending();
                world.load_record(&record.job.org.clone(), record.job.id, record.cold, ending);
            }
        }
        let hooked: BTreeSet<(OrgId, JobId)> = (plan.reads.iter())
            .flat_map(|(org, reads)| reads.jobs.iter().map(move |id| (org.clone(), *id)))
            .filter(|(org, id)| world.job(org, *id).is_some_and(|job| defs.wants_payload(org, &job.kind)))
            .collect();
        if !hooked.is_empty() {
            let (orgs, ids) = columns(&hooked);
            for row in link.client.query(&s.payloads, &[&orgs, &ids]).await? {
                world.load_payload(&parsed(&row, 0)?, JobId(get(&row, 1)?), Json::stored(get::<&str>(&row, 2)?));
            }
        }
        Ok(())
    }
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
    for key in &plan.onces {
        world.load_once(key.clone(), None);
    }
    Ok(())
}
