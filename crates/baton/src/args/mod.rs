//! The command line. Flags and environment names are a promise.

mod access;
mod credits;
mod decisions;
mod doctor;
mod history;
mod jobs;
mod lanes;
mod runs;
mod schedules;
mod settings;
mod types;
mod webhooks;

pub use access::{
    AddContextArgs, ContextsArgs, ContextsCommand, CreateKeyArgs, KeyArgs, KeyListArgs, KeysArgs, KeysCommand,
    LoginArgs, OrgsArgs, OrgsCommand, RotateKeyArgs,
};
pub use credits::{CreditsArgs, CreditsCommand, GrantArgs, LedgerArgs, ToolsArgs, WhyArgs};
pub use decisions::{DecisionListArgs, DecisionsArgs, DecisionsCommand, ResolveArgs};
pub use doctor::DoctorArgs;
pub use history::{AuditArgs, CompletionsArgs, EventsArgs, EventsCommand, TailArgs, VersionArgs};
pub use jobs::{
    BatchArgs, CancelArgs, EnqueueArgs, GetArgs, JobsArgs, JobsCommand, LettersArgs, ListArgs, RequeueArgs, WakeArgs,
    WatchArgs,
};
pub use lanes::{LaneArgs, LaneListArgs, LanesArgs, LanesCommand};
pub use runs::{
    ActArgs, CancelRunArgs, LogsArgs, RunArgs, RunListArgs, RunsArgs, RunsCommand, ShowRunArgs, SignalArgs,
};
pub use schedules::{ScheduleArgs, ScheduleListArgs, SchedulesArgs, SchedulesCommand, SetArgs};
pub use settings::{ListenArgs, LogFormat, QueueArgs, ServeArgs, SettingsArgs, StoreArgs, UpArgs};
pub use types::{SetTypeArgs, TypeArgs, TypeListArgs, TypesArgs, TypesCommand};
pub use webhooks::{
    AddWebhookArgs, DeliveriesArgs, EnableWebhookArgs, RotateWebhookArgs, WebhookArgs, WebhookListArgs, WebhooksArgs,
    WebhooksCommand,
};

use baton_wire::{Order, limit};
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

pub const DEFAULT_LISTEN: &str = "127.0.0.1:22866";
pub const DEFAULT_DATA_DIR: &str = ".baton";
pub const DEFAULT_SERVER: &str = "http://127.0.0.1:22866";

#[derive(Parser)]
#[command(name = "baton", version, about = "Runs fleets of AI agents durably", max_term_width = 100)]
#[command(after_help = "\
Examples:
  baton run examples/research.yaml            run agents, from nothing
  baton up                                    start everything here, data in ./.baton
  baton runs list
  baton why run_0193a1b2c3d47001800000000000002a
  baton jobs enqueue echo --project demo --payload '{\"message\":\"hello\"}' --wait
  baton jobs list --project demo
  baton jobs watch --project demo
  baton schedules set hello --project demo --cron '*/5 * * * *' --type echo
  baton events tail --from-start

Exit codes: 0 ok, 1 failed or refused, 2 usage, 3 what was waited for did not complete,
4 the run was cancelled, 65 stored data is damaged, 69 server or database cannot be reached, 78 configuration")]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// Start everything in this terminal and say what to try next
    Up(UpArgs),
    /// Start everything for production: logs only, and no guessing
    Serve(ServeArgs),
    /// Run the agents of a document and follow them
    Run(RunArgs),
    /// Show, steer and follow runs
    Runs(RunsArgs),
    /// Say why something does not go on, and who can change that
    Why(WhyArgs),
    /// List what steps may call
    Tools(ToolsArgs),
    /// See and give credits, and where they went
    Credits(CreditsArgs),
    /// Enqueue, show, watch, cancel and repeat jobs
    Jobs(JobsArgs),
    /// Register and show job types that workers serve
    Types(TypesArgs),
    /// See how full the lanes are, and stop or resume handing out their jobs
    Lanes(LanesArgs),
    /// Have jobs made again and again, by the clock
    Schedules(SchedulesArgs),
    /// See what people are asked, and answer
    Decisions(DecisionsArgs),
    /// Tell endpoints elsewhere what happens
    Webhooks(WebhooksArgs),
    /// Print a link to come in with a browser
    Login(LoginArgs),
    /// Make, list, rotate and revoke the keys to come in with
    Keys(KeysArgs),
    /// Make and list orgs
    Orgs(OrgsArgs),
    /// Keep servers and keys under names
    Contexts(ContextsArgs),
    /// Read the history
    Events(EventsArgs),
    /// Verify the whole history: every chain and every seal
    Audit(AuditArgs),
    /// Look whether everything is as it should be, and say what to do where it is not
    Doctor(DoctorArgs),
    /// Print what a shell needs to complete commands and flags
    Completions(CompletionsArgs),
    /// Say which version this is
    Version(VersionArgs),
}

impl Command {
    /// Whether programs read what this prints.
    pub const fn json(&self) -> bool {
        match self {
            Self::Up(_) | Self::Serve(_) | Self::Completions(_) => false,
            Self::Run(args) => args.client.json,
            Self::Runs(args) => args.command.client().json,
            Self::Why(args) => args.client.json,
            Self::Tools(args) => args.client.json,
            Self::Credits(args) => args.command.client().json,
            Self::Jobs(args) => args.command.client().json,
            Self::Types(args) => args.command.client().json,
            Self::Lanes(args) => args.command.client().json,
            Self::Schedules(args) => args.command.client().json,
            Self::Decisions(args) => args.command.client().json,
            Self::Webhooks(args) => args.command.client().json,
            Self::Login(args) => args.client.json,
            Self::Keys(args) => args.command.client().json,
            Self::Orgs(args) => args.command.client().json,
            Self::Contexts(args) => args.command.json(),
            Self::Events(args) => match &args.command {
                EventsCommand::Tail(args) => args.client.json,
            },
            Self::Audit(args) => args.client.json,
            Self::Doctor(args) => args.client.json,
            Self::Version(args) => args.json,
        }
    }
}

/// Whom to talk to. The environment is looked at in `target`, where it can be told from flags.
#[derive(Args, Clone, Default)]
pub struct ClientArgs {
    /// The server to talk to [env: BATON_SERVER] [default: http://127.0.0.1:22866]
    #[arg(long, value_name = "URL", conflicts_with = "context")]
    pub server: Option<String>,
    /// The key to come in with; that of a server on this machine is found by itself [env: BATON_KEY]
    #[arg(long, value_name = "KEY")]
    pub key: Option<String>,
    /// A server and a key under one name, as `baton contexts` keeps them [env: BATON_CONTEXT]
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
    /// Certificate authorities to trust besides this machine's own: a PEM file
    #[arg(long, env = "BATON_CA_CERT", value_name = "FILE", value_parser = settings::path())]
    pub ca_cert: Option<PathBuf>,
    /// Print JSON, for programs; errors too, to standard error
    #[arg(long)]
    pub json: bool,
}

/// What every list can be asked for.
#[derive(Args, Clone)]
pub struct PageArgs {
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = limit::JOBS_DEFAULT, value_parser = count)]
    pub limit: usize,
    /// asc or desc; the newest first where there is a time, by name where there is none
    #[arg(long, value_name = "ORDER")]
    pub order: Option<Order>,
    /// Go on where the list before ended, in the same order
    #[arg(long, value_name = "CURSOR")]
    pub cursor: Option<String>,
}

/// How many, of which there is at least one.
fn count(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| "expected a whole number from 1 on".to_owned())
}

/// What a job works on.
#[derive(Args, Clone)]
pub struct PayloadArgs {
    /// What the job works on: a JSON object
    #[arg(long, value_name = "JSON", conflicts_with = "payload_file")]
    pub payload: Option<String>,
    /// The same from a file; - is standard input
    #[arg(long, value_name = "FILE")]
    pub payload_file: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_that_does_something_shows_examples() {
        fn check(command: &clap::Command, path: &str) {
            let path = format!("{path} {}", command.get_name());
            if command.get_subcommands().next().is_none() {
                let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
                assert!(help.contains("Examples:"), "{path} --help has no examples");
            }
            command.get_subcommands().for_each(|sub| check(sub, &path));
        }
        check(&Cli::command(), "");
    }
}
