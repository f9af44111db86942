//! Asking after a commit whose answer was lost.
//!
//! As a rule the transaction's own id is known before the commit is sent, and the server can say what
//! became of it, also after a crash and recovery of its own. After a crash an id that never
//! reached the disk may be given to somebody else, though, so "committed" is believed only if
//! what the group wrote is there as well. Where one statement was the whole transaction there is no
//! id; then it is waited for the end of the process that worked on it, and what was written alone tells.

use super::Shared;
use super::commit::Lost;
use super::link;
use baton_core::world::JobWrite;
use std::time::Duration;
use tokio::time::{Instant, timeout};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error};

/// How long we keep asking before we admit that we do not know.
const ASK_FOR: Duration = Duration::from_secs(30);
const ASK_AGAIN: Duration = Duration::from_millis(500);
/// One question, connecting included.
const ASK_WAIT: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Became {
    Committed,
    Aborted,
    Unknown,
}

pub(super) async fn resolve(shared: &Shared, lost: &Lost) -> Became {
    tracing::warn!(xid = lost.xid, backend = ?lost.backend, "the answer to a commit was lost; asking what became of it");
    let until = Instant::now() + ASK_FOR;
    // A backend that is still busy with it is usually done at once: ask soon first.
    let mut pause = Duration::from_millis(10);
    while Instant::now() < until {
        match timeout(ASK_WAIT, ask(shared, lost)).await {
            Ok(Ok(Some(became))) => {
                tracing::info!(xid = lost.xid, ?became, "the lost commit is accounted for");
                return became;
            }
            Ok(Ok(None)) => {}
            Ok(Err(e)) => tracing::warn!(error = link::text(&e), "cannot ask after a lost commit yet"),
            Err(_) => tracing::warn!("nobody answers who could tell of a lost commit"),
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(ASK_AGAIN);
    }
    tracing::error!(xid = lost.xid, "could not find out what became of a commit");
    Became::Unknown
}

/// `None` while the old backend still works on it.
async fn ask(shared: &Shared, lost: &Lost) -> Result<Option<Became>, Error> {
    let (client, driver) = link::plain(&shared.config).await?;
    let became = asked(&client, lost).await;
    driver.abort();
    became
}

async fn asked(client: &Client, lost: &Lost) -> Result<Option<Became>, Error> {
    let Some(xid) = &lost.xid else {
        // Once nobody works on it any more, what it wrote is there or never will be.
        let there = lost.backend.end(client).await?;
        return if there { Ok(None) } else { stands(client, lost).await.map(Some) };
    };
    let row = client.query_one("SELECT pg_xact_status($1::text::xid8)", &[xid]).await?;
    match row.try_get::<_, Option<&str>>(0)? {
        Some("committed") => stands(client, lost).await.map(Some),
        Some("aborted") => Ok(Some(Became::Aborted)),
        Some(_) => {
            lost.backend.end(client).await?;
            Ok(None)
        }
        // Too old to be remembered: cannot be ours of a moment ago.
        None => Ok(Some(Became::Unknown)),
    }
}

/// Whether what the group wrote is there. One row tells for all: they were written together. Rows
/// that may have changed since tell only yes; for a purge alone the server's word must do: being
/// wrong about it costs nothing, it comes again.
async fn stands(client: &Client, lost: &Lost) -> Result<Became, Error> {
    let world = &lost.world;
    let (found, otherwise) = if let Some(event) = world.events().last() {
        let sql = "SELECT 1 FROM event WHERE org = $1 AND subject = $2 AND n = $3 AND hash = $4";
        let key: [&(dyn ToSql + Sync); 4] = [&event.org.as_str(), &event.subject, &event.n, &event.hash.0.as_slice()];
        (client.query(sql, &key).await?, Became::Aborted)
    } else if let Some(seal) = world.seal_writes().last() {
        let sql = "SELECT 1 FROM seal WHERE org = $1 AND n = $2 AND mac = $3";
        (client.query(sql, &[&seal.org.as_str(), &seal.n, &seal.mac.0.as_slice()]).await?, Became::Aborted)
    } else if let Some((key, record)) = world.once_writes().last() {
        let sql = "SELECT 1 FROM once WHERE org = $1 AND scope = $2 AND key = $3 AND request = $4 AND expires_at = $5";
        let row: [&(dyn ToSql + Sync); 5] =
            [&key.org.as_str(), &key.scope, &key.key, &record.request.0.as_slice(), &record.expires_at.0];
        (client.query(sql, &row).await?, Became::Aborted)
    } else if let Some(JobWrite::Update(job)) = world.job_writes().last() {
        // A lease that was extended, or a wake-up that was noted: neither is ever taken back.
        let sql = "SELECT 1 FROM live WHERE org = $1 AND id = $2 AND token = $3 AND wakes >= $4 \
                   AND (lease_until IS NULL OR $5::bigint IS NULL OR lease_until >= $5)";
        let until = job.status.lease().map(|lease| lease.until.0);
        (client.query(sql, &[&job.org.as_str(), &job.id.0, &job.token, &job.wakes, &until]).await?, Became::Unknown)
    } else {
        return Ok(if lost.xid.is_some() { Became::Committed } else { Became::Unknown });
    };
    Ok(if found.is_empty() { otherwise } else { Became::Committed })
}
