//! The data directory: whose it is, who else can look into it, and how much room is left.

use super::finding::{Check, Finding};
use crate::local::ADMIN_KEY;
use baton_core::Micros;
use baton_core::time::Span;
use rustix::fs::{Access, access, statvfs};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Less than this is soon used up.
const SPACE_LOW: u64 = 1024 * 1024 * 1024;
/// With less than this a commit may fail: the database's log alone grows to 64 MiB.
const SPACE_OUT: u64 = 128 * 1024 * 1024;
/// A file that was written so much later than now was written under another clock.
const AHEAD: Span = Span::secs(60);

/// Files that nobody but their owner may read.
const SECRETS: [&str; 2] = [ADMIN_KEY, "seal.key"];

pub fn look(dir: &Path, now: Micros) -> Vec<Finding> {
    let mut findings = vec![place(dir)];
    findings.extend(space(dir));
    findings.extend(secrets(dir));
    findings.extend(from_the_future(dir, now));
    findings
}

/// Who may do what with a file; nothing if it is not there.
pub fn mode(path: &Path) -> Option<u32> {
    std::fs::metadata(path).ok().map(|file| file.mode())
}

fn place(dir: &Path) -> Finding {
    let (check, shown) = (Check::DataDirectory, dir.display());
    let found = match std::fs::metadata(dir) {
        Ok(found) => found,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return not_yet(dir),
        Err(error) => {
            let advice = "choose another with --data-dir, or give this user access to it";
            return Finding::problem(check, format!("{shown} cannot be looked at: {error}"), advice);
        }
    };
    if !found.is_dir() {
        return Finding::problem(check, format!("{shown} is no directory"), "choose another with --data-dir");
    }
    let us = rustix::process::geteuid().as_raw();
    if access(dir, Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK).is_err() {
        let advice = format!("run it as the user {}, or chown the directory", found.uid());
        return Finding::problem(check, format!("{shown} cannot be written to by this user ({us})"), advice);
    }
    if found.mode() & 0o022 != 0 {
        let detail = format!("{shown} may be written to by others, who could replace what is in it");
        return Finding::problem(check, detail, format!("chmod 700 {shown}"));
    }
    if found.mode() & 0o055 != 0 {
        let detail = format!("{shown} may be looked into by others");
        return Finding::warning(check, detail, format!("chmod 700 {shown}"));
    }
    if found.uid() != us {
        let detail = format!("{shown} belongs to the user {}, not to this one ({us})", found.uid());
        return Finding::warning(check, detail, "run everything as that user");
    }
    Finding::ok(check, format!("{shown} is its owner's alone and can be written to"))
}

/// The directory that a first start would make this one in.
fn not_yet(dir: &Path) -> Finding {
    let whole = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
    let parent = existing(&whole);
    if access(&parent, Access::WRITE_OK | Access::EXEC_OK).is_ok() {
        return Finding::ok(Check::DataDirectory, format!("{} is made by the first start", dir.display()));
    }
    let detail = format!("{} is not there and cannot be made in {}", dir.display(), parent.display());
    Finding::problem(
        Check::DataDirectory,
        detail,
        "make it for the user that runs Baton, or choose another with --data-dir",
    )
}

fn existing(path: &Path) -> PathBuf {
    path.ancestors().find(|path| path.exists()).unwrap_or(Path::new("/")).to_owned()
}

fn space(dir: &Path) -> Option<Finding> {
    let whole = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
    let found = statvfs(existing(&whole)).ok()?;
    Some(room(found.f_bavail.saturating_mul(found.f_frsize), dir))
}

fn room(bytes: u64, dir: &Path) -> Finding {
    let detail = format!("{} free where {} is", bytes_text(bytes), dir.display());
    let advice = "make room, or move the data directory to a larger disk";
    if bytes < SPACE_OUT {
        return Finding::problem(Check::Disk, detail, advice);
    }
    if bytes < SPACE_LOW {
        return Finding::warning(Check::Disk, detail, advice);
    }
    Finding::ok(Check::Disk, detail)
}

pub fn bytes_text(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    let mut size = bytes as f64 / 1024.0;
    let mut unit = 0;
    while size >= 1024.0 && unit + 1 < UNITS.len() {
        size /= 1024.0;
        unit += 1;
    }
    format!("{size:.1} {}", UNITS[unit])
}

fn secrets(dir: &Path) -> Option<Finding> {
    let paths = SECRETS.map(|name| dir.join(name));
    let there: Vec<_> = paths.iter().filter_map(|path| Some((path, mode(path)?))).collect();
    if let Some((path, _)) = there.iter().find(|(_, mode)| mode & 0o077 != 0) {
        let detail = format!("{} may be read by others", path.display());
        let advice = format!("chmod 600 {}; if others use this machine, replace it too", path.display());
        return Some(Finding::problem(Check::Secrets, detail, advice));
    }
    if let Some((path, _)) = there.iter().find(|(path, _)| access(path.as_path(), Access::READ_OK).is_err()) {
        let detail = format!("{} cannot be read by this user", path.display());
        return Some(Finding::problem(Check::Secrets, detail, "run everything as the owner of the data directory"));
    }
    let names: Vec<_> = there.iter().filter_map(|(path, _)| path.file_name()?.to_str()).collect();
    (!names.is_empty()).then(|| Finding::ok(Check::Secrets, format!("{}: their owner's alone", names.join(", "))))
}

fn from_the_future(dir: &Path, now: Micros) -> Option<Finding> {
    let written = std::fs::metadata(dir.join(baton_store::SQLITE_FILE)).ok()?.mtime();
    let ahead = written.saturating_mul(1_000_000).saturating_sub(now.0);
    (ahead > AHEAD.0).then(|| {
        let detail = format!("the database was last written {} s from now: the clock was set back", ahead / 1_000_000);
        Finding::warning(Check::Clock, detail, "set the clock right, and let NTP keep it so")
    })
}

#[cfg(test)]
mod tests {
    use super::super::finding::Verdict;
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    fn verdict(finding: &Finding) -> Verdict {
        finding.verdict
    }

    #[test]
    fn a_directory_that_others_can_use_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let place_as = |mode| {
            fs::set_permissions(dir.path(), Permissions::from_mode(mode)).unwrap();
            place(dir.path())
        };
        assert_eq!(verdict(&place_as(0o700)), Verdict::Ok);
        assert_eq!(verdict(&place_as(0o755)), Verdict::Warning);
        let open = place_as(0o777);
        assert_eq!(verdict(&open), Verdict::Problem);
        assert!(open.advice.unwrap().starts_with("chmod 700 "));
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        assert_eq!(verdict(&place(&file)), Verdict::Problem);
        assert_eq!(verdict(&place(&dir.path().join("a/b"))), Verdict::Ok, "it will be made");
    }

    #[test]
    fn a_secret_that_others_can_read_is_a_problem() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(secrets(dir.path()), None);
        let key = dir.path().join("admin.key");
        fs::write(&key, "x").unwrap();
        for (mode, expected) in [(0o600, Verdict::Ok), (0o400, Verdict::Ok), (0o640, Verdict::Problem)] {
            fs::set_permissions(&key, Permissions::from_mode(mode)).unwrap();
            assert_eq!(secrets(dir.path()).unwrap().verdict, expected, "{mode:o}");
        }
    }

    #[test]
    fn room_is_told_before_it_is_gone() {
        let dir = Path::new("x");
        assert_eq!(verdict(&room(SPACE_OUT - 1, dir)), Verdict::Problem);
        assert_eq!(verdict(&room(SPACE_OUT, dir)), Verdict::Warning);
        assert_eq!(verdict(&room(SPACE_LOW, dir)), Verdict::Ok);
        assert_eq!(bytes_text(1536 * 1024 * 1024), "1.5 GiB");
    }

    #[test]
    fn a_database_from_the_future_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("baton.db"), "x").unwrap();
        assert!(from_the_future(dir.path(), Micros(0)).is_some());
        assert!(from_the_future(dir.path(), Micros(i64::MAX)).is_none());
    }
}
