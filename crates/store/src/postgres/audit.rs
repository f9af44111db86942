//! Verifying the whole history, in one snapshot, page by page.

use super::rows::{self, get, parsed};
use super::{Db, OPEN_WAIT, audit_run, link};
use crate::error::StoreError;
use baton_core::audit::{Chains, Claimed, Prunings, Report, Seals};
use baton_core::job::prune::Stub;
use baton_core::seal::{Key, Root};
use baton_core::{Digest, JobId, Json, OrgId};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio_postgres::{CancelToken, Client, Config, IsolationLevel, NoTls, Row, Transaction};
use uuid::Uuid;

/// Rows held in memory at once.
const PAGE: i64 = 5_000;

impl Db {
    pub(crate) async fn audit(&self, key: Option<Key>) -> Result<Report, StoreError> {
        if self.pool.is_closed() {
            return Err(StoreError::Closed);
        }
        // A connection of its own: it may take minutes, and others want to read meanwhile.
        let mut apart = Apart::open(&self.config).await?;
        let snapshot = apart
            .client
            .build_transaction()
            .isolation_level(IsolationLevel::RepeatableRead)
            .read_only(true)
            .start()
            .await
            .map_err(|e| link::store_error(&e))?;
        let mut report = Report::default();
        chains(&snapshot, &mut report).await?;
        let orgs = ask(&snapshot, "SELECT DISTINCT org FROM seal ORDER BY org", &[]).await?;
        for row in &orgs {
            seals(&snapshot, &parsed(row, 0)?, key.as_ref(), &mut report).await?;
        }
        rows_without(&snapshot, &mut report).await?;
        pruned(&snapshot, &mut report).await?;
        counts(&snapshot, &mut report).await?;
        audit_run::runs(&snapshot, &mut report).await?;
        Ok(report)
    }
}

/// One connection for one long question; who gives up waiting ends the question too.
struct Apart {
    client: Client,
    cancel: CancelToken,
    driver: JoinHandle<()>,
}

impl Apart {
    async fn open(config: &Config) -> Result<Self, StoreError> {
        let opened = tokio::time::timeout(OPEN_WAIT, link::plain(config)).await;
        let (client, driver) = opened
            .map_err(|_| StoreError::Unavailable("it does not answer".to_owned()))?
            .map_err(|e| link::store_error(&e))?;
        Ok(Self { cancel: client.cancel_token(), client, driver })
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        self.driver.abort();
        if let Ok(runtime) = Handle::try_current() {
            let cancel = self.cancel.clone();
            runtime.spawn(async move { tokio::time::timeout(OPEN_WAIT, cancel.cancel_query(NoTls)).await });
        }
    }
}

pub(super) async fn ask(
    tx: &Transaction<'_>,
    sql: &str,
    params: &[&(dyn tokio_postgres::types::ToSql + Sync)],
) -> Result<Vec<Row>, StoreError> {
    tx.query(sql, params).await.map_err(|e| link::store_error(&e))
}

async fn chains(tx: &Transaction<'_>, report: &mut Report) -> Result<(), StoreError> {
    let sql = format!(
        "SELECT {}, coalesce(l.head_n, j.head_n, d.head_n, o.head_n, r.head_n, a.head_n), \
         coalesce(l.head_hash, j.head_hash, d.head_hash, o.head_hash, r.head_hash, a.head_hash), \
         coalesce(l.state, j.state, r.state), \
         sha256(convert_to(CASE e.kind WHEN 'job.queued' THEN j.payload WHEN 'job.merged' THEN j.payload \
         WHEN 'job.completed' THEN j.result END, 'UTF8')) \
         FROM (SELECT * FROM event WHERE (subject, org, n) > ($2, $1, $3) ORDER BY subject, org, n LIMIT $4) e \
         LEFT JOIN live l ON l.org = e.org AND l.id = e.subject \
         LEFT JOIN job j ON j.org = e.org AND j.id = e.subject \
         LEFT JOIN definition d ON d.org = e.org AND d.id = e.subject \
         LEFT JOIN doc o ON o.org = e.org AND o.id = e.subject \
         LEFT JOIN run r ON r.org = e.org AND r.id = e.subject \
         LEFT JOIN run_agent a ON a.org = e.org AND a.id = e.subject \
         ORDER BY e.subject, e.org, e.n",
        rows::EVENT
    );
    let mut chains = Chains::default();
    let mut after = (String::new(), Uuid::nil(), 0i64);
    loop {
        let found = ask(tx, &sql, &[&after.0, &after.1, &after.2, &PAGE]).await?;
        for row in &found {
            let (_, event) = rows::event(row)?;
            let claimed = match get::<Option<i64>>(row, rows::EVENT_LEN)? {
                Some(n) => {
                    let hash = rows::digest(row, rows::EVENT_LEN + 1)?;
                    Some(Claimed { n, hash, state: get(row, rows::EVENT_LEN + 2)? })
                }
                None => None,
            };
            after = (event.org.to_string(), event.subject, event.n);
            // Hashed by the database: a page of payloads would be too much to hold.
            let body = get::<Option<&[u8]>>(row, rows::EVENT_LEN + 3)?.and_then(Digest::from_slice);
            chains.event(report, &event, claimed, body);
        }
        if i64::try_from(found.len()) != Ok(PAGE) {
            chains.finish(report);
            return Ok(());
        }
    }
}

async fn seals(tx: &Transaction<'_>, org: &OrgId, key: Option<&Key>, report: &mut Report) -> Result<(), StoreError> {
    let sql = format!("SELECT {} FROM seal s WHERE s.org = $1 AND s.n > $2 ORDER BY s.n LIMIT $3", rows::SEAL);
    let range = "(SELECT pos, hash FROM event WHERE org = $1 AND pos > $2 AND pos <= $3 ORDER BY pos LIMIT $4) UNION ALL \
                 (SELECT pos, hash FROM pruned WHERE org = $1 AND pos > $2 AND pos <= $3 ORDER BY pos LIMIT $4) \
                 ORDER BY pos LIMIT $4";
    let mut checker = Seals::new(key);
    let mut after = 0i64;
    loop {
        let found = ask(tx, &sql, &[&org.as_str(), &after, &PAGE]).await?;
        for row in &found {
            let seal = rows::seal(row)?;
            after = seal.n;
            let mut root = Root::default();
            let mut from = seal.from_pos;
            loop {
                let events = ask(tx, range, &[&org.as_str(), &from, &seal.to_pos, &PAGE]).await?;
                for row in &events {
                    from = get(row, 0)?;
                    root.add(from, rows::digest(row, 1)?);
                }
                if i64::try_from(events.len()) != Ok(PAGE) {
                    break;
                }
            }
            checker.seal(report, &seal, root);
        }
        if i64::try_from(found.len()) != Ok(PAGE) {
            return Ok(());
        }
    }
}

/// Rows whose history or whose other half is missing.
async fn rows_without(tx: &Transaction<'_>, report: &mut Report) -> Result<(), StoreError> {
    const NO_EVENT: &str = "NOT EXISTS (SELECT 1 FROM event e WHERE e.org = r.org AND e.subject = r.id)";
    let limit = i64::try_from(baton_core::audit::KEPT).unwrap_or(i64::MAX);
    let checks = [
        ("no_history", format!("SELECT org, id FROM job r WHERE {NO_EVENT} LIMIT $1")),
        ("no_history", format!("SELECT org, id FROM definition r WHERE {NO_EVENT} LIMIT $1")),
        ("no_history", format!("SELECT org, id FROM doc r WHERE {NO_EVENT} LIMIT $1")),
        ("no_history", format!("SELECT org, id FROM run r WHERE {NO_EVENT} LIMIT $1")),
        ("no_history", format!("SELECT org, id FROM run_agent r WHERE {NO_EVENT} LIMIT $1")),
        (
            "job_lost",
            "SELECT org, id FROM job r WHERE state IS NULL AND NOT EXISTS \
             (SELECT 1 FROM live l WHERE l.org = r.org AND l.id = r.id) LIMIT $1"
                .to_owned(),
        ),
        (
            "job_undead",
            "SELECT org, id FROM live r WHERE NOT EXISTS \
             (SELECT 1 FROM job j WHERE j.org = r.org AND j.id = r.id AND j.state IS NULL) LIMIT $1"
                .to_owned(),
        ),
    ];
    for (code, sql) in checks {
        for row in &ask(tx, &sql, &[&limit]).await? {
            report.add(code, &parsed(row, 0)?, JobId(get(row, 1)?), "see docs/errors.md");
        }
    }
    Ok(())
}

/// What was removed is what the events say was removed.
async fn pruned(tx: &Transaction<'_>, report: &mut Report) -> Result<(), StoreError> {
    let told = "SELECT org, subject, n, data FROM event WHERE kind = 'retention.pruned' AND (subject, org, n) > ($2, $1, $3) \
                ORDER BY subject, org, n LIMIT $4";
    let removed = "SELECT pos, hash FROM pruned WHERE org = $1 AND by = $2 AND n = $3 ORDER BY pos";
    let mut checker = Prunings::default();
    let mut after = (String::new(), Uuid::nil(), 0i64);
    loop {
        let found = ask(tx, told, &[&after.0, &after.1, &after.2, &PAGE]).await?;
        for row in &found {
            let (org, by, n): (OrgId, Uuid, i64) = (parsed(row, 0)?, get(row, 1)?, get(row, 2)?);
            for stub in &ask(tx, removed, &[&org.as_str(), &by, &n]).await? {
                let stub = Stub { pos: get(stub, 0)?, hash: rows::digest(stub, 1)?.0 };
                checker.removed(org.clone(), by, n, stub);
            }
            checker.told(report, &org, by, n, &Json::stored(get::<&str>(row, 3)?));
            after = (org.to_string(), by, n);
        }
        if i64::try_from(found.len()) != Ok(PAGE) {
            break;
        }
    }
    let untold = "SELECT p.org, p.by, p.n, p.pos, p.hash FROM pruned p WHERE NOT EXISTS (SELECT 1 FROM event e \
                  WHERE e.org = p.org AND e.subject = p.by AND e.n = p.n AND e.kind = 'retention.pruned') LIMIT $1";
    for row in &ask(tx, untold, &[&PAGE]).await? {
        let stub = Stub { pos: get(row, 3)?, hash: rows::digest(row, 4)?.0 };
        checker.removed(parsed(row, 0)?, get(row, 1)?, get(row, 2)?, stub);
    }
    checker.finish(report);
    Ok(())
}

/// Counters against counts.
async fn counts(tx: &Transaction<'_>, report: &mut Report) -> Result<(), StoreError> {
    let sql = "SELECT org, key, sum(running)::bigint, sum(waiting)::bigint FROM ( \
               SELECT org, key, running, waiting, outside FROM lane UNION ALL \
               SELECT org, lane, -(slot = 0)::int, -(slot = 1)::int, -(slot = 1 AND outside)::int FROM live WHERE kept) x \
               GROUP BY org, key HAVING sum(running) <> 0 OR sum(waiting) <> 0 OR sum(outside) <> 0";
    for row in &ask(tx, sql, &[]).await? {
        report.lane(&parsed(row, 0)?, get(row, 1)?, get(row, 2)?, get(row, 3)?);
    }
    let sql = "SELECT (SELECT coalesce(sum(waiting), 0) FROM crowd)::bigint - \
               (SELECT count(*) FROM live WHERE outside AND slot = 1 AND starts_with(lane, 'project:'))";
    if let Some(row) = ask(tx, sql, &[]).await?.first() {
        report.crowd(get(row, 0)?);
    }
    Ok(())
}
