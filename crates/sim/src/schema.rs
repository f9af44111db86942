//! A corner of a shared PostgreSQL for one test alone.

use anyhow::{Context, Result};
use baton_engine::OsEntropy;
use baton_store::Entropy;
use tokio_postgres::NoTls;

/// The variable that names a PostgreSQL to experiment on.
pub const DATABASE_URL: &str = "BATON_TEST_DATABASE_URL";

/// An empty schema of its own.
pub struct Schema {
    /// Leads into this schema and no other.
    pub url: String,
    name: String,
}

impl Schema {
    /// `None` if there is no PostgreSQL to experiment on; the test command always gives one, and
    /// where it matters its absence is an error.
    pub async fn create() -> Result<Option<Self>> {
        let Some(base) = std::env::var(DATABASE_URL).ok().filter(|url| !url.is_empty()) else {
            let needed = std::env::var_os("CI").is_some();
            anyhow::ensure!(!needed, "{DATABASE_URL} is not set; run the tests with `cargo xtask test`");
            return Ok(None);
        };
        let (a, b) = OsEntropy::default().words();
        let name = format!("t_{a:016x}{b:016x}");
        run(&base, &format!("CREATE SCHEMA {name}")).await?;
        let joint = if base.contains('?') { '&' } else { '?' };
        Ok(Some(Self { url: format!("{base}{joint}options=-csearch_path%3D{name}"), name }))
    }

    /// Every row of every table as text, bytes as hexadecimal digits.
    pub async fn dump(&self) -> Result<String> {
        let (client, connection) = tokio_postgres::connect(&self.url, NoTls).await.context("connecting to look")?;
        let connection = tokio::spawn(connection);
        let named = "SELECT tablename FROM pg_tables WHERE schemaname = $1";
        let mut text = String::new();
        for table in client.query(named, &[&self.name]).await? {
            let all = format!("SELECT t::text FROM {} t", table.get::<_, String>(0));
            for row in client.query(&all, &[]).await? {
                text.push_str(row.get(0));
                text.push('\n');
            }
        }
        drop(client);
        connection.await??;
        Ok(text)
    }

    pub async fn remove(self) -> Result<()> {
        remove(&self.url).await
    }
}

/// Removes the schema that this address leads to.
pub async fn remove(url: &str) -> Result<()> {
    run(url, "DO $$ BEGIN EXECUTE format('DROP SCHEMA %I CASCADE', current_schema()); END $$").await
}

async fn run(url: &str, sql: &str) -> Result<()> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.context("connecting to the test database")?;
    let connection = tokio::spawn(connection);
    client.batch_execute(sql).await?;
    drop(client);
    Ok(connection.await??)
}

/// What the tables that this address leads to take on disk, with their indexes.
pub async fn bytes(url: &str) -> Result<f64> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.context("connecting to look")?;
    let connection = tokio::spawn(connection);
    let sum = "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c \
               WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace";
    let bytes: i64 = client.query_one(sum, &[]).await?.get(0);
    drop(client);
    connection.await??;
    Ok(bytes as f64)
}
