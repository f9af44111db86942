//! Questions that change nothing.

use super::{Db, rows, store_error};
use crate::cursor::Cursor;
use crate::error::StoreError;
use crate::order::Order;
use crate::records::{Depth, EventRow, Filling, JobRecord, ListJobs, ListOrgs, Page, row_limit};
use crate::store::Unsealed;
use baton_core::job::{Fence, State};
use baton_core::seal::{Root, Seal};
use baton_core::timer::{self, Due};
use baton_core::{JobId, Micros, OrgId, WorkerId};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row};

pub(super) fn records_sql(tail: &str) -> String {
    let (live, ended, cold) = (rows::LIVE, rows::ENDED, rows::COLD);
    format!("SELECT {live}, {ended}, {cold} FROM job j LEFT JOIN live l ON l.ord = j.ord {tail}")
}

fn fence(row: &Row<'_>) -> rusqlite::Result<Fence> {
    Ok(Fence {
        org: rows::parsed(row, 0)?,
        job: JobId(rows::uuid(row, 1)?),
        token: row.get(2)?,
        worker: rows::parsed(row, 3)?,
    })
}

impl Db {
    pub(crate) async fn job(&self, org: &OrgId, id: JobId) -> Result<Option<JobRecord>, StoreError> {
        let org = org.clone();
        self.read(move |conn| {
            conn.prepare_cached(&records_sql("WHERE j.org = ?1 AND j.id = ?2"))
                .and_then(|mut one| one.query_row((org.as_str(), id.0.as_bytes()), rows::record).optional())
                .map_err(store_error)
        })
        .await
    }

    pub(crate) async fn jobs(&self, ask: ListJobs) -> Result<Page<JobRecord, JobId>, StoreError> {
        self.read(move |conn| list(conn, &ask).map_err(store_error)).await
    }

    pub(crate) async fn events(
        &self,
        org: &OrgId,
        after: Cursor,
        limit: usize,
    ) -> Result<Page<EventRow, Cursor>, StoreError> {
        let org = org.clone();
        self.read(move |conn| {
            let sql =
                format!("SELECT {} FROM event e WHERE e.org = ?1 AND e.pos > ?2 ORDER BY e.pos LIMIT ?3", rows::EVENT);
            let mut page = conn.prepare_cached(&sql).map_err(store_error)?;
            let found = page.query_map((org.as_str(), after.0, row_limit(limit)), rows::event).map_err(store_error)?;
            let items = found
                .map(|row| row.map(|(pos, event)| EventRow { cursor: Cursor(pos), event }))
                .collect::<Result<Vec<_>, _>>()
                .map_err(store_error)?;
            let next = (items.len() == limit).then(|| items.last().map_or(after, |row| row.cursor));
            Ok(Page { items, next })
        })
        .await
    }

    /// Readers see a commit a moment before it is told.
    pub(crate) async fn reaches(&self, cursor: Cursor) -> Result<bool, StoreError> {
        self.read(move |conn| {
            let mut there =
                conn.prepare_cached("SELECT 1 FROM event WHERE org = ?1 AND pos >= ?2").map_err(store_error)?;
            for org in orgs(conn, &ListOrgs::ALL).map_err(store_error)? {
                if there.exists((org.as_str(), cursor.0)).map_err(store_error)? {
                    return Ok(true);
                }
            }
            Ok(false)
        })
        .await
    }

    pub(crate) async fn expired(&self, limit: usize) -> Result<Vec<Fence>, StoreError> {
        let now = self.clock_now();
        let expired = "phase = 3 AND lease_until <= ?1";
        match self.open_jobs.leased_until(now, limit) {
            Some(leased) => self.fences(expired, now.0.into(), leased).await,
            None => self.all_fences(&format!("{expired} ORDER BY lease_until"), now.0.into(), limit).await,
        }
    }

    pub(crate) async fn held_by(&self, worker: &WorkerId, limit: usize) -> Result<Vec<Fence>, StoreError> {
        let worker = Value::from(worker.as_str().to_owned());
        self.all_fences("phase = 3 AND worker = ?1 ORDER BY org, id", worker, limit).await
    }

    /// Of those leased jobs whose rows have these numbers.
    async fn fences(&self, which: &'static str, by: Value, leased: Vec<i64>) -> Result<Vec<Fence>, StoreError> {
        self.read(move |conn| {
            let sql = format!("SELECT org, id, token, worker FROM live WHERE {which} AND ord = ?2");
            let mut one = conn.prepare_cached(&sql).map_err(store_error)?;
            let found = leased.into_iter().filter_map(|ord| one.query_row((&by, ord), fence).optional().transpose());
            found.collect::<rusqlite::Result<_>>().map_err(store_error)
        })
        .await
    }

    /// Reads through all that is live: there is no index, because every claim and every end would write to it.
    async fn all_fences(&self, which: &str, by: Value, limit: usize) -> Result<Vec<Fence>, StoreError> {
        let sql = format!("SELECT org, id, token, worker FROM live WHERE {which} LIMIT ?2");
        self.read(move |conn| {
            let mut all = conn.prepare_cached(&sql).map_err(store_error)?;
            let found = all.query_map((by, row_limit(limit)), fence);
            found.and_then(Iterator::collect).map_err(store_error)
        })
        .await
    }

    pub(crate) async fn due_timers(&self, limit: usize) -> Result<(Vec<Due>, Option<Micros>), StoreError> {
        let now = self.clock_now();
        self.read(move |conn| due(conn, now, limit).map_err(store_error)).await
    }

    pub(crate) async fn depths(&self) -> Result<Vec<Depth>, StoreError> {
        self.read(move |conn| {
            let sql = "SELECT j.org, j.project, l.state, count(*) FROM live l CROSS JOIN job j ON j.ord = l.ord \
                       GROUP BY j.org, j.project, l.state";
            let mut all = conn.prepare_cached(sql).map_err(store_error)?;
            let found = all.query_map([], |row| {
                let state = row.get_ref(2)?.as_str()?;
                let state = State::parse(state).ok_or_else(|| rows::garbled(2, "not a state"))?.as_str();
                Ok(Depth { org: rows::parsed(row, 0)?, project: rows::parsed(row, 1)?, state, jobs: row.get(3)? })
            });
            found.and_then(Iterator::collect).map_err(store_error)
        })
        .await
    }

    pub(crate) async fn orgs(&self, ask: ListOrgs) -> Result<Page<OrgId, OrgId>, StoreError> {
        self.read(move |conn| Ok(ask.page(orgs(conn, &ask).map_err(store_error)?))).await
    }

    pub(crate) async fn seal(&self, org: &OrgId, n: i64) -> Result<Option<Seal>, StoreError> {
        let org = org.clone();
        self.read(move |conn| {
            conn.prepare_cached(&format!("SELECT {} FROM seal s WHERE s.org = ?1 AND s.n = ?2", rows::SEAL))
                .and_then(|mut one| one.query_row((org.as_str(), n), rows::seal).optional())
                .map_err(store_error)
        })
        .await
    }

    pub(crate) async fn unsealed(&self, org: &OrgId, limit: usize) -> Result<Unsealed, StoreError> {
        let org = org.clone();
        self.read(move |conn| {
            let last = last_seal(conn, &org).map_err(store_error)?;
            let from = last.as_ref().map_or(0, |seal| seal.to_pos);
            let mut unsealed = Unsealed { last, to_pos: from, root: Root::default() };
            let sql = "SELECT pos, hash FROM event WHERE org = ?1 AND pos > ?2 ORDER BY pos LIMIT ?3";
            let mut all = conn.prepare_cached(sql).map_err(store_error)?;
            let mut found = all.query((org.as_str(), from, row_limit(limit))).map_err(store_error)?;
            while let Some(row) = found.next().map_err(store_error)? {
                unsealed.to_pos = row.get(0).map_err(store_error)?;
                unsealed.root.add(unsealed.to_pos, rows::digest(row, 1).map_err(store_error)?);
            }
            Ok(unsealed)
        })
        .await
    }
}

fn last_seal(conn: &Connection, org: &OrgId) -> rusqlite::Result<Option<Seal>> {
    conn.prepare_cached(&format!("SELECT {} FROM seal s WHERE s.org = ?1 ORDER BY s.n DESC LIMIT 1", rows::SEAL))?
        .query_row([org.as_str()], rows::seal)
        .optional()
}

/// One more than asked for, if there is.
pub(super) fn orgs(conn: &Connection, ask: &ListOrgs) -> rusqlite::Result<Vec<OrgId>> {
    let (next, beyond) = match ask.order {
        Order::Rising => ("min", ">"),
        Order::Falling => ("max", "<"),
    };
    // One index step an org, however long their histories are.
    let sql = format!(
        "WITH RECURSIVE o(org) AS (SELECT {next}(org) FROM event WHERE org {beyond} ?1 UNION ALL
         SELECT (SELECT {next}(org) FROM event WHERE event.org {beyond} o.org) FROM o WHERE o.org IS NOT NULL)
         SELECT org FROM o WHERE org IS NOT NULL LIMIT ?2"
    );
    let limit = row_limit(ask.limit.saturating_add(1));
    conn.prepare_cached(&sql)?.query_map((ask.beyond(), limit), |row| rows::parsed(row, 0))?.collect()
}

fn due(conn: &Connection, now: Micros, limit: usize) -> rusqlite::Result<(Vec<Due>, Option<Micros>)> {
    // A kind that a newer Baton has set is that one's to fire.
    let kinds = timer::Kind::ALL.map(|kind| format!("'{kind}'")).join(", ");
    let sql = format!("SELECT org, subject, kind, at FROM timer WHERE kind IN ({kinds}) ORDER BY at LIMIT ?1");
    let mut all = conn.prepare_cached(&sql)?;
    let mut found = all.query([row_limit(limit + 1)])?;
    let mut due = Vec::new();
    while let Some(row) = found.next()? {
        let at = rows::micros(row, 3)?;
        if at > now || due.len() == limit {
            return Ok((due, Some(at)));
        }
        let kind = row.get_ref(2)?.as_str()?;
        let kind = timer::Kind::parse(kind).ok_or_else(|| rows::garbled(2, "not a kind of timer"))?;
        due.push(Due { org: rows::parsed(row, 0)?, key: timer::Key { subject: rows::uuid(row, 1)?, kind }, at });
    }
    Ok((due, None))
}

fn list(conn: &Connection, ask: &ListJobs) -> rusqlite::Result<Page<JobRecord, JobId>> {
    let sql = format!(
        "SELECT j.id, coalesce(l.state, j.state), l.pause, j.type FROM job j \
         LEFT JOIN live l ON l.ord = j.ord \
         WHERE j.org = ?1 AND j.project = ?2 AND j.id {} ?3 ORDER BY j.id {}",
        ask.order.beyond(),
        ask.order.word()
    );
    let mut all = conn.prepare_cached(&sql)?;
    let mut whole = conn.prepare_cached(&records_sql("WHERE j.org = ?1 AND j.id = ?2"))?;
    let after = ask.after.map_or(ask.order.before_ids(), |id| id.0);
    // One snapshot for both: it lasts while this query does.
    let mut found = all.query((ask.org.as_str(), ask.project.as_str(), after.as_bytes()))?;
    let mut filling = Filling::new(ask.limit, ask.bytes, ask.after);
    while let Some(row) = found.next()? {
        if filling.is_full() {
            return Ok(filling.cut());
        }
        let id = JobId(rows::uuid(row, 0)?);
        let record = if ask.filter.matches(rows::face(row, 1)?, row.get_ref(3)?.as_str()?) {
            Some(whole.query_row((ask.org.as_str(), id.0.as_bytes()), rows::record)?)
        } else {
            None
        };
        if !filling.take(id, record) {
            return Ok(filling.cut());
        }
    }
    Ok(filling.whole())
}
