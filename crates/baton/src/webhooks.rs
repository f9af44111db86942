//! `baton webhooks`: endpoints that are told what happens.

use crate::args::{
    AddWebhookArgs, DeliveriesArgs, EnableWebhookArgs, RotateWebhookArgs, WebhookArgs, WebhookListArgs, WebhooksArgs,
    WebhooksCommand,
};
use crate::client::{Client, Said, fresh_key};
use crate::fault::Fault;
use crate::jobs;
use crate::pages::{self, Ask};
use crate::paint::{bold, dim, good};
use crate::print;
use baton_core::id::WebhookId;
use baton_core::limits::LABEL_CHARS;
use baton_wire::{
    Delivery, DeliveryList, EnableWebhook, JobState, MadeWebhook, NewWebhook, Object, RotateWebhook, Tried, Webhook,
    WebhookList,
};
use comfy_table::Row;
use std::collections::BTreeSet;
use std::io::Write as _;

const WEBHOOKS: &str = "/api/v1/webhooks";

pub async fn run(args: WebhooksArgs) -> Result<(), Fault> {
    match args.command {
        WebhooksCommand::Add(args) => add(args).await,
        WebhooksCommand::List(args) => list(args).await,
        WebhooksCommand::Show(args) => {
            let webhook: Webhook = Client::new(&args.client)?.get(&path(args.id, ""), &[]).await?;
            shown(&webhook, args.client.json)
        }
        WebhooksCommand::Remove(args) => remove(args).await,
        WebhooksCommand::Enable(args) => enable(args).await,
        WebhooksCommand::Disable(args) => act(args, "/disable").await,
        WebhooksCommand::Rotate(args) => rotate(args).await,
        WebhooksCommand::Test(args) => test(args).await,
        WebhooksCommand::Deliveries(args) => deliveries(args).await,
    }
}

fn path(id: WebhookId, rest: &str) -> String {
    format!("{WEBHOOKS}/{id}{rest}")
}

/// What of an address may be shown to everybody: the rest may hold a token.
fn host(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    host.chars().take(LABEL_CHARS).collect()
}

fn some<T: Ord>(all: Vec<T>) -> Option<BTreeSet<T>> {
    if all.is_empty() { None } else { Some(all.into_iter().collect()) }
}

async fn add(args: AddWebhookArgs) -> Result<(), Fault> {
    let label = args.label.unwrap_or_else(|| host(&args.url));
    let new = NewWebhook { label, url: args.url, types: some(args.types), projects: some(args.projects) };
    let said: Said<MadeWebhook> = Client::new(&args.client)?.post(WEBHOOKS, &new, &fresh_key()).await?;
    shown_once(&said.value, args.client.json)
}

async fn rotate(args: RotateWebhookArgs) -> Result<(), Fault> {
    let grace_ms = args.grace.map_or(0, |grace| grace.to_std().as_millis() as u64);
    let client = Client::new(&args.client)?;
    let said: Said<MadeWebhook> =
        client.post(&path(args.id, "/rotate"), &RotateWebhook { grace_ms }, &fresh_key()).await?;
    shown_once(&said.value, args.client.json)
}

/// The secret goes to standard output alone, so that it can be piped to where it belongs.
fn shown_once(made: &MadeWebhook, json: bool) -> Result<(), Fault> {
    if json {
        return print::json(made);
    }
    let MadeWebhook { webhook, secret } = made;
    writeln!(print::err(), "{} {}", bold(webhook.id), print::visible(&webhook.label))?;
    match secret {
        Some(secret) => {
            writeln!(print::err(), "{}", dim("it signs with this secret, which is not shown again:"))?;
            writeln!(print::out(), "{secret}")?;
        }
        None => return Err(Fault::unshown("webhooks", webhook.id)),
    }
    Ok(())
}

async fn remove(args: WebhookArgs) -> Result<(), Fault> {
    Client::new(&args.client)?.delete(&path(args.id, "")).await?;
    if args.client.json {
        return print::json(&Object::new());
    }
    Ok(writeln!(print::out(), "{} is gone", args.id)?)
}

async fn enable(args: EnableWebhookArgs) -> Result<(), Fault> {
    let body = EnableWebhook { skip_missed: args.skip_missed };
    let said: Said<Webhook> = Client::new(&args.client)?.post(&path(args.id, "/enable"), &body, &fresh_key()).await?;
    shown(&said.value, args.client.json)
}

async fn act(args: WebhookArgs, verb: &str) -> Result<(), Fault> {
    let client = Client::new(&args.client)?;
    let said: Said<Webhook> = client.post(&path(args.id, verb), &Object::new(), &fresh_key()).await?;
    shown(&said.value, args.client.json)
}

async fn list(args: WebhookListArgs) -> Result<(), Fault> {
    let ask = Ask { path: WEBHOOKS, query: Vec::new(), page: &args.page };
    let list: WebhookList = pages::read(&Client::new(&args.client)?, ask).await?;
    if args.client.json {
        return print::json(&list);
    }
    table(&list.webhooks)?;
    print::more(&args.page, list.next_cursor.as_deref())
}

/// Sends something and waits for what comes of it.
async fn test(args: WebhookArgs) -> Result<(), Fault> {
    let client = Client::new(&args.client)?;
    let said: Said<Tried> = client.post(&path(args.id, "/test"), &Object::new(), &fresh_key()).await?;
    let job = jobs::ended(&client, said.value.job_id).await?;
    let Some(delivery) = Delivery::of(&job) else {
        return Err(Fault::new("unexpected_answer", format!("{} is no delivery", job.id)));
    };
    if args.client.json {
        print::json(&delivery)?;
    } else if let Some(status) = delivery.status {
        writeln!(print::out(), "{} the endpoint answered {status}", good("delivered:"))?;
    }
    if delivery.state == JobState::Completed {
        return Ok(());
    }
    let why = delivery.error.as_deref().unwrap_or("nothing is known about it");
    Err(Fault::new("not_delivered", format!("nothing was delivered: {why}")).hint(
        "an address that is not public must be allowed where the server runs: --allow-host localhost:8080, for instance",
    ))
}

async fn deliveries(args: DeliveriesArgs) -> Result<(), Fault> {
    let at = path(args.id, "/deliveries");
    let query = args.state.into_iter().map(|state| ("state", state)).collect();
    let ask = Ask { path: &at, query, page: &args.page };
    let list: DeliveryList = pages::read(&Client::new(&args.client)?, ask).await?;
    if args.client.json {
        return print::json(&list);
    }
    let row = |delivery: &Delivery| {
        let came = match (delivery.status, &delivery.error) {
            (Some(status), _) => status.to_string(),
            (None, Some(error)) => error.clone(),
            (None, None) => String::new(),
        };
        Row::from(vec![
            print::text(delivery.id),
            print::text(&delivery.event),
            print::text(delivery.state),
            print::text(format!("{}/{}", delivery.attempts, delivery.max_attempts)),
            print::text(format!("{:.20}", delivery.created_at)),
            print::text(came),
        ])
    };
    print::table(&["DELIVERY", "EVENT", "STATE", "ATTEMPTS", "SINCE", "CAME OF IT"], list.deliveries.iter().map(row))?;
    print::more(&args.page, list.next_cursor.as_deref())
}

fn shown(webhook: &Webhook, json: bool) -> Result<(), Fault> {
    if json { print::json(webhook) } else { table(std::slice::from_ref(webhook)) }
}

fn names<T: ToString>(all: &BTreeSet<T>) -> String {
    all.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn table(webhooks: &[Webhook]) -> Result<(), Fault> {
    let row = |webhook: &Webhook| {
        let wants = [webhook.types.as_ref().map(names), webhook.projects.as_ref().map(names)];
        let wants = wants.into_iter().flatten().collect::<Vec<_>>().join("; ");
        let state = match &webhook.disabled_why {
            Some(why) => format!("disabled: {why}"),
            None if webhook.failures > 0 => format!("failing, {} times in a row", webhook.failures),
            None => "enabled".to_owned(),
        };
        Row::from(vec![
            print::text(webhook.id),
            print::text(&webhook.label),
            print::text(&webhook.url),
            print::text(if wants.is_empty() { "everything".to_owned() } else { wants }),
            print::text(state),
        ])
    };
    print::table(&["WEBHOOK", "LABEL", "URL", "IS TOLD", "STATE"], webhooks.iter().map(row))
}

pub fn webhook_id(text: &str) -> Result<WebhookId, String> {
    text.parse().map_err(|error: baton_core::id::BadId| error.to_string())
}
