//! `baton decisions`.

use super::{ClientArgs, PageArgs};
use baton_core::ProjectId;
use baton_core::decision::ChoiceName;
use baton_core::id::DecisionId;
use baton_core::name::Responsibility;
use clap::{Args, Subcommand};

#[derive(Args)]
pub struct DecisionsArgs {
    #[command(subcommand)]
    pub command: DecisionsCommand,
}

#[derive(Subcommand)]
pub enum DecisionsCommand {
    /// List what is to be decided, newest first
    List(DecisionListArgs),
    /// Show one decision with its evidence
    Show(DecisionArgs),
    /// Answer: choose one of its options
    Resolve(ResolveArgs),
}

impl DecisionsCommand {
    pub const fn client(&self) -> &ClientArgs {
        match self {
            Self::List(args) => &args.client,
            Self::Show(args) => &args.client,
            Self::Resolve(args) => &args.client,
        }
    }
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  baton decisions list
  baton decisions list --responsibility development_manager
  baton decisions list --all --project demo")]
pub struct DecisionListArgs {
    #[arg(long, value_name = "PROJECT")]
    pub project: Option<ProjectId>,
    /// Only those that are for somebody with this responsibility
    #[arg(long, value_name = "NAME")]
    pub responsibility: Option<Responsibility>,
    /// Only those about this job
    #[arg(long, value_name = "ID")]
    pub subject: Option<String>,
    /// Those that are closed too
    #[arg(long)]
    pub all: bool,
    #[command(flatten)]
    pub page: PageArgs,
    #[command(flatten)]
    pub client: ClientArgs,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  baton decisions show dec_0193a1b2c3d47001800000000000002a")]
pub struct DecisionArgs {
    #[arg(value_name = "DECISION")]
    pub id: DecisionId,
    #[command(flatten)]
    pub client: ClientArgs,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  baton decisions resolve dec_0193a1b2c3d47001800000000000002a confirm
  baton decisions resolve dec_0193a1b2c3d47001800000000000002a decline --comment 'wrong account'")]
pub struct ResolveArgs {
    #[arg(value_name = "DECISION")]
    pub id: DecisionId,
    /// One of its options
    #[arg(value_name = "OPTION")]
    pub option: ChoiceName,
    /// Something to say with it
    #[arg(long, value_name = "TEXT")]
    pub comment: Option<String>,
    /// Whatever else the one who waits shall know
    #[arg(long, value_name = "JSON")]
    pub data: Option<String>,
    /// Repeated with the same key, it is done once; a random one if not given
    #[arg(long, value_name = "KEY")]
    pub idempotency_key: Option<String>,
    #[command(flatten)]
    pub client: ClientArgs,
}
