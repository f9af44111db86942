//! `baton types`.

use super::{ClientArgs, PageArgs};
use baton_core::TypeName;
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Args)]
pub struct TypesArgs {
    #[command(subcommand)]
    pub command: TypesCommand,
}

#[derive(Subcommand)]
pub enum TypesCommand {
    /// Register a type that workers serve, or change it: every change is a version
    Set(SetTypeArgs),
    /// List job types by name
    List(TypeListArgs),
    /// Show one, with its schemas
    Show(TypeArgs),
}

impl TypesCommand {
    pub const fn client(&self) -> &ClientArgs {
        match self {
            Self::Set(args) => &args.client,
            Self::List(args) => &args.client,
            Self::Show(args) => &args.client,
        }
    }
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  baton types set shout
  baton types set mail.send --file mail.yaml
  echo '{\"maxAttempts\":3,\"lane\":{\"key\":\"mail:{payload.to}\",\"limit\":2}}' | baton types set mail.send --file -

What a type can say: summary, priority, maxAttempts, lease, timeout, lane, dedupe, retry, cancel,
payloadSchema and resultSchema. All of it can be left out. Jobs keep the version they were enqueued with.")]
pub struct SetTypeArgs {
    #[arg(value_name = "TYPE")]
    pub name: TypeName,
    /// What it is like: a JSON or YAML file; - is standard input [default: everything as usual]
    #[arg(long, short, value_name = "FILE")]
    pub file: Option<PathBuf>,
    #[command(flatten)]
    pub client: ClientArgs,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  baton types list
  baton types list --json | jq -r '.jobTypes[] | select(.servedBy == \"workers\").type'")]
pub struct TypeListArgs {
    #[command(flatten)]
    pub page: PageArgs,
    #[command(flatten)]
    pub client: ClientArgs,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  baton types show mail.send
  baton types show mail.send --version 1 --json")]
pub struct TypeArgs {
    #[arg(value_name = "TYPE")]
    pub name: TypeName,
    /// An earlier version
    #[arg(long, value_name = "N")]
    pub version: Option<u32>,
    #[command(flatten)]
    pub client: ClientArgs,
}
