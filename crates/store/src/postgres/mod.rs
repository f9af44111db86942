//! PostgreSQL: several nodes on one database.
//!
//! Each node has two committers (connections that each run one group at a time), a small pool
//! for reading, one connection that sends and hears wake-ups, and a tailer that finds out how
//! far the history is final. Row locks under READ COMMITTED are enough: jobs and definitions are
//! locked, in one total order, before a decision looks at them, and what has no row to lock is
//! guarded by its subject's lock, a unique key or a count.

mod audit;
mod commit;
mod committer;
mod link;
mod load;
mod migrations;
#[cfg(feature = "faults")]
mod mishap;
mod notify;
mod query;
mod resolve;
mod rows;
mod statements;
mod tailer;
mod write;

use crate::error::{OpenError, StoreError};
use crate::group::{Message, QUEUE_MAX};
use crate::open::OpenOptions;
use crate::signals::{Signals, UNKNOWN};
use crate::sqlite::DirLock;
use baton_core::Micros;
use deadpool_postgres::{Manager, ManagerConfig, Pool, PoolError, RecyclingMethod, Runtime};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;
use tokio_postgres::config::TargetSessionAttrs;
use tokio_postgres::{Config, NoTls};

/// More were slower where it was measured; grouping does the rest.
const COMMITTERS: usize = 2;
const READERS: usize = 4;
/// How long a question may wait for a connection.
const READ_WAIT: Duration = Duration::from_secs(5);
const CONNECT_WAIT: Duration = Duration::from_secs(10);
/// A server that says nothing for so long is taken for gone.
const SILENCE_MAX: Duration = Duration::from_secs(30);
/// How long opening waits to know how far the history is final. A long transaction elsewhere in
/// the server can delay that; readers then wait, the rest works.
const MARK_WAIT: Duration = Duration::from_secs(5);

pub struct Db {
    pub(crate) options: OpenOptions,
    pub(crate) queue: mpsc::Sender<Message>,
    pub(crate) signals: Arc<Signals>,
    pool: Pool,
    tasks: Mutex<Vec<JoinHandle<()>>>,
    lock: Mutex<Option<DirLock>>,
}

/// What the parts of one node share.
pub(in crate::postgres) struct Shared {
    pub config: Config,
    pub options: OpenOptions,
    pub signals: Arc<Signals>,
    /// Wakes the tailer: there may be new events.
    pub tail: Notify,
    pub outbox: notify::Outbox,
}

impl Shared {
    /// Added to the database's time; not zero only where time is played with.
    pub fn shift(&self) -> i64 {
        shift(&self.options)
    }
}

fn shift(options: &OpenOptions) -> i64 {
    #[cfg(feature = "faults")]
    if let Some(faults) = &options.faults {
        return faults.time_shift().0;
    }
    let _ = options;
    0
}

impl Db {
    pub(crate) async fn open(url: &str, options: OpenOptions) -> Result<Self, OpenError> {
        // The text of a parse error may repeat the URL, and with it a password.
        let mut config: Config = url
            .parse()
            .map_err(|_| OpenError::Url("expected postgres://user:password@host:port/database".to_owned()))?;
        config
            .application_name("baton")
            .connect_timeout(CONNECT_WAIT)
            .tcp_user_timeout(SILENCE_MAX)
            .keepalives_idle(SILENCE_MAX / 2)
            .keepalives_interval(SILENCE_MAX / 6)
            .keepalives_retries(3)
            .target_session_attrs(TargetSessionAttrs::ReadWrite);
        let lock = DirLock::take(&options.data_dir)?;
        let schema = migrations::run(&config).await?;
        let manager =
            Manager::from_config(config.clone(), NoTls, ManagerConfig { recycling_method: RecyclingMethod::Fast });
        let pool = Pool::builder(manager)
            .max_size(READERS)
            .runtime(Runtime::Tokio1)
            .wait_timeout(Some(READ_WAIT))
            .create_timeout(Some(READ_WAIT))
            .build()
            .map_err(|e| OpenError::Database(e.to_string()))?;
        let signals = Arc::new(Signals::new(UNKNOWN));
        let (queue, waiting) = mpsc::channel(QUEUE_MAX);
        let shared = Arc::new(Shared {
            config,
            options: options.clone(),
            signals: signals.clone(),
            tail: Notify::new(),
            outbox: notify::Outbox::default(),
        });
        let mut tasks = vec![
            tokio::spawn(notify::run(shared.clone(), notify::channel(&schema))),
            tokio::spawn(tailer::run(shared.clone())),
        ];
        tasks.extend(committer::spawn(&shared, waiting, COMMITTERS));
        let mut mark = signals.events.subscribe();
        if tokio::time::timeout(MARK_WAIT, mark.wait_for(|mark| *mark != UNKNOWN)).await.is_err() {
            tracing::warn!("a long transaction keeps the history from being followed; readers wait for it");
        }
        Ok(Self { options, queue, signals, pool, tasks: Mutex::new(tasks), lock: Mutex::new(Some(lock)) })
    }

    pub(crate) async fn now(&self) -> Result<Micros, StoreError> {
        let client = self.reader().await?;
        let row = client.query_one("SELECT baton_now()", &[]).await.map_err(|e| link::store_error(&e))?;
        Ok(Micros(row.get::<_, i64>(0) + shift(&self.options)))
    }

    async fn reader(&self) -> Result<deadpool_postgres::Object, StoreError> {
        self.pool.get().await.map_err(|e| match e {
            PoolError::Closed => StoreError::Closed,
            other => StoreError::Unavailable(other.to_string()),
        })
    }

    /// Ends what runs in the background and lets another process have the data directory.
    pub(crate) fn released(&self) {
        for task in self.tasks.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            task.abort();
        }
        self.pool.close();
        self.lock.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

impl Drop for Db {
    fn drop(&mut self) {
        self.released();
    }
}
