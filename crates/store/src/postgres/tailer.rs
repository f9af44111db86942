//! How far the history is final.
//!
//! Positions are taken in blocks (`block`) from a sequence while transactions run, so a lower one may appear after
//! a higher one. A reader that simply asked for "after this position" would skip events. One
//! tailer per node publishes a mark that readers never pass, always the end of a block:
//!
//! - a block appears as a whole, and blocks that are visible without a gap are final at once;
//! - at a gap, the tailer notes the highest block it has seen and draws a transaction id of
//!   its own. Every writer owns an id before it takes blocks, so whoever took one up to the
//!   noted one has a smaller id than that. When all smaller ids have ended, the gap will
//!   never be filled (somebody rolled back), and the noted block is final.

use super::{OPEN_WAIT, Shared, block, link};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout};
use tokio_postgres::{Client, Error, Statement};

/// Looks by itself this often, should no wake-up come.
const POLL: Duration = Duration::from_millis(500);
/// Between two looks at least.
const PACE: Duration = Duration::from_millis(2);
/// While a gap is open, somebody is about to commit or to roll back.
const GAP_POLL: Duration = Duration::from_millis(2);
const GAP_POLL_MAX: Duration = Duration::from_millis(100);
const RECONNECT: Duration = Duration::from_millis(500);
/// Blocks looked at in one step.
const STEP: i64 = 10_000;

pub(super) async fn run(shared: Arc<Shared>) {
    let mut mark = None;
    loop {
        if let Err(e) = connected(&shared, &mut mark).await {
            tracing::warn!(error = link::text(&e), "following the history is interrupted; readers wait");
        }
        tokio::time::sleep(RECONNECT).await;
    }
}

struct Gap {
    highest: i64,
    xid: String,
    looked: u32,
}

struct Questions {
    after: Statement,
    own_xid: Statement,
    settled: Statement,
}

async fn connected(shared: &Shared, mark: &mut Option<i64>) -> Result<(), Error> {
    let Ok(opened) = timeout(OPEN_WAIT, link::plain(&shared.config)).await else {
        tracing::warn!("the database does not answer; readers wait");
        return Ok(());
    };
    let (client, driver) = opened?;
    let result = follow(shared, &client, mark).await;
    driver.abort();
    result
}

async fn follow(shared: &Shared, client: &Client, mark: &mut Option<i64>) -> Result<(), Error> {
    client.batch_execute("SET enable_seqscan = off; SET jit = off").await?;
    let q = Questions {
        after: client.prepare(&block::heads_sql()).await?,
        own_xid: client.prepare("SELECT pg_current_xact_id()::text").await?,
        settled: client.prepare("SELECT pg_snapshot_xmin(pg_current_snapshot()) > $1::text::xid8").await?,
    };
    let mut at = match *mark {
        Some(at) => at,
        None => start(client, &q).await?,
    };
    let mut gap: Option<Gap> = None;
    loop {
        shared.signals.publish(at);
        *mark = Some(at);
        let looked = Instant::now();
        let rows = client.query(&q.after, &[&at, &STEP]).await?;
        let full = i64::try_from(rows.len()) == Ok(STEP);
        let mut highest = at;
        for row in &rows {
            let block = block::of(row.get(0));
            if block == block::of(at) + 1 {
                at = block::end(block);
            }
            highest = block::end(block);
        }
        if let Some(open) = &mut gap {
            if at >= open.highest {
                gap = None;
            } else if settled(client, &q, &open.xid).await? {
                at = open.highest;
                gap = None;
                continue;
            } else {
                open.looked += 1;
            }
        }
        if highest > at && gap.is_none() {
            let xid = client.query_one(&q.own_xid, &[]).await?.get(0);
            gap = Some(Gap { highest, xid, looked: 0 });
        }
        let pause = match &gap {
            Some(open) => GAP_POLL.saturating_mul(1 << open.looked.min(6)).min(GAP_POLL_MAX),
            None if full => Duration::ZERO,
            None => POLL,
        };
        shared.signals.publish(at);
        // Either way the next look decides; being woken only makes it sooner, but not at once if one was just made: many
        // commits are seen with one look.
        tokio::time::sleep_until(looked + PACE.min(pause)).await;
        let _ = timeout(pause, shared.tail.notified()).await;
    }
}

/// Everything up to the newest visible event, once whoever could still come before it has ended.
/// The sequence itself would not do: what it has handed out need not have survived a crash. One step an org, because the
/// first of a block may have been pruned.
async fn start(client: &Client, q: &Questions) -> Result<i64, Error> {
    let newest = "WITH RECURSIVE o(org) AS ((SELECT org FROM event ORDER BY org LIMIT 1) UNION ALL \
        SELECT (SELECT e.org FROM event e WHERE e.org > o.org ORDER BY e.org LIMIT 1) FROM o WHERE o.org IS NOT NULL) \
        SELECT max(e.pos) FROM o CROSS JOIN LATERAL \
        (SELECT e.pos FROM event e WHERE e.org = o.org ORDER BY e.pos DESC LIMIT 1) e";
    let row = client.query_one(newest, &[]).await?;
    let highest = row.get::<_, Option<i64>>(0).map_or(0, |pos| block::end(block::of(pos)));
    let xid: String = client.query_one(&q.own_xid, &[]).await?.get(0);
    while !settled(client, q, &xid).await? {
        tokio::time::sleep(GAP_POLL).await;
    }
    Ok(highest)
}

async fn settled(client: &Client, q: &Questions, xid: &str) -> Result<bool, Error> {
    client.query_one(&q.settled, &[&xid]).await?.try_get(0)
}
