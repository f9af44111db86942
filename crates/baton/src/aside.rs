//! Databases that were damaged and moved aside.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The directories in the data directory that the store moved damaged databases into.
pub fn list(data_dir: &Path) -> BTreeSet<PathBuf> {
    let entries = fs::read_dir(data_dir).into_iter().flatten().flatten();
    let aside = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("corrupt-"));
    aside.map(|entry| entry.path()).collect()
}
