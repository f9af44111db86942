//! PostgreSQL's server programs: found, or installed from Debian's packages.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::guard::Guard;
use crate::packages;
use crate::run::Deadline;

const NEEDED: [&str; 2] = ["initdb", "postgres"];
const DEBIAN: &str = "/usr/lib/postgresql";

/// The directory that holds the server programs.
pub fn find_or_install(deadline: Deadline, guard: &mut Guard) -> Result<PathBuf> {
    if let Some(bin) = find() {
        return Ok(bin);
    }
    packages::install("postgresql", deadline, guard).context(
        "the PostgreSQL server is missing and could not be installed; \
         on Debian, run `apt-get install postgresql` as root",
    )?;
    find().context("installed PostgreSQL, but found no `initdb` and `postgres`")
}

/// Debian's directory first: what it puts on PATH are wrappers.
fn find() -> Option<PathBuf> {
    newest_in(Path::new(DEBIAN)).or_else(|| {
        let path = std::env::var_os("PATH")?;
        std::env::split_paths(&path).find_map(|directory| {
            // Through links, to where all programs of one version are.
            let initdb = fs::canonicalize(directory.join("initdb")).ok()?;
            complete(initdb.parent()?)
        })
    })
}

fn newest_in(versions: &Path) -> Option<PathBuf> {
    let mut found: Vec<(Vec<u32>, PathBuf)> = fs::read_dir(versions)
        .ok()?
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let version = version(entry.file_name().to_str()?)?;
            Some((version, complete(&entry.path().join("bin"))?))
        })
        .collect();
    found.sort();
    found.pop().map(|(_, bin)| bin)
}

/// "9.6" is older than "15", so parts compare as numbers.
fn version(name: &str) -> Option<Vec<u32>> {
    name.split('.').map(|part| part.parse().ok()).collect()
}

fn complete(bin: &Path) -> Option<PathBuf> {
    NEEDED.iter().all(|program| bin.join(program).is_file()).then(|| bin.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_complete_version_is_taken() {
        let root = std::env::temp_dir().join(format!("baton-versions-{}", std::process::id()));
        for (version, programs) in [
            ("9.6", &["initdb", "postgres"][..]),
            ("15", &["initdb", "postgres"]),
            ("16", &["initdb"]),
            ("old", &["initdb", "postgres"]),
        ] {
            let bin = root.join(version).join("bin");
            fs::create_dir_all(&bin).unwrap();
            for program in programs {
                fs::write(bin.join(program), "").unwrap();
            }
        }
        assert_eq!(newest_in(&root), Some(root.join("15/bin")));
        fs::remove_dir_all(&root).unwrap();
        assert_eq!(newest_in(&root), None);
    }
}
