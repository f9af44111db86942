//! A look at a database by somebody who does not work with it: nothing is locked, migrated, moved
//! or made.

use crate::error::OpenError;
use crate::migrate::Versions;
use crate::open::Backend;
use crate::{postgres, sqlite};
use baton_core::Micros;
use std::path::Path;

/// What was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkup {
    /// The schema that stands there.
    pub schema: u32,
    /// The schema that this binary makes; where it is the newer one, the next start migrates.
    pub known: u32,
    pub place: Place,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A file, and whether every page of it was looked at; with a large one that would take long.
    File {
        bytes: u64,
        whole: bool,
    },
    Server(Server),
}

/// A PostgreSQL server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    pub version: String,
    /// Its clock.
    pub now: Micros,
    /// Connections that it allows to everybody, and that are taken at the moment, this look's
    /// included.
    pub allowed: u32,
    pub taken: u32,
    /// What one node takes of them.
    pub needed: u32,
}

impl Checkup {
    pub(crate) const fn new(versions: Versions, place: Place) -> Self {
        Self { schema: versions.found, known: versions.known, place }
    }

    /// Fails with what would keep a node from working with it, and with
    /// [`OpenError::NoDatabase`] if there never was one.
    pub async fn of(backend: &Backend, data_dir: &Path) -> Result<Self, OpenError> {
        match backend {
            Backend::Sqlite => sqlite::checkup(data_dir),
            Backend::Postgres(url) => postgres::checkup(url).await,
        }
    }
}
