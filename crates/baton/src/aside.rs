//! Databases that were damaged and moved aside.

use crate::config::StoreSettings;
use baton_store::SQLITE_FILE;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// What there was before the store was opened.
pub struct Before {
    aside: BTreeSet<PathBuf>,
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
        let now = list(data_dir);
        let fresh = now.difference(&self.aside).next().cloned();
        fresh.or_else(|| if self.database { None } else { self.aside.last().cloned() })
    }
}

/// The directories in the data directory that the store moved damaged databases into.
fn list(data_dir: &Path) -> BTreeSet<PathBuf> {
    let entries = fs::read_dir(data_dir).into_iter().flatten().flatten();
    let aside = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("corrupt-"));
    aside.map(|entry| entry.path()).collect()
}
