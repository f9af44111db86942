//! Where the cluster lives, and what earlier runs left behind.
//!
//! A directory carries the identity of the process that made it, so a later run can tell whether
//! anyone still needs it. Only a run that was killed together with its guard leaves one behind.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::account::Account;
use crate::guard::{self, GRACE, Guard};
use crate::process::{Identity, Signal, Target};

const PREFIX: &str = "baton-pg-";

pub fn create(account: &Account, guard: &mut Guard) -> Result<PathBuf> {
    let base = base(account)?;
    let own = Identity::of(std::process::id()).context("this process is not in /proc")?;
    remove_stale(&base, account, &own);
    let directory = base.join(format!("{PREFIX}{own}"));
    guard.remove_at_end(&directory)?;
    DirBuilder::new()
        .mode(0o700)
        .create(&directory)
        .with_context(|| format!("could not create {}", directory.display()))?;
    account.own(&directory)?;
    Ok(directory)
}

pub fn data(directory: &Path) -> PathBuf {
    directory.join("data")
}

/// Written by the server: its process id first, its state last.
pub fn pid_file(directory: &Path) -> PathBuf {
    data(directory).join("postmaster.pid")
}

/// `/var/tmp` before `/tmp`: the latter is often memory, where a sync costs nothing and a
/// benchmark measures nothing.
fn base(account: &Account) -> Result<PathBuf> {
    let named = std::env::var_os("TMPDIR").map(PathBuf::from);
    named
        .into_iter()
        .chain(["/var/tmp".into(), "/tmp".into()])
        // The path travels to the guard as one line of text.
        .filter(|path| path.to_str().is_some_and(|text| !text.contains('\n')))
        .find(|path| path.is_absolute() && path.is_dir() && account.reaches(path))
        .context("no directory for temporary files that the server could reach; set TMPDIR")
}

fn remove_stale(base: &Path, account: &Account, own: &Identity) {
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        let directory = entry.path();
        let Some(maker) = maker(&entry.file_name()) else {
            continue;
        };
        // We have made none yet: one in our name is from before the machine was restarted.
        let is_stale = maker == *own || maker.is_gone();
        if !is_stale || !account.owns(&directory) {
            continue;
        }
        if let Some(server) = server_of(&directory) {
            server.stop(Signal::Quit, GRACE);
        }
        if let Err(error) = guard::remove(&directory) {
            eprintln!("warning: could not remove {}: {error}", directory.display());
        }
    }
}

fn maker(file_name: &OsStr) -> Option<Identity> {
    file_name.to_str()?.strip_prefix(PREFIX)?.parse().ok()
}

/// The server in `directory`, if it still runs. Its id may belong to a stranger by now, so the
/// directory has to be on its command line.
fn server_of(directory: &Path) -> Option<Target> {
    let text = fs::read_to_string(pid_file(directory)).ok()?;
    let id: u32 = text.lines().next()?.trim().parse().ok()?;
    let command_line = fs::read_to_string(format!("/proc/{id}/cmdline")).ok()?;
    let data = data(directory);
    command_line.split('\0').any(|word| Path::new(word) == data).then_some(Target::Group(id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_we_give_are_ours() {
        let own = Identity::of(std::process::id()).unwrap();
        assert_eq!(maker(OsStr::new(&format!("{PREFIX}{own}"))), Some(own));
        for name in ["baton-pg-", "baton-pg-1-2", "baton-pg-a-b-c", "other-1-2-3"] {
            assert_eq!(maker(OsStr::new(name)), None, "for {name}");
        }
    }
}
