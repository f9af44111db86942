//! Webhooks: endpoints that are told what happens.

use crate::app::App;
use crate::call::Call;
use crate::cursor;
use crate::door::Caller;
use crate::idempotency::{self, rendered};
use crate::job::{States, cut, show};
use crate::limits;
use crate::problem::Fault;
use crate::query::Params;
use crate::wait;
use axum::Json as Answer;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use baton_core::doc::{self, Class};
use baton_core::id::{Ids, Seed, WebhookId};
use baton_core::limits::WEBHOOKS;
use baton_core::once::Rendered;
use baton_core::time::Span;
use baton_core::webhook::Webhook;
use baton_core::webhook::change::{Act, Change, Kept};
use baton_core::webhook::try_out::TryOut;
use baton_store::{Filter, ListDocs, ListJobs, Order, StoreError};
use baton_wire::{
    Delivery, DeliveryList, EnableWebhook, Job, MadeWebhook, NewWebhook, RotateWebhook, Tried, WebhookList, limit,
};

type Id = Result<Path<String>, PathRejection>;

pub async fn list(State(app): State<App>, caller: Caller, params: Params) -> Result<Answer<WebhookList>, Fault> {
    let asked = cursor::WEBHOOKS.asked(&params, &[])?;
    caller.reach_all()?;
    let ask = Ask { order: asked.order, after: asked.after_text()?, limit: asked.limit };
    let (webhooks, next) = page(&app, &caller, ask).await?;
    let webhooks = webhooks.iter().map(|(id, webhook)| baton_wire::Webhook::of(*id, webhook)).collect();
    Ok(Answer(WebhookList { webhooks, next_cursor: next.map(|key| asked.next_text(&key)) }))
}

/// Which ones to look for.
struct Ask {
    order: Order,
    after: Option<String>,
    limit: usize,
}

/// Deleted ones stand in between, and are passed over a bounded number at a time: a page may be
/// short and still have a cursor.
async fn page(app: &App, caller: &Caller, ask: Ask) -> Result<(Vec<(WebhookId, Webhook)>, Option<String>), Fault> {
    let Ask { order, mut after, limit } = ask;
    let mut found = Vec::new();
    for _ in 0..limits::WEBHOOK_ROUNDS {
        let ask = ListDocs {
            org: caller.org.clone(),
            class: Class::Webhook,
            prefix: String::new(),
            flag: None,
            order,
            after,
            limit: limit - found.len(),
        };
        let page = wait::read(app.store().docs(ask)).await?;
        found.extend(page.items.iter().filter_map(there));
        after = page.next;
        if after.is_none() || found.len() >= limit {
            break;
        }
    }
    Ok((found, after))
}

fn there((at, doc): &(doc::Key, doc::Doc)) -> Option<(WebhookId, Webhook)> {
    let webhook = Webhook::of(doc).filter(|webhook| webhook.deleted_at.is_none())?;
    Some((at.key.parse().ok()?, webhook))
}

pub async fn get(
    State(app): State<App>,
    caller: Caller,
    id: Id,
    params: Params,
) -> Result<Answer<baton_wire::Webhook>, Fault> {
    params.allow(&[])?;
    let id = webhook_id(&caller, id)?;
    Ok(Answer(baton_wire::Webhook::of(id, &find(&app, &caller, id).await?)))
}

async fn find(app: &App, caller: &Caller, id: WebhookId) -> Result<Webhook, Fault> {
    let doc = wait::read(app.store().doc(&caller.org, &Webhook::at(id))).await?;
    let found = doc.as_ref().and_then(Webhook::of).filter(|webhook| webhook.deleted_at.is_none());
    found.ok_or_else(|| Fault::new("webhook_not_found", format!("webhook {id} does not exist")))
}

pub async fn create(State(app): State<App>, caller: Caller, call: Call) -> Result<Response, Fault> {
    caller.reach_all()?;
    let new: NewWebhook = call.body.parse()?;
    let keyed = call.keyed("POST /api/v1/webhooks", &new)?;
    let room = room(&app, &caller).await?;
    let (high, low) = app.entropy().words();
    let id = WebhookId(Ids::new(Seed { high, low, at: app.store().clock_now() }).uuid());
    let place = app.store().tail()?.to_string();
    let act = Act::Create { spec: new.spec(), place, signer: app.signer().fingerprint(), room };
    secret(&app, &caller, keyed, Change { org: caller.org.clone(), id, act }, 201).await
}

/// Whether one more can be told things. Two at once may both find room for the last one; the number
/// need not be exact.
async fn room(app: &App, caller: &Caller) -> Result<bool, Fault> {
    let told = ListDocs {
        org: caller.org.clone(),
        class: Class::Webhook,
        prefix: String::new(),
        flag: Some(true),
        order: Order::Rising,
        after: None,
        limit: WEBHOOKS,
    };
    Ok(wait::read(app.store().docs(told)).await?.items.len() < WEBHOOKS)
}

pub async fn update(
    State(app): State<App>,
    caller: Caller,
    id: Id,
    call: Call,
) -> Result<Answer<baton_wire::Webhook>, Fault> {
    let id = webhook_id(&caller, id)?;
    let new: NewWebhook = call.body.parse()?;
    let command = Change { org: caller.org.clone(), id, act: Act::Update(new.spec()) };
    let committed = wait::commit(app.store().commit(command, caller.actor())).await;
    let kept = committed.ok_or(StoreError::OutcomeUnknown)??;
    Ok(Answer(baton_wire::Webhook::of(id, &kept.webhook)))
}

pub async fn delete(State(app): State<App>, caller: Caller, id: Id, params: Params) -> Result<StatusCode, Fault> {
    params.allow(&[])?;
    let id = webhook_id(&caller, id)?;
    let command = Change { org: caller.org.clone(), id, act: Act::Delete };
    wait::commit(app.store().commit(command, caller.actor())).await.ok_or(StoreError::OutcomeUnknown)??;
    Ok(StatusCode::NO_CONTENT)
}

pub async fn rotate(State(app): State<App>, caller: Caller, id: Id, call: Call) -> Result<Response, Fault> {
    let id = webhook_id(&caller, id)?;
    let asked: RotateWebhook = call.body.parse_or_default()?;
    let keyed = call.keyed("POST /api/v1/webhooks/{webhookId}/rotate", &asked)?;
    let grace = i64::try_from(asked.grace_ms).ok().and_then(|ms| ms.checked_mul(1_000)).map_or(Span(i64::MAX), Span);
    let act = Act::Rotate { grace, signer: app.signer().fingerprint() };
    secret(&app, &caller, keyed, Change { org: caller.org.clone(), id, act }, 200).await
}

async fn secret(
    app: &App,
    caller: &Caller,
    keyed: Option<idempotency::Keyed>,
    command: Change,
    status: u16,
) -> Result<Response, Fault> {
    let (signer, org) = (app.signer().clone(), caller.org.clone());
    let render = move |kept: &Kept, shown: bool| {
        let secret = shown.then(|| signer.secret(&org, kept.id, kept.webhook.secret).reveal());
        rendered(status, &MadeWebhook { webhook: baton_wire::Webhook::of(kept.id, &kept.webhook), secret })
    };
    idempotency::commit_secret(app, caller, command, keyed, render).await
}

pub async fn enable(State(app): State<App>, caller: Caller, id: Id, call: Call) -> Result<Response, Fault> {
    let id = webhook_id(&caller, id)?;
    let asked: EnableWebhook = call.body.parse_or_default()?;
    let keyed = call.keyed("POST /api/v1/webhooks/{webhookId}/enable", &asked)?;
    let place = if asked.skip_missed { Some(app.store().tail()?.to_string()) } else { None };
    let command = Change { org: caller.org.clone(), id, act: Act::Enable { place, room: room(&app, &caller).await? } };
    idempotency::commit(&app, &caller, command, keyed, show_kept).await
}

pub async fn disable(State(app): State<App>, caller: Caller, id: Id, call: Call) -> Result<Response, Fault> {
    let id = webhook_id(&caller, id)?;
    let keyed = call.keyed_bare("POST /api/v1/webhooks/{webhookId}/disable")?;
    let command = Change { org: caller.org.clone(), id, act: Act::Disable };
    idempotency::commit(&app, &caller, command, keyed, show_kept).await
}

fn show_kept(kept: &Kept) -> Rendered {
    rendered(200, &baton_wire::Webhook::of(kept.id, &kept.webhook))
}

/// Answers with the delivery, which is then waited for like any other job.
pub async fn try_out(State(app): State<App>, caller: Caller, id: Id, call: Call) -> Result<Response, Fault> {
    let id = webhook_id(&caller, id)?;
    let keyed = call.keyed_bare("POST /api/v1/webhooks/{webhookId}/test")?;
    let command = TryOut { org: caller.org.clone(), id };
    idempotency::commit(&app, &caller, command, keyed, |job| rendered(201, &Tried { job_id: job.id })).await
}

pub async fn deliveries(
    State(app): State<App>,
    caller: Caller,
    id: Id,
    params: Params,
) -> Result<Answer<DeliveryList>, Fault> {
    let asked = cursor::DELIVERIES.asked(&params, &["state"])?;
    let id = webhook_id(&caller, id)?;
    find(&app, &caller, id).await?;
    let states = States::read::<Job>(&params)?;
    let (faces, exact) = states.faces();
    let limit = asked.limit;
    let ask = ListJobs {
        org: caller.org.clone(),
        project: Webhook::project(id),
        filter: Filter { states: faces, kind: None },
        order: asked.order,
        after: asked.after_job()?,
        // Some of what is found will be left out again.
        limit: if exact { limit } else { limit::JOBS },
        bytes: limits::PAGE_BYTES,
    };
    let mut page = wait::read(app.store().jobs(ask)).await?;
    page.items.retain(|record| states.matches(&record.job.status));
    let page = cut(page, limit);
    let deliveries = page.items.iter().filter_map(|record| Delivery::of(&show::<Job>(record))).collect();
    Ok(Answer(DeliveryList { deliveries, next_cursor: page.next.map(|id| asked.next_job(id)) }))
}

/// An id that nobody could have been given names no webhook.
fn webhook_id(caller: &Caller, path: Id) -> Result<WebhookId, Fault> {
    caller.reach_all()?;
    let text = path.map(|Path(text)| text).unwrap_or_default();
    text.parse().map_err(|error: baton_core::id::BadId| Fault::new("webhook_not_found", error.to_string()))
}
