//! Everything a developer runs: `cargo xtask --help`.
//!
//! Invariants
//! - Whatever a command starts is gone when it ends, however it ends (`guard`).
//! - Everything that runs unattended has a time budget (`stage`).
//!
//! Needs Linux: it reads `/proc`. Elsewhere: what is tested (`crates/*`), how tests behave
//! (`.config/nextest.toml`).

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "talking to the developer's terminal is this program's job"
)]
#![allow(clippy::disallowed_methods, reason = "watches real processes in real time; nothing here is simulated")]

mod args;
mod cargo;
mod forward;
mod guard;
mod packages;
mod postgres;
mod process;
mod run;
mod schemathesis;
mod sdk;
mod server;
mod soak;
mod stage;
mod test;
mod tools;
mod venv;

use std::process::ExitCode;

use args::Command;

/// Told apart from a failure of what was run: the arguments were wrong.
const EXIT_USAGE: u8 = 2;

fn main() -> ExitCode {
    let command = match args::parse(std::env::args_os().skip(1)) {
        Ok(command) => command,
        Err(error) => {
            eprintln!("error: {error}\nrun `cargo xtask --help` for the commands");
            return ExitCode::from(EXIT_USAGE);
        }
    };
    let outcome = match command {
        Command::Help => {
            println!("{}", args::HELP);
            Ok(ExitCode::SUCCESS)
        }
        Command::Test(options) => test::run(&options),
        Command::Soak(options) => soak::run(&options),
        Command::Schemathesis(args) => schemathesis::alone(&args),
        Command::Sdk => sdk::alone(),
        Command::Sim(args) => forward::sim(&args),
        Command::Bench(args) => forward::bench(&args),
        Command::WithPostgres { program, args } => forward::with_postgres(&program, &args),
        Command::Guard => Ok(guard::serve()),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}
