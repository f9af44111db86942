//! The real server against its own document: schemathesis asks all that it allows, and much that it
//! does not, and compares every answer with it.
//!
//! Elsewhere: what is asked and which answers count (`xtask/schemathesis.toml`).

mod server;
mod venv;

use std::ffi::OsString;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result};

use crate::cargo;
use crate::guard::Guard;
use crate::run::{Deadline, run as run_program};
use crate::stage::{Failed, Stage, Stages};
use server::Server;

pub use venv::{INSTALL, install, is_installed};

/// What it asks takes a minute or so; on a slow machine more.
pub const RUN: Stage = Stage { name: "schemathesis", budget_s: 300 };

const BUILD: Stage = Stage { name: "build", budget_s: 600 };
/// Whoever asks for more may take longer.
const ALONE: Stage = Stage { budget_s: 3600, ..RUN };

/// `cargo xtask schemathesis`: this, and nothing else.
pub fn alone(args: &[OsString]) -> Result<ExitCode> {
    let install = (!is_installed()).then_some(INSTALL);
    let plan = [BUILD].into_iter().chain(install).chain([ALONE]).collect();
    let mut stages = Stages::new(plan, Guard::start()?);
    let outcome = alone_in_stages(&mut stages, args);
    Ok(stages.end("schemathesis", outcome))
}

fn alone_in_stages(stages: &mut Stages, args: &[OsString]) -> Result<(), Failed> {
    stages.run(BUILD, |deadline, guard| {
        run_program(&mut cargo::cargo(["build", "--package", "baton", "--locked"]), deadline, guard)
    })?;
    if !is_installed() {
        stages.run(INSTALL, install)?;
    }
    stages.run(ALONE, |deadline, guard| run(args, deadline, guard))
}

/// Asks the binary that was built before; `args` go to schemathesis.
pub fn run(args: &[OsString], deadline: Deadline, guard: &mut Guard) -> Result<()> {
    let server = Server::start(deadline, guard)?;
    let outcome = run_program(command(&server)?.args(args), deadline, guard);
    server.stop(guard)?;
    outcome.context("the server and its document disagree; what was asked, and how to ask it again, is above")
}

fn command(server: &Server) -> Result<Command> {
    let mut command = Command::new(venv::program()?);
    command.arg("--config-file").arg(cargo::root().join("xtask/schemathesis.toml"));
    command.args(["run", "--no-color", &format!("http://{}/openapi.json", server.address)]);
    // By the environment, so that it is in no list of processes; what it writes stays with the rest.
    command.env("BATON_KEY", &server.key).envs(server.ids.iter().map(|(name, id)| (name, id)));
    command.current_dir(&server.directory).stdin(Stdio::null());
    Ok(command)
}
