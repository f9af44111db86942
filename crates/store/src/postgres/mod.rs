//! PostgreSQL: several nodes on one database.
//!
//! Each node has a committer (a connection that runs one group at a time) and one that stands by, a small pool
//! for reading, one connection that sends and hears wake-ups, and a tailer that finds out how
//! far the history is final. Row locks under READ COMMITTED are enough: jobs and definitions are
//! locked, in one total order, before a decision looks at them, or their rows are held against what was looked at when
//! they are written (`trusted`); what has no row to lock is guarded by its subject's lock, a unique key or a count.

mod audit;
mod audit_run;
mod block;
#[cfg(test)]
mod checks;
mod checkup;
mod claim;
mod commit;
mod committer;
mod doubts;
mod gather;
mod heard;
mod learn;
mod link;
mod listed;
mod load;
mod migrations;
#[cfg(feature = "faults")]
mod mishap;
mod notify;
mod onward;
mod open_jobs;
mod open_lanes;
#[cfg(test)]
mod plans;
mod query;
mod query_queue;
mod query_run;
mod resolve;
mod rows;
mod run_rows;
#[cfg(test)]
mod scratch;
mod statements;
mod successors;
mod tailer;
mod tidy;
mod trusted;
mod write;
mod write_jobs;
mod write_queue;

use crate::error::{OpenError, StoreError};
use crate::group::{Message, QUEUE_MAX};
use crate::known::Known;
use crate::open::{Corrupt, OpenOptions};
use crate::signals::{Signals, UNKNOWN};
use crate::sqlite::DirLock;
use baton_core::Micros;
pub(crate) use checkup::checkup;
use deadpool_postgres::{Hook, HookError, Manager, ManagerConfig, Pool, PoolError, RecyclingMethod, Runtime};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, mpsc};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Instant;
use tokio_postgres::config::{SslMode, TargetSessionAttrs};
use tokio_postgres::{Config, NoTls};

/// One does the work; the other stands by for when that one is held up.
const COMMITTERS: usize = 2;
const READERS: usize = 4;
/// How long a question may wait for a connection.
const READ_WAIT: Duration = Duration::from_secs(5);
const CONNECT_WAIT: Duration = Duration::from_secs(10);
/// A server that takes connections but never speaks is as good as none.
const OPEN_WAIT: Duration = Duration::from_secs(10);
/// How long the server works on a question, also when nobody waits for the answer any more.
const READ_MAX: Duration = Duration::from_secs(30);
/// Whoever asks for what is not known looks for it this often at most; wake-ups tell of it anyway.
const LEARN_REST: Duration = Duration::from_millis(100);
/// Before a part that ended by itself is started again.
const RESTART: Duration = Duration::from_secs(1);
/// A server that says nothing for so long is taken for gone.
const SILENCE_MAX: Duration = Duration::from_secs(30);
/// How long opening waits to know how far the history is final. A long transaction elsewhere in
/// the server can delay that; readers then wait, the rest works.
const MARK_WAIT: Duration = Duration::from_secs(5);

pub struct Db {
    pub(crate) options: OpenOptions,
    pub(crate) queue: mpsc::Sender<Message>,
    pub(crate) signals: Arc<Signals>,
    pub(crate) known: Arc<Known>,
    config: Config,
    pool: Pool,
    tasks: Mutex<Vec<JoinHandle<()>>>,
    /// When somebody last looked for what others have registered.
    learned: Mutex<Option<Instant>>,
    lock: Mutex<Option<DirLock>>,
}

/// What the parts of one node share.
pub(in crate::postgres) struct Shared {
    pub config: Config,
    pub options: OpenOptions,
    pub signals: Arc<Signals>,
    pub known: Arc<Known>,
    /// Another node may have registered something.
    pub news: Notify,
    /// Wakes the tailer: there may be new events.
    pub tail: Notify,
    pub heard: heard::Heard,
    pub open_jobs: open_jobs::OpenJobs,
    pub open_lanes: open_lanes::OpenLanes,
    pub outbox: notify::Outbox,
    pub litter: tidy::Litter,
}

impl Shared {
    /// A connection is gone: it may be another server that answers next.
    pub fn forget(&self) {
        self.heard.forget();
        self.open_jobs.forget_all();
        self.open_lanes.forget();
    }

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

/// These parts never end by themselves; should one panic, nobody else does its work.
fn keep_up<F: Future<Output = ()> + Send + 'static>(
    part: &'static str,
    run: impl Fn() -> F + Send + 'static,
) -> JoinHandle<()> {
    tokio::spawn(async move {
        loop {
            // Goes when this task is aborted.
            let mut running = JoinSet::new();
            running.spawn(run());
            if let Some(Err(e)) = running.join_next().await {
                tracing::error!(part, %e, "a part of the store panicked and is started again");
            }
            tokio::time::sleep(RESTART).await;
        }
    })
}

/// Which database a URL leads to, whoever asks: a short name.
pub(crate) fn place(url: &str) -> String {
    let config: Config = url.parse().unwrap_or_default();
    // Without a name, the database is called like the user.
    let database = config.get_dbname().or(config.get_user());
    let place = (config.get_hosts(), config.get_ports(), database, config.get_options());
    let mut digest = baton_core::Digest::of(&[format!("{place:?}").as_bytes()]).to_string();
    digest.truncate(16);
    digest
}

/// How every connection is made.
fn config(url: &str) -> Result<Config, OpenError> {
    // The text of a parse error may repeat the URL, and with it a password.
    let mut config: Config =
        url.parse().map_err(|_| OpenError::Url("expected postgres://user:password@host:port/database".to_owned()))?;
    if config.get_ssl_mode() == SslMode::Require {
        let why = "encrypted connections are not supported yet; leave sslmode out, and use loopback or a tunnel";
        return Err(OpenError::Url(why.to_owned()));
    }
    config
        .application_name("baton")
        .connect_timeout(CONNECT_WAIT)
        .tcp_user_timeout(SILENCE_MAX)
        .keepalives_idle(SILENCE_MAX / 2)
        .keepalives_interval(SILENCE_MAX / 6)
        .keepalives_retries(3)
        .target_session_attrs(TargetSessionAttrs::ReadWrite);
    Ok(config)
}

impl Db {
    pub(crate) async fn open(url: &str, options: OpenOptions) -> Result<Self, OpenError> {
        let config = config(url)?;
        let lock = DirLock::take(&options.data_dir)?;
        let schema = migrations::run(&config, options.corrupt == Corrupt::LeaveAlone).await?;
        let manager =
            Manager::from_config(config.clone(), NoTls, ManagerConfig { recycling_method: RecyclingMethod::Fast });
        let pool = Pool::builder(manager)
            .max_size(READERS)
            .runtime(Runtime::Tokio1)
            .wait_timeout(Some(READ_WAIT))
            .create_timeout(Some(READ_WAIT))
            .post_create(Hook::async_fn(|client, _| {
                Box::pin(async move {
                    let limit = format!("SET statement_timeout = {}", READ_MAX.as_millis());
                    client.batch_execute(&limit).await.map_err(HookError::Backend)
                })
            }))
            .build()
            .map_err(|e| OpenError::Database(e.to_string()))?;
        let signals = Arc::new(Signals::new(UNKNOWN));
        let (queue, waiting) = mpsc::channel(QUEUE_MAX);
        let known = Arc::new(Known::new(options.definitions.clone(), options.shapes.clone()));
        let shared = Arc::new(Shared {
            config: config.clone(),
            options: options.clone(),
            signals: signals.clone(),
            known: known.clone(),
            news: Notify::new(),
            tail: Notify::new(),
            heard: heard::Heard::default(),
            open_jobs: open_jobs::OpenJobs::default(),
            open_lanes: open_lanes::OpenLanes::default(),
            outbox: notify::Outbox::default(),
            litter: tidy::Litter::default(),
        });
        learn::first(&shared).await?;
        let (waker, followed, tidied, learner) = (shared.clone(), shared.clone(), shared.clone(), shared.clone());
        let mut tasks = vec![
            keep_up("wake-ups", move || notify::run(waker.clone(), notify::channel(&schema))),
            keep_up("tailer", move || tailer::run(followed.clone())),
            keep_up("tidying", move || tidy::run(tidied.clone())),
            keep_up("learner", move || learn::run(learner.clone())),
        ];
        tasks.extend(committer::spawn(&shared, waiting, COMMITTERS));
        let mut mark = signals.events.subscribe();
        if tokio::time::timeout(MARK_WAIT, mark.wait_for(|mark| *mark != UNKNOWN)).await.is_err() {
            tracing::warn!("a long transaction keeps the history from being followed; readers wait for it");
        }
        Ok(Self {
            options,
            queue,
            signals,
            known,
            config,
            pool,
            tasks: Mutex::new(tasks),
            learned: Mutex::default(),
            lock: Mutex::new(Some(lock)),
        })
    }

    pub(crate) async fn now(&self) -> Result<Micros, StoreError> {
        let client = self.reader().await?;
        let row = client.query_one("SELECT baton_now()", &[]).await.map_err(|e| link::store_error(&e))?;
        Ok(Micros(row.get::<_, i64>(0) + shift(&self.options)))
    }

    pub(crate) async fn learn(&self) -> Result<(), StoreError> {
        {
            let mut learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
            if learned.is_some_and(|at| at.elapsed() < LEARN_REST) {
                return Ok(());
            }
            *learned = Some(Instant::now());
        }
        let client = self.reader().await?;
        learn::learn(&client, &self.known).await.map_err(|e| link::store_error(&e))
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
