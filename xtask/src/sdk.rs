//! The SDKs against the real server: their tests, their types, and workers and servers that are killed.
//!
//! They run at the same time, since most of what their tests do is wait.
//!
//! Elsewhere: what is tested (`sdk/python/tests`, `sdk/typescript/test`).

mod node;

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result};

use crate::cargo;
use crate::guard::Guard;
use crate::run::{Deadline, Running, run as run_program};
use crate::server::{self, Server, text_in};
use crate::stage::{Failed, Stage, Stages};
use crate::venv::Venv;

/// Also the Python that runs the tests.
const CHECKS: Venv = Venv { name: "sdk-checks", packages: &["mypy==2.4.1", "ruff==0.17.4"] };

/// Fetches a few packages, once.
pub const INSTALL: Stage = Stage { name: "get sdk tools", budget_s: 300 };
/// Less than a minute, most of it leases that run out; on a slow machine more.
pub const RUN: Stage = Stage { name: "sdk", budget_s: 300 };

/// What tests read from their environment.
type Settings = [(&'static str, String); 5];

/// `cargo xtask sdk`: this, and nothing else.
pub fn alone() -> Result<ExitCode> {
    let install = (!is_installed()).then_some(INSTALL);
    let plan = [server::BUILD].into_iter().chain(install).chain([RUN]).collect();
    let mut stages = Stages::new(plan, Guard::start()?);
    let outcome = alone_in_stages(&mut stages);
    Ok(stages.end("sdk", outcome))
}

fn alone_in_stages(stages: &mut Stages) -> Result<(), Failed> {
    stages.run(server::BUILD, server::build)?;
    if !is_installed() {
        stages.run(INSTALL, install)?;
    }
    stages.run(RUN, run)
}

pub fn is_installed() -> bool {
    CHECKS.is_installed() && node::is_there()
}

pub fn install(deadline: Deadline, guard: &mut Guard) -> Result<()> {
    if !CHECKS.is_installed() {
        CHECKS.install(deadline, guard)?;
    }
    if !node::is_there() {
        node::install(deadline, guard)?;
    }
    Ok(())
}

/// Against the binary that was built before.
pub fn run(deadline: Deadline, guard: &mut Guard) -> Result<()> {
    let server = Server::start("sdk", deadline, guard)?;
    let outcome = all(&server, deadline, guard);
    server.stop(guard)?;
    outcome
}

fn all(server: &Server, deadline: Deadline, guard: &mut Guard) -> Result<()> {
    let made = server.tell(&["keys", "create", "worker of the SDKs", "--role", "worker", "--json"])?;
    let settings: Settings = [
        ("BATON_URL", format!("http://{}", server.address)),
        ("BATON_KEY", text_in(&made, "bk_")?),
        ("BATON_ADMIN_KEY", server.key.clone()),
        ("BATON_BIN", server::binary()?.display().to_string()),
        // What tests that are killed leave behind goes with the rest.
        ("TMPDIR", server.directory.display().to_string()),
    ];
    let python = PARTS.map(|part| Python::start(part, server, &settings, deadline, guard));
    let rest = checks(deadline, guard).and_then(|()| typescript(&settings, deadline, guard));
    for part in python {
        part?.wait(deadline, guard)?;
    }
    rest
}

/// Files of the Python tests that run at the same time as the others.
const PARTS: [&str; 2] = ["test_kill.py", "test_[!k]*.py"];

/// Some of the Python tests. What they say is shown when they have ended, so that nothing is mixed.
struct Python {
    running: Running,
    said: PathBuf,
}

impl Python {
    fn start(files: &str, server: &Server, settings: &Settings, deadline: Deadline, guard: &mut Guard) -> Result<Self> {
        let said = server.directory.join(format!("said by {files}"));
        let out = File::create(&said)?;
        let mut python = in_sdk("python", Command::new(CHECKS.program("python")?));
        python.args(["-m", "unittest", "discover", "-s", "tests", "-t", ".", "-p", files]).envs(settings.clone());
        python.stdout(out.try_clone()?).stderr(out);
        Ok(Self { running: Running::start(&mut python, deadline, guard)?, said })
    }

    fn wait(self, deadline: Deadline, guard: &mut Guard) -> Result<()> {
        let outcome = self.running.wait(deadline, guard);
        print!("{}", fs::read_to_string(self.said)?);
        outcome.context("the Python SDK does not do what it should")
    }
}

fn checks(deadline: Deadline, guard: &mut Guard) -> Result<()> {
    for (program, args) in [("mypy", &[][..]), ("ruff", &["check", "."]), ("ruff", &["format", "--check", "."])] {
        run_program(in_sdk("python", Command::new(CHECKS.program(program)?)).args(args), deadline, guard)?;
    }
    Ok(())
}

fn typescript(settings: &Settings, deadline: Deadline, guard: &mut Guard) -> Result<()> {
    for args in [&["ci", "--no-audit", "--no-fund", "--prefer-offline"][..], &["run", "check"], &["test"]] {
        let mut npm = in_sdk("typescript", node::npm()?);
        run_program(npm.args(args).envs(settings.clone()), deadline, guard)
            .context("the TypeScript SDK does not do what it should")?;
    }
    Ok(())
}

fn in_sdk(which: &str, mut command: Command) -> Command {
    command.current_dir(cargo::root().join("sdk").join(which)).stdin(Stdio::null());
    command
}
