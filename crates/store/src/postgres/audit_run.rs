//! Verifying runs and money, in the snapshot of the audit.

use super::audit::ask;
use super::rows::{self, garbled, get, parsed};
use super::run_rows::{self, AGENT, RUN, STEP};
use crate::error::StoreError;
use crate::run_audit::{Open, RUNS, Rows, add_open, org_account, reserved, reserved_for};
use crate::runs::{self, LedgerRow};
use baton_core::audit::Report;
use baton_core::ledger::{Account, Kind};
use baton_core::run::record::AttemptRecord;
use baton_core::{AgentId, JobId, Json, OrgId, RunId};
use std::collections::BTreeMap;
use tokio_postgres::{Row, Transaction};
use uuid::Uuid;

pub(super) async fn runs(tx: &Transaction<'_>, report: &mut Report) -> Result<(), StoreError> {
    let orgs = ask(tx, "SELECT DISTINCT org FROM ledger UNION SELECT DISTINCT org FROM run", &[]).await?;
    for org in &orgs {
        let org: OrgId = parsed(org, 0)?;
        let sql = format!("SELECT {} FROM doc WHERE org = $1 AND class = 'account' AND key = 'org'", rows::DOC);
        let account = ask(tx, &sql, &[&org.as_str()]).await?.first().map(|row| rows::doc(row, 0)).transpose()?;
        let entries = entries(tx, &org, &["org".to_owned()]).await?;
        let said = org_account(&org, account.as_ref(), &entries, report);
        let mut sum = 0;
        let open = open(tx, &org).await?;
        let sql = format!("SELECT {RUN} FROM run WHERE org = $1 AND id > $2 ORDER BY id LIMIT $3");
        let mut after = Uuid::nil();
        loop {
            let found = ask(tx, &sql, &[&org.as_str(), &after, &RUNS]).await?;
            let Some(last) = found.last() else { break };
            after = get(last, 1)?;
            for rows in gather(tx, &org, &found).await?.values() {
                sum += reserved_for(&rows.run);
                rows.audit(&open, report);
            }
        }
        reserved(&org, said, sum, report);
    }
    orphans(tx, report).await
}

async fn open(tx: &Transaction<'_>, org: &OrgId) -> Result<Open, StoreError> {
    let mut open = Open::new();
    let sql = format!("SELECT {} FROM doc WHERE org = $1 AND class = 'decision' AND flag", rows::DOC);
    for row in &ask(tx, &sql, &[&org.as_str()]).await? {
        add_open(&mut open, &rows::doc(row, 0)?);
    }
    Ok(open)
}

/// The rows of a page of runs, table by table.
async fn gather(tx: &Transaction<'_>, org: &OrgId, page: &[Row]) -> Result<BTreeMap<RunId, Rows>, StoreError> {
    let mut all = BTreeMap::new();
    for row in page {
        let run = run_rows::run(row)?;
        all.insert(run.id, Rows::new(run));
    }
    let (org, ids): (&str, Vec<Uuid>) = (org.as_str(), all.keys().map(|id| id.0).collect());
    let sql = format!("SELECT {AGENT} FROM run_agent WHERE org = $1 AND run = ANY($2)");
    for row in &ask(tx, &sql, &[&org, &ids]).await? {
        let agent = run_rows::agent(row, 0)?;
        if let Some(rows) = all.get_mut(&agent.run) {
            rows.agents.push(agent);
        }
    }
    let jobs: Vec<Uuid> = all.values().flat_map(Rows::named_jobs).map(|job| job.0).collect();
    for row in &ask(tx, "SELECT id FROM live WHERE org = $1 AND id = ANY($2)", &[&org, &jobs]).await? {
        let job = JobId(get(row, 0)?);
        if let Some(rows) = all.values_mut().find(|rows| rows.named_jobs().contains(&job)) {
            rows.jobs.insert(job);
        }
    }
    let sql = "SELECT subject, at FROM timer WHERE org = $1 AND subject = ANY($2) AND kind = 'run'";
    for row in &ask(tx, sql, &[&org, &ids]).await? {
        if let Some(rows) = all.get_mut(&RunId(get(row, 0)?)) {
            rows.timer = Some(rows::micros(row, 1)?);
        }
    }
    for row in &ask(tx, "SELECT id, plan FROM run_plan WHERE org = $1 AND id = ANY($2)", &[&org, &ids]).await? {
        if let Some(rows) = all.get_mut(&RunId(get(row, 0)?)) {
            rows.plan = Some(Json::stored(get::<&str>(row, 1)?));
        }
    }
    money(tx, org, &mut all).await?;
    records(tx, org, &mut all).await?;
    Ok(all)
}

async fn money(tx: &Transaction<'_>, org: &str, all: &mut BTreeMap<RunId, Rows>) -> Result<(), StoreError> {
    let mut owners: BTreeMap<String, (RunId, Account)> = BTreeMap::new();
    for (id, rows) in all.iter() {
        owners.extend(rows.accounts().into_iter().map(|account| (account.to_string(), (*id, account))));
    }
    let names: Vec<String> = owners.keys().cloned().collect();
    for entry in entries(tx, &org.parse().map_err(garbled)?, &names).await? {
        if let Some((run, account)) = owners.get(&entry.account)
            && let Some(rows) = all.get_mut(run)
        {
            rows.entry(*account, entry);
        }
    }
    Ok(())
}

async fn records(tx: &Transaction<'_>, org: &str, all: &mut BTreeMap<RunId, Rows>) -> Result<(), StoreError> {
    let owners: BTreeMap<AgentId, RunId> =
        all.iter().flat_map(|(run, rows)| rows.agents.iter().map(|agent| (agent.id, *run))).collect();
    let agents: Vec<Uuid> = owners.keys().map(|id| id.0).collect();
    let runs: Vec<Uuid> = all.keys().map(|id| id.0).collect();
    // Results are large, and nobody looks at them here.
    let sql =
        format!("SELECT {} FROM run_step WHERE org = $1 AND agent = ANY($2)", STEP.replace("result", "NULL::text"));
    for row in &ask(tx, &sql, &[&org, &agents]).await? {
        let step = run_rows::step(row)?;
        if let Some(rows) = owners.get(&step.agent).and_then(|run| all.get_mut(run)) {
            rows.step(step);
        }
    }
    let sql = "SELECT agent, body FROM run_task WHERE org = $1 AND agent = ANY($2)";
    for row in &ask(tx, sql, &[&org, &agents]).await? {
        let agent = AgentId(get(row, 0)?);
        let Some(run) = owners.get(&agent) else { continue };
        let task = runs::task(agent, *run, get(row, 1)?).map_err(garbled)?;
        if let Some(rows) = all.get_mut(run) {
            rows.task(task);
        }
    }
    let sql = "SELECT run, body FROM run_attempt WHERE org = $1 AND run = ANY($2) ORDER BY run, attempt";
    for row in &ask(tx, sql, &[&org, &runs]).await? {
        let attempt: AttemptRecord = serde_json::from_str(get(row, 1)?).map_err(garbled)?;
        if let Some(rows) = all.get_mut(&RunId(get(row, 0)?)) {
            rows.attempt(attempt);
        }
    }
    Ok(())
}

/// Account by account, each in the order of its entries.
async fn entries(tx: &Transaction<'_>, org: &OrgId, accounts: &[String]) -> Result<Vec<LedgerRow>, StoreError> {
    let sql = "SELECT account, n, kind, amount, balance_after, key, at FROM ledger \
               WHERE org = $1 AND account = ANY($2) ORDER BY account, n";
    let found = ask(tx, sql, &[&org.as_str(), &accounts]).await?;
    let entry = |row: &Row| {
        let amount = |i: usize| runs::credits(get(row, i)?).ok_or_else(|| garbled("not an amount"));
        Ok(LedgerRow {
            account: get(row, 0)?,
            n: get(row, 1)?,
            kind: Kind::parse(get(row, 2)?).ok_or_else(|| garbled("not a kind of entry"))?,
            amount: amount(3)?,
            balance_after: amount(4)?,
            key: get(row, 5)?,
            run: None,
            at: rows::micros(row, 6)?,
        })
    };
    found.iter().map(entry).collect()
}

/// Rows that belong to nobody.
async fn orphans(tx: &Transaction<'_>, report: &mut Report) -> Result<(), StoreError> {
    let of_run = "NOT EXISTS (SELECT 1 FROM run r WHERE r.org = x.org AND r.id = x.run)";
    let of_agent = "NOT EXISTS (SELECT 1 FROM run_agent r WHERE r.org = x.org AND r.id = x.agent AND r.run = x.run)";
    let checks = [
        ("agent", format!("SELECT DISTINCT org, run FROM run_agent x WHERE {of_run}")),
        ("step", format!("SELECT DISTINCT org, run FROM run_step x WHERE {of_agent}")),
        ("task", format!("SELECT DISTINCT org, run FROM run_task x WHERE {of_agent}")),
        ("attempt", format!("SELECT DISTINCT org, run FROM run_attempt x WHERE {of_run}")),
        ("entry", format!("SELECT DISTINCT org, run FROM ledger x WHERE run IS NOT NULL AND {of_run}")),
    ];
    for (what, sql) in checks {
        for row in &ask(tx, &sql, &[]).await? {
            let detail = format!("{what}s of it are there, but nothing they belong to");
            report.add("orphan_row", &parsed(row, 0)?, RunId(get(row, 1)?), detail);
        }
    }
    Ok(())
}
