//! Questions about runs and money.

use super::run_rows::{self, AGENT, RUN, STEP};
use super::{Db, rows, store_error};
use crate::cursor::Cursor;
use crate::error::StoreError;
use crate::order::Order;
use crate::records::{EventRow, Page, row_limit};
use crate::runs::{self, LedgerRow, ListLedger, ListRuns};
use baton_core::ledger::Kind;
use baton_core::run::record::{AttemptRecord, StepRecord, TaskRecord};
use baton_core::run::{Agent, Run};
use baton_core::{AgentId, Json, Micros, OrgId, RunId};
use rusqlite::OptionalExtension;

impl Db {
    pub(crate) async fn run(&self, org: &OrgId, id: RunId) -> Result<Option<Run>, StoreError> {
        let org = org.clone();
        self.read(move |conn| run_rows::load_run(conn, &org, id).map_err(store_error)).await
    }

    pub(crate) async fn run_plan(&self, org: &OrgId, id: RunId) -> Result<Option<(Json, Json)>, StoreError> {
        let org = org.clone();
        self.read(move |conn| {
            conn.prepare_cached("SELECT document, plan FROM run_plan WHERE org = ?1 AND id = ?2")
                .and_then(|mut one| {
                    one.query_row((org.as_str(), id.0.as_bytes()), |row| {
                        Ok((Json::stored(row.get::<_, String>(0)?), Json::stored(row.get::<_, String>(1)?)))
                    })
                    .optional()
                })
                .map_err(store_error)
        })
        .await
    }

    pub(crate) async fn runs(&self, ask: ListRuns) -> Result<Page<Run, RunId>, StoreError> {
        self.read(move |conn| {
            let (beyond, order) = (ask.order.beyond(), ask.order.word());
            // Only what is asked for, so that one of the indexes fits.
            let project = if ask.project.is_some() { "AND project = ?3" } else { "AND ?3 IS NULL" };
            let state = if ask.state.is_some() { "AND state = ?4" } else { "AND ?4 IS NULL" };
            let sql = format!(
                "SELECT {RUN} FROM run WHERE org = ?1 AND id {beyond} ?2 {project} {state} AND NOT deleted \
                 ORDER BY id {order} LIMIT ?5"
            );
            let after = ask.after.map_or(ask.order.before_ids(), |id| id.0);
            let mut all = conn.prepare_cached(&sql).map_err(store_error)?;
            let found = all.query_map(
                (
                    ask.org.as_str(),
                    after.as_bytes(),
                    ask.project.as_ref().map(|p| p.as_str()),
                    ask.state.map(baton_core::run::State::as_str),
                    row_limit(ask.limit + 1),
                ),
                run_rows::run,
            );
            let items: Vec<Run> = found.and_then(Iterator::collect).map_err(store_error)?;
            Ok(Page::cut(items, ask.limit, |run| run.id))
        })
        .await
    }

    pub(crate) async fn agent(&self, org: &OrgId, id: AgentId) -> Result<Option<Agent>, StoreError> {
        let org = org.clone();
        self.read(move |conn| run_rows::load_agent(conn, &org, id).map_err(store_error)).await
    }

    pub(crate) async fn agents(
        &self,
        org: &OrgId,
        run: RunId,
        attempt: u32,
        after: Option<u32>,
        limit: usize,
    ) -> Result<Vec<Agent>, StoreError> {
        let org = org.clone();
        self.read(move |conn| {
            let sql = format!(
                "SELECT {AGENT} FROM run_agent WHERE org = ?1 AND run = ?2 AND run_attempt = ?3 AND place > ?4 \
                 ORDER BY place LIMIT ?5"
            );
            let by = (org.as_str(), run.0.as_bytes(), attempt, after.map_or(-1, i64::from), row_limit(limit));
            let mut all = conn.prepare_cached(&sql).map_err(store_error)?;
            let found = all.query_map(by, run_rows::agent);
            found.and_then(Iterator::collect).map_err(store_error)
        })
        .await
    }

    pub(crate) async fn step_records(
        &self,
        org: &OrgId,
        agent: AgentId,
        after: u32,
        limit: usize,
    ) -> Result<Vec<StepRecord>, StoreError> {
        let org = org.clone();
        self.read(move |conn| {
            let sql =
                format!("SELECT {STEP} FROM run_step WHERE org = ?1 AND agent = ?2 AND n > ?3 ORDER BY n LIMIT ?4");
            let mut all = conn.prepare_cached(&sql).map_err(store_error)?;
            let found = all.query_map((org.as_str(), agent.0.as_bytes(), after, row_limit(limit)), run_rows::step);
            found.and_then(Iterator::collect).map_err(store_error)
        })
        .await
    }

    pub(crate) async fn task_records(
        &self,
        org: &OrgId,
        agent: AgentId,
        after: u32,
        limit: usize,
    ) -> Result<Vec<TaskRecord>, StoreError> {
        let org = org.clone();
        self.read(move |conn| {
            let sql = "SELECT run, body FROM run_task WHERE org = ?1 AND agent = ?2 AND n > ?3 ORDER BY n LIMIT ?4";
            let mut all = conn.prepare_cached(sql).map_err(store_error)?;
            let found = all.query_map((org.as_str(), agent.0.as_bytes(), after, row_limit(limit)), |row| {
                runs::task(agent, RunId(rows::uuid(row, 0)?), row.get_ref(1)?.as_str()?)
                    .map_err(|e| rows::garbled(1, e))
            });
            found.and_then(Iterator::collect).map_err(store_error)
        })
        .await
    }

    pub(crate) async fn attempts(&self, org: &OrgId, run: RunId) -> Result<Vec<AttemptRecord>, StoreError> {
        let org = org.clone();
        self.read(move |conn| {
            let sql = "SELECT body FROM run_attempt WHERE org = ?1 AND run = ?2 ORDER BY attempt";
            let mut all = conn.prepare_cached(sql).map_err(store_error)?;
            let found = all.query_map((org.as_str(), run.0.as_bytes()), |row| {
                let record: AttemptRecord =
                    serde_json::from_str(row.get_ref(0)?.as_str()?).map_err(|e| rows::garbled(0, e))?;
                Ok(AttemptRecord { run, ..record })
            });
            found.and_then(Iterator::collect).map_err(store_error)
        })
        .await
    }

    /// One entry more than asked for, if there is more.
    pub(crate) async fn ledger(&self, ask: ListLedger) -> Result<Vec<LedgerRow>, StoreError> {
        self.read(move |conn| {
            let mut found: Vec<LedgerRow> = Vec::new();
            let (beyond, order) = (ask.order.beyond(), ask.order.word());
            let sql = format!(
                "SELECT n, kind, amount, balance_after, key, run, at FROM ledger \
                 WHERE org = ?1 AND account = ?2 AND n {beyond} ?3 ORDER BY n {order} LIMIT ?4"
            );
            let mut one = conn.prepare_cached(&sql).map_err(store_error)?;
            for account in ask.remaining() {
                let after = ask.beyond_in(account);
                let left = row_limit(ask.limit.saturating_sub(found.len()));
                let entries = one.query_map((ask.org.as_str(), account, after, left), |row| {
                    let amount = |i: usize| -> rusqlite::Result<_> {
                        runs::credits(row.get(i)?).ok_or_else(|| rows::garbled(i, "not an amount"))
                    };
                    let run = row
                        .get_ref(5)?
                        .as_blob_or_null()?
                        .map(|bytes| uuid::Uuid::from_slice(bytes).map(RunId).map_err(|e| rows::garbled(5, e)));
                    Ok(LedgerRow {
                        account: account.to_owned(),
                        n: row.get(0)?,
                        kind: Kind::parse(row.get_ref(1)?.as_str()?).ok_or_else(|| rows::garbled(1, "not a kind"))?,
                        amount: amount(2)?,
                        balance_after: amount(3)?,
                        key: row.get(4)?,
                        run: run.transpose()?,
                        at: rows::micros(row, 6)?,
                    })
                });
                let entries: Vec<LedgerRow> = entries.and_then(Iterator::collect).map_err(store_error)?;
                found.extend(entries);
                if found.len() >= ask.limit {
                    break;
                }
            }
            Ok(found)
        })
        .await
    }

    pub(crate) async fn run_events(
        &self,
        org: &OrgId,
        run: RunId,
        after: Cursor,
        limit: usize,
    ) -> Result<Page<EventRow, Cursor>, StoreError> {
        let org = org.clone();
        self.read(move |conn| {
            let sql = format!(
                "SELECT {} FROM event e INDEXED BY event_by_subject WHERE e.org = ?1 AND e.pos > ?3 AND e.prev IS NULL AND e.subject IN \
                 (SELECT id FROM run_agent WHERE org = ?1 AND run = ?2 UNION ALL SELECT ?2) ORDER BY e.pos LIMIT ?4",
                rows::EVENT
            );
            let mut all = conn.prepare_cached(&sql).map_err(store_error)?;
            let by = (org.as_str(), run.0.as_bytes(), after.0, row_limit(limit + 1));
            let found = all.query_map(by, rows::event);
            let items: Vec<_> = found.and_then(Iterator::collect).map_err(store_error)?;
            let items = items.into_iter().map(|(pos, event)| EventRow { cursor: Cursor(pos), event }).collect();
            Ok(Page::cut(items, limit, |row: &EventRow| row.cursor))
        })
        .await
    }

    /// Agents at work whose job nobody holds since this moment.
    pub(crate) async fn lost_agents(&self, since: Micros, limit: usize) -> Result<Vec<(OrgId, AgentId)>, StoreError> {
        self.read(move |conn| {
            let sql = "SELECT a.org, a.id FROM run_agent a LEFT JOIN job j ON j.org = a.org AND j.id = a.job \
                       LEFT JOIN live l ON l.ord = j.ord \
                       WHERE a.state IN ('running', 'pending') AND (l.id IS NULL OR (a.state = 'running' AND l.phase = 1 AND l.due_at <= ?1)) LIMIT ?2";
            let mut all = conn.prepare_cached(sql).map_err(store_error)?;
            let found = all.query_map((since.0, row_limit(limit)), |row| {
                Ok((rows::parsed(row, 0)?, AgentId(rows::uuid(row, 1)?)))
            });
            found.and_then(Iterator::collect).map_err(store_error)
        })
        .await
    }
}

impl ListLedger {
    /// The accounts that may still have entries to show.
    pub(crate) fn remaining(&self) -> impl Iterator<Item = &str> {
        let from = self.after.as_ref().map(|(account, _)| account.as_str());
        self.accounts.iter().map(String::as_str).filter(move |account| from.is_none_or(|from| *account >= from))
    }

    pub(crate) fn beyond_in(&self, account: &str) -> i64 {
        match &self.after {
            Some((in_account, n)) if in_account == account => *n,
            _ if self.order == Order::Rising => 0,
            _ => i64::MAX,
        }
    }
}
