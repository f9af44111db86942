//! Hearing of what other nodes register.

use super::link;
use super::{OPEN_WAIT, Shared};
use crate::error::OpenError;
use crate::known::{Known, Stored};
use baton_core::{OrgId, TypeName};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use tokio_postgres::{Client, Error};
use uuid::Uuid;

/// Looks by itself this often, should no wake-up come.
const POLL: Duration = Duration::from_secs(30);

pub(super) async fn run(shared: Arc<Shared>) {
    loop {
        let _ = timeout(POLL, shared.news.notified()).await;
        if let Err(e) = once(&shared).await {
            tracing::warn!(
                error = link::text(&e),
                "what other nodes registered could not be read; it will be tried again"
            );
        }
    }
}

pub(super) async fn first(shared: &Shared) -> Result<(), OpenError> {
    once(shared).await.map_err(|e| OpenError::Database(link::text(&e)))
}

/// Over a connection that lives as long as the question: there is seldom one.
async fn once(shared: &Shared) -> Result<(), Error> {
    let Ok(opened) = timeout(OPEN_WAIT, link::plain(&shared.config)).await else { return Ok(()) };
    let (client, driver) = opened?;
    let learned = learn(&client, &shared.known).await;
    driver.abort();
    learned
}

/// Reads what is registered and not known.
pub(super) async fn learn(client: &Client, known: &Known) -> Result<(), Error> {
    let listed = "SELECT d.org, d.name, v.id, v.version FROM definition d \
        JOIN definition_version v ON v.org = d.org AND v.id = d.id WHERE d.class = 'job_type'";
    let defs = known.get();
    let mut new: Vec<(OrgId, TypeName, Uuid, i32)> = Vec::new();
    for row in client.query(listed, &[]).await? {
        // A name that cannot be one here was given by a newer binary.
        let (Ok(org), Ok(name)) = (row.get::<_, &str>(0).parse(), row.get::<_, &str>(1).parse()) else { continue };
        let version: i32 = row.get(3);
        if !u32::try_from(version).is_ok_and(|version| defs.knows(&org, &name, version)) {
            new.push((org, name, row.get(2), version));
        }
    }
    let body = "SELECT body FROM definition_version WHERE org = $1 AND id = $2 AND version = $3";
    let mut stored = Vec::with_capacity(new.len());
    for (org, name, id, version) in new {
        let row = client.query_one(body, &[&org.as_str(), &id, &version]).await?;
        stored.push(Stored { org, name, version: version.unsigned_abs(), body: row.get(0) });
    }
    known.learn(stored);
    Ok(())
}
