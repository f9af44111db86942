//! The schema on PostgreSQL. Applied migrations are never edited.

use super::link;
use crate::error::OpenError;
use crate::migrate::{self, Applied, Migration, Versions, complete, pending};
use std::time::Duration;
use tokio_postgres::{Client, Config, Error, GenericClient};

const ALL: [Migration; 10] = [
    Migration { version: 1, name: "spine", oldest: 1, sql: include_str!("migrations/0001_spine.sql") },
    // Older binaries would not keep the counts of lanes.
    Migration { version: 2, name: "queue", oldest: 2, sql: include_str!("migrations/0002_queue.sql") },
    Migration { version: 3, name: "exact", oldest: 2, sql: include_str!("migrations/0003_exact.sql") },
    // Older binaries would end jobs without withdrawing their decisions.
    Migration { version: 4, name: "door", oldest: 4, sql: include_str!("migrations/0004_door.sql") },
    // Older binaries would fail on timers and subjects that they do not know.
    Migration { version: 5, name: "runs", oldest: 5, sql: include_str!("migrations/0005_runs.sql") },
    Migration { version: 6, name: "queue_speed", oldest: 5, sql: include_str!("migrations/0006_queue_speed.sql") },
    // Older binaries would look for jobs in an index that is another one now.
    Migration { version: 7, name: "fewer_steps", oldest: 7, sql: include_str!("migrations/0007_fewer_steps.sql") },
    // The same again.
    Migration { version: 8, name: "by_type", oldest: 8, sql: include_str!("migrations/0008_by_type.sql") },
    // Older binaries would take single positions.
    Migration { version: 9, name: "blocks", oldest: 9, sql: include_str!("migrations/0009_blocks.sql") },
    Migration { version: 10, name: "short_checks", oldest: 9, sql: include_str!("migrations/0010_short_checks.sql") },
];

/// How long a node waits while another one migrates.
const LOCK_WAIT: Duration = Duration::from_secs(300);

fn database(e: &Error) -> OpenError {
    OpenError::Database(link::text(e))
}

/// Runs what is missing, one node at a time; who only looks is told what is missing. Answers with
/// the schema in use.
pub(super) async fn run(config: &Config, look_only: bool) -> Result<String, OpenError> {
    let (mut client, driver) = link::plain(config).await.map_err(|e| database(&e))?;
    let done = if look_only { look(&client).await } else { locked(&mut client).await };
    drop(client);
    driver.abort();
    done
}

async fn look(client: &Client) -> Result<String, OpenError> {
    let schema = there(client).await?;
    complete(&ALL, &applied(client).await?)?;
    Ok(schema)
}

/// The same, if the next start may migrate it.
pub(super) async fn versions(client: &Client) -> Result<Versions, OpenError> {
    there(client).await?;
    migrate::versions(&ALL, &applied(client).await?)
}

/// The schema in use, if there is a database of ours in it.
async fn there(client: &Client) -> Result<String, OpenError> {
    let schema = schema(client).await?;
    let found = client.query_one("SELECT to_regclass('schema_version') IS NOT NULL", &[]).await;
    if !found.map_err(|e| database(&e))?.get::<_, bool>(0) {
        return Err(OpenError::NoDatabase("the database of that URL".to_owned()));
    }
    Ok(schema)
}

async fn applied(client: &impl GenericClient) -> Result<Vec<Applied>, OpenError> {
    let rows = client.query("SELECT version, oldest, checksum FROM schema_version", &[]).await;
    let rows = rows.map_err(|e| database(&e))?;
    let applied = rows.iter().map(|row| Applied {
        version: u32::try_from(row.get::<_, i32>(0)).unwrap_or_default(),
        oldest: u32::try_from(row.get::<_, i32>(1)).unwrap_or_default(),
        checksum: row.get(2),
    });
    Ok(applied.collect())
}

async fn schema(client: &Client) -> Result<String, OpenError> {
    let row = client.query_one("SELECT current_schema()::text, current_setting('server_version_num')::int", &[]).await;
    let row = row.map_err(|e| database(&e))?;
    let schema: Option<String> = row.get(0);
    let schema =
        schema.ok_or_else(|| OpenError::Database("the schema in the search_path does not exist".to_owned()))?;
    let version: i32 = row.get(1);
    if version < 130_000 {
        return Err(OpenError::Database(format!("PostgreSQL 13 or newer is needed; this is {}", version / 10_000)));
    }
    Ok(schema)
}

async fn locked(client: &mut Client) -> Result<String, OpenError> {
    let schema = schema(client).await?;
    // Ends with the transaction, whatever becomes of this process.
    let tx = client.transaction().await.map_err(|e| database(&e))?;
    let key = format!("baton migrations {schema}");
    tx.batch_execute(&format!("SET LOCAL lock_timeout = {}", LOCK_WAIT.as_millis())).await.map_err(|e| database(&e))?;
    tx.query_one("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", &[&key]).await.map_err(|e| database(&e))?;
    tx.batch_execute(
        "CREATE TABLE IF NOT EXISTS schema_version (
             version integer PRIMARY KEY, name text NOT NULL, oldest integer NOT NULL, checksum bytea NOT NULL)",
    )
    .await
    .map_err(|e| database(&e))?;
    for migration in pending(&ALL, &applied(&tx).await?)? {
        tx.batch_execute(migration.sql).await.map_err(|e| database(&e))?;
        let (version, oldest) = (migration.version.cast_signed(), migration.oldest.cast_signed());
        tx.execute(
            "INSERT INTO schema_version (version, name, oldest, checksum) VALUES ($1, $2, $3, $4)",
            &[&version, &migration.name, &oldest, &migration.checksum().0.as_slice()],
        )
        .await
        .map_err(|e| database(&e))?;
    }
    tx.commit().await.map_err(|e| database(&e))?;
    Ok(schema)
}
