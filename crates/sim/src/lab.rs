//! A lab: an empty database and as many stores on it as an experiment needs.

use crate::open_lane;
use crate::schema::{self, Schema};
use crate::script::Script;
use anyhow::Result;
use baton_core::definition::Definitions;
use baton_core::id::JobId;
use baton_core::job::enqueue::Enqueue;
use baton_core::rules::Rules;
use baton_core::time::Span;
use baton_core::{Json, Micros, OrgId, WorkerId};
use baton_engine::{OsEntropy, SystemClock};
use baton_store::faults::Sabotage;
use baton_store::{Backend, Clock, Disk, OpenOptions, SqliteDb, Store};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use tempfile::TempDir;

/// Which database the lab has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A file, as in production: one node.
    Sqlite,
    /// A simulated disk that several nodes share.
    SqliteDisk,
    Postgres,
}

pub struct Lab {
    pub place: Place,
    pub definitions: Arc<Definitions>,
    dir: TempDir,
    disk: Option<Disk>,
    url: Option<String>,
    shift: Arc<AtomicI64>,
    sabotage: Option<Sabotage>,
}

/// A store with its faults at hand.
pub struct Node {
    pub store: Store,
    pub script: Arc<Script>,
    pub name: WorkerId,
}

/// The machine's clock, moved by the lab.
struct ShiftedClock(Arc<AtomicI64>);

impl Clock for ShiftedClock {
    fn now(&self) -> Micros {
        Micros(SystemClock.now().0 + self.0.load(Ordering::SeqCst))
    }
}

/// Shows the log of what is experimented on, if `BATON_LOG` says so.
pub(crate) fn show_log() {
    if let Ok(filter) = std::env::var("BATON_LOG") {
        let _ = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).try_init();
    }
}

impl Lab {
    /// `None` if there is no PostgreSQL to experiment on; the test command always gives one.
    pub async fn new(place: Place, sabotage: Option<Sabotage>) -> Result<Option<Self>> {
        show_log();
        let url = match place {
            Place::Postgres => match Schema::create().await? {
                Some(schema) => Some(schema.url),
                None => return Ok(None),
            },
            Place::Sqlite | Place::SqliteDisk => None,
        };
        let disk = if place == Place::SqliteDisk { Some(Disk::empty()?) } else { None };
        Ok(Some(Self {
            place,
            definitions: Arc::new(open_lane::registry().definitions(Rules::default())),
            dir: tempfile::tempdir()?,
            disk,
            url,
            shift: Arc::default(),
            sabotage,
        }))
    }

    /// The first node.
    pub async fn node(&self) -> Result<Node> {
        self.node_named("node_a").await
    }

    /// Another node beside it. A file has room for one only.
    pub async fn node_named(&self, name: &str) -> Result<Node> {
        let script = Arc::new(self.script());
        let store = self.open(name, script.clone()).await?;
        Ok(Node { store, script, name: name.parse()? })
    }

    /// Another node that knows other job types than the lab.
    pub async fn node_knowing(&self, name: &str, definitions: Arc<Definitions>) -> Result<Node> {
        let script = Arc::new(self.script());
        let mut options = self.options(name);
        options.definitions = definitions;
        options.faults = Some(script.clone());
        let store = self.opened(options).await?;
        Ok(Node { store, script, name: name.parse()? })
    }

    /// Faults for a node of this lab.
    pub fn script(&self) -> Script {
        Script::new(self.shift.clone(), self.sabotage)
    }

    pub async fn open(&self, name: &str, script: Arc<Script>) -> Result<Store> {
        let mut options = self.options(name);
        options.faults = Some(script);
        self.opened(options).await
    }

    async fn opened(&self, options: OpenOptions) -> Result<Store> {
        if let Some(disk) = &self.disk {
            return Ok(Store::Sqlite(Arc::new(SqliteDb::on_disk(disk.clone(), options))));
        }
        Ok(Store::open(options).await?)
    }

    pub fn options(&self, name: &str) -> OpenOptions {
        let clock = Arc::new(ShiftedClock(self.shift.clone()));
        let entropy = Arc::new(OsEntropy::default());
        let mut options = OpenOptions::new(self.data_dir(name), clock, entropy, self.definitions.clone());
        if let Some(url) = &self.url {
            options.backend = Backend::Postgres(url.clone());
        }
        options
    }

    pub fn data_dir(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub fn url(&self) -> Option<&str> {
        self.url.as_deref()
    }

    /// Once nothing is open any more. What a measurement leaves behind the server would go on tidying during the next one.
    pub async fn remove(self) -> Result<()> {
        match &self.url {
            Some(url) => schema::remove(url).await,
            None => Ok(()),
        }
    }

    /// Moves the time of commits, for all nodes.
    pub fn advance(&self, span: Span) {
        self.shift.fetch_add(span.0, Ordering::SeqCst);
    }
}

/// An echo job of project `p1`, due at once.
pub fn echo() -> Enqueue {
    Enqueue::new(OrgId::default(), name("p1"), name("echo"), Json::of(&json!({ "message": "hello" })))
}

/// A name that is written in the source, and so known to be valid.
pub fn name<T: std::str::FromStr>(text: &str) -> T
where
    T::Err: std::fmt::Display,
{
    text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
}

/// An id that no job has.
pub fn nobody() -> JobId {
    JobId(uuid::Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0001))
}
