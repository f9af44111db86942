//! Cargo, called from the workspace root.

use std::path::Path;
use std::process::{Command, Stdio};

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

fn root() -> &'static Path {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask)
}
