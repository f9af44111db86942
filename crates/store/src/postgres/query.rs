//! Questions that change nothing.

use super::rows::{self, get, parsed};
use super::statements::{ENDED, LIVE};
use super::{Db, block, link, shift};
use crate::cursor::Cursor;
use crate::error::StoreError;
use crate::records::{Depth, EventRow, Filling, JobRecord, ListJobs, ListOrgs, Page, row_limit};
use crate::store::Unsealed;
use baton_core::job::{Fence, State};
use baton_core::seal::{Root, Seal};
use baton_core::timer::{self, Due};
use baton_core::{JobId, Micros, OrgId, WorkerId};
use std::collections::BTreeMap;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

/// Rows of a list looked at at once.
const SCAN_STEP: i64 = 500;
/// Whole records fetched at once: each may hold half a megabyte.
const WHOLE_STEP: usize = 16;

pub(super) fn records_sql(tail: &str) -> String {
    let cold = rows::COLD;
    format!("SELECT {LIVE}, {ENDED}, {cold} FROM job j LEFT JOIN live l ON l.org = j.org AND l.id = j.id {tail}")
}

impl Db {
    pub(super) async fn ask(&self, sql: &str, params: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, StoreError> {
        let client = self.reader().await?;
        let statement = client.prepare_cached(sql).await.map_err(|e| link::store_error(&e))?;
        client.query(&statement, params).await.map_err(|e| link::store_error(&e))
    }

    pub(crate) async fn job(&self, org: &OrgId, id: JobId) -> Result<Option<JobRecord>, StoreError> {
        let found = self.ask(&records_sql("WHERE j.org = $1 AND j.id = $2"), &[&org.as_str(), &id.0]).await?;
        found.first().map(rows::record).transpose()
    }

    pub(crate) async fn jobs(&self, ask: ListJobs) -> Result<Page<JobRecord, JobId>, StoreError> {
        let sql = format!(
            "SELECT j.id, coalesce(l.state, j.state), l.pause, j.type FROM job j \
             LEFT JOIN live l ON l.org = j.org AND l.id = j.id \
             WHERE j.org = $1 AND j.project = $2 AND j.id {} $3 ORDER BY j.id {} LIMIT $4",
            ask.order.beyond(),
            ask.order.word()
        );
        let mut filling = Filling::new(ask.limit, ask.bytes, ask.after);
        loop {
            let after = filling.last.map_or(ask.order.before_ids(), |id| id.0);
            let found = self.ask(&sql, &[&ask.org.as_str(), &ask.project.as_str(), &after, &SCAN_STEP]).await?;
            for rows in found.chunks(WHOLE_STEP.min(ask.limit.max(1))) {
                if filling.is_full() {
                    return Ok(filling.cut());
                }
                let mut records = self.whole(&ask, rows).await?;
                for row in rows {
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

    /// The whole records of those that match; a job may have moved on since it was looked at.
    async fn whole(&self, ask: &ListJobs, rows: &[Row]) -> Result<BTreeMap<JobId, JobRecord>, StoreError> {
        let mut ids: Vec<Uuid> = Vec::with_capacity(rows.len());
        for row in rows {
            if ask.filter.matches(rows::face(row, 1)?, get(row, 3)?) {
                ids.push(get(row, 0)?);
            }
        }
        if ids.is_empty() {
            return Ok(BTreeMap::new());
        }
        let found = self.ask(&records_sql("WHERE j.org = $1 AND j.id = ANY($2)"), &[&ask.org.as_str(), &ids]).await?;
        let records = found.iter().map(rows::record).collect::<Result<Vec<_>, _>>()?;
        let matches = |r: &JobRecord| ask.filter.matches(r.job.status.face(), r.job.kind.name.as_str());
        let still = records.into_iter().filter(matches);
        Ok(still.map(|record| (record.job.id, record)).collect())
    }

    /// Another node may have shown more than this one has seen yet.
    pub(crate) async fn reaches(&self, cursor: Cursor) -> Result<bool, StoreError> {
        // Before the first is called for, it says which that will be.
        let taken = "SELECT last_value - (NOT is_called)::int FROM event_block";
        let found = self.ask(taken, &[]).await?;
        found.first().map_or(Ok(false), |row| Ok(block::of(cursor.0) <= get(row, 0)?))
    }

    pub(crate) async fn events(
        &self,
        org: &OrgId,
        after: Cursor,
        wanted: usize,
    ) -> Result<Page<EventRow, Cursor>, StoreError> {
        // Never past the mark: beyond it, an earlier event may still appear.
        let mark = *self.signals.events.borrow();
        let sql = format!(
            "SELECT {} FROM event e WHERE e.org = $1 AND e.pos > $2 AND e.pos <= $3 ORDER BY e.pos LIMIT $4",
            rows::EVENT
        );
        let found = self.ask(&sql, &[&org.as_str(), &after.0, &mark, &row_limit(wanted)]).await?;
        let items = found
            .iter()
            .map(|row| rows::event(row).map(|(pos, event)| EventRow { cursor: Cursor(pos), event }))
            .collect::<Result<Vec<_>, _>>()?;
        let next = (items.len() == wanted).then(|| items.last().map_or(after, |row| row.cursor));
        Ok(Page { items, next })
    }

    pub(crate) async fn expired(&self, wanted: usize) -> Result<Vec<Fence>, StoreError> {
        let sql = "SELECT org, id, token, worker FROM live WHERE phase = 3 AND lease_until <= (SELECT baton_now() + $1) \
                   ORDER BY lease_until LIMIT $2";
        let found = self.ask(sql, &[&shift(&self.options), &row_limit(wanted)]).await?;
        found.iter().map(fence).collect()
    }

    pub(crate) async fn held_by(&self, worker: &WorkerId, wanted: usize) -> Result<Vec<Fence>, StoreError> {
        let sql = "SELECT org, id, token, worker FROM live WHERE phase = 3 AND worker = $1 ORDER BY org, id LIMIT $2";
        let found = self.ask(sql, &[&worker.as_str(), &row_limit(wanted)]).await?;
        found.iter().map(fence).collect()
    }

    pub(crate) async fn due_timers(&self, wanted: usize) -> Result<(Vec<Due>, Option<Micros>), StoreError> {
        // A kind that a newer node has set is that node's to fire.
        let sql = "SELECT org, subject, kind, at, baton_now() FROM timer WHERE kind = ANY($1) ORDER BY at LIMIT $2";
        let kinds = timer::Kind::ALL.map(timer::Kind::as_str);
        let found = self.ask(sql, &[&kinds.as_slice(), &row_limit(wanted + 1)]).await?;
        let mut due = Vec::new();
        for row in &found {
            let at = rows::micros(row, 3)?;
            let now = Micros(get::<i64>(row, 4)? + shift(&self.options));
            if at > now || due.len() == wanted {
                return Ok((due, Some(at)));
            }
            let kind = timer::Kind::parse(get(row, 2)?).ok_or_else(|| rows::garbled("not a kind of timer"))?;
            due.push(Due { org: parsed(row, 0)?, key: timer::Key { subject: get(row, 1)?, kind }, at });
        }
        Ok((due, None))
    }

    pub(crate) async fn depths(&self) -> Result<Vec<Depth>, StoreError> {
        let found =
            self.ask("SELECT org, project, state, count(*) FROM live GROUP BY org, project, state", &[]).await?;
        found
            .iter()
            .map(|row| {
                let state = State::parse(get(row, 2)?).ok_or_else(|| rows::garbled("not a state"))?.as_str();
                Ok(Depth { org: parsed(row, 0)?, project: parsed(row, 1)?, state, jobs: get(row, 3)? })
            })
            .collect()
    }

    pub(crate) async fn orgs(&self, ask: ListOrgs) -> Result<Page<OrgId, OrgId>, StoreError> {
        let (beyond, order) = (ask.order.beyond(), ask.order.word());
        // One index step an org, however long their histories are.
        let sql = format!(
            "WITH RECURSIVE o(org) AS ((SELECT org FROM event WHERE org {beyond} $1 ORDER BY org {order} LIMIT 1) UNION ALL \
             SELECT (SELECT e.org FROM event e WHERE e.org {beyond} o.org ORDER BY e.org {order} LIMIT 1) FROM o \
             WHERE o.org IS NOT NULL) SELECT org FROM o WHERE org IS NOT NULL LIMIT $2"
        );
        let found = self.ask(&sql, &[&ask.beyond(), &row_limit(ask.limit.saturating_add(1))]).await?;
        Ok(ask.page(found.iter().map(|row| parsed(row, 0)).collect::<Result<_, _>>()?))
    }

    pub(crate) async fn seal(&self, org: &OrgId, n: i64) -> Result<Option<Seal>, StoreError> {
        let sql = format!("SELECT {} FROM seal s WHERE s.org = $1 AND s.n = $2", rows::SEAL);
        self.ask(&sql, &[&org.as_str(), &n]).await?.first().map(rows::seal).transpose()
    }

    pub(crate) async fn unsealed(&self, org: &OrgId, wanted: usize) -> Result<Unsealed, StoreError> {
        let mark = *self.signals.events.borrow();
        let sql = format!("SELECT {} FROM seal s WHERE s.org = $1 ORDER BY s.n DESC LIMIT 1", rows::SEAL);
        let last = self.ask(&sql, &[&org.as_str()]).await?.first().map(rows::seal).transpose()?;
        let from = last.as_ref().map_or(0, |seal| seal.to_pos);
        let sql = "SELECT pos, hash FROM event WHERE org = $1 AND pos > $2 AND pos <= $3 ORDER BY pos LIMIT $4";
        let found = self.ask(sql, &[&org.as_str(), &from, &mark, &row_limit(wanted)]).await?;
        let mut unsealed = Unsealed { last, to_pos: from, root: Root::default() };
        for row in &found {
            unsealed.to_pos = get(row, 0)?;
            unsealed.root.add(unsealed.to_pos, rows::digest(row, 1)?);
        }
        Ok(unsealed)
    }
}

fn fence(row: &Row) -> Result<Fence, StoreError> {
    Ok(Fence { org: parsed(row, 0)?, job: JobId(get(row, 1)?), token: get(row, 2)?, worker: parsed(row, 3)? })
}
