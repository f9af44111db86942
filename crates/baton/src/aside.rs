//! Databases that were damaged and moved aside.

use crate::config::StoreSettings;
use crate::fault::Fault;
use baton_store::OpenError;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The directories in the data directory that the store moved damaged databases into.
pub fn list(data_dir: &Path) -> BTreeSet<PathBuf> {
    let entries = fs::read_dir(data_dir).into_iter().flatten().flatten();
    let aside = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("corrupt-"));
    aside.map(|entry| entry.path()).collect()
}

/// A supervisor starts a server again that has stopped. If it stopped because its database was
/// damaged, the second start finds no database, and must not mistake that for a first one.
pub fn refuse_to_forget(settings: &StoreSettings, aside: &BTreeSet<PathBuf>) -> Result<(), Fault> {
    let embedded = settings.database.is_none();
    match aside.iter().next_back() {
        Some(moved_to) if embedded && !settings.data_dir.join("baton.db").exists() => {
            Err(Fault::open(&OpenError::Corrupt { moved_to: moved_to.clone() }))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_without_its_database_does_not_start_as_if_new() {
        let dir = tempfile::tempdir().unwrap();
        let settings = StoreSettings { data_dir: dir.path().to_owned(), database: None, seal_key: None };
        let check = || refuse_to_forget(&settings, &list(dir.path()));
        check().unwrap();
        fs::create_dir(dir.path().join("corrupt-1")).unwrap();
        assert!(check().unwrap_err().is("database_corrupt"));
        fs::write(dir.path().join("baton.db"), "").unwrap();
        check().unwrap();
    }
}
