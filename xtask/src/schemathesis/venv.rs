//! Schemathesis in a Python environment of its own, kept in the target directory.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::cargo;
use crate::guard::Guard;
use crate::packages;
use crate::run::{Deadline, run};
use crate::stage::Stage;

const VERSION: &str = "4.32.5";

/// Fetches some forty packages, once.
pub const INSTALL: Stage = Stage { name: "get schemathesis", budget_s: 300 };

fn directory() -> Result<PathBuf> {
    Ok(cargo::target()?.join(format!("schemathesis-{VERSION}")))
}

pub fn program() -> Result<PathBuf> {
    Ok(directory()?.join("bin/schemathesis"))
}

pub fn is_installed() -> bool {
    let asked = program().ok().and_then(|program| Command::new(program).arg("--version").output().ok());
    asked.is_some_and(|said| String::from_utf8_lossy(&said.stdout).trim_end().ends_with(VERSION))
}

pub fn install(deadline: Deadline, guard: &mut Guard) -> Result<()> {
    let directory = directory()?;
    // Whatever an interrupted run has left there.
    if directory.exists() {
        fs::remove_dir_all(&directory)?;
    }
    make(deadline, guard)?;
    let mut pip = Command::new(directory.join("bin/python"));
    pip.args(["-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"]);
    pip.arg(format!("schemathesis=={VERSION}")).stdin(Stdio::null());
    run(&mut pip, deadline, guard).context(
        "schemathesis could not be installed; it comes from the Python package index, which pip must be able to reach",
    )?;
    ensure!(is_installed(), "schemathesis {VERSION} was installed, and does not answer");
    Ok(())
}

/// Debian leaves the module out of its Python.
fn make(deadline: Deadline, guard: &mut Guard) -> Result<()> {
    let attempt = |guard: &mut Guard| -> Result<()> {
        let mut python = Command::new("python3");
        python.args(["-m", "venv", "--clear"]).arg(directory()?).stdin(Stdio::null());
        run(&mut python, deadline, guard)
    };
    if attempt(guard).is_ok() {
        return Ok(());
    }
    packages::install("python3-venv", deadline, guard).context(
        "Python's venv is missing and could not be installed; on Debian, run `apt-get install python3-venv` as root",
    )?;
    attempt(guard)
}
