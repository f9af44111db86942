//! A look at the server, on one connection.

use super::{COMMITTERS, OPEN_WAIT, READERS, config, link, migrations};
use crate::checkup::{Checkup, Place, Server};
use crate::error::OpenError;
use baton_core::Micros;
use tokio_postgres::Client;

/// Beside committers and readers: the tailer, and whoever sends and hears wake-ups.
const OTHERS: usize = 2;

pub async fn checkup(url: &str) -> Result<Checkup, OpenError> {
    let opened = tokio::time::timeout(OPEN_WAIT, link::plain(&config(url)?)).await;
    let opened = opened.map_err(|_| OpenError::Database("the server does not answer".to_owned()))?;
    let (client, driver) = opened.map_err(|e| OpenError::Database(link::text(&e)))?;
    let seen = look(&client).await;
    drop(client);
    driver.abort();
    seen
}

async fn look(client: &Client) -> Result<Checkup, OpenError> {
    let versions = migrations::versions(client).await?;
    // Rows of other users' sessions are counted too; only what they do is hidden.
    let row = client
        .query_one(
            "SELECT current_setting('server_version'), \
                    (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, \
                    current_setting('max_connections')::bigint \
                        - current_setting('superuser_reserved_connections')::bigint, \
                    (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend')",
            &[],
        )
        .await
        .map_err(|e| OpenError::Database(link::text(&e)))?;
    let count = |n: i64| u32::try_from(n).unwrap_or(0);
    let server = Server {
        version: row.get(0),
        now: Micros(row.get(1)),
        allowed: count(row.get(2)),
        taken: count(row.get(3)),
        needed: (COMMITTERS + READERS + OTHERS) as u32,
    };
    Ok(Checkup::new(versions, Place::Server(server)))
}
