//! Baton: runs fleets of AI agents durably. This is the binary: configuration, wiring, and the
//! commands that talk to a running server.

mod address;
mod args;
mod aside;
mod audit;
mod banner;
mod client;
mod completions;
mod config;
mod contexts;
mod credits;
mod decisions;
mod doctor;
mod events;
mod fault;
mod first;
mod hint;
mod input;
mod jobs;
mod keys;
mod lanes;
mod listen;
mod local;
mod log;
mod login;
mod moment;
mod pages;
mod paint;
mod patience;
mod print;
mod runs;
mod schedules;
mod server;
mod signals;
mod target;
mod tls;
mod tools;
mod types;
mod version;
mod webhooks;
mod welcome;
mod why;

use args::{Cli, Command};
use clap::Parser as _;
use fault::{Exit, Fault};
use std::process::ExitCode;

fn main() -> ExitCode {
    // Before anything else: a keeper has one thread and no files of its own.
    if let Some(ended) = baton_tools::process::keeper() {
        return ended;
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    let json = cli.command.json();
    match run(cli.command) {
        Ok(()) => Exit::Ok.into(),
        Err(fault) => {
            fault.report(json);
            fault.exit().into()
        }
    }
}

fn run(command: Command) -> Result<(), Fault> {
    match command {
        Command::Up(args) => server::run(server::Mode::Up, &args.settings),
        Command::Serve(args) => server::run(server::Mode::Serve { start_empty: args.start_empty }, &args.settings),
        Command::Run(args) => runs::begin(args),
        Command::Runs(args) => client::block_on(runs::run(args)),
        Command::Why(args) => client::block_on(why::run(args)),
        Command::Tools(args) => client::block_on(tools::run(args)),
        Command::Credits(args) => client::block_on(credits::run(args)),
        Command::Jobs(args) => client::block_on(jobs::run(args)),
        Command::Lanes(args) => client::block_on(lanes::run(args)),
        Command::Types(args) => client::block_on(types::run(args)),
        Command::Schedules(args) => client::block_on(schedules::run(args)),
        Command::Decisions(args) => client::block_on(decisions::run(args)),
        Command::Login(args) => client::block_on(login::run(args)),
        Command::Keys(args) => client::block_on(keys::run(args)),
        Command::Webhooks(args) => client::block_on(webhooks::run(args)),
        Command::Orgs(args) => client::block_on(keys::orgs(args)),
        Command::Contexts(args) => contexts::run(args),
        Command::Events(args) => client::block_on(events::run(args)),
        Command::Audit(args) => audit::run(args),
        Command::Doctor(args) => doctor::run(args),
        Command::Completions(args) => completions::run(&args),
        Command::Version(args) => version::run(args),
    }
}

/// Asking for help is not an error; everything else that does not parse is.
fn usage(error: &clap::Error) -> ExitCode {
    let asked = !error.use_stderr();
    if !asked && std::env::args_os().any(|arg| arg == "--json") {
        let text = error.render().to_string();
        let (said, _) = text.split_once("\n\nFor more information").unwrap_or((&text, ""));
        let fault = Fault::usage(said.trim_start_matches("error: ").trim_end()).hint("--help has examples");
        fault.report(true);
        return fault.exit().into();
    }
    // Nobody is left to tell if the terminal is gone.
    let _ = error.print();
    if asked { Exit::Ok.into() } else { Exit::Usage.into() }
}
