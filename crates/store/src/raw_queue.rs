//! The raw limit of a queue on each database: a plain table of jobs with a state, an index over those that wait, and
//! nothing else: no history, no lanes, no leases. What the figures of Baton's own queue are held against.

use crate::error::StoreError;
use crate::records::row_limit;
use crate::sqlite::{connect, store_error};
use rusqlite::Connection;
use std::path::Path;
use tokio::task::JoinHandle;
use tokio_postgres::{Client, NoTls, Statement};

/// Together with its number about as long as a job without a history.
const PAYLOAD: &str = "{\"note\":\"a job of a plausible length: its type, its project, its lane, its times and a small \
                       payload, all of it in one text\",\"project\":\"p123\"}";

/// A file beside Baton's, with the same settings.
pub struct RawQueueSqlite(Connection);

impl RawQueueSqlite {
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        let conn = connect(&dir.join("raw-queue.db")).map_err(store_error)?;
        conn.execute_batch(
            "PRAGMA wal_autocheckpoint = 4000;
             CREATE TABLE IF NOT EXISTS jobs (id INTEGER PRIMARY KEY, state INTEGER NOT NULL, payload TEXT NOT NULL);
             CREATE INDEX IF NOT EXISTS waiting ON jobs (id) WHERE state = 0;",
        )
        .map_err(store_error)?;
        Ok(Self(conn))
    }

    /// So many jobs, one commit.
    pub fn put(&self, jobs: usize) -> Result<(), StoreError> {
        self.put_all(jobs).map_err(store_error)
    }

    fn put_all(&self, jobs: usize) -> rusqlite::Result<()> {
        self.0.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        let mut insert = self.0.prepare_cached("INSERT INTO jobs (state, payload) VALUES (0, ?1)")?;
        for _ in 0..jobs {
            insert.execute([PAYLOAD])?;
        }
        self.0.prepare_cached("COMMIT")?.execute([]).map(drop)
    }

    /// Claims up to so many in one commit and completes them in another; how many there were.
    pub fn turn(&self, jobs: usize) -> Result<usize, StoreError> {
        self.turn_all(jobs).map_err(store_error)
    }

    fn turn_all(&self, jobs: usize) -> rusqlite::Result<usize> {
        let claim = "UPDATE jobs SET state = 1 WHERE id IN (SELECT id FROM jobs WHERE state = 0 ORDER BY id LIMIT ?1)
                     RETURNING id, payload";
        let mut claim = self.0.prepare_cached(claim)?;
        let claimed = claim.query_map([row_limit(jobs)], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let claimed: Vec<(i64, String)> = claimed.collect::<rusqlite::Result<_>>()?;
        self.0.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        let mut complete = self.0.prepare_cached("UPDATE jobs SET state = 2 WHERE id = ?1 AND state = 1")?;
        for (id, _) in &claimed {
            complete.execute([id])?;
        }
        self.0.prepare_cached("COMMIT")?.execute([])?;
        Ok(claimed.len())
    }
}

/// One connection.
pub struct RawQueuePostgres {
    client: Client,
    put: Statement,
    claim: Statement,
    complete: Statement,
    driver: JoinHandle<()>,
}

impl RawQueuePostgres {
    pub async fn open(url: &str) -> Result<Self, StoreError> {
        Self::connect(url).await.map_err(unavailable)
    }

    async fn connect(url: &str) -> Result<Self, tokio_postgres::Error> {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
        let driver = tokio::spawn(async move {
            let _ = connection.await;
        });
        client
            .batch_execute(
                "SELECT pg_advisory_xact_lock(4242);
                 CREATE TABLE IF NOT EXISTS jobs (id bigserial PRIMARY KEY, state smallint NOT NULL, payload text NOT NULL);
                 CREATE INDEX IF NOT EXISTS waiting ON jobs (id) WHERE state = 0;",
            )
            .await?;
        // As in Baton's own sessions: statistics of a table that fills and empties are always old.
        client.batch_execute("SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan").await?;
        let put = "INSERT INTO jobs (state, payload) SELECT 0, k.p FROM unnest($1::text[]) AS k(p)";
        let claim = "UPDATE jobs SET state = 1 WHERE id = ANY (ARRAY(SELECT id FROM jobs WHERE state = 0 ORDER BY id \
                     LIMIT $1 FOR UPDATE SKIP LOCKED)) RETURNING id, payload";
        let complete = "UPDATE jobs SET state = 2 WHERE id = ANY ($1::bigint[])";
        let (put, claim, complete) =
            (client.prepare(put).await?, client.prepare(claim).await?, client.prepare(complete).await?);
        Ok(Self { client, put, claim, complete, driver })
    }

    /// So many jobs, one commit.
    pub async fn put(&self, jobs: usize) -> Result<(), StoreError> {
        let rows = vec![PAYLOAD; jobs];
        self.client.execute(&self.put, &[&rows]).await.map(drop).map_err(unavailable)
    }

    /// Claims up to so many in one commit and completes them in another; how many there were.
    pub async fn turn(&self, jobs: usize) -> Result<usize, StoreError> {
        let limit = row_limit(jobs);
        let claimed = self.client.query(&self.claim, &[&limit]).await.map_err(unavailable)?;
        let ids: Vec<i64> = claimed.iter().map(|row| row.get(0)).collect();
        self.client.execute(&self.complete, &[&ids]).await.map_err(unavailable)?;
        Ok(ids.len())
    }
}

fn unavailable(e: tokio_postgres::Error) -> StoreError {
    StoreError::Unavailable(e.to_string())
}

impl Drop for RawQueuePostgres {
    fn drop(&mut self) {
        self.driver.abort();
    }
}
