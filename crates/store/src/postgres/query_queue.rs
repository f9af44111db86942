//! Questions about the queue that change nothing.

use super::Db;
use super::query::records_sql;
use super::rows::{self, get, parsed};
use crate::error::StoreError;
use crate::records::{
    DeadLetters, Filling, JobRecord, LaneRecord, ListDocs, ListLanes, Page, Prunable, one_batch, row_limit,
};
use baton_core::canon::Json;
use baton_core::doc::{self, Doc};
use baton_core::id::{DocId, KeyId};
use baton_core::job::prune::{Candidate, Stub};
use baton_core::lane::LaneKey;
use baton_core::limits::PRUNE_JOBS;
use baton_core::{JobId, OrgId, ProjectId, sink};
use std::collections::{BTreeMap, BTreeSet};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

/// Rows of a list looked at at once.
const SCAN_STEP: i64 = 500;
/// Whole records fetched at once: each may hold half a megabyte.
const WHOLE_STEP: usize = 16;

/// Lanes with a row, and those that are paused: `tail` is said of each, so that neither is read
/// further than needed.
fn lanes_sql(only: &str, tail: &str) -> String {
    let last = tail.replace("BY key", "BY k.key");
    format!(
        "SELECT k.key, l.max, coalesce(l.running, 0), coalesce(l.waiting, 0), coalesce(d.flag, false) FROM ( \
         (SELECT key FROM lane WHERE org = $1 {only} {tail}) UNION \
         (SELECT key FROM doc WHERE org = $1 AND class = 'lane' AND flag {only} {tail})) k \
         LEFT JOIN lane l ON l.org = $1 AND l.key = k.key \
         LEFT JOIN doc d ON d.org = $1 AND d.class = 'lane' AND d.key = k.key {last}"
    )
}

impl Db {
    pub(crate) async fn dead_letters(&self, ask: DeadLetters) -> Result<Page<JobRecord, JobId>, StoreError> {
        let mut filling = Filling::new(ask.limit, ask.bytes, ask.after);
        let (org, project) = (ask.org.as_str(), ask.project.as_ref().map(ProjectId::as_str));
        // Not one statement for both: each has its index.
        let only = if project.is_some() { "AND project = $4" } else { "" };
        let sql = format!(
            "SELECT id, type FROM dead_letter WHERE org = $1 {only} AND id {} $2 ORDER BY id {} LIMIT $3",
            ask.order.beyond(),
            ask.order.word()
        );
        loop {
            let after = filling.last.map_or(ask.order.before_ids(), |id| id.0);
            let mut by: Vec<&(dyn ToSql + Sync)> = vec![&org, &after, &SCAN_STEP];
            if let Some(project) = &project {
                by.push(project);
            }
            let found = self.ask(&sql, &by).await?;
            for chunk in found.chunks(WHOLE_STEP) {
                let mut records = self.failed(&ask, chunk).await?;
                for row in chunk {
                    let id = JobId(get(row, 0)?);
                    if filling.is_full() || !filling.take(id, records.remove(&id)) {
                        return Ok(filling.cut());
                    }
                }
            }
            if row_limit(found.len()) < SCAN_STEP {
                return Ok(filling.whole());
            }
        }
    }

    async fn failed(&self, ask: &DeadLetters, rows: &[Row]) -> Result<BTreeMap<JobId, JobRecord>, StoreError> {
        let mut ids: Vec<Uuid> = Vec::with_capacity(rows.len());
        for row in rows {
            let kind: &str = get(row, 1)?;
            if ask.kind.as_ref().is_none_or(|wanted| wanted.as_str() == kind) {
                ids.push(get(row, 0)?);
            }
        }
        if ids.is_empty() {
            return Ok(BTreeMap::new());
        }
        let found = self.ask(&records_sql("WHERE j.org = $1 AND j.id = ANY($2)"), &[&ask.org.as_str(), &ids]).await?;
        let records = found.iter().map(rows::record).collect::<Result<Vec<_>, _>>()?;
        Ok(records.into_iter().map(|record| (record.job.id, record)).collect())
    }

    pub(crate) async fn lanes(&self, ask: ListLanes) -> Result<Page<LaneRecord, LaneKey>, StoreError> {
        let (org, limit, after) = (ask.org.as_str(), row_limit(ask.limit + 1), ask.after.as_ref().map(LaneKey::as_str));
        let mut by: Vec<&(dyn ToSql + Sync)> = vec![&org, &limit];
        let mut beyond = String::new();
        if let Some(after) = &after {
            by.push(after);
            beyond = format!("AND key {} $3", ask.order.beyond());
        }
        let sql = lanes_sql(&beyond, &format!("ORDER BY key {} LIMIT $2", ask.order.word()));
        let found = self.ask(&sql, &by).await?;
        let items = found.iter().map(lane).collect::<Result<_, _>>()?;
        Ok(Page::cut(items, ask.limit, |lane: &LaneRecord| lane.key.clone()))
    }

    pub(crate) async fn lane(&self, org: &OrgId, key: &LaneKey) -> Result<Option<LaneRecord>, StoreError> {
        let found = self.ask(&lanes_sql("AND key = $2", ""), &[&org.as_str(), &key.as_str()]).await?;
        found.first().map(lane).transpose()
    }

    pub(crate) async fn doc(&self, org: &OrgId, key: &doc::Key) -> Result<Option<Doc>, StoreError> {
        let sql = format!("SELECT {} FROM doc WHERE org = $1 AND class = $2 AND key = $3", rows::DOC);
        let found = self.ask(&sql, &[&org.as_str(), &key.class.as_str(), &key.key]).await?;
        found.first().map(|row| rows::doc(row, 0)).transpose()
    }

    pub(crate) async fn doc_key(&self, org: &OrgId, id: DocId) -> Result<Option<doc::Key>, StoreError> {
        let found = self.ask("SELECT class, key FROM doc WHERE org = $1 AND id = $2", &[&org.as_str(), &id.0]).await?;
        found.first().map(doc_key).transpose()
    }

    pub(crate) async fn docs(&self, ask: ListDocs) -> Result<Page<(doc::Key, Doc), String>, StoreError> {
        let (beyond, order) = (ask.order.beyond(), ask.order.word());
        let sql = format!(
            "SELECT class, key, {} FROM doc WHERE org = $1 AND class = $2 AND key {beyond} $3 \
             AND key >= $4 AND starts_with(key, $4) AND ($6::bool IS NULL OR flag = $6) ORDER BY key {order} LIMIT $5",
            rows::DOC
        );
        let (org, class, limit) = (ask.org.as_str(), ask.class.as_str(), row_limit(ask.limit + 1));
        let found = self.ask(&sql, &[&org, &class, &ask.beyond(), &ask.prefix, &limit, &ask.flag]).await?;
        let items = found.iter().map(|row| Ok((doc_key(row)?, rows::doc(row, 2)?)));
        Ok(ask.page(items.collect::<Result<Vec<_>, StoreError>>()?))
    }

    pub(crate) async fn key(&self, id: KeyId) -> Result<Option<(OrgId, Doc)>, StoreError> {
        let sql = format!("SELECT org, {} FROM doc WHERE class = 'key' AND key = $1", rows::DOC);
        let found = self.ask(&sql, &[&id.to_string()]).await?;
        found.first().map(|row| Ok((parsed(row, 0)?, rows::doc(row, 1)?))).transpose()
    }

    pub(crate) async fn webhooks(
        &self,
        after: Option<String>,
        limit: usize,
    ) -> Result<Vec<(OrgId, doc::Key, Doc)>, StoreError> {
        let sql = format!(
            "SELECT class, key, org, {} FROM doc WHERE class = 'webhook' AND flag AND key > $1 ORDER BY key LIMIT $2",
            rows::DOC
        );
        let found = self.ask(&sql, &[&after.unwrap_or_default(), &row_limit(limit)]).await?;
        found.iter().map(|row| Ok((parsed(row, 2)?, doc_key(row)?, rows::doc(row, 3)?))).collect()
    }

    pub(crate) async fn sink(&self, org: &OrgId, key: &sink::Key) -> Result<Option<Json>, StoreError> {
        let sql = "SELECT value FROM sink WHERE org = $1 AND space = $2 AND key = $3";
        let found = self.ask(sql, &[&org.as_str(), &key.space, &key.key]).await?;
        found.first().map(|row| get::<&str>(row, 0).map(Json::stored)).transpose()
    }

    pub(crate) async fn prunable(
        &self,
        after: Option<(OrgId, ProjectId)>,
        keep: u32,
    ) -> Result<Option<Prunable>, StoreError> {
        let mut at = after.map_or((String::new(), String::new()), |(o, p)| (o.to_string(), p.to_string()));
        loop {
            let sql = "SELECT org, project FROM job WHERE (org, project) > ($1, $2) AND project >= '' ORDER BY org, project LIMIT 1";
            let found = self.ask(sql, &[&at.0, &at.1]).await?;
            let Some(row) = found.first() else { return Ok(None) };
            let (org, project): (OrgId, ProjectId) = (parsed(row, 0)?, parsed(row, 1)?);
            let (jobs, more) = self.prunable_of(&org, &project, keep).await?;
            if !jobs.is_empty() {
                return Ok(Some(Prunable { org, project, jobs, more }));
            }
            at = (org.to_string(), project.to_string());
        }
    }

    /// The oldest ended jobs of a project beyond those that are kept; whether there are more. One
    /// that was begun long ago and has ended since goes when so many have ended after it.
    async fn prunable_of(
        &self,
        org: &OrgId,
        project: &ProjectId,
        keep: u32,
    ) -> Result<(Vec<Candidate>, bool), StoreError> {
        let (org, project, keep) = (org.as_str(), project.as_str(), i64::from(keep));
        // Most projects have few jobs: the index alone says so.
        let many = "SELECT 1 FROM job WHERE org = $1 AND project = $2 LIMIT 1 OFFSET $3";
        if self.ask(many, &[&org, &project, &keep]).await?.is_empty() {
            return Ok((Vec::new(), false));
        }
        let sql = "SELECT id, ended_at FROM job WHERE org = $1 AND project = $2 AND state IS NOT NULL \
                   ORDER BY id DESC LIMIT 1 OFFSET $3";
        let found = self.ask(sql, &[&org, &project, &keep]).await?;
        let Some(row) = found.first() else { return Ok((Vec::new(), false)) };
        let (newest, ended_at): (Uuid, i64) = (get(row, 0)?, get(row, 1)?);
        let sql = "SELECT id, head_n FROM job WHERE org = $1 AND project = $2 AND id <= $3 AND state IS NOT NULL \
                   AND ended_at <= $4 ORDER BY id LIMIT $5";
        let found = self.ask(sql, &[&org, &project, &newest, &ended_at, &row_limit(PRUNE_JOBS)]).await?;
        let found = found.iter().map(|row| Ok((get(row, 0)?, get(row, 1)?))).collect::<Result<_, StoreError>>()?;
        let (ids, all) = one_batch(found);
        let sql = "SELECT e.subject, e.pos, e.hash, (SELECT max(to_pos) FROM seal s WHERE s.org = $1) \
                   FROM unnest($2::uuid[]) AS j(id) CROSS JOIN LATERAL (SELECT subject, n, pos, hash FROM event x \
                   WHERE x.org = $1 AND x.subject = j.id OFFSET 0) e ORDER BY e.subject, e.n";
        let mut jobs: Vec<Candidate> = Vec::new();
        let mut unsealed = BTreeSet::new();
        for row in &self.ask(sql, &[&org, &ids]).await? {
            let id = JobId(get(row, 0)?);
            let stub = Stub { pos: get(row, 1)?, hash: rows::digest(row, 2)?.0 };
            if get::<Option<i64>>(row, 3)?.is_none_or(|sealed| stub.pos > sealed) {
                unsealed.insert(id);
            }
            match jobs.last_mut() {
                Some(last) if last.job == id => last.events.push(stub),
                _ => jobs.push(Candidate { job: id, events: vec![stub] }),
            }
        }
        jobs.retain(|candidate| !unsealed.contains(&candidate.job));
        Ok((jobs, !all))
    }
}

fn lane(row: &Row) -> Result<LaneRecord, StoreError> {
    Ok(LaneRecord {
        key: parsed(row, 0)?,
        max: rows::maybe_count(row, 1)?,
        running: rows::count(row, 2)?,
        waiting: rows::count(row, 3)?,
        paused: get(row, 4)?,
    })
}

fn doc_key(row: &Row) -> Result<doc::Key, StoreError> {
    let class = doc::Class::parse(get(row, 0)?).ok_or_else(|| rows::garbled("not a class of documents"))?;
    Ok(doc::Key { class, key: get(row, 1)? })
}
