//! Asking after a commit whose answer was lost.
//!
//! The transaction's own id is known before the commit is sent, and the server can say what
//! became of it, also after a crash and recovery of its own.

use super::Shared;
use super::commit::Lost;
use super::link;
use std::time::Duration;
use tokio_postgres::Error;

/// How long we keep asking before we admit that we do not know.
const ASK_TRIES: u32 = 60;
const ASK_AGAIN: Duration = Duration::from_millis(500);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Became {
    Committed,
    Aborted,
    Unknown,
}

pub(super) async fn resolve(shared: &Shared, lost: &Lost) -> Became {
    tracing::warn!(xid = lost.xid, "the answer to a commit was lost; asking what became of it");
    for attempt in 0..ASK_TRIES {
        if attempt > 0 {
            // A backend that is still busy with it is usually done at once: ask soon first.
            tokio::time::sleep(ASK_AGAIN.min(Duration::from_millis(10 << attempt.min(6)))).await;
        }
        match ask(shared, lost).await {
            Ok(Some(became)) => {
                tracing::info!(xid = lost.xid, ?became, "the lost commit is accounted for");
                return became;
            }
            Ok(None) => {}
            Err(e) => tracing::warn!(error = link::text(&e), "cannot ask after a lost commit yet"),
        }
    }
    tracing::error!(xid = lost.xid, "could not find out what became of a commit");
    Became::Unknown
}

/// `None` while the old backend still works on it.
async fn ask(shared: &Shared, lost: &Lost) -> Result<Option<Became>, Error> {
    let (client, driver) = link::plain(&shared.config).await?;
    let row = client.query_one("SELECT pg_xact_status($1::text::xid8)", &[&lost.xid]).await;
    let became = match row.and_then(|row| row.try_get::<_, Option<String>>(0))? {
        Some(status) if status == "committed" => Some(Became::Committed),
        Some(status) if status == "aborted" => Some(Became::Aborted),
        Some(_) => {
            // Nobody is on the other end of that backend any more.
            client.query("SELECT pg_terminate_backend($1)", &[&lost.backend]).await?;
            None
        }
        // Too old to be remembered: cannot be ours of a moment ago.
        None => Some(Became::Unknown),
    };
    drop(client);
    driver.abort();
    Ok(became)
}
