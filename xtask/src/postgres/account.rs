//! Who the server runs as. PostgreSQL refuses to run as root.

use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

/// In order of preference, when we are root.
const UNPRIVILEGED: [&str; 2] = ["postgres", "nobody"];

pub struct Account {
    uid: u32,
    gid: u32,
    /// We are root, and the server is not.
    differs: bool,
}

impl Account {
    pub fn for_server() -> Result<Self> {
        let own = fs::metadata("/proc/self")?;
        if own.uid() != 0 {
            return Ok(Self { uid: own.uid(), gid: own.gid(), differs: false });
        }
        let accounts = fs::read_to_string("/etc/passwd")?;
        UNPRIVILEGED
            .iter()
            .find_map(|name| find(&accounts, name))
            .context("root cannot run PostgreSQL, and there is no account `postgres` or `nobody`")
    }

    /// Makes `command` run as this account, without root's supplementary groups.
    pub fn apply(&self, command: &mut Command) {
        if self.differs {
            command.uid(self.uid).gid(self.gid);
        }
    }

    pub fn own(&self, path: &Path) -> Result<()> {
        if self.differs {
            chown(path, Some(self.uid), Some(self.gid))?;
        }
        Ok(())
    }

    pub fn owns(&self, path: &Path) -> bool {
        fs::symlink_metadata(path).is_ok_and(|found| found.uid() == self.uid)
    }

    /// Whether this account gets through every directory down to and including `path`.
    pub fn reaches(&self, path: &Path) -> bool {
        path.ancestors().all(|directory| {
            fs::metadata(directory).is_ok_and(|found| {
                let search = match (found.uid() == self.uid, found.gid() == self.gid) {
                    (true, _) => 0o100,
                    (false, true) => 0o010,
                    (false, false) => 0o001,
                };
                found.mode() & search != 0
            })
        })
    }
}

/// Lines of `/etc/passwd`: name, password, user id, group id, and more.
fn find(accounts: &str, name: &str) -> Option<Account> {
    accounts.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next()? == name).then_some(())?;
        Some(Account { uid: fields.nth(1)?.parse().ok()?, gid: fields.next()?.parse().ok()?, differs: true })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_found_by_its_whole_name() {
        let accounts = "root:x:0:0::/root:/bin/sh\npostgres2:x:7:8::/:\npostgres:x:101:104::/:\n";
        let account = find(accounts, "postgres").unwrap();
        assert_eq!((account.uid, account.gid), (101, 104));
        assert!(find(accounts, "nobody").is_none());
    }
}
