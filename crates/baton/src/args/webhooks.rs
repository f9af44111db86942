//! `baton webhooks`.

use super::{ClientArgs, PageArgs};
use crate::moment;
use crate::webhooks::webhook_id;
use baton_core::ProjectId;
use baton_core::id::WebhookId;
use baton_core::time::Span;
use baton_core::webhook::Pattern;
use clap::{Args, Subcommand};

#[derive(Args)]
pub struct WebhooksArgs {
    #[command(subcommand)]
    pub command: WebhooksCommand,
}

#[derive(Subcommand)]
pub enum WebhooksCommand {
    /// Tell an endpoint what happens from now on; its secret is shown once
    #[command(visible_alias = "create")]
    Add(AddWebhookArgs),
    /// List webhooks, newest first
    List(WebhookListArgs),
    /// Show one
    Show(WebhookArgs),
    /// Delete one
    Remove(WebhookArgs),
    /// Tell one things again, from where it stopped
    Enable(EnableWebhookArgs),
    /// Tell one nothing more
    Disable(WebhookArgs),
    /// Give one another secret to sign with
    Rotate(RotateWebhookArgs),
    /// Send one something and say whether it arrived
    Test(WebhookArgs),
    /// List what was sent to one, newest first
    Deliveries(DeliveriesArgs),
}

impl WebhooksCommand {
    pub const fn client(&self) -> &ClientArgs {
        match self {
            Self::Add(args) => &args.client,
            Self::List(args) => &args.client,
            Self::Show(args) | Self::Remove(args) | Self::Disable(args) | Self::Test(args) => &args.client,
            Self::Enable(args) => &args.client,
            Self::Rotate(args) => &args.client,
            Self::Deliveries(args) => &args.client,
        }
    }
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  baton webhooks add https://hooks.example.com/baton
  baton webhooks add https://hooks.example.com/baton --event job.failed --event 'decision.*' --project shop
  baton webhooks add http://localhost:8080/in      the server must be told --allow-host localhost:8080

What is sent is signed by the Standard Webhooks scheme; check webhook-signature before you believe it.")]
pub struct AddWebhookArgs {
    /// Where to send it
    #[arg(value_name = "URL")]
    pub url: String,
    /// What people call it [default: its address]
    #[arg(long, value_name = "LABEL")]
    pub label: Option<String>,
    /// Only events of this type, such as job.failed or job.*; can be repeated
    #[arg(long = "event", value_name = "TYPE")]
    pub types: Vec<Pattern>,
    /// Only what happens in this project; can be repeated
    #[arg(long = "project", value_name = "PROJECT")]
    pub projects: Vec<ProjectId>,
    #[command(flatten)]
    pub client: ClientArgs,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  baton webhooks list
  baton webhooks list --json | jq -r '.webhooks[] | select(.enabled | not).id'")]
pub struct WebhookListArgs {
    #[command(flatten)]
    pub page: PageArgs,
    #[command(flatten)]
    pub client: ClientArgs,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  baton webhooks show whk_0193a1b2c3d47001800000000000002a
  baton webhooks test whk_0193a1b2c3d47001800000000000002a
  baton webhooks disable whk_0193a1b2c3d47001800000000000002a")]
pub struct WebhookArgs {
    #[arg(value_name = "WEBHOOK_ID", value_parser = webhook_id)]
    pub id: WebhookId,
    #[command(flatten)]
    pub client: ClientArgs,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  baton webhooks enable whk_0193a1b2c3d47001800000000000002a
  baton webhooks enable whk_0193a1b2c3d47001800000000000002a --skip-missed")]
pub struct EnableWebhookArgs {
    #[arg(value_name = "WEBHOOK_ID", value_parser = webhook_id)]
    pub id: WebhookId,
    /// Begin with what happens from now on
    #[arg(long)]
    pub skip_missed: bool,
    #[command(flatten)]
    pub client: ClientArgs,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  baton webhooks rotate whk_0193a1b2c3d47001800000000000002a
  baton webhooks rotate whk_0193a1b2c3d47001800000000000002a --grace 1d     it signs with both for a day")]
pub struct RotateWebhookArgs {
    #[arg(value_name = "WEBHOOK_ID", value_parser = webhook_id)]
    pub id: WebhookId,
    /// How long it also signs with the old secret, at most 7d
    #[arg(long, value_name = "LENGTH", value_parser = moment::span)]
    pub grace: Option<Span>,
    #[command(flatten)]
    pub client: ClientArgs,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  baton webhooks deliveries whk_0193a1b2c3d47001800000000000002a
  baton webhooks deliveries whk_0193a1b2c3d47001800000000000002a --json | jq '.deliveries[].error'")]
pub struct DeliveriesArgs {
    #[arg(value_name = "WEBHOOK_ID", value_parser = webhook_id)]
    pub id: WebhookId,
    /// Only those in these states, such as failed; the words of `baton jobs list`
    #[arg(long, value_name = "STATE", value_delimiter = ',')]
    pub state: Vec<String>,
    #[command(flatten)]
    pub page: PageArgs,
    #[command(flatten)]
    pub client: ClientArgs,
}
