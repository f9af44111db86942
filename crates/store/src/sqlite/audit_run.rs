//! Verifying runs and money, in the snapshot of the audit.

use super::run_rows::{self, AGENT, RUN, STEP};
use super::{load, rows as row};
use crate::run_audit::{Open, RUNS, Rows, add_open, org_account, reserved, reserved_for};
use crate::runs::{self, LedgerRow};
use baton_core::audit::Report;
use baton_core::doc;
use baton_core::ledger::Kind;
use baton_core::run::Run;
use baton_core::run::record::AttemptRecord;
use baton_core::{Json, OrgId, RunId};
use rusqlite::{Connection, OptionalExtension};

pub(super) fn runs(conn: &Connection, report: &mut Report) -> rusqlite::Result<()> {
    let orgs: Vec<OrgId> = conn
        .prepare_cached("SELECT DISTINCT org FROM ledger UNION SELECT DISTINCT org FROM run")?
        .query_map([], |r| row::parsed(r, 0))?
        .collect::<rusqlite::Result<_>>()?;
    for org in orgs {
        let account = load::doc(conn, &org, &doc::Key { class: doc::Class::Account, key: "org".to_owned() })?;
        let said = org_account(&org, account.as_ref(), &entries(conn, &org, "org")?, report);
        let mut found = 0;
        let open = open(conn, &org)?;
        let mut after = uuid::Uuid::nil();
        loop {
            let sql = format!("SELECT {RUN} FROM run WHERE org = ?1 AND id > ?2 ORDER BY id LIMIT ?3");
            let page: Vec<Run> = conn
                .prepare_cached(&sql)?
                .query_map((org.as_str(), after.as_bytes(), RUNS), run_rows::run)?
                .collect::<rusqlite::Result<_>>()?;
            let Some(last) = page.last() else { break };
            after = last.id.0;
            found += page.iter().map(reserved_for).sum::<i64>();
            for run in page {
                gather(conn, run)?.audit(&open, report);
            }
        }
        reserved(&org, said, found, report);
    }
    orphans(conn, report)
}

fn open(conn: &Connection, org: &OrgId) -> rusqlite::Result<Open> {
    let mut open = Open::new();
    let sql = format!("SELECT {} FROM doc WHERE org = ?1 AND class = 'decision' AND flag = 1", row::DOC);
    let mut all = conn.prepare_cached(&sql)?;
    for doc in all.query_map([org.as_str()], |r| row::doc(r, 0))? {
        add_open(&mut open, &doc?);
    }
    Ok(open)
}

fn gather(conn: &Connection, run: Run) -> rusqlite::Result<Rows> {
    let (org, id) = (run.org.clone(), run.id);
    let mut rows = Rows::new(run);
    let by = (org.as_str(), id.0.as_bytes());
    rows.agents = conn
        .prepare_cached(&format!("SELECT {AGENT} FROM run_agent WHERE org = ?1 AND run = ?2"))?
        .query_map(by, run_rows::agent)?
        .collect::<rusqlite::Result<_>>()?;
    for job in rows.named_jobs() {
        let mut live =
            conn.prepare_cached("SELECT 1 FROM job j JOIN live l ON l.ord = j.ord WHERE j.org = ?1 AND j.id = ?2")?;
        if live.exists((org.as_str(), job.0.as_bytes()))? {
            rows.jobs.insert(job);
        }
    }
    rows.timer = conn
        .prepare_cached("SELECT at FROM timer WHERE org = ?1 AND subject = ?2 AND kind = 'run'")?
        .query_row(by, |r| row::micros(r, 0))
        .optional()?;
    rows.plan = conn
        .prepare_cached("SELECT plan FROM run_plan WHERE org = ?1 AND id = ?2")?
        .query_row(by, |r| Ok(Json::stored(r.get::<_, String>(0)?)))
        .optional()?;
    for account in rows.accounts() {
        for entry in entries(conn, &org, &account.to_string())? {
            rows.entry(account, entry);
        }
    }
    for agent in rows.agents.iter().map(|agent| agent.id).collect::<Vec<_>>() {
        let by = (org.as_str(), agent.0.as_bytes());
        // Results are large, and nobody looks at them here.
        let sql = format!("SELECT {} FROM run_step WHERE org = ?1 AND agent = ?2", STEP.replace("result", "NULL"));
        for step in conn.prepare_cached(&sql)?.query_map(by, run_rows::step)? {
            rows.step(step?);
        }
        let mut tasks = conn.prepare_cached("SELECT body FROM run_task WHERE org = ?1 AND agent = ?2")?;
        let found =
            tasks.query_map(by, |r| runs::task(agent, id, r.get_ref(0)?.as_str()?).map_err(|e| row::garbled(0, e)))?;
        for task in found {
            rows.task(task?);
        }
    }
    let mut attempts =
        conn.prepare_cached("SELECT body FROM run_attempt WHERE org = ?1 AND run = ?2 ORDER BY attempt")?;
    let found = attempts.query_map(by, |r| {
        serde_json::from_str::<AttemptRecord>(r.get_ref(0)?.as_str()?).map_err(|e| row::garbled(0, e))
    })?;
    for attempt in found {
        rows.attempt(attempt?);
    }
    Ok(rows)
}

fn entries(conn: &Connection, org: &OrgId, account: &str) -> rusqlite::Result<Vec<LedgerRow>> {
    let sql = "SELECT n, kind, amount, balance_after, key, at FROM ledger WHERE org = ?1 AND account = ?2 ORDER BY n";
    let mut all = conn.prepare_cached(sql)?;
    let found = all.query_map((org.as_str(), account), |r| {
        let amount = |i: usize| -> rusqlite::Result<_> {
            runs::credits(r.get(i)?).ok_or_else(|| row::garbled(i, "not an amount"))
        };
        Ok(LedgerRow {
            account: account.to_owned(),
            n: r.get(0)?,
            kind: Kind::parse(r.get_ref(1)?.as_str()?).ok_or_else(|| row::garbled(1, "not a kind of entry"))?,
            amount: amount(2)?,
            balance_after: amount(3)?,
            key: r.get(4)?,
            run: None,
            at: row::micros(r, 5)?,
        })
    })?;
    found.collect()
}

/// Rows that belong to nobody.
fn orphans(conn: &Connection, report: &mut Report) -> rusqlite::Result<()> {
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
        let mut all = conn.prepare_cached(&sql)?;
        let mut found = all.query([])?;
        while let Some(r) = found.next()? {
            let detail = format!("{what}s of it are there, but nothing they belong to");
            report.add("orphan_row", &row::parsed(r, 0)?, RunId(row::uuid(r, 1)?), detail);
        }
    }
    Ok(())
}
