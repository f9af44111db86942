//! `baton credits`, `baton why` and `baton tools`.

use super::{ClientArgs, PageArgs};
use baton_core::credits::Credits;
use clap::{Args, Subcommand};

#[derive(Args)]
pub struct CreditsArgs {
    #[command(subcommand)]
    pub command: CreditsCommand,
}

#[derive(Subcommand)]
pub enum CreditsCommand {
    /// Say how many credits there are, and how many runs hold
    Balance(BalanceArgs),
    /// Give this org credits; for admins
    Grant(GrantArgs),
    /// List what moved in and out of an account
    Ledger(LedgerArgs),
}

impl CreditsCommand {
    pub const fn client(&self) -> &ClientArgs {
        match self {
            Self::Balance(args) => &args.client,
            Self::Grant(args) => &args.client,
            Self::Ledger(args) => &args.client,
        }
    }
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  baton credits balance
  baton credits balance --json | jq -r .available")]
pub struct BalanceArgs {
    #[command(flatten)]
    pub client: ClientArgs,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  baton credits grant 500
  baton credits grant 12.5 --note 'for the demo'
  baton credits grant 500 --idempotency-key 2026-07   (repeating it gives nothing twice)")]
pub struct GrantArgs {
    /// How many, with up to six decimals
    #[arg(value_name = "AMOUNT")]
    pub amount: Credits,
    /// What for
    #[arg(long, value_name = "TEXT")]
    pub note: Option<String>,
    /// Repeated with the same key, it is done once; a random one if not given
    #[arg(long, value_name = "KEY")]
    pub idempotency_key: Option<String>,
    #[command(flatten)]
    pub client: ClientArgs,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  baton credits ledger
  baton credits ledger --account agt_0193a1b2c3d47001800000000000002a
  baton credits ledger --account run_0193a1b2c3d47001800000000000002a/1 --order asc")]
pub struct LedgerArgs {
    /// org, RUN/ATTEMPT or an agent's id
    #[arg(long, value_name = "ACCOUNT")]
    pub account: Option<String>,
    #[command(flatten)]
    pub page: PageArgs,
    #[command(flatten)]
    pub client: ClientArgs,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  baton why run_0193a1b2c3d47001800000000000002a
  baton why agt_0193a1b2c3d47001800000000000002a.build.compile      a step, by its agent, task and name
  baton why job_0193a1b2c3d47001800000000000002a --json")]
pub struct WhyArgs {
    /// A run, an agent, AGENT.TASK, AGENT.TASK.STEP or a job
    #[arg(value_name = "ID")]
    pub id: String,
    #[command(flatten)]
    pub client: ClientArgs,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  baton tools
  baton tools --json | jq -r '.tools[].name'

Tools are declared under [tools.NAME] in the configuration of the server.")]
pub struct ToolsArgs {
    #[command(flatten)]
    pub client: ClientArgs,
}
