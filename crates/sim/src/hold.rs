//! Somebody outside Baton who holds on to a row, as a person at a prompt may do.

use crate::lab::Lab;
use anyhow::{Context, Result, ensure};
use baton_core::JobId;
use tokio::task::JoinHandle;
use tokio_postgres::{Client, NoTls};

/// Holds a job's row on PostgreSQL until it is let go of.
pub struct Hold {
    client: Client,
    connection: JoinHandle<Result<(), tokio_postgres::Error>>,
}

impl Hold {
    pub async fn row(lab: &Lab, job: JobId) -> Result<Self> {
        let url = lab.url().context("only PostgreSQL has rows that others can hold")?;
        let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
        let connection = tokio::spawn(connection);
        client.batch_execute("BEGIN").await?;
        let found = client.query("SELECT 1 FROM live WHERE id = $1 FOR UPDATE", &[&job.0]).await?;
        ensure!(found.len() == 1, "there is no such row");
        Ok(Self { client, connection })
    }

    pub async fn let_go(self) -> Result<()> {
        self.client.batch_execute("ROLLBACK").await?;
        drop(self.client);
        Ok(self.connection.await??)
    }
}
