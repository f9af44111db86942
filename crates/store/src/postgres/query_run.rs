//! Questions about runs and money.

use super::Db;
use super::rows::{self, garbled, get, parsed};
use super::run_rows::{self, AGENT, RUN, STEP};
use crate::cursor::Cursor;
use crate::error::StoreError;
use crate::records::{EventRow, Page, row_limit};
use crate::runs::{self, LedgerRow, ListLedger, ListRuns};
use baton_core::ledger::Kind;
use baton_core::run::record::{AttemptRecord, StepRecord, TaskRecord};
use baton_core::run::{Agent, Run, State};
use baton_core::{AgentId, Json, Micros, OrgId, RunId};
use uuid::Uuid;

impl Db {
    pub(crate) async fn run(&self, org: &OrgId, id: RunId) -> Result<Option<Run>, StoreError> {
        let sql = format!("SELECT {RUN} FROM run WHERE org = $1 AND id = $2");
        self.ask(&sql, &[&org.as_str(), &id.0]).await?.first().map(run_rows::run).transpose()
    }

    pub(crate) async fn run_plan(&self, org: &OrgId, id: RunId) -> Result<Option<(Json, Json)>, StoreError> {
        let found =
            self.ask("SELECT document, plan FROM run_plan WHERE org = $1 AND id = $2", &[&org.as_str(), &id.0]).await?;
        let Some(row) = found.first() else { return Ok(None) };
        Ok(Some((Json::stored(get::<&str>(row, 0)?), Json::stored(get::<&str>(row, 1)?))))
    }

    pub(crate) async fn runs(&self, ask: ListRuns) -> Result<Page<Run, RunId>, StoreError> {
        let (beyond, order) = (ask.order.beyond(), ask.order.word());
        // Only what is asked for, so that one of the indexes fits.
        let project = if ask.project.is_some() { "AND project = $3" } else { "AND $3::text IS NULL" };
        let state = if ask.state.is_some() { "AND state = $4" } else { "AND $4::text IS NULL" };
        let sql = format!(
            "SELECT {RUN} FROM run WHERE org = $1 AND id {beyond} $2 {project} {state} AND NOT deleted \
             ORDER BY id {order} LIMIT $5"
        );
        let after = ask.after.map_or(ask.order.before_ids(), |id| id.0);
        let project = ask.project.as_ref().map(|project| project.as_str());
        let state = ask.state.map(State::as_str);
        let found = self.ask(&sql, &[&ask.org.as_str(), &after, &project, &state, &row_limit(ask.limit + 1)]).await?;
        let items = found.iter().map(run_rows::run).collect::<Result<Vec<_>, _>>()?;
        Ok(Page::cut(items, ask.limit, |run| run.id))
    }

    pub(crate) async fn agent(&self, org: &OrgId, id: AgentId) -> Result<Option<Agent>, StoreError> {
        let sql = format!("SELECT {AGENT} FROM run_agent WHERE org = $1 AND id = $2");
        self.ask(&sql, &[&org.as_str(), &id.0]).await?.first().map(|row| run_rows::agent(row, 0)).transpose()
    }

    pub(crate) async fn agents(
        &self,
        org: &OrgId,
        run: RunId,
        attempt: u32,
        after: Option<u32>,
        limit: usize,
    ) -> Result<Vec<Agent>, StoreError> {
        let sql = format!(
            "SELECT {AGENT} FROM run_agent WHERE org = $1 AND run = $2 AND run_attempt = $3 AND place > $4 \
             ORDER BY place LIMIT $5"
        );
        let after = after.map_or(-1, u32::cast_signed);
        let found = self.ask(&sql, &[&org.as_str(), &run.0, &attempt.cast_signed(), &after, &row_limit(limit)]).await?;
        found.iter().map(|row| run_rows::agent(row, 0)).collect()
    }

    pub(crate) async fn step_records(
        &self,
        org: &OrgId,
        agent: AgentId,
        after: u32,
        limit: usize,
    ) -> Result<Vec<StepRecord>, StoreError> {
        let sql = format!("SELECT {STEP} FROM run_step WHERE org = $1 AND agent = $2 AND n > $3 ORDER BY n LIMIT $4");
        let found = self.ask(&sql, &[&org.as_str(), &agent.0, &after.cast_signed(), &row_limit(limit)]).await?;
        found.iter().map(run_rows::step).collect()
    }

    pub(crate) async fn task_records(
        &self,
        org: &OrgId,
        agent: AgentId,
        after: u32,
        limit: usize,
    ) -> Result<Vec<TaskRecord>, StoreError> {
        let sql = "SELECT run, body FROM run_task WHERE org = $1 AND agent = $2 AND n > $3 ORDER BY n LIMIT $4";
        let found = self.ask(sql, &[&org.as_str(), &agent.0, &after.cast_signed(), &row_limit(limit)]).await?;
        let task = |row| runs::task(agent, RunId(get(row, 0)?), get(row, 1)?).map_err(garbled);
        found.iter().map(task).collect()
    }

    pub(crate) async fn attempts(&self, org: &OrgId, run: RunId) -> Result<Vec<AttemptRecord>, StoreError> {
        let sql = "SELECT body FROM run_attempt WHERE org = $1 AND run = $2 ORDER BY attempt";
        let found = self.ask(sql, &[&org.as_str(), &run.0]).await?;
        let attempt = |row| {
            let record: AttemptRecord = serde_json::from_str(get(row, 0)?).map_err(garbled)?;
            Ok(AttemptRecord { run, ..record })
        };
        found.iter().map(attempt).collect()
    }

    /// As many entries as asked for, if there are.
    pub(crate) async fn ledger(&self, ask: ListLedger) -> Result<Vec<LedgerRow>, StoreError> {
        let (beyond, order) = (ask.order.beyond(), ask.order.word());
        let sql = format!(
            "SELECT n, kind, amount, balance_after, key, run, at FROM ledger \
             WHERE org = $1 AND account = $2 AND n {beyond} $3 ORDER BY n {order} LIMIT $4"
        );
        let mut found: Vec<LedgerRow> = Vec::new();
        for account in ask.remaining() {
            let (after, left) = (ask.beyond_in(account), row_limit(ask.limit.saturating_sub(found.len())));
            for row in &self.ask(&sql, &[&ask.org.as_str(), &account, &after, &left]).await? {
                let amount = |i: usize| runs::credits(get(row, i)?).ok_or_else(|| garbled("not an amount"));
                found.push(LedgerRow {
                    account: account.to_owned(),
                    n: get(row, 0)?,
                    kind: Kind::parse(get(row, 1)?).ok_or_else(|| garbled("not a kind of entry"))?,
                    amount: amount(2)?,
                    balance_after: amount(3)?,
                    key: get(row, 4)?,
                    run: get::<Option<Uuid>>(row, 5)?.map(RunId),
                    at: rows::micros(row, 6)?,
                });
            }
            if found.len() >= ask.limit {
                break;
            }
        }
        Ok(found)
    }

    pub(crate) async fn run_events(
        &self,
        org: &OrgId,
        run: RunId,
        after: Cursor,
        limit: usize,
    ) -> Result<Page<EventRow, Cursor>, StoreError> {
        // Never past the mark: beyond it, an earlier event may still appear.
        let mark = *self.signals.events.borrow();
        let sql = format!(
            "SELECT {} FROM event e WHERE e.org = $1 AND e.pos > $3 AND e.pos <= $4 AND e.subject = ANY (ARRAY( \
             SELECT id FROM run_agent WHERE org = $1 AND run = $2 UNION ALL SELECT $2)) ORDER BY e.pos LIMIT $5",
            rows::EVENT
        );
        let found = self.ask(&sql, &[&org.as_str(), &run.0, &after.0, &mark, &row_limit(limit + 1)]).await?;
        let items = found
            .iter()
            .map(|row| rows::event(row).map(|(pos, event)| EventRow { cursor: Cursor(pos), event }))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Page::cut(items, limit, |row| row.cursor))
    }

    /// Agents at work whose job nobody holds since this moment.
    pub(crate) async fn lost_agents(&self, since: Micros, limit: usize) -> Result<Vec<(OrgId, AgentId)>, StoreError> {
        let sql = "SELECT a.org, a.id FROM run_agent a LEFT JOIN live l ON l.org = a.org AND l.id = a.job \
                   WHERE a.state IN ('running', 'pending') AND (l.id IS NULL OR (a.state = 'running' AND l.phase = 1 AND l.due_at <= $1)) LIMIT $2";
        let found = self.ask(sql, &[&since.0, &row_limit(limit)]).await?;
        found.iter().map(|row| Ok((parsed(row, 0)?, AgentId(get(row, 1)?)))).collect()
    }
}
