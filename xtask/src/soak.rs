//! `cargo xtask soak`: what is too long for every change. Many seeds, many kills, a large backlog,
//! thousands of malformed requests.

use std::process::ExitCode;

use anyhow::Result;

use crate::args::SoakOptions;
use crate::cargo::cargo;
use crate::guard::Guard;
use crate::run::run as run_program;
use crate::stage::{Failed, Stage, Stages};
use crate::{postgres, tools};

const SIM: Stage = Stage { name: "sim", budget_s: 3600 };
const KILL: Stage = Stage { name: "kill", budget_s: 3600 };
const REQUESTS: Stage = Stage { name: "requests", budget_s: 900 };
const BACKLOG: Stage = Stage { name: "backlog", budget_s: 3600 };

pub fn run(options: &SoakOptions) -> Result<ExitCode> {
    let install = !tools::has_nextest();
    let mut plan = vec![postgres::SET_UP];
    plan.extend(install.then_some(tools::INSTALL_NEXTEST));
    plan.extend([SIM, KILL, REQUESTS, BACKLOG]);
    let mut stages = Stages::new(plan, Guard::start()?);
    let outcome = run_stages(&mut stages, options, install);
    Ok(stages.end("soak", outcome))
}

fn run_stages(stages: &mut Stages, options: &SoakOptions, install: bool) -> Result<(), Failed> {
    let database = stages.run(postgres::SET_UP, postgres::database)?;
    if install {
        stages.run(tools::INSTALL_NEXTEST, tools::install_nextest)?;
    }
    stages.run(SIM, |deadline, guard| {
        let mut sim = cargo(["run", "--release", "-p", "baton-sim", "--bin", "sim"]);
        sim.args(["--", "--seeds", &options.seeds.to_string()]);
        run_program(database.pass_to(&mut sim), deadline, guard)
    })?;
    stages.run(KILL, |deadline, guard| {
        let mut nextest = cargo(["nextest", "run", "--workspace", "--locked"]);
        nextest
            .args(["--profile", "soak", "-E", "test(kill)", "--no-capture"])
            .env("BATON_KILLS", options.kills.to_string());
        run_program(database.pass_to(&mut nextest), deadline, guard)
    })?;
    stages.run(REQUESTS, |deadline, guard| {
        let mut nextest = cargo(["nextest", "run", "-p", "baton", "--locked"]);
        nextest
            .args(["--profile", "soak", "-E", "test(/^malformed::/)", "--no-capture"])
            .env("BATON_REQUESTS", options.requests.to_string());
        run_program(database.pass_to(&mut nextest), deadline, guard)
    })?;
    stages.run(BACKLOG, |deadline, guard| {
        let mut backlog = cargo(["run", "--release", "-p", "baton-sim", "--bin", "backlog"]);
        backlog.args(["--", &options.backlog.to_string()]);
        run_program(database.pass_to(&mut backlog), deadline, guard)
    })
}
