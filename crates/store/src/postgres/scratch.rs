//! A place for tests that talk to the server themselves.

use super::migrations;
use tokio_postgres::{Client, Config, NoTls};

/// A schema of its own with all tables in it; `None` without a PostgreSQL. With how to
/// reach it again. Whoever is done with it drops it.
pub(super) async fn schema(name: &str) -> Option<(Client, Config)> {
    let url = std::env::var("BATON_TEST_DATABASE_URL").ok().filter(|url| !url.is_empty())?;
    let mut config: Config = url.parse().unwrap();
    let (client, connection) = config.connect(NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute(&format!("DROP SCHEMA IF EXISTS {name} CASCADE; CREATE SCHEMA {name}")).await.unwrap();
    config.options(format!("-csearch_path={name}"));
    migrations::run(&config, false).await.unwrap();
    let (client, connection) = config.connect(NoTls).await.unwrap();
    tokio::spawn(connection);
    Some((client, config))
}
