//! `cargo xtask test`: from a fresh machine to a verdict.

use std::process::ExitCode;

use anyhow::Result;

use crate::args::TestOptions;
use crate::cargo::cargo;
use crate::guard::Guard;
use crate::run::run as run_program;
use crate::stage::{Failed, Stage, Stages};
use crate::{postgres, schemathesis, sdk, tools};

const FMT: Stage = Stage { name: "fmt", budget_s: 60 };
const CLIPPY: Stage = Stage { name: "clippy", budget_s: 480 };
/// Building the tests: on a cold machine it takes longer than running them.
const BUILD: Stage = Stage { name: "build", budget_s: 600 };
const TESTS: Stage = Stage { name: "tests", budget_s: 600 };

pub fn run(options: &TestOptions) -> Result<ExitCode> {
    let install = !tools::has_nextest();
    let mut plan = vec![postgres::SET_UP];
    plan.extend(install.then_some(tools::INSTALL_NEXTEST));
    plan.extend((!options.fast).then_some([FMT, CLIPPY]).into_iter().flatten());
    plan.extend([BUILD, TESTS]);
    plan.extend((!schemathesis::is_installed()).then_some(schemathesis::INSTALL));
    plan.push(schemathesis::RUN);
    plan.extend((!sdk::is_installed()).then_some(sdk::INSTALL));
    plan.push(sdk::RUN);
    let mut stages = Stages::new(plan, Guard::start()?);
    let outcome = run_stages(&mut stages, options, install);
    Ok(stages.end("test", outcome))
}

fn run_stages(stages: &mut Stages, options: &TestOptions, install: bool) -> Result<(), Failed> {
    let database = stages.run(postgres::SET_UP, |deadline, guard| {
        if !options.fast {
            tools::ensure_rustfmt_and_clippy(deadline, guard)?;
        }
        postgres::database(deadline, guard)
    })?;
    if install {
        stages.run(tools::INSTALL_NEXTEST, tools::install_nextest)?;
    }
    if !options.fast {
        stages.run(FMT, |deadline, guard| run_program(&mut cargo(["fmt", "--all", "--check"]), deadline, guard))?;
        stages.run(CLIPPY, |deadline, guard| {
            let mut clippy = cargo(["clippy", "--workspace", "--all-targets", "--locked"]);
            clippy.args(["--", "-D", "warnings"]);
            run_program(&mut clippy, deadline, guard)
        })?;
    }
    stages.run(BUILD, |deadline, guard| {
        run_program(&mut cargo(["nextest", "run", "--workspace", "--locked", "--no-run"]), deadline, guard)
    })?;
    stages.run(TESTS, |deadline, guard| {
        let mut nextest = cargo(["nextest", "run", "--workspace", "--locked"]);
        nextest.args(&options.nextest_args);
        run_program(database.pass_to(&mut nextest), deadline, guard)
    })?;
    if !schemathesis::is_installed() {
        stages.run(schemathesis::INSTALL, schemathesis::install)?;
    }
    stages.run(schemathesis::RUN, |deadline, guard| schemathesis::run(&[], deadline, guard))?;
    if !sdk::is_installed() {
        stages.run(sdk::INSTALL, sdk::install)?;
    }
    stages.run(sdk::RUN, sdk::run)
}
