//! Databases that were damaged and moved aside.

use crate::config::StoreSettings;
use baton_store::SQLITE_FILE;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const PREFIX: &str = "corrupt-";

/// What there was before the store was opened.
pub struct Before {
    /// By their numbers.
    aside: BTreeMap<u32, PathBuf>,
    database: bool,
}

impl Before {
    pub fn look(store: &StoreSettings) -> Self {
        // Without an embedded database there is none to miss.
        let database = store.database.is_some() || store.data_dir.join(SQLITE_FILE).exists();
        Self { aside: list(&store.data_dir), database }
    }

    /// Where the database went that is now an empty one: just now, or at an earlier start that
    /// then refused to go on without it.
    pub fn moved(&self, data_dir: &Path) -> Option<PathBuf> {
        let last = list(data_dir).pop_last();
        last.filter(|(n, _)| !self.database || !self.aside.contains_key(n)).map(|(_, path)| path)
    }
}

/// Where the last one went, if any did.
pub fn last(data_dir: &Path) -> Option<PathBuf> {
    list(data_dir).pop_last().map(|(_, path)| path)
}

/// The directories in the data directory that the store moved damaged databases into.
fn list(data_dir: &Path) -> BTreeMap<u32, PathBuf> {
    let entries = fs::read_dir(data_dir).into_iter().flatten().flatten();
    let numbered = |name: &str| name.strip_prefix(PREFIX)?.parse().ok();
    entries.filter_map(|entry| Some((numbered(&entry.file_name().to_string_lossy())?, entry.path()))).collect()
}
