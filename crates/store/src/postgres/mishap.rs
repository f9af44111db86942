//! Carrying out mishaps on PostgreSQL: the same as on SQLite, with a connection to lose.

use super::Shared;
use super::commit::Failed;
use super::link::Link;
use super::write::{Batch, Ends};
use crate::faults::{Mishap, Sabotage};
use crate::group::Work;
use tokio_postgres::{Error, Row};

/// What sending came to. An error of the connection means that the answer was lost.
pub(super) async fn send(
    shared: &Shared,
    link: &Link,
    batch: Batch<'_>,
    ends: Ends,
    works: &mut [Work],
) -> Result<Result<Vec<Row>, Error>, Failed> {
    let Some(faults) = &shared.options.faults else { return Ok(batch.send(link, ends).await) };
    if faults.sabotage() == Some(Sabotage::AckEarly) {
        for work in works.iter_mut() {
            if let Work::Command(member) = work {
                member.answer_early();
            }
        }
    }
    match faults.at_commit() {
        Mishap::None => Ok(batch.send(link, ends).await),
        Mishap::Conflict => Err(Failed::Again),
        Mishap::CrashBefore => {
            let _ = uncommitted(link, batch, ends).await;
            Err(Failed::Crashed)
        }
        Mishap::CrashAfter => {
            batch.send(link, ends).await?;
            Err(Failed::Crashed)
        }
        Mishap::AnswerLost => {
            batch.send(link, ends).await?;
            Ok(hang_up(link).await)
        }
        Mishap::CommitLost => {
            uncommitted(link, batch, ends).await?;
            Ok(hang_up(link).await)
        }
    }
}

/// Everything but the commit.
async fn uncommitted(link: &Link, batch: Batch<'_>, ends: Ends) -> Result<Vec<Row>, Error> {
    if ends == Ends::Alone {
        link.client.batch_execute("BEGIN").await?;
    }
    batch.send(link, Ends::Later).await
}

/// Cuts the line and answers with the error that a cut line gives.
async fn hang_up(link: &Link) -> Result<Vec<Row>, Error> {
    link.cut();
    loop {
        link.client.batch_execute("SELECT 1").await?;
        tokio::task::yield_now().await;
    }
}

impl super::Db {
    pub(crate) async fn raw(&self, sql: &str) -> Result<(), crate::StoreError> {
        let client = self.reader().await?;
        client.batch_execute(sql).await.map_err(|e| super::link::store_error(&e))
    }
}
