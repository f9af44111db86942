//! Programs from the Python package index, each kind in an environment of its own in the target directory.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::cargo;
use crate::guard::Guard;
use crate::packages;
use crate::run::{Deadline, run};

pub struct Venv {
    pub name: &'static str,
    /// Each with its version.
    pub packages: &'static [&'static str],
}

/// Says what was installed, once it was: an interrupted run leaves none.
const COMPLETE: &str = "complete";

impl Venv {
    pub fn directory(&self) -> Result<PathBuf> {
        Ok(cargo::target()?.join(format!("venv-{}", self.name)))
    }

    pub fn program(&self, name: &str) -> Result<PathBuf> {
        Ok(self.directory()?.join("bin").join(name))
    }

    pub fn is_installed(&self) -> bool {
        let Ok(directory) = self.directory() else { return false };
        let complete = fs::read_to_string(directory.join(COMPLETE)).is_ok_and(|said| said == self.packages.join(" "));
        // The Python that it was made with may be gone.
        complete && Command::new(directory.join("bin/python")).arg("--version").output().is_ok()
    }

    pub fn install(&self, deadline: Deadline, guard: &mut Guard) -> Result<()> {
        let directory = self.directory()?;
        // Whatever an interrupted run has left there, or another version.
        if directory.exists() {
            fs::remove_dir_all(&directory)?;
        }
        self.make(deadline, guard)?;
        let mut pip = Command::new(directory.join("bin/python"));
        pip.args(["-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"]);
        pip.args(self.packages).stdin(Stdio::null());
        let asked = self.packages.join(" ");
        run(&mut pip, deadline, guard).with_context(|| {
            format!("{asked} could not be installed from the Python package index, which pip must be able to reach")
        })?;
        fs::write(directory.join(COMPLETE), &asked)?;
        ensure!(self.is_installed(), "{asked} was installed, and its Python does not answer");
        Ok(())
    }

    /// Debian leaves the module out of its Python.
    fn make(&self, deadline: Deadline, guard: &mut Guard) -> Result<()> {
        let attempt = |guard: &mut Guard| -> Result<()> {
            let mut python = Command::new("python3");
            python.args(["-m", "venv", "--clear"]).arg(self.directory()?).stdin(Stdio::null());
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
}
