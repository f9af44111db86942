//! How a store is opened.

use crate::ports::{Clock, Entropy, Observer, Shapes};
use crate::postgres;
use baton_core::definition::Definitions;
use std::path::PathBuf;
use std::sync::Arc;

/// What is remembered of the embedded database's seals, beside it in the data directory.
pub(crate) const SEAL_HEADS: &str = "seal.heads";

#[derive(Clone)]
pub enum Backend {
    /// `baton.db` in the data directory.
    Sqlite,
    /// A `postgres://` URL. The data directory still holds the node's own files.
    Postgres(String),
}

impl Backend {
    /// The file that remembers this database's seals: one data directory may be used with several
    /// databases, one after the other, and what one has forgotten is no fault of another.
    pub fn seal_heads(&self) -> String {
        match self {
            Self::Sqlite => SEAL_HEADS.to_owned(),
            Self::Postgres(url) => format!("seal-{}.heads", postgres::place(url)),
        }
    }
}

/// What to do with a SQLite file that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Corrupt {
    /// Move it aside and go on with an empty database.
    StartEmpty,
    /// Move it aside and refuse: it may hold what must not be forgotten. Later starts, which find
    /// no database, refuse as well.
    Stop,
    /// Touch nothing and say so: for looking at a database, not for working with it.
    LeaveAlone,
}

#[derive(Clone)]
pub struct OpenOptions {
    pub backend: Backend,
    /// Locked exclusively while the store is open.
    pub data_dir: PathBuf,
    pub corrupt: Corrupt,
    pub clock: Arc<dyn Clock>,
    pub entropy: Arc<dyn Entropy>,
    /// What this binary brings along; what was registered joins it.
    pub definitions: Arc<Definitions>,
    pub observer: Option<Arc<dyn Observer>>,
    /// For what registered job types say about payloads and results; without it nothing is checked.
    pub shapes: Option<Arc<dyn Shapes>>,
    #[cfg(feature = "faults")]
    pub faults: Option<Arc<dyn crate::faults::Faults>>,
}

impl OpenOptions {
    pub fn new(
        data_dir: PathBuf,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
        definitions: Arc<Definitions>,
    ) -> Self {
        Self {
            backend: Backend::Sqlite,
            data_dir,
            corrupt: Corrupt::Stop,
            clock,
            entropy,
            definitions,
            observer: None,
            shapes: None,
            #[cfg(feature = "faults")]
            faults: None,
        }
    }
}
