//! Commands that pass their arguments on: `sim`, `bench`, `with-postgres`.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context, Result};

use crate::cargo::at_terminal;
use crate::guard::Guard;
use crate::postgres;
use crate::run::{Deadline, in_foreground};

/// Nothing to tear down, so the simulator takes this process's place.
pub fn sim(args: &[OsString]) -> Result<ExitCode> {
    let mut sim = at_terminal(["run", "--release", "-p", "baton-sim", "--bin", "sim", "--"]);
    Err(sim.args(args).exec()).context("could not start cargo")
}

/// What can be measured, and the program that does.
const PARTS: [(&str, [&str; 4]); 4] = [
    ("commit", ["-p", "baton-sim", "--bin", "bench"]),
    ("door", ["-p", "baton-api", "--example", "door"]),
    ("queue", ["-p", "baton-sim", "--bin", "queue"]),
    ("runs", ["-p", "baton-sim", "--bin", "runs"]),
];

/// One part or all, one after another beside one PostgreSQL; each goes on if those before it went well.
pub fn bench(args: &[OsString]) -> Result<ExitCode> {
    let named = PARTS.iter().find(|(part, _)| args.first().is_some_and(|word| word == part));
    let (parts, args) = match named {
        Some(part) => (std::slice::from_ref(part), &args[1..]),
        None => (&PARTS[..], args),
    };
    let mut guard = Guard::start()?;
    let deadline = Deadline::after(Duration::from_secs(postgres::SET_UP.budget_s));
    let database = postgres::database(deadline, &mut guard)?;
    for (part, program) in parts {
        if *part == "queue" {
            // It starts the server too, as it is shipped: without what only tests and benchmarks need.
            let mut server = at_terminal(["build", "--release", "--locked", "-p", "baton"]);
            let code = in_foreground(&mut server, &mut guard)?;
            if code != ExitCode::SUCCESS {
                return Ok(code);
            }
        }
        let mut bench = at_terminal(["run", "--release", "--locked"]);
        bench.args(program).arg("--").args(args);
        let code = in_foreground(database.pass_to(&mut bench), &mut guard)?;
        if code != ExitCode::SUCCESS {
            return Ok(code);
        }
    }
    Ok(ExitCode::SUCCESS)
}

pub fn with_postgres(program: &OsStr, args: &[OsString]) -> Result<ExitCode> {
    beside_postgres(Command::new(program).args(args))
}

fn beside_postgres(command: &mut Command) -> Result<ExitCode> {
    let mut guard = Guard::start()?;
    let deadline = Deadline::after(Duration::from_secs(postgres::SET_UP.budget_s));
    let database = postgres::database(deadline, &mut guard)?;
    in_foreground(database.pass_to(command), &mut guard)
}
