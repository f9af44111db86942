//! Questions about the queue that change nothing.

use super::query::records_sql;
use super::{Db, history, load, rows, store_error};
use crate::error::StoreError;
use crate::records::{
    DeadLetters, Filling, JobRecord, LaneRecord, ListDocs, ListLanes, Page, Prunable, one_batch, row_limit,
};
use baton_core::canon::Json;
use baton_core::doc::{self, Doc};
use baton_core::id::{DocId, KeyId};
use baton_core::job::prune::Candidate;
use baton_core::lane::LaneKey;
use baton_core::limits::PRUNE_JOBS;
use baton_core::{JobId, OrgId, ProjectId, sink};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, params_from_iter};

impl Db {
    pub(crate) async fn dead_letters(&self, ask: DeadLetters) -> Result<Page<JobRecord, JobId>, StoreError> {
        self.read(move |conn| dead_letters(conn, &ask).map_err(store_error)).await
    }

    pub(crate) async fn lanes(&self, ask: ListLanes) -> Result<Page<LaneRecord, LaneKey>, StoreError> {
        self.read(move |conn| lanes(conn, &ask).map_err(store_error)).await
    }

    pub(crate) async fn lane(&self, org: &OrgId, key: &LaneKey) -> Result<Option<LaneRecord>, StoreError> {
        let (org, key) = (org.clone(), key.clone());
        self.read(move |conn| {
            conn.prepare_cached(&lanes_sql("AND key = ?2", ""))
                .and_then(|mut one| one.query_row((org.as_str(), key.as_str()), lane).optional())
                .map_err(store_error)
        })
        .await
    }

    pub(crate) async fn doc(&self, org: &OrgId, key: &doc::Key) -> Result<Option<Doc>, StoreError> {
        let (org, key) = (org.clone(), key.clone());
        self.read(move |conn| load::doc(conn, &org, &key).map_err(store_error)).await
    }

    pub(crate) async fn doc_key(&self, org: &OrgId, id: DocId) -> Result<Option<doc::Key>, StoreError> {
        let org = org.clone();
        self.read(move |conn| {
            conn.prepare_cached("SELECT class, key FROM doc WHERE org = ?1 AND id = ?2")
                .and_then(|mut one| one.query_row((org.as_str(), id.0.as_bytes()), doc_key).optional())
                .map_err(store_error)
        })
        .await
    }

    pub(crate) async fn docs(&self, ask: ListDocs) -> Result<Page<(doc::Key, Doc), String>, StoreError> {
        self.read(move |conn| {
            // The flag as text: only a literal lets the index of flagged ones be used.
            let flagged = match ask.flag {
                Some(true) => "AND flag = 1",
                Some(false) => "AND flag = 0",
                None => "",
            };
            let (beyond, order) = (ask.order.beyond(), ask.order.word());
            let sql = format!(
                "SELECT class, key, {} FROM doc WHERE org = ?1 AND class = ?2 AND key {beyond} ?3 \
                 AND key >= ?4 AND substr(key, 1, length(?4)) = ?4 {flagged} ORDER BY key {order} LIMIT ?5",
                rows::DOC
            );
            let mut all = conn.prepare_cached(&sql).map_err(store_error)?;
            let by = (ask.org.as_str(), ask.class.as_str(), ask.beyond(), &ask.prefix, row_limit(ask.limit + 1));
            let found = all.query_map(by, |row| Ok((doc_key(row)?, rows::doc(row, 2)?)));
            let items: Vec<_> = found.and_then(Iterator::collect).map_err(store_error)?;
            Ok(ask.page(items))
        })
        .await
    }

    pub(crate) async fn key(&self, id: KeyId) -> Result<Option<(OrgId, Doc)>, StoreError> {
        self.read(move |conn| {
            let sql = format!("SELECT org, {} FROM doc WHERE class = 'key' AND key = ?1", rows::DOC);
            let mut one = conn.prepare_cached(&sql).map_err(store_error)?;
            let found = one.query_row([id.to_string()], |row| Ok((rows::parsed(row, 0)?, rows::doc(row, 1)?)));
            found.optional().map_err(store_error)
        })
        .await
    }

    pub(crate) async fn webhooks(
        &self,
        after: Option<String>,
        limit: usize,
    ) -> Result<Vec<(OrgId, doc::Key, Doc)>, StoreError> {
        self.read(move |conn| {
            let sql = format!(
                "SELECT class, key, org, {} FROM doc WHERE class = 'webhook' AND flag = 1 AND key > ?1 \
                 ORDER BY key LIMIT ?2",
                rows::DOC
            );
            let mut all = conn.prepare_cached(&sql).map_err(store_error)?;
            let found = all.query_map((after.unwrap_or_default(), row_limit(limit)), |row| {
                Ok((rows::parsed(row, 2)?, doc_key(row)?, rows::doc(row, 3)?))
            });
            found.and_then(Iterator::collect).map_err(store_error)
        })
        .await
    }

    pub(crate) async fn sink(&self, org: &OrgId, key: &sink::Key) -> Result<Option<Json>, StoreError> {
        let (org, key) = (org.clone(), key.clone());
        self.read(move |conn| {
            conn.prepare_cached("SELECT value FROM sink WHERE org = ?1 AND space = ?2 AND key = ?3")
                .and_then(|mut one| {
                    one.query_row((org.as_str(), &key.space, &key.key), |row| row.get::<_, String>(0)).optional()
                })
                .map(|value| value.map(Json::stored))
                .map_err(store_error)
        })
        .await
    }

    pub(crate) async fn prunable(
        &self,
        after: Option<(OrgId, ProjectId)>,
        keep: u32,
    ) -> Result<Option<Prunable>, StoreError> {
        self.read(move |conn| prunable(conn, after, keep).map_err(store_error)).await
    }
}

/// Lanes with a row, and those that are paused: `tail` is said of each, so that neither is read
/// further than needed.
fn lanes_sql(only: &str, tail: &str) -> String {
    let last = tail.replace("BY key", "BY k.key");
    format!(
        "SELECT k.key, l.max, coalesce(l.running, 0), coalesce(l.waiting, 0), coalesce(d.flag, 0) FROM (
         SELECT key FROM (SELECT key FROM lane WHERE org = ?1 {only} {tail}) UNION
         SELECT key FROM (SELECT key FROM doc WHERE org = ?1 AND class = 'lane' AND flag {only} {tail})) k
         LEFT JOIN lane l ON l.org = ?1 AND l.key = k.key
         LEFT JOIN doc d ON d.org = ?1 AND d.class = 'lane' AND d.key = k.key {last}"
    )
}

fn lanes(conn: &Connection, ask: &ListLanes) -> rusqlite::Result<Page<LaneRecord, LaneKey>> {
    let mut values = vec![Value::from(ask.org.as_str().to_owned()), row_limit(ask.limit + 1).into()];
    values.extend(ask.after.as_ref().map(|key| key.as_str().to_owned().into()));
    let beyond = ask.after.as_ref().map(|_| format!("AND key {} ?3", ask.order.beyond())).unwrap_or_default();
    let sql = lanes_sql(&beyond, &format!("ORDER BY key {} LIMIT ?2", ask.order.word()));
    let mut all = conn.prepare_cached(&sql)?;
    let items = all.query_map(params_from_iter(values), lane)?.collect::<rusqlite::Result<_>>()?;
    Ok(Page::cut(items, ask.limit, |lane: &LaneRecord| lane.key.clone()))
}

fn lane(row: &rusqlite::Row<'_>) -> rusqlite::Result<LaneRecord> {
    Ok(LaneRecord {
        key: rows::parsed(row, 0)?,
        max: row.get(1)?,
        running: row.get(2)?,
        waiting: row.get(3)?,
        paused: row.get(4)?,
    })
}

fn doc_key(row: &rusqlite::Row<'_>) -> rusqlite::Result<doc::Key> {
    let class = doc::Class::parse(row.get_ref(0)?.as_str()?);
    Ok(doc::Key { class: class.ok_or_else(|| rows::garbled(0, "not a class of documents"))?, key: row.get(1)? })
}

fn dead_letters(conn: &Connection, ask: &DeadLetters) -> rusqlite::Result<Page<JobRecord, JobId>> {
    let mut sql = "SELECT id, type FROM dead_letter WHERE org = ?1".to_owned();
    let mut values = vec![Value::from(ask.org.as_str().to_owned())];
    if let Some(project) = &ask.project {
        values.push(project.as_str().to_owned().into());
        sql.push_str(&format!(" AND project = ?{}", values.len()));
    }
    values.push(ask.after.map_or(ask.order.before_ids(), |id| id.0).as_bytes().to_vec().into());
    let (beyond, order) = (ask.order.beyond(), ask.order.word());
    sql.push_str(&format!(" AND id {beyond} ?{} ORDER BY id {order}", values.len()));
    let mut all = conn.prepare_cached(&sql)?;
    let mut whole = conn.prepare_cached(&records_sql("WHERE j.org = ?1 AND j.id = ?2"))?;
    let mut found = all.query(params_from_iter(values))?;
    let mut filling = Filling::new(ask.limit, ask.bytes, ask.after);
    while let Some(row) = found.next()? {
        if filling.is_full() {
            return Ok(filling.cut());
        }
        let id = JobId(rows::uuid(row, 0)?);
        let kind = row.get_ref(1)?.as_str()?;
        let record = match &ask.kind {
            Some(wanted) if wanted.as_str() != kind => None,
            _ => whole.query_row((ask.org.as_str(), id.0.as_bytes()), rows::record).optional()?,
        };
        if !filling.take(id, record) {
            return Ok(filling.cut());
        }
    }
    Ok(filling.whole())
}

fn prunable(conn: &Connection, after: Option<(OrgId, ProjectId)>, keep: u32) -> rusqlite::Result<Option<Prunable>> {
    let mut at = after.map(|(org, project)| (org.to_string(), project.to_string()));
    loop {
        let Some((org, project)) = next_project(conn, at.as_ref())? else { return Ok(None) };
        let (jobs, more) = candidates(conn, &org, &project, keep)?;
        if !jobs.is_empty() {
            let named = |e: baton_core::name::BadName| rows::garbled(0, e);
            let (org, project) = (org.parse().map_err(named)?, project.parse().map_err(named)?);
            return Ok(Some(Prunable { org, project, jobs, more }));
        }
        at = Some((org, project));
    }
}

/// Step by step, because a comparison of pairs would walk through all jobs of the project before.
fn next_project(conn: &Connection, after: Option<&(String, String)>) -> rusqlite::Result<Option<(String, String)>> {
    let pair = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
    if let Some((org, project)) = after {
        let same_org = "SELECT org, project FROM job WHERE org = ?1 AND project > ?2 ORDER BY project LIMIT 1";
        let found = conn.prepare_cached(same_org)?.query_row((org, project), pair).optional()?;
        if found.is_some() {
            return Ok(found);
        }
    }
    let org = after.map_or("", |(org, _)| org);
    let next_org = "SELECT org, project FROM job WHERE org > ?1 ORDER BY org, project LIMIT 1";
    conn.prepare_cached(next_org)?.query_row([org], pair).optional()
}

/// The oldest ended jobs of a project beyond those that are kept; whether there are more. One that
/// was begun long ago and has ended since goes when so many have ended after it.
fn candidates(conn: &Connection, org: &str, project: &str, keep: u32) -> rusqlite::Result<(Vec<Candidate>, bool)> {
    let none = Ok((Vec::new(), false));
    // Most projects have few jobs: the index alone says so.
    let many = "SELECT 1 FROM job WHERE org = ?1 AND project = ?2 LIMIT 1 OFFSET ?3";
    if !conn.prepare_cached(many)?.exists((org, project, keep))? {
        return none;
    }
    let newest = conn
        .prepare_cached(
            "SELECT id, ended_at FROM job WHERE org = ?1 AND project = ?2 AND state IS NOT NULL \
             ORDER BY id DESC LIMIT 1 OFFSET ?3",
        )?
        .query_row((org, project, keep), |row| Ok((rows::uuid(row, 0)?, row.get::<_, i64>(1)?)))
        .optional()?;
    let Some((newest, ended_at)) = newest else { return none };
    let sealed: Option<i64> =
        conn.prepare_cached("SELECT max(to_pos) FROM seal WHERE org = ?1")?.query_row([org], |row| row.get(0))?;
    let Some(sealed) = sealed else { return none };
    let mut ended = conn.prepare_cached(
        "SELECT id, head_n FROM job WHERE org = ?1 AND project = ?2 AND id <= ?3 AND state IS NOT NULL
         AND ended_at <= ?4 ORDER BY id LIMIT ?5",
    )?;
    let by = (org, project, newest.as_bytes(), ended_at, row_limit(PRUNE_JOBS));
    let found = ended.query_map(by, |row| Ok((rows::uuid(row, 0)?, row.get(1)?)))?;
    let (ids, all) = one_batch(found.collect::<rusqlite::Result<_>>()?);
    let mut jobs: Vec<Candidate> = Vec::new();
    for id in ids {
        let stubs = history::of_job(conn, org, id.as_bytes())?;
        if stubs.iter().all(|stub| stub.pos <= sealed) {
            jobs.push(Candidate { job: JobId(id), events: stubs });
        }
    }
    Ok((jobs, !all))
}
