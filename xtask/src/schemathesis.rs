//! The real server against its own document: schemathesis asks all that it allows, and much that it
//! does not, and compares every answer with it.
//!
//! Elsewhere: what is asked and which answers count (`xtask/schemathesis.toml`).

mod server;
mod venv;

use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::cargo;
use crate::guard::Guard;
use crate::run::{Deadline, run as run_program};
use crate::stage::Stage;
use server::Server;

pub use venv::{INSTALL, install, is_installed};

/// What it asks takes a minute or so; on a slow machine more.
pub const RUN: Stage = Stage { name: "schemathesis", budget_s: 300 };

pub fn run(deadline: Deadline, guard: &mut Guard) -> Result<()> {
    let server = Server::start(deadline, guard)?;
    let outcome = run_program(&mut command(&server)?, deadline, guard);
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
