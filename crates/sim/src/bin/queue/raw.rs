//! What the database does without Baton, with the same durability.

use crate::figure::{Figures, median};
use anyhow::{Result, ensure};
use baton_sim::lab::Lab;
use baton_store::raw::{RawPostgres, RawSqlite};
use baton_store::raw_queue::{RawQueuePostgres, RawQueueSqlite};
use futures_util::future::try_join_all;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::Instant;

const MEASURE: Duration = Duration::from_millis(700);
const ROUNDS: usize = 3;
pub const CALLERS: usize = 8;
/// Rows in one commit, and jobs in one claim: what Baton is held against.
const BATCH: usize = 100;
/// Rows in a large commit, to see what the commit itself costs.
const LARGE: usize = 500;
/// Jobs that wait while claims are measured, at first.
const BACKLOG: usize = 20_000;

pub struct Raw {
    /// Single commits: one connection on SQLite, as many as there are callers on PostgreSQL.
    pub commits: f64,
    pub rows: f64,
    pub turns: f64,
    pub turns_batched: f64,
}

enum Queue {
    Sqlite(RawQueueSqlite),
    Postgres(RawQueuePostgres),
}

impl Queue {
    async fn open(lab: &Lab) -> Result<Self> {
        Ok(match lab.url() {
            None => Self::Sqlite(RawQueueSqlite::open(lab.dir())?),
            Some(url) => Self::Postgres(RawQueuePostgres::open(url).await?),
        })
    }

    async fn put(&self, jobs: usize) -> Result<()> {
        match self {
            Self::Sqlite(queue) => queue.put(jobs)?,
            Self::Postgres(queue) => queue.put(jobs).await?,
        }
        Ok(())
    }

    async fn turn(&self, jobs: usize) -> Result<usize> {
        Ok(match self {
            Self::Sqlite(queue) => queue.turn(jobs)?,
            Self::Postgres(queue) => queue.turn(jobs).await?,
        })
    }

    /// Rows a second, so many in a commit.
    async fn rows(&self, batch: usize) -> Result<f64> {
        let (began, mut rows) = (Instant::now(), 0);
        while began.elapsed() < MEASURE {
            self.put(batch).await?;
            rows += batch;
        }
        let rate = rows as f64 / began.elapsed().as_secs_f64();
        while self.turn(10_000).await? > 0 {}
        Ok(rate)
    }

    /// Jobs a second that are claimed and completed, so many at a time.
    async fn turns(&self, at_a_time: usize) -> Result<f64> {
        for _ in 0..BACKLOG / LARGE {
            self.put(LARGE).await?;
        }
        let (began, mut jobs) = (Instant::now(), 0);
        while began.elapsed() < MEASURE {
            let turned = self.turn(at_a_time).await?;
            jobs += turned;
            if turned < at_a_time {
                break;
            }
        }
        let took = began.elapsed();
        ensure!(jobs > 0, "the raw queue gave nothing");
        while self.turn(10_000).await? > 0 {}
        Ok(jobs as f64 / took.as_secs_f64())
    }
}

pub async fn measure(lab: &Lab, figures: &mut Figures) -> Result<Raw> {
    let queue = Queue::open(lab).await?;
    let (mut single, mut commits, mut turns, mut batched) = (vec![], vec![], vec![], vec![]);
    let (mut rows, mut large) = (vec![], vec![]);
    for _ in 0..ROUNDS {
        single.push(rows_one_by_one(lab, 1).await?);
        if lab.url().is_some() {
            commits.push(rows_one_by_one(lab, CALLERS).await?);
        }
        rows.push(queue.rows(BATCH).await?);
        large.push(queue.rows(LARGE).await?);
        turns.push(queue.turns(1).await?);
        batched.push(queue.turns(BATCH).await?);
    }
    let single = median(single);
    let raw = Raw {
        commits: if lab.url().is_some() { median(commits) } else { single },
        rows: median(rows),
        turns: median(turns),
        turns_batched: median(batched),
    };
    figures.raw("raw: one row, one commit, one connection", single, "rows/s");
    if lab.url().is_some() {
        figures.raw("raw: one row, one commit, 8 connections", raw.commits, "rows/s");
    }
    figures.raw("raw: 100 rows, one commit", raw.rows, "rows/s");
    figures.raw("raw: 500 rows, one commit", median(large), "rows/s");
    figures.raw("raw: claim and complete, one at a time", raw.turns, "jobs/s");
    figures.raw("raw: claim and complete, 100 at a time", raw.turns_batched, "jobs/s");
    Ok(raw)
}

async fn rows_one_by_one(lab: &Lab, connections: usize) -> Result<f64> {
    let count = AtomicU64::new(0);
    let began = match lab.url() {
        None => {
            let raw = RawSqlite::open(lab.dir())?;
            let began = Instant::now();
            while began.elapsed() < MEASURE {
                raw.commit()?;
                count.fetch_add(1, Ordering::Relaxed);
            }
            began
        }
        Some(url) => {
            let links = try_join_all((0..connections).map(|_| RawPostgres::open(url))).await?;
            let began = Instant::now();
            try_join_all(links.iter().map(|link| async {
                while began.elapsed() < MEASURE {
                    link.commit().await?;
                    count.fetch_add(1, Ordering::Relaxed);
                }
                anyhow::Ok(())
            }))
            .await?;
            began
        }
    };
    Ok(count.load(Ordering::Relaxed) as f64 / began.elapsed().as_secs_f64())
}
