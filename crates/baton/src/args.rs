//! The command line. Flags and environment names are a promise.

use crate::moment;
use baton_core::time::Span;
use baton_core::{JobId, ProjectId, TypeName};
use baton_wire::{Time, limit};
use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

pub const DEFAULT_LISTEN: &str = "127.0.0.1:22866";
pub const DEFAULT_DATA_DIR: &str = ".baton";
pub const DEFAULT_SERVER: &str = "http://127.0.0.1:22866";

/// Empty passes here and means "not given" later: many tools leave a variable out that way.
fn path() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(PathBuf::from)
}

#[derive(Parser)]
#[command(name = "baton", version, about = "Runs fleets of AI agents durably", max_term_width = 100)]
#[command(after_help = "\
Examples:
  baton up                                    start everything here, data in ./.baton
  baton jobs enqueue echo --project demo --payload '{\"message\":\"hello\"}' --wait
  baton jobs list --project demo
  baton events tail --from-start

Exit codes: 0 ok, 1 failed or refused, 2 usage, 65 stored data is damaged,
69 server or database cannot be reached, 78 configuration")]
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
    /// Enqueue, show, list and wake jobs
    Jobs(JobsArgs),
    /// Read the history
    Events(EventsArgs),
    /// Verify the whole history: every chain and every seal
    Audit(AuditArgs),
    /// Say which version this is
    Version(VersionArgs),
}

impl Command {
    /// Whether programs read what this prints.
    pub const fn json(&self) -> bool {
        match self {
            Self::Up(_) | Self::Serve(_) => false,
            Self::Jobs(args) => match &args.command {
                JobsCommand::Enqueue(args) => args.client.json,
                JobsCommand::Get(args) => args.client.json,
                JobsCommand::List(args) => args.client.json,
                JobsCommand::Wake(args) => args.client.json,
            },
            Self::Events(args) => match &args.command {
                EventsCommand::Tail(args) => args.client.json,
            },
            Self::Audit(args) => args.client.json,
            Self::Version(args) => args.json,
        }
    }
}

/// Where things are remembered. Flags and environment win over the file.
#[derive(Args, Clone, Default)]
pub struct StoreArgs {
    /// Where data and the node's own files are [default: ./.baton]
    #[arg(long, env = "BATON_DATA_DIR", value_name = "DIR", value_parser = path())]
    pub data_dir: Option<PathBuf>,
    /// A postgres:// URL; without one the embedded database in the data directory is used
    #[arg(long, env = "BATON_DATABASE_URL", value_name = "URL", hide_env_values = true)]
    pub database: Option<String>,
    /// A TOML file with: listen, data_dir, database, log, log_filter, slots, seal_key_file
    #[arg(long, env = "BATON_CONFIG", value_name = "FILE", value_parser = path())]
    pub config: Option<PathBuf>,
}

/// What a server needs to know besides.
#[derive(Args, Clone, Default)]
pub struct SettingsArgs {
    /// Where to listen; only loopback until there is authentication [default: 127.0.0.1:22866]
    #[arg(long, env = "BATON_LISTEN", value_name = "ADDRESS")]
    pub listen: Option<String>,
    #[command(flatten)]
    pub store: StoreArgs,
    /// How logs look [default: pretty]
    #[arg(long, env = "BATON_LOG_FORMAT", value_name = "FORMAT")]
    pub log: Option<LogFormat>,
    /// What is logged, such as info or baton_engine=debug [default: warn for up, info for serve]
    #[arg(long, env = "BATON_LOG", value_name = "FILTER")]
    pub log_filter: Option<String>,
    /// Jobs that run at once in this process, 1 to 1024 [default: 2]
    #[arg(long, env = "ORCHESTRATOR_QUEUE_GLOBAL_CONCURRENCY", value_name = "N")]
    pub slots: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    Pretty,
    Json,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  baton up
  baton up --listen 127.0.0.1:8080 --data-dir /var/tmp/baton
  baton up --database postgres://me@localhost/baton

A damaged database file is moved aside, and an empty one is started.")]
pub struct UpArgs {
    #[command(flatten)]
    pub settings: SettingsArgs,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  baton serve --config /etc/baton.toml --log json
  BATON_DATABASE_URL=postgres://baton@db/baton baton serve
  baton serve --start-empty                  go on after a damaged database was moved aside

SIGTERM and SIGINT let running work end or give it back, for at most 30 seconds.")]
pub struct ServeArgs {
    #[command(flatten)]
    pub settings: SettingsArgs,
    /// If the database file is damaged, move it aside and start with an empty one
    #[arg(long)]
    pub start_empty: bool,
}

#[derive(Args, Clone)]
pub struct ClientArgs {
    /// The server to talk to [default: http://127.0.0.1:22866]
    #[arg(long, env = "BATON_SERVER", value_name = "URL")]
    pub server: Option<String>,
    /// Print JSON, for programs; errors too, to standard error
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub struct JobsArgs {
    #[command(subcommand)]
    pub command: JobsCommand,
}

#[derive(Subcommand)]
pub enum JobsCommand {
    /// Add a job to the queue
    Enqueue(EnqueueArgs),
    /// Show one job
    Get(GetArgs),
    /// List a project's jobs, newest first
    List(ListArgs),
    /// Wake a parked job
    Wake(WakeArgs),
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  baton jobs enqueue noop --project demo
  baton jobs enqueue echo --project demo --payload '{\"message\":\"hello\"}' --wait
  baton jobs enqueue echo --project demo --payload-file job.json --delay 10m
  date | jq -R '{message:.}' | baton jobs enqueue echo --project demo --payload-file -
  baton jobs enqueue echo --project demo --key invoice-4711     (repeating it does nothing twice)")]
pub struct EnqueueArgs {
    /// The type of the job, such as echo
    #[arg(value_name = "TYPE")]
    pub kind: TypeName,
    #[arg(long, value_name = "PROJECT")]
    pub project: ProjectId,
    /// What the job works on: a JSON object
    #[arg(long, value_name = "JSON", conflicts_with = "payload_file")]
    pub payload: Option<String>,
    /// The same from a file; - is standard input
    #[arg(long, value_name = "FILE")]
    pub payload_file: Option<PathBuf>,
    /// The type's own, unless given
    #[arg(long)]
    pub priority: Option<PriorityArg>,
    /// The chat session this job was started from
    #[arg(long, value_name = "SESSION")]
    pub source_session: Option<baton_core::name::SessionId>,
    /// Start it this much later: 250ms, 5s, 10m, 2h, 1d
    #[arg(long, value_name = "LENGTH", value_parser = moment::span, conflicts_with = "not_before")]
    pub delay: Option<Span>,
    /// Do not start it before this time (RFC 3339)
    #[arg(long, value_name = "TIME", value_parser = moment::time)]
    pub not_before: Option<Time>,
    /// Fail it if it has not ended by this time (RFC 3339)
    #[arg(long, value_name = "TIME", value_parser = moment::time)]
    pub deadline: Option<Time>,
    /// The idempotency key; a random one if not given
    #[arg(long)]
    pub key: Option<String>,
    /// Wait until it has ended; exit 1 unless it completed
    #[arg(long)]
    pub wait: bool,
    #[command(flatten)]
    pub client: ClientArgs,
}

#[derive(Clone, Copy, ValueEnum)]
pub enum PriorityArg {
    Interactive,
    Background,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  baton jobs get job_0193a1b2c3d47001800000000000002a
  baton jobs get job_0193a1b2c3d47001800000000000002a --json | jq .result")]
pub struct GetArgs {
    #[arg(value_name = "JOB")]
    pub id: JobId,
    #[command(flatten)]
    pub client: ClientArgs,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  baton jobs list --project demo
  baton jobs list --project demo --state queued,running
  baton jobs list --project demo --json | jq -r '.jobs[].id'")]
pub struct ListArgs {
    #[arg(long, value_name = "PROJECT")]
    pub project: ProjectId,
    /// Only these: queued, running, completed, failed, canceled
    #[arg(long, value_name = "STATE", value_delimiter = ',')]
    pub state: Vec<String>,
    #[arg(long, value_name = "N", default_value_t = limit::JOBS_DEFAULT)]
    pub limit: usize,
    /// Go on where the page before ended
    #[arg(long, value_name = "CURSOR")]
    pub cursor: Option<String>,
    #[command(flatten)]
    pub client: ClientArgs,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  baton jobs wake job_0193a1b2c3d47001800000000000002a")]
pub struct WakeArgs {
    #[arg(value_name = "JOB")]
    pub id: JobId,
    /// The idempotency key; a random one if not given
    #[arg(long)]
    pub key: Option<String>,
    #[command(flatten)]
    pub client: ClientArgs,
}

#[derive(Args)]
pub struct EventsArgs {
    #[command(subcommand)]
    pub command: EventsCommand,
}

#[derive(Subcommand)]
pub enum EventsCommand {
    /// Print events as they happen
    Tail(TailArgs),
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  baton events tail                          what happens from now on
  baton events tail --from-start             everything, then what happens
  baton events tail --no-follow --json       everything there is, one JSON object a line
  baton events tail --after c1000000000000004d")]
pub struct TailArgs {
    /// Start after this cursor
    #[arg(long, value_name = "CURSOR", conflicts_with = "from_start")]
    pub after: Option<String>,
    /// Start with the first event
    #[arg(long)]
    pub from_start: bool,
    /// Wait for more when there are no more (the default)
    #[arg(long, short, overrides_with = "no_follow")]
    pub follow: bool,
    /// Stop when there are no more; starts with the first event unless told otherwise
    #[arg(long, overrides_with = "follow")]
    pub no_follow: bool,
    /// Stop after so many events
    #[arg(long, value_name = "N")]
    pub limit: Option<u64>,
    #[command(flatten)]
    pub client: ClientArgs,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  baton audit                                ask the running server
  baton audit --offline                      open the database in ./.baton, with no server running
  baton audit --offline --data-dir /var/lib/baton --json

Exits with 65 if anything is not as it was written.")]
pub struct AuditArgs {
    /// Open the database directly instead of asking a server
    #[arg(long)]
    pub offline: bool,
    #[command(flatten)]
    pub store: StoreArgs,
    #[command(flatten)]
    pub client: ClientArgs,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  baton version
  baton version --json")]
pub struct VersionArgs {
    #[arg(long)]
    pub json: bool,
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
