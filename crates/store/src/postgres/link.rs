//! A connection for writing: its session settings, its backend and its prepared statements.
//!
//! It has no task of its own: whoever works with it moves its bytes as well. On the way of a commit from a
//! worker to the disk and back every task that must be woken is time lost.

use super::statements::Statements;
use crate::error::StoreError;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};
use tokio::task::JoinHandle;
use tokio_postgres::error::SqlState;
use tokio_postgres::tls::NoTlsStream;
use tokio_postgres::{Client, Config, Connection, Error, NoTls, Socket};

/// The planner sees tables that are empty one moment and hold a backlog the next; what it knows
/// about them is always old. So the shape of these plans is not left to it: nested loops over
/// indexes, planned once.
pub(super) const SESSION: &str = "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET enable_bitmapscan = off; \
    SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_sort = off; SET enable_incremental_sort = off; SET enable_memoize = off; SET jit = off; \
    SET default_transaction_isolation = 'read committed'; SET synchronous_commit = on; \
    SET lock_timeout = '5s'; SET idle_in_transaction_session_timeout = '60s'";

pub(super) struct Link {
    pub client: Client,
    pub statements: Statements,
    pub backend: Backend,
    wire: Wire,
}

/// The process that serves a connection. Its number alone may be somebody else's one day.
#[derive(Clone, Debug)]
pub(super) struct Backend {
    pid: i32,
    since: String,
}

impl Backend {
    async fn of(client: &Client) -> Result<Self, Error> {
        let own = "SELECT pid, extract(epoch FROM backend_start)::text FROM pg_stat_get_activity(pg_backend_pid())";
        let row = client.query_one(own, &[]).await?;
        Ok(Self { pid: row.try_get(0)?, since: row.try_get(1)? })
    }

    /// Whether it was still there. Nobody is on the other end of it any more, so it is told to go.
    pub async fn end(&self, client: &Client) -> Result<bool, Error> {
        let there = "SELECT pg_terminate_backend(pid) FROM pg_stat_get_activity($1) \
                     WHERE extract(epoch FROM backend_start)::text = $2";
        Ok(!client.query(there, &[&self.pid, &self.since]).await?.is_empty())
    }
}

type Bytes = Pin<Box<Connection<Socket, NoTlsStream>>>;

/// The bytes of a connection; nothing once it has ended.
struct Wire(Mutex<Option<Bytes>>);

impl Wire {
    /// Moves what can be moved.
    fn carry(&self, cx: &mut Context<'_>) {
        let mut wire = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = wire.as_mut()
            && let Poll::Ready(ended) = open.as_mut().poll(cx)
        {
            if let Err(e) = ended {
                tracing::debug!(%e, "a database connection ended");
            }
            // Whoever still waits for an answer hears that none will come.
            *wire = None;
        }
    }

    /// Does the work, and what the connection has to do for it.
    async fn carrying<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        poll_fn(|cx| {
            // What is asked is sent in the same breath, and what was answered is heard.
            if let Poll::Ready(done) = work.as_mut().poll(cx) {
                return Poll::Ready(done);
            }
            self.carry(cx);
            work.as_mut().poll(cx)
        })
        .await
    }
}

impl Link {
    /// Everything that is asked over this connection is asked in here.
    pub async fn carrying<T>(&self, work: impl Future<Output = T>) -> T {
        self.wire.carrying(work).await
    }

    /// Ends the connection at once, without a word to the other side.
    #[cfg(feature = "faults")]
    pub fn cut(&self) {
        *self.wire.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    pub async fn open(config: &Config) -> Result<Self, Error> {
        let (client, connection) = config.connect(NoTls).await?;
        let wire = Wire(Mutex::new(Some(Box::pin(connection))));
        let prepared = async {
            client.batch_execute(SESSION).await?;
            Ok::<_, Error>((Backend::of(&client).await?, Statements::prepare(&client).await?))
        };
        let (backend, statements) = wire.carrying(prepared).await?;
        Ok(Self { client, statements, backend, wire })
    }
}

/// A bare connection and the task that drives it.
pub(super) async fn plain(config: &Config) -> Result<(Client, JoinHandle<()>), Error> {
    let (client, connection) = config.connect(NoTls).await?;
    let driver = tokio::spawn(async move {
        if let Err(e) = connection.await {
            tracing::debug!(%e, "a database connection ended");
        }
    });
    Ok((client, driver))
}

/// Keys that let one of two nodes pass which both found nothing there.
const FIRST_COME: [&str; 4] = ["lane_pkey", "live_dedupe", "job_requeued", "doc_by_id"];

/// What an error means for the transaction it happened in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Two nodes got in each other's way: try again.
    Conflict,
    /// Somebody holds on to a row that one of the group wants.
    Blocked,
    /// The database refused what was written.
    Refused,
    /// The connection is gone, or the server is going.
    Gone,
    /// The server cannot do it at the moment: out of disk, for instance.
    Unable,
}

pub(super) fn kind(e: &Error) -> Kind {
    let Some(code) = e.code() else {
        return if e.is_closed() || e.as_db_error().is_none() { Kind::Gone } else { Kind::Refused };
    };
    if [SqlState::T_R_SERIALIZATION_FAILURE, SqlState::T_R_DEADLOCK_DETECTED].contains(code) {
        return Kind::Conflict;
    }
    // Two nodes made the same thing for the first time: who comes second looks again.
    if *code == SqlState::UNIQUE_VIOLATION
        && e.as_db_error().and_then(|db| db.constraint()).is_some_and(|name| FIRST_COME.contains(&name))
    {
        return Kind::Conflict;
    }
    if *code == SqlState::LOCK_NOT_AVAILABLE {
        return Kind::Blocked;
    }
    match code.code().get(..2) {
        // The server hung up on us, or has become a replica: another connection may do better.
        _ if [SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT, SqlState::READ_ONLY_SQL_TRANSACTION].contains(code) => {
            Kind::Gone
        }
        Some("08" | "57") => Kind::Gone,
        Some("53" | "58") => Kind::Unable,
        _ => Kind::Refused,
    }
}

/// tokio-postgres keeps the interesting part in the source.
pub(super) fn text(e: &Error) -> String {
    match e.as_db_error() {
        Some(db) => format!("{} ({})", db.message(), db.code().code()),
        None => match std::error::Error::source(e) {
            Some(cause) => format!("{e}: {cause}"),
            None => e.to_string(),
        },
    }
}

/// What no command of ours can be to blame for: a table or a right that is gone, rows the server
/// cannot read.
fn is_damage(e: &Error) -> bool {
    e.code().is_some_and(|code| matches!(code.code().get(..2), Some("42" | "XX")))
}

pub(super) fn store_error(e: &Error) -> StoreError {
    match kind(e) {
        Kind::Refused if is_damage(e) => StoreError::Damaged(text(e)),
        Kind::Refused => StoreError::Rejected(text(e)),
        Kind::Conflict | Kind::Blocked | Kind::Gone | Kind::Unable => StoreError::Unavailable(text(e)),
    }
}
