//! Cargo, called from the workspace root.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

/// A cargo command that never waits for a keyboard.
pub fn cargo<const N: usize>(args: [&str; N]) -> Command {
    let mut command = at_terminal(args);
    command.stdin(Stdio::null());
    command
}

/// A cargo command that keeps the developer's standard input.
pub fn at_terminal<const N: usize>(args: [&str; N]) -> Command {
    // Set by the cargo that runs this program: the same toolchain throughout.
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(args).current_dir(root());
    command
}

/// What the stages build, and what is kept beside it. This program was built there too.
pub fn target() -> Result<PathBuf> {
    let own = std::env::current_exe().context("this program does not know where it is")?;
    let target = own.parent().and_then(Path::parent);
    Ok(target.context("this program is in no target directory")?.to_owned())
}

pub fn root() -> &'static Path {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask)
}
