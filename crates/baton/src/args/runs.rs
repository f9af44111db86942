//! `baton run` and `baton runs`.

use super::{ClientArgs, PageArgs, settings};
use baton_core::credits::Credits;
use baton_core::name::SignalName;
use baton_core::run::State;
use baton_core::{ProjectId, RunId};
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Args)]
#[command(after_help = "\
Examples:
  baton run examples/research.yaml           from nothing: a server is started for as long as it takes
  baton run plan.yaml --detach               start it and leave; `baton runs show RUN --watch` comes back
  baton run plan.yaml --budget 20 --label team=search --project shop
  generate-plan | baton run - --json         events as JSON, one a line; the last line is the run
  baton run plan.yaml --config baton.toml    with the tools that this file declares

Without --server, --context or a server of this directory, one is started in this process, with its data in
./.baton (--data-dir) and the tools of --config or of a baton.toml beside the document. Ctrl-C leaves the
run alone and says how to come back; a second one within three seconds cancels it.

Exit codes: 0 completed or skipped, 1 refused, 2 usage, 3 failed, 4 cancelled, 130 left by Ctrl-C")]
pub struct RunArgs {
    /// The run document: YAML, or JSON if its name ends in .json; - is standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Start it and do not wait for its end
    #[arg(long)]
    pub detach: bool,
    /// What it may spend, instead of what the document says
    #[arg(long, value_name = "CREDITS")]
    pub budget: Option<Credits>,
    /// The project that it belongs to, instead of what the document says
    #[arg(long, value_name = "PROJECT")]
    pub project: Option<ProjectId>,
    /// What it is called, instead of what the document says
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// A label, besides those of the document; can be repeated
    #[arg(long = "label", value_name = "NAME=VALUE", value_parser = label)]
    pub labels: Vec<(String, String)>,
    /// Repeated with the same key, it is one run; a random one if not given
    #[arg(long, value_name = "KEY")]
    pub idempotency_key: Option<String>,
    /// The configuration of a server that is started for this run
    #[arg(long, env = "BATON_CONFIG", value_name = "FILE", value_parser = settings::path())]
    pub config: Option<PathBuf>,
    /// Where the data of such a server is [default: ./.baton]
    #[arg(long, env = "BATON_DATA_DIR", value_name = "DIR", value_parser = settings::path())]
    pub data_dir: Option<PathBuf>,
    #[command(flatten)]
    pub client: ClientArgs,
}

fn label(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

#[derive(Args)]
pub struct RunsArgs {
    #[command(subcommand)]
    pub command: RunsCommand,
}

#[derive(Subcommand)]
pub enum RunsCommand {
    /// List runs, newest first
    List(RunListArgs),
    /// Show a run with its agents, tasks and steps, and what it waits for
    Show(ShowRunArgs),
    /// Start a run that was only created
    Start(ActArgs),
    /// Let a run begin nothing new; calls that are under way come to their end
    Pause(ActArgs),
    /// Let a paused run go on
    Resume(ActArgs),
    /// End a run; what it did not spend is given back
    Cancel(CancelRunArgs),
    /// Attempt a failed run again
    Retry(ActArgs),
    /// Take a run that is not at work out of the lists
    Delete(ActArgs),
    /// Say in words what happened in a run
    Logs(LogsArgs),
    /// Tell a run's steps that wait for a signal that it is there
    Signal(SignalArgs),
}

impl RunsCommand {
    pub const fn client(&self) -> &ClientArgs {
        match self {
            Self::List(args) => &args.client,
            Self::Show(args) => &args.client,
            Self::Start(args) | Self::Pause(args) | Self::Resume(args) | Self::Retry(args) | Self::Delete(args) => {
                &args.client
            }
            Self::Cancel(args) => &args.client,
            Self::Logs(args) => &args.client,
            Self::Signal(args) => &args.client,
        }
    }
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  baton runs list
  baton runs list --project shop --status running
  baton runs list --order asc --limit 10 --json | jq -r '.runs[].id'")]
pub struct RunListArgs {
    #[arg(long, value_name = "PROJECT")]
    pub project: Option<ProjectId>,
    /// Only those that are created, pending, running, paused, resuming, completed, failed, cancelled, retrying or skipped
    #[arg(long, value_name = "STATUS", value_parser = status)]
    pub status: Option<State>,
    #[command(flatten)]
    pub page: PageArgs,
    #[command(flatten)]
    pub client: ClientArgs,
}

fn status(text: &str) -> Result<State, String> {
    let names: Vec<_> = State::ALL.iter().map(|state| state.as_str()).collect();
    State::parse(text).ok_or_else(|| format!("expected one of {}", names.join(", ")))
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  baton runs show run_0193a1b2c3d47001800000000000002a
  baton runs show run_0193a1b2c3d47001800000000000002a --watch     until it has ended
  baton runs show run_0193a1b2c3d47001800000000000002a --json | jq .run.credits_charged")]
pub struct ShowRunArgs {
    #[arg(value_name = "RUN")]
    pub id: RunId,
    /// Follow it until it has ended; exits as `baton run` does
    #[arg(long, short)]
    pub watch: bool,
    #[command(flatten)]
    pub client: ClientArgs,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  baton runs pause run_0193a1b2c3d47001800000000000002a
  baton runs resume run_0193a1b2c3d47001800000000000002a
  baton runs retry run_0193a1b2c3d47001800000000000002a --json")]
pub struct ActArgs {
    #[arg(value_name = "RUN")]
    pub id: RunId,
    /// Repeated with the same key, it is done once; a random one if not given
    #[arg(long, value_name = "KEY")]
    pub idempotency_key: Option<String>,
    #[command(flatten)]
    pub client: ClientArgs,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  baton runs cancel run_0193a1b2c3d47001800000000000002a
  baton runs cancel run_0193a1b2c3d47001800000000000002a --reason 'not needed any more'")]
pub struct CancelRunArgs {
    #[arg(value_name = "RUN")]
    pub id: RunId,
    /// Why; it stands in the history
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    /// Repeated with the same key, it is done once; a random one if not given
    #[arg(long, value_name = "KEY")]
    pub idempotency_key: Option<String>,
    #[command(flatten)]
    pub client: ClientArgs,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  baton runs logs run_0193a1b2c3d47001800000000000002a
  baton runs logs run_0193a1b2c3d47001800000000000002a --follow    until it has ended
  baton runs logs run_0193a1b2c3d47001800000000000002a --json      an event a line")]
pub struct LogsArgs {
    #[arg(value_name = "RUN")]
    pub id: RunId,
    /// Go on until it has ended
    #[arg(long, short)]
    pub follow: bool,
    #[command(flatten)]
    pub client: ClientArgs,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  baton runs signal run_0193a1b2c3d47001800000000000002a built
  baton runs signal run_0193a1b2c3d47001800000000000002a built --data '{\"version\":\"1.4\"}'

A signal that comes before anybody waits for it is kept. The same one again changes nothing.")]
pub struct SignalArgs {
    #[arg(value_name = "RUN")]
    pub id: RunId,
    #[arg(value_name = "SIGNAL")]
    pub name: SignalName,
    /// What the step that waits is given: any JSON
    #[arg(long, value_name = "JSON")]
    pub data: Option<String>,
    /// Repeated with the same key, it is done once; a random one if not given
    #[arg(long, value_name = "KEY")]
    pub idempotency_key: Option<String>,
    #[command(flatten)]
    pub client: ClientArgs,
}
