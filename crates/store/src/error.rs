//! What can go wrong with remembering. Context is added here; causes are logged where handled.

use std::path::PathBuf;

#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// Nothing was written; trying again later may work.
    #[error("the database cannot be reached: {0}")]
    Unavailable(String),
    /// It could not be found out whether the commit took place.
    #[error("the database went away during a commit and could not be asked whether it took place")]
    OutcomeUnknown,
    /// More is waiting than may wait.
    #[error("too many commands are waiting to be committed")]
    Overloaded,
    /// The store was closed, or has crashed and says nothing any more.
    #[error("the store is closed")]
    Closed,
    /// The database refused what a command wanted to write: a broken invariant, so our fault.
    #[error("the database rejected a change: {0}")]
    Rejected(String),
    /// A command panicked while deciding, or a question while it was answered: our fault too. Its neighbours were not harmed.
    #[error("a command or a question failed: {0}")]
    Panicked(String),
    /// The database itself is not what it was: a damaged file, a table that is gone, rights taken
    /// away.
    #[error("the database is damaged: {0}")]
    Damaged(String),
    /// What stands in the database cannot be read as what it should be.
    #[error("a row cannot be understood: {0}")]
    Garbled(String),
}

impl StoreError {
    /// Something is wrong with one command or one row, not with the database as a whole.
    pub const fn is_internal(&self) -> bool {
        matches!(self, Self::Rejected(_) | Self::Panicked(_) | Self::Garbled(_))
    }

    pub const fn code(&self) -> &'static str {
        match self {
            Self::Unavailable(_) => "store_unavailable",
            Self::OutcomeUnknown => "outcome_unknown",
            Self::Overloaded => "overloaded",
            Self::Closed => "store_closed",
            Self::Rejected(_) | Self::Panicked(_) | Self::Garbled(_) | Self::Damaged(_) => "internal",
        }
    }
}

#[derive(Clone, Debug, thiserror::Error)]
pub enum CommitError<E: std::error::Error> {
    /// The command's own, typed no. Nothing was written.
    #[error(transparent)]
    Refused(E),
    /// The idempotency key was used before for something else.
    #[error("this idempotency key was already used with another request")]
    KeyReused,
    #[error(transparent)]
    Store(StoreError),
}

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("another Baton uses the data directory {0}; stop it, or choose another with --data-dir")]
    InUse(PathBuf),
    #[error("cannot use the data directory {path}: {cause}")]
    DataDir { path: PathBuf, cause: std::io::Error },
    #[error(
        "the database has schema {found}, which needs a Baton that knows schema {oldest} or newer; this one knows {known}. \
         Start the newer Baton again, or restore a backup from before the upgrade"
    )]
    TooNew { found: u32, oldest: u32, known: u32 },
    #[error("migration {version} was changed after it had been applied; this binary does not belong to this database")]
    Edited { version: u32 },
    #[error(
        "the database file was corrupt and has been moved to {moved_to}; start with --start-empty to go on without it, or restore a backup"
    )]
    Corrupt { moved_to: PathBuf },
    #[error("the database file {path} is damaged: {cause}")]
    Damaged { path: PathBuf, cause: String },
    #[error(
        "the database has schema {found}; this Baton looks at schema {known}. Start it as a server once to migrate"
    )]
    TooOld { found: u32, known: u32 },
    #[error("there is no Baton database in {0}")]
    NoDatabase(String),
    #[error(
        "the database in {0} is gone or empty, but there was one: its seals or its log are left; restore a backup, or start with --start-empty to go on without it"
    )]
    Gone(PathBuf),
    #[error("the database URL cannot be used: {0}")]
    Url(String),
    #[error("cannot open the database: {0}")]
    Database(String),
}

impl OpenError {
    pub const fn code(&self) -> &'static str {
        match self {
            Self::InUse(_) => "data_dir_in_use",
            Self::DataDir { .. } => "data_dir_unusable",
            Self::TooNew { .. } => "schema_too_new",
            Self::Edited { .. } => "schema_edited",
            Self::Corrupt { .. } | Self::Damaged { .. } => "database_corrupt",
            Self::TooOld { .. } => "schema_too_old",
            Self::NoDatabase(_) => "no_database",
            Self::Gone(_) => "database_gone",
            Self::Url(_) => "database_url",
            Self::Database(_) => "database_unavailable",
        }
    }
}
