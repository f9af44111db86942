//! Verifying the whole history, in one snapshot on a reading connection.

use super::links::{Link, Links};
use super::{Db, audit_run, rows as row, store_error};
use crate::error::StoreError;
use baton_core::audit::{Chains, Claimed, Prunings, Report, Seals};
use baton_core::job::prune::Stub;
use baton_core::seal::{Key, Root};
use baton_core::{Digest, JobId, Json, OrgId};
use rusqlite::{Connection, Transaction};

impl Db {
    pub(crate) async fn audit(&self, key: Option<Key>) -> Result<Report, StoreError> {
        self.read_apart(move |conn| {
            let snapshot = conn.transaction().map_err(store_error)?;
            audit(&snapshot, key.as_ref()).map_err(store_error)
        })
        .await
    }
}

fn audit(tx: &Transaction<'_>, key: Option<&Key>) -> rusqlite::Result<Report> {
    let mut report = rows(tx, key)?;
    file(tx, &mut report)?;
    Ok(report)
}

/// Everything but the file itself.
pub(super) fn rows(tx: &Transaction<'_>, key: Option<&Key>) -> rusqlite::Result<Report> {
    let mut report = Report::default();
    chains(tx, &mut report)?;
    // Not the orgs that have a history: one that was removed whole is still sealed.
    let sealed = tx
        .prepare("SELECT DISTINCT org FROM seal ORDER BY org")?
        .query_map([], |row| row::parsed(row, 0))?
        .collect::<rusqlite::Result<Vec<OrgId>>>()?;
    for org in sealed {
        seals(tx, &org, key, &mut report)?;
    }
    rows_without(tx, &mut report)?;
    pruned(tx, &mut report)?;
    counts(tx, &mut report)?;
    audit_run::runs(tx, &mut report)?;
    Ok(report)
}

fn file(conn: &Connection, report: &mut Report) -> rusqlite::Result<()> {
    let verdict: String = conn.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
    if verdict != "ok" {
        report.add("file_corrupt", &OrgId::default(), "baton.db", verdict);
    }
    Ok(())
}

/// Subject by subject. What is sorted for that is places alone, not events: these are looked up one by one.
fn chains(conn: &Connection, report: &mut Report) -> rusqlite::Result<()> {
    let mut places = conn.prepare_cached("SELECT org, pos FROM event ORDER BY org, subject, n")?;
    let mut told = conn.prepare_cached(&format!(
        "SELECT {}, coalesce(l.head_n, j.head_n, d.head_n, o.head_n, r.head_n, a.head_n),
         coalesce(l.head_hash, j.head_hash, d.head_hash, o.head_hash, r.head_hash, a.head_hash),
         coalesce(l.state, j.state, r.state),
         CASE e.kind WHEN 'job.queued' THEN j.payload WHEN 'job.merged' THEN j.payload
         WHEN 'job.completed' THEN j.result END, e.prev, coalesce(l.head_pos, j.head_pos)
         FROM event e
         LEFT JOIN job j ON j.org = e.org AND j.id = e.subject
         LEFT JOIN live l ON l.ord = j.ord
         LEFT JOIN definition d ON d.org = e.org AND d.id = e.subject
         LEFT JOIN doc o ON o.org = e.org AND o.id = e.subject
         LEFT JOIN run r ON r.org = e.org AND r.id = e.subject
         LEFT JOIN run_agent a ON a.org = e.org AND a.id = e.subject
         WHERE e.org = ?1 AND e.pos = ?2",
        row::EVENT
    ))?;
    let (mut chains, mut links) = (Chains::default(), Links::default());
    let mut found = places.query([])?;
    while let Some(place) = found.next()? {
        told.query_row((place.get_ref(0)?.as_str()?, place.get::<_, i64>(1)?), |row| {
            let (pos, event) = row::event(row)?;
            let claimed = match row.get::<_, Option<i64>>(row::EVENT_LEN)? {
                Some(n) => {
                    let hash = row::digest(row, row::EVENT_LEN + 1)?;
                    Some(Claimed { n, hash, state: row.get(row::EVENT_LEN + 2)? })
                }
                None => None,
            };
            let body = row.get_ref(row::EVENT_LEN + 3)?.as_bytes_or_null()?.map(|text| Digest::of(&[text]));
            let head_pos: Option<i64> = row.get(row::EVENT_LEN + 5)?;
            let head = claimed.as_ref().zip(head_pos).map(|(claimed, pos)| (claimed.n, pos));
            links.event(report, &event, &Link { pos, prev: row.get(row::EVENT_LEN + 4)?, head });
            chains.event(report, &event, claimed, body);
            Ok(())
        })?;
    }
    links.finish(report);
    chains.finish(report);
    Ok(())
}

fn seals(conn: &Connection, org: &OrgId, key: Option<&Key>, report: &mut Report) -> rusqlite::Result<()> {
    let mut all = conn.prepare_cached(&format!("SELECT {} FROM seal s WHERE s.org = ?1 ORDER BY s.n", row::SEAL))?;
    let mut range = conn.prepare_cached(
        "SELECT pos, hash FROM event WHERE org = ?1 AND pos > ?2 AND pos <= ?3
             UNION ALL SELECT pos, hash FROM pruned WHERE org = ?1 AND pos > ?2 AND pos <= ?3 ORDER BY pos",
    )?;
    let mut checker = Seals::new(key);
    for seal in all.query_map([org.as_str()], row::seal)? {
        let seal = seal?;
        let mut root = Root::default();
        let mut events = range.query((org.as_str(), seal.from_pos, seal.to_pos))?;
        while let Some(row) = events.next()? {
            root.add(row.get(0)?, row::digest(row, 1)?);
        }
        checker.seal(report, &seal, root);
    }
    Ok(())
}

/// Rows whose history or whose other half is missing.
fn rows_without(conn: &Connection, report: &mut Report) -> rusqlite::Result<()> {
    const NO_EVENT: &str = "NOT EXISTS (SELECT 1 FROM event e INDEXED BY event_by_subject WHERE e.org = r.org AND e.subject = r.id \
         AND e.prev IS NULL)";
    // All are looked for only if the last one is missing: CASE, because of AND it might do the second first.
    const NO_LINKED: &str = "CASE WHEN EXISTS (SELECT 1 FROM event e WHERE e.org = r.org AND e.subject = r.id
         AND e.pos = coalesce((SELECT l.head_pos FROM live l WHERE l.ord = r.ord), r.head_pos)) THEN false
         WHEN EXISTS (SELECT 1 FROM event e INDEXED BY event_by_subject WHERE e.org = r.org AND e.subject = r.id
         AND e.prev IS NULL) THEN false
         ELSE NOT EXISTS (SELECT 1 FROM event e WHERE e.org = r.org AND e.subject = r.id) END";
    let checks = [
        ("no_history", format!("SELECT org, id FROM job r WHERE {NO_LINKED}")),
        ("no_history", format!("SELECT org, id FROM definition r WHERE {NO_EVENT}")),
        ("no_history", format!("SELECT org, id FROM doc r WHERE {NO_EVENT}")),
        ("no_history", format!("SELECT org, id FROM run r WHERE {NO_EVENT}")),
        ("no_history", format!("SELECT org, id FROM run_agent r WHERE {NO_EVENT}")),
        (
            "job_lost",
            "SELECT org, id FROM job r WHERE state IS NULL
             AND NOT EXISTS (SELECT 1 FROM live l WHERE l.ord = r.ord AND l.org = r.org AND l.id = r.id)"
                .to_owned(),
        ),
        (
            "job_undead",
            "SELECT org, id FROM live r WHERE NOT EXISTS
             (SELECT 1 FROM job j WHERE j.ord = r.ord AND j.org = r.org AND j.id = r.id AND j.state IS NULL)"
                .to_owned(),
        ),
        (
            "job_misplaced",
            "SELECT org, id FROM live r WHERE (due_at IS NULL) <> (rank IS NULL) OR (rank IS NOT NULL AND NOT EXISTS
             (SELECT 1 FROM rank k WHERE k.id = r.rank AND k.class = r.class AND k.org = r.org AND k.lane = r.lane
             AND k.needs = (r.slot AND r.kept) AND k.type = r.type))"
                .to_owned(),
        ),
    ];
    for (code, sql) in checks {
        let mut all = conn.prepare_cached(&sql)?;
        let mut found = all.query([])?;
        while let Some(row) = found.next()? {
            report.add(code, &row::parsed(row, 0)?, JobId(row::uuid(row, 1)?), "see docs/errors.md");
        }
    }
    Ok(())
}

/// What was removed is what the events say was removed.
fn pruned(conn: &Connection, report: &mut Report) -> rusqlite::Result<()> {
    let mut checker = Prunings::default();
    let mut all = conn.prepare_cached("SELECT org, by, n, pos, hash FROM pruned ORDER BY org, by, n, pos")?;
    let mut found = all.query([])?;
    while let Some(r) = found.next()? {
        let stub = Stub { pos: r.get(3)?, hash: row::digest(r, 4)?.0 };
        checker.removed(row::parsed(r, 0)?, row::uuid(r, 1)?, r.get(2)?, stub);
    }
    let sql = "SELECT org, subject, n, data FROM event WHERE kind = 'retention.pruned' ORDER BY org, subject, n";
    let mut all = conn.prepare_cached(sql)?;
    let mut found = all.query([])?;
    while let Some(r) = found.next()? {
        let data = Json::stored(r.get::<_, String>(3)?);
        checker.told(report, &row::parsed(r, 0)?, row::uuid(r, 1)?, r.get(2)?, &data);
    }
    checker.finish(report);
    Ok(())
}

/// Counters against counts.
fn counts(conn: &Connection, report: &mut Report) -> rusqlite::Result<()> {
    let sql = "SELECT org, key, sum(running), sum(waiting) FROM (
                   SELECT org, key, running, waiting, outside FROM lane
                   UNION ALL SELECT org, lane, -(slot = 0), -(slot = 1), -(slot = 1 AND outside) FROM live WHERE kept)
               GROUP BY org, key HAVING sum(running) <> 0 OR sum(waiting) <> 0 OR sum(outside) <> 0";
    let mut all = conn.prepare_cached(sql)?;
    let mut found = all.query([])?;
    while let Some(r) = found.next()? {
        let (running, waiting): (i64, i64) = (r.get(2)?, r.get(3)?);
        report.lane(&row::parsed(r, 0)?, &r.get::<_, String>(1)?, running, waiting);
    }
    let sql = "SELECT (SELECT coalesce(sum(waiting), 0) FROM crowd) -
               (SELECT count(*) FROM live WHERE outside AND slot = 1 AND lane GLOB 'project:*')";
    report.crowd(conn.query_row(sql, [], |r| r.get(0))?);
    Ok(())
}

/// What happened after a place, in the order of commits, and the place after it.
#[cfg(feature = "faults")]
pub(super) fn history(conn: &Connection, after: i64) -> rusqlite::Result<(Vec<baton_core::event::Recorded>, i64)> {
    let sql = format!("SELECT {} FROM event e WHERE e.pos > ?1 ORDER BY e.pos", row::EVENT);
    let mut all = conn.prepare_cached(&sql)?;
    let found = all.query_map([after], row::event)?.collect::<rusqlite::Result<Vec<_>>>()?;
    let end = found.last().map_or(after, |(pos, _)| *pos);
    Ok((found.into_iter().map(|(_, event)| event).collect(), end))
}
