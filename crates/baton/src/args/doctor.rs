//! `baton doctor`.

use super::{ClientArgs, SettingsArgs};
use clap::Args;

#[derive(Args)]
#[command(after_help = "\
Examples:
  baton doctor                               what `baton up` would start with here, and the server if it runs
  baton doctor --config /etc/baton.toml      the same for a server that is started with this
  baton doctor --context production          that server too
  baton doctor --json | jq '.findings[] | select(.verdict != \"ok\")'

It changes nothing and keeps no server from its work. Exits with 0 if there is no problem, warnings
or not, and with 1 if there is one.")]
pub struct DoctorArgs {
    #[command(flatten)]
    pub settings: SettingsArgs,
    #[command(flatten)]
    pub client: ClientArgs,
}
