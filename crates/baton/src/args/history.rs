//! Reading and verifying the history; which version this is, and completions for shells.

use super::{ClientArgs, StoreArgs};
use clap::{Args, Subcommand};
use clap_complete::Shell;

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
  baton events tail --after c1000000000000004d

A server that is restarted meanwhile is waited for, up to 30 seconds; no event is missed.")]
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
    pub limit: Option<usize>,
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

#[derive(Args)]
#[command(after_help = "\
Examples:
  baton completions bash > ~/.local/share/bash-completion/completions/baton
  baton completions zsh > ~/.zfunc/_baton                  with ~/.zfunc in fpath, before compinit
  baton completions fish > ~/.config/fish/completions/baton.fish
  baton completions elvish >> ~/.config/elvish/rc.elv
  baton completions powershell >> $PROFILE")]
pub struct CompletionsArgs {
    #[arg(value_name = "SHELL")]
    pub shell: Shell,
}
