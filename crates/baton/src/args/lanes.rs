//! `baton lanes`.

use super::{ClientArgs, PageArgs};
use baton_core::lane::LaneKey;
use clap::{Args, Subcommand};

#[derive(Args)]
pub struct LanesArgs {
    #[command(subcommand)]
    pub command: LanesCommand,
}

#[derive(Subcommand)]
pub enum LanesCommand {
    /// List lanes by name
    List(LaneListArgs),
    /// Show one lane
    #[command(after_help = "\
Examples:
  baton lanes show project:demo")]
    Show(LaneArgs),
    /// Hand out no jobs of this lane; what runs goes on
    #[command(after_help = "\
Examples:
  baton lanes pause project:demo
  baton lanes resume project:demo")]
    Pause(LaneArgs),
    /// Hand out its jobs again
    #[command(after_help = "\
Examples:
  baton lanes resume project:demo")]
    Resume(LaneArgs),
}

impl LanesCommand {
    pub const fn client(&self) -> &ClientArgs {
        match self {
            Self::List(args) => &args.client,
            Self::Show(args) | Self::Pause(args) | Self::Resume(args) => &args.client,
        }
    }
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  baton lanes list
  baton lanes list --json | jq -r '.lanes[] | select(.waiting > 10).lane'")]
pub struct LaneListArgs {
    #[command(flatten)]
    pub page: PageArgs,
    #[command(flatten)]
    pub client: ClientArgs,
}

#[derive(Args)]
pub struct LaneArgs {
    /// The lane, such as project:demo
    #[arg(value_name = "LANE")]
    pub lane: LaneKey,
    #[command(flatten)]
    pub client: ClientArgs,
}
