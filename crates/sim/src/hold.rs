//! Somebody outside Baton who holds on to a row, as a person at a prompt may do.

use crate::lab::Lab;
use anyhow::{Context, Result, bail, ensure};
use baton_core::JobId;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, NoTls};

/// Looks until somebody waits for us.
const LOOKS_MAX: usize = 20_000;

/// A connection of our own into the lab's schema. It ends with the client.
pub async fn connect(lab: &Lab) -> Result<Client> {
    let url = lab.url().context("only PostgreSQL can be reached from outside")?;
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

/// Holds a row on PostgreSQL until it is let go of.
pub struct Hold {
    client: Client,
    watcher: Client,
}

impl Hold {
    /// A job's row.
    pub async fn row(lab: &Lab, job: JobId) -> Result<Self> {
        Self::on(lab, "SELECT 1 FROM live WHERE id = $1 FOR UPDATE", &job.0).await
    }

    /// A job's row that was woken, and nobody can see it yet.
    pub async fn woken(lab: &Lab, job: JobId) -> Result<Self> {
        Self::on(lab, "UPDATE live SET wakes = wakes + 1 WHERE id = $1 RETURNING 1", &job.0).await
    }

    pub async fn lane(lab: &Lab, key: &str) -> Result<Self> {
        Self::on(lab, "SELECT 1 FROM lane WHERE key = $1 FOR UPDATE", &key).await
    }

    async fn on(lab: &Lab, sql: &str, which: &(dyn ToSql + Sync)) -> Result<Self> {
        let (client, watcher) = (connect(lab).await?, connect(lab).await?);
        client.batch_execute("BEGIN").await?;
        let found = client.query(sql, &[which]).await?;
        ensure!(found.len() == 1, "there is no such row");
        Ok(Self { client, watcher })
    }

    /// Until somebody waits for the row.
    pub async fn awaited(&self) -> Result<()> {
        let holder: i32 = self.client.query_one("SELECT pg_backend_pid()", &[]).await?.get(0);
        let sql = "SELECT count(*) > 0 FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid))";
        for _ in 0..LOOKS_MAX {
            if self.watcher.query_one(sql, &[&holder]).await?.get(0) {
                return Ok(());
            }
            tokio::task::yield_now().await;
        }
        bail!("nobody waits")
    }

    /// What was done to the row stands.
    pub async fn let_stand(self) -> Result<()> {
        Ok(self.client.batch_execute("COMMIT").await?)
    }

    pub async fn let_go(self) -> Result<()> {
        Ok(self.client.batch_execute("ROLLBACK").await?)
    }
}
