//! The raw limit of each database: one small row and one durable commit, nothing else. What
//! Baton's own figures are held against in benchmarks.

use crate::error::StoreError;
use crate::sqlite::{connect, store_error};
use rusqlite::Connection;
use std::path::Path;
use tokio::task::JoinHandle;
use tokio_postgres::{Client, NoTls, Statement};

const ROW: &str = "one row about as long as a small event, with some text in it to have a body of a plausible length; \
                   one row about as long as a small event, with some text in it";

fn unavailable(e: tokio_postgres::Error) -> StoreError {
    StoreError::Unavailable(e.to_string())
}

/// A file beside Baton's, with the same settings.
pub struct RawSqlite(Connection);

impl RawSqlite {
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        let conn = connect(&dir.join("raw.db")).map_err(store_error)?;
        conn.execute_batch(
            "PRAGMA wal_autocheckpoint = 4000; CREATE TABLE IF NOT EXISTS raw (n INTEGER PRIMARY KEY, body TEXT)",
        )
        .map_err(store_error)?;
        Ok(Self(conn))
    }

    /// One row, one commit.
    pub fn commit(&self) -> Result<(), StoreError> {
        let mut insert = self.0.prepare_cached("INSERT INTO raw (body) VALUES (?1)").map_err(store_error)?;
        insert.execute([ROW]).map(drop).map_err(store_error)
    }

    /// So many rows, one commit.
    pub fn commit_rows(&self, rows: usize) -> Result<(), StoreError> {
        self.0.execute_batch("BEGIN IMMEDIATE").map_err(store_error)?;
        for _ in 0..rows {
            self.commit()?;
        }
        self.0.execute_batch("COMMIT").map_err(store_error)
    }
}

/// One connection.
pub struct RawPostgres {
    client: Client,
    insert: Statement,
    driver: JoinHandle<()>,
}

impl RawPostgres {
    pub async fn open(url: &str) -> Result<Self, StoreError> {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await.map_err(unavailable)?;
        let driver = tokio::spawn(async move {
            let _ = connection.await;
        });
        let ddl =
            "SELECT pg_advisory_xact_lock(4242); CREATE TABLE IF NOT EXISTS raw (n bigserial PRIMARY KEY, body text)";
        client.batch_execute(ddl).await.map_err(unavailable)?;
        let insert = client.prepare("INSERT INTO raw (body) VALUES ($1)").await.map_err(unavailable)?;
        Ok(Self { client, insert, driver })
    }

    /// One row, one commit.
    pub async fn commit(&self) -> Result<(), StoreError> {
        self.client.execute(&self.insert, &[&ROW]).await.map(drop).map_err(unavailable)
    }
}

impl Drop for RawPostgres {
    fn drop(&mut self) {
        self.driver.abort();
    }
}
