//! `baton schedules`.

use super::{ClientArgs, PageArgs, PayloadArgs};
use baton_core::cron::CatchUp;
use baton_core::name::{ScheduleName, SessionId};
use baton_core::{ProjectId, TypeName};
use baton_wire::{DEFAULT_TIME_ZONE, PriorityNumber};
use clap::{Args, Subcommand, ValueEnum};

#[derive(Args)]
pub struct SchedulesArgs {
    #[command(subcommand)]
    pub command: SchedulesCommand,
}

#[derive(Subcommand)]
pub enum SchedulesCommand {
    /// Make a schedule, or change it
    Set(SetArgs),
    /// List schedules by project and name
    List(ScheduleListArgs),
    /// Show one schedule
    #[command(after_help = "\
Examples:
  baton schedules show nightly --project demo")]
    Show(ScheduleArgs),
    /// Make no jobs until it is resumed; moments that pass meanwhile are not caught up with
    #[command(after_help = "\
Examples:
  baton schedules pause nightly --project demo")]
    Pause(ScheduleArgs),
    /// Make jobs again, from the next moment on
    #[command(after_help = "\
Examples:
  baton schedules resume nightly --project demo")]
    Resume(ScheduleArgs),
    /// Remove a schedule; the jobs it made stay
    #[command(after_help = "\
Examples:
  baton schedules delete nightly --project demo")]
    Delete(ScheduleArgs),
}

impl SchedulesCommand {
    pub const fn client(&self) -> &ClientArgs {
        match self {
            Self::Set(args) => &args.client,
            Self::List(args) => &args.client,
            Self::Show(args) | Self::Pause(args) | Self::Resume(args) | Self::Delete(args) => &args.client,
        }
    }
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  baton schedules set nightly --project demo --cron '30 2 * * *' --time-zone Europe/Berlin --type echo
  baton schedules set pulse --project demo --cron '*/10 * * * * *' --type noop --single-flight
  baton schedules set hello --project demo --cron '0 9 * * 1-5' --type echo \\
      --payload '{\"message\":\"good morning\"}' --catch-up skip

Five fields (minute, hour, day, month, weekday), or six with seconds first.")]
pub struct SetArgs {
    #[arg(value_name = "NAME")]
    pub name: ScheduleName,
    #[arg(long, value_name = "PROJECT")]
    pub project: ProjectId,
    /// When: a cron expression
    #[arg(long, value_name = "EXPRESSION")]
    pub cron: String,
    /// The time zone it is meant in, such as Europe/Berlin
    #[arg(long, value_name = "ZONE", default_value = DEFAULT_TIME_ZONE)]
    pub time_zone: String,
    /// The type of the jobs it makes
    #[arg(long = "type", value_name = "TYPE")]
    pub kind: TypeName,
    #[command(flatten)]
    pub payload: PayloadArgs,
    /// interactive, background or 0 to 999; the type's own, unless given
    #[arg(long, value_name = "PRIORITY")]
    pub priority: Option<PriorityNumber>,
    /// The chat session its jobs are started from
    #[arg(long, value_name = "SESSION")]
    pub source_session: Option<SessionId>,
    /// What happens to moments that passed while Baton was down
    #[arg(long, value_name = "HOW", default_value = "one")]
    pub catch_up: CatchUpArg,
    /// No new job while the last one has not ended
    #[arg(long)]
    pub single_flight: bool,
    #[command(flatten)]
    pub client: ClientArgs,
}

#[derive(Clone, Copy, ValueEnum)]
pub enum CatchUpArg {
    /// They are left out
    Skip,
    /// One job for all of them
    One,
    /// A job for each, up to 100
    All,
}

impl From<CatchUpArg> for CatchUp {
    fn from(arg: CatchUpArg) -> Self {
        match arg {
            CatchUpArg::Skip => Self::Skip,
            CatchUpArg::One => Self::One,
            CatchUpArg::All => Self::All,
        }
    }
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  baton schedules list
  baton schedules list --project demo --json")]
pub struct ScheduleListArgs {
    /// Only those of this project
    #[arg(long, value_name = "PROJECT")]
    pub project: Option<ProjectId>,
    /// Only those that make jobs of this type
    #[arg(long = "type", value_name = "TYPE")]
    pub kind: Option<TypeName>,
    #[command(flatten)]
    pub page: PageArgs,
    #[command(flatten)]
    pub client: ClientArgs,
}

#[derive(Args)]
pub struct ScheduleArgs {
    #[arg(value_name = "NAME")]
    pub name: ScheduleName,
    #[arg(long, value_name = "PROJECT")]
    pub project: ProjectId,
    #[command(flatten)]
    pub client: ClientArgs,
}
