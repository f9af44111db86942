//! The real server against its own document: schemathesis asks all that it allows, and much that it
//! does not, and compares every answer with it.
//!
//! Elsewhere: what is asked and which answers count (`xtask/schemathesis.toml`).

mod furniture;

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result};

use crate::cargo;
use crate::guard::Guard;
use crate::run::{Deadline, run as run_program};
use crate::server::{self, Server};
use crate::stage::{Failed, Stage, Stages};
use crate::venv::Venv;
use furniture::Ids;

const VENV: Venv = Venv { name: "schemathesis", packages: &["schemathesis==4.32.5"] };

/// Fetches some forty packages, once.
pub const INSTALL: Stage = Stage { name: "get schemathesis", budget_s: 300 };

/// What it asks takes a minute or so; on a slow machine more.
pub const RUN: Stage = Stage { name: "schemathesis", budget_s: 300 };

/// Whoever asks for more may take longer.
const ALONE: Stage = Stage { budget_s: 3600, ..RUN };

/// `cargo xtask schemathesis`: this, and nothing else.
pub fn alone(args: &[OsString]) -> Result<ExitCode> {
    let install = (!is_installed()).then_some(INSTALL);
    let plan = [server::BUILD].into_iter().chain(install).chain([ALONE]).collect();
    let mut stages = Stages::new(plan, Guard::start()?);
    let outcome = alone_in_stages(&mut stages, args);
    Ok(stages.end("schemathesis", outcome))
}

fn alone_in_stages(stages: &mut Stages, args: &[OsString]) -> Result<(), Failed> {
    stages.run(server::BUILD, server::build)?;
    if !is_installed() {
        stages.run(INSTALL, install)?;
    }
    stages.run(ALONE, |deadline, guard| run(args, deadline, guard))
}

pub fn is_installed() -> bool {
    VENV.is_installed()
}

pub fn install(deadline: Deadline, guard: &mut Guard) -> Result<()> {
    VENV.install(deadline, guard)
}

/// Asks the binary that was built before; `args` go to schemathesis.
pub fn run(args: &[OsString], deadline: Deadline, guard: &mut Guard) -> Result<()> {
    let server = Server::start("schemathesis", deadline, guard)?;
    let ids = furniture::furnish(&server, deadline)?;
    let outcome = run_program(command(&server, &ids)?.args(args), deadline, guard);
    server.stop(guard)?;
    outcome.context("the server and its document disagree; what was asked, and how to ask it again, is above")
}

fn command(server: &Server, ids: &Ids) -> Result<Command> {
    let mut command = Command::new(VENV.program("schemathesis")?);
    command.arg("--config-file").arg(configuration(server, ids)?);
    command.args(["run", "--no-color", &format!("http://{}/openapi.json", server.address)]);
    // By the environment, so that it is in no list of processes; what it writes stays with the rest.
    command.env("BATON_KEY", &server.key);
    command.env("SCHEMATHESIS_HOOKS", "schemathesis_hooks").env("PYTHONPATH", cargo::root().join("xtask"));
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    command.current_dir(&server.directory).stdin(Stdio::null());
    Ok(command)
}

/// With the ids of what there is; variables stand in few places of a configuration.
fn configuration(server: &Server, ids: &Ids) -> Result<PathBuf> {
    let mut text = fs::read_to_string(cargo::root().join("xtask/schemathesis.toml"))?;
    for (name, id) in ids {
        text = text.replace(&format!("${{{name}}}"), id);
    }
    let path = server.directory.join("schemathesis.toml");
    fs::write(&path, text)?;
    Ok(path)
}
