//! The cargo tools the stages call, installed where missing.

use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::cargo::cargo;
use crate::guard::Guard;
use crate::run::{Deadline, run};
use crate::stage::Stage;

/// Compiles some 400 crates, so it has its own budget, and a stage only where it is needed.
pub const INSTALL_NEXTEST: Stage = Stage { name: "install nextest", budget_s: 1200 };

pub fn has_nextest() -> bool {
    answers(&mut cargo(["nextest", "--version"]))
}

pub fn install_nextest(deadline: Deadline, guard: &mut Guard) -> Result<()> {
    run(&mut cargo(["install", "cargo-nextest", "--locked"]), deadline, guard)
}

/// Format and lint checks come with Rust, but minimal toolchains leave them out.
pub fn ensure_rustfmt_and_clippy(deadline: Deadline, guard: &mut Guard) -> Result<()> {
    for (subcommand, component) in [("fmt", "rustfmt"), ("clippy", "clippy")] {
        if answers(&mut cargo([subcommand, "--version"])) {
            continue;
        }
        let mut rustup = Command::new("rustup");
        rustup.args(["component", "add", component]);
        run(rustup.stdin(Stdio::null()), deadline, guard)
            .with_context(|| format!("`cargo {subcommand}` is missing: install {component}"))?;
    }
    Ok(())
}

fn answers(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}
