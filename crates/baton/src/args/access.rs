//! `baton keys`, `baton orgs` and `baton contexts`.

use super::{ClientArgs, PageArgs};
use crate::keys::key_id;
use crate::moment;
use baton_core::access::Role;
use baton_core::id::KeyId;
use baton_core::name::Responsibility;
use baton_core::time::Span;
use baton_core::{OrgId, ProjectId, TypeName};
use baton_wire::Time;
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Args)]
pub struct KeysArgs {
    #[command(subcommand)]
    pub command: KeysCommand,
}

#[derive(Subcommand)]
pub enum KeysCommand {
    /// Make a key; it is shown once
    Create(CreateKeyArgs),
    /// List keys, newest first; their secrets are known to nobody
    List(KeyListArgs),
    /// Give a key another secret
    Rotate(RotateKeyArgs),
    /// Make a key open nothing, for good
    Revoke(KeyArgs),
    /// Say which key this is and what it may do
    Me(MeArgs),
}

impl KeysCommand {
    pub const fn client(&self) -> &ClientArgs {
        match self {
            Self::Create(args) => &args.client,
            Self::List(args) => &args.client,
            Self::Rotate(args) => &args.client,
            Self::Revoke(args) => &args.client,
            Self::Me(args) => &args.client,
        }
    }
}

fn role(text: &str) -> Result<Role, String> {
    Role::parse(text).ok_or_else(|| "expected viewer, operator, worker or admin".to_owned())
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  baton keys create ci --role operator --project shop --expires 2027-01-31T00:00:00Z
  baton keys create anna --role viewer --responsibility development_manager
  baton keys create builder --role worker --type build > builder.key

A viewer looks and decides what it is responsible for, an operator gives work and steers it, a worker
does work, an admin may do everything.")]
pub struct CreateKeyArgs {
    /// What people call it
    #[arg(value_name = "LABEL")]
    pub label: String,
    /// viewer, operator, worker or admin
    #[arg(long, value_name = "ROLE", value_parser = role)]
    pub role: Role,
    /// Whose decisions it may answer; can be repeated
    #[arg(long = "responsibility", value_name = "NAME")]
    pub responsibilities: Vec<Responsibility>,
    /// Only this project; can be repeated
    #[arg(long = "project", value_name = "PROJECT")]
    pub projects: Vec<ProjectId>,
    /// Only jobs of this type; can be repeated
    #[arg(long = "type", value_name = "TYPE")]
    pub types: Vec<TypeName>,
    /// Until when it opens anything (RFC 3339)
    #[arg(long, value_name = "TIME", value_parser = moment::time)]
    pub expires: Option<Time>,
    #[command(flatten)]
    pub client: ClientArgs,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  baton keys list
  baton keys list --json | jq -r '.keys[] | select(.role == \"admin\").id'")]
pub struct KeyListArgs {
    #[command(flatten)]
    pub page: PageArgs,
    #[command(flatten)]
    pub client: ClientArgs,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  baton keys rotate key_0193a1b2c3d47001800000000000002a
  baton keys rotate key_0193a1b2c3d47001800000000000002a --grace 1h     the old secret works on for an hour")]
pub struct RotateKeyArgs {
    #[arg(value_name = "KEY_ID", value_parser = key_id)]
    pub id: KeyId,
    /// How long the old secret is accepted beside the new one, at most 7d
    #[arg(long, value_name = "LENGTH", value_parser = moment::span)]
    pub grace: Option<Span>,
    #[command(flatten)]
    pub client: ClientArgs,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  baton keys revoke key_0193a1b2c3d47001800000000000002a")]
pub struct KeyArgs {
    #[arg(value_name = "KEY_ID", value_parser = key_id)]
    pub id: KeyId,
    #[command(flatten)]
    pub client: ClientArgs,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  baton keys me
  baton keys me --context production")]
pub struct MeArgs {
    #[command(flatten)]
    pub client: ClientArgs,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  baton login
  baton login --context production
  xdg-open \"$(baton login)\"

The link works once and for thirty seconds; the browser may then do for twelve hours what the key may.")]
pub struct LoginArgs {
    #[command(flatten)]
    pub client: ClientArgs,
}

#[derive(Args)]
pub struct OrgsArgs {
    #[command(subcommand)]
    pub command: OrgsCommand,
}

#[derive(Subcommand)]
pub enum OrgsCommand {
    /// Make an org; its first admin key is shown once
    #[command(after_help = "\
Examples:
  baton orgs create acme > acme.key")]
    Create(OrgArgs),
    /// List orgs by name
    #[command(after_help = "\
Examples:
  baton orgs list")]
    List(OrgListArgs),
}

impl OrgsCommand {
    pub const fn client(&self) -> &ClientArgs {
        match self {
            Self::Create(args) => &args.client,
            Self::List(args) => &args.client,
        }
    }
}

#[derive(Args)]
pub struct OrgArgs {
    #[arg(value_name = "ORG")]
    pub org: OrgId,
    #[command(flatten)]
    pub client: ClientArgs,
}

#[derive(Args)]
pub struct OrgListArgs {
    #[command(flatten)]
    pub page: PageArgs,
    #[command(flatten)]
    pub client: ClientArgs,
}

#[derive(Args)]
pub struct ContextsArgs {
    #[command(subcommand)]
    pub command: ContextsCommand,
}

#[derive(Subcommand)]
pub enum ContextsCommand {
    /// Keep a server and a key under a name; the first one becomes the current one
    #[command(after_help = "\
Examples:
  baton contexts add production --server https://baton.example.com --key-file ci.key
  baton contexts add here --server http://127.0.0.1:22866")]
    Add(AddContextArgs),
    /// Mean this one where none is named
    #[command(after_help = "\
Examples:
  baton contexts use production")]
    Use(ContextArgs),
    /// Forget one
    #[command(after_help = "\
Examples:
  baton contexts remove production")]
    Remove(ContextArgs),
    /// List them, without their keys
    #[command(after_help = "\
Examples:
  baton contexts list")]
    List(ContextListArgs),
}

impl ContextsCommand {
    pub const fn json(&self) -> bool {
        match self {
            Self::Add(args) => args.json,
            Self::Use(args) | Self::Remove(args) => args.json,
            Self::List(args) => args.json,
        }
    }
}

#[derive(Args)]
pub struct AddContextArgs {
    #[arg(value_name = "NAME")]
    pub name: String,
    #[arg(long, value_name = "URL")]
    pub server: String,
    /// The key; better given as a file, which no list of processes shows
    #[arg(long, value_name = "KEY", conflicts_with = "key_file")]
    pub key: Option<String>,
    /// A file with the key; - is standard input
    #[arg(long, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
    /// Print JSON, for programs
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub struct ContextArgs {
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Print JSON, for programs
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub struct ContextListArgs {
    /// Print JSON, for programs
    #[arg(long)]
    pub json: bool,
}
