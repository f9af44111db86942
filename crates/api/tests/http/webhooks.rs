//! Webhooks over HTTP, from both ends: asked for at one, received at the other.

use crate::support::endpoint::{Endpoint, Received};
use crate::support::{Ask, JSON, SIGNER, Server, Setup};
use baton_core::webhook::sign::Signer;
use baton_engine::Registry;
use baton_engine::webhook::{Deliver, Post};
use baton_tools::{Allow, Outgoing, Policy};
use baton_wire::{
    Delivery, DeliveryList, Event, EventList, FoundedOrg, Job, JobState, MadeWebhook, Tried, Webhook, WebhookList,
};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

const HOOKS: &str = "/api/v1/webhooks";

fn allowing(hosts: &[&str]) -> Setup {
    let policy = Policy { allow: Allow::parse(hosts.iter().copied()).unwrap(), ..Policy::public() };
    let mut registry = Registry::builtin();
    let carrier = Arc::new(Post(Outgoing::new(policy).unwrap()));
    registry.deliver(Deliver { signer: Signer::new(SIGNER), carrier });
    Setup { registry, ..Setup::default() }
}

fn local() -> Setup {
    allowing(&["127.0.0.1"])
}

fn public() -> Setup {
    allowing(&[])
}

mod there {
    use super::*;

    on_both_databases!(super::super::local =>
        what_is_wanted_is_sent_once_and_signed,
        what_fails_is_tried_again_under_the_same_id,
        an_endpoint_that_is_gone_is_told_nothing_more,
        a_webhook_is_made_changed_tried_and_deleted,
        after_a_rotation_both_secrets_sign_for_a_while,
        a_webhook_is_told_of_its_own_org_only,
    );
}

mod elsewhere {
    use super::*;

    on_both_databases!(super::super::public => an_address_that_is_not_public_is_not_called);
}

async fn make(server: &Server, body: Value) -> MadeWebhook {
    let reply = server.post(HOOKS, &body).await;
    assert_eq!(reply.status, 201, "{reply:?}");
    reply.parse()
}

fn wants(url: &str, types: &[&str]) -> Value {
    json!({ "label": "ours", "url": url, "types": types, "projects": ["p"] })
}

async fn deliveries(server: &Server, hook: &Webhook) -> Vec<Delivery> {
    server.get(&format!("{HOOKS}/{}/deliveries", hook.id)).await.ok::<DeliveryList>().deliveries
}

fn echo(message: &str) -> Value {
    json!({ "type": "echo", "projectId": "p", "payload": { "message": message } })
}

/// Waits until a delivery has come this far.
async fn until(server: &Server, received: &Received, kind: &str) -> Delivery {
    let of = |event: &Event| event.kind == kind && event.data["type"] == "webhook.deliver";
    let mut seen = Vec::new();
    loop {
        let events = server.events_until(|event| of(event) && !seen.contains(&event.subject)).await;
        let id = events.last().unwrap().subject.clone();
        let job = server.job(&id).await;
        let delivery = Delivery::of(&job).unwrap();
        if delivery.message == received.header("webhook-id") {
            return delivery;
        }
        seen.push(id);
    }
}

async fn what_is_wanted_is_sent_once_and_signed(server: &Server) {
    let mut endpoint = Endpoint::start().await;
    let MadeWebhook { webhook, secret } = make(server, wants(&endpoint.url, &["job.completed"])).await;
    let secret = secret.unwrap();
    let other = json!({ "type": "echo", "projectId": "q", "payload": { "message": "elsewhere" } });
    server.enqueue(other).await;
    let jobs = [server.enqueue(echo("a")).await, server.enqueue(echo("b")).await];
    let mut told = Vec::new();
    for _ in &jobs {
        let received = endpoint.receive(204).await;
        received.verify(&secret);
        let body: Value = serde_json::from_slice(&received.body).unwrap();
        assert_eq!(body["type"], "job.completed", "{body}");
        assert_eq!(body["timestamp"], body["data"]["at"]);
        told.push(body["data"]["subject"].as_str().unwrap().to_owned());
        let delivery = until(server, &received, "job.completed").await;
        assert_eq!((delivery.status, delivery.state), (Some(204), JobState::Completed));
        assert_eq!(delivery.event, "job.completed");
    }
    let mut ids = jobs.map(|job| job.id.to_string());
    ids.sort();
    told.sort();
    assert_eq!(told, ids);
    assert_eq!(deliveries(server, &webhook).await.len(), 2, "what happens to deliveries is not delivered");
    let events = server.get("/api/v1/events?limit=1000").await.body;
    assert!(!events.contains(&secret) && !events.contains(&endpoint.url), "{events}");
    // Nobody but the engine asks for deliveries.
    let forged = json!({ "type": "webhook.deliver", "projectId": "p", "payload": {} });
    server.post("/api/v1/jobs", &forged).await.refused(422, "unknown_job_type");
    let forged = json!({ "cron": "0 0 1 1 *", "type": "webhook.deliver" });
    server.put("/api/v1/projects/p/schedules/s", &forged).await.refused(422, "unknown_job_type");
}

async fn what_fails_is_tried_again_under_the_same_id(server: &Server) {
    let mut endpoint = Endpoint::start().await;
    let made = make(server, wants(&endpoint.url, &["job.completed"])).await;
    server.enqueue(echo("a")).await;
    let first = endpoint.receive(500).await;
    let waiting = until(server, &first, "job.retry_scheduled").await;
    assert_eq!((waiting.attempts, waiting.state), (1, JobState::AwaitingTool));
    assert!(waiting.error.unwrap().contains("500"));
    let hook: Webhook = server.get(&format!("{HOOKS}/{}", made.webhook.id)).await.ok();
    assert_eq!((hook.failures, hook.enabled), (1, true));
    // Nobody waits that long here.
    server.post(&format!("/api/v1/jobs/{}/wake", waiting.id), &json!({})).await.ok::<Job>();
    let second = endpoint.receive(200).await;
    assert_eq!(second.header("webhook-id"), first.header("webhook-id"));
    assert_eq!(second.body, first.body);
    second.verify(made.secret.as_ref().unwrap());
    let done = until(server, &second, "job.completed").await;
    assert_eq!(done.attempts, 2);
    let hook: Webhook = server.get(&format!("{HOOKS}/{}", made.webhook.id)).await.ok();
    assert_eq!((hook.failures, hook.failing_since), (0, None));
}

async fn an_endpoint_that_is_gone_is_told_nothing_more(server: &Server) {
    let mut endpoint = Endpoint::start().await;
    let hook = make(server, wants(&endpoint.url, &["job.completed"])).await.webhook;
    server.enqueue(echo("a")).await;
    let received = endpoint.receive(410).await;
    let failed = until(server, &received, "job.failed").await;
    assert!(failed.error.unwrap().contains("endpoint_gone"));
    let off: Webhook = server.get(&format!("{HOOKS}/{}", hook.id)).await.ok();
    assert_eq!((off.enabled, off.disabled_why.as_deref()), (false, Some("gone")));
    let missed = server.enqueue(echo("missed")).await;
    server.until(missed.id, "job.completed").await;
    // Asked to, it is told what it missed, and goes on.
    let on: Webhook = server.post(&format!("{HOOKS}/{}/enable", hook.id), &json!({})).await.ok();
    assert!(on.enabled && on.disabled_why.is_none());
    let received = endpoint.receive(200).await;
    assert!(String::from_utf8_lossy(&received.body).contains(&missed.id.to_string()));
    until(server, &received, "job.completed").await;
    let off: Webhook = server.post(&format!("{HOOKS}/{}/disable", hook.id), &json!({})).await.ok();
    assert_eq!(off.disabled_why.as_deref(), Some("asked"));
    let skipped = server.enqueue(echo("skipped")).await;
    server.until(skipped.id, "job.completed").await;
    let skip = json!({ "skipMissed": true });
    server.post(&format!("{HOOKS}/{}/enable", hook.id), &skip).await.ok::<Webhook>();
    let heard = server.enqueue(echo("heard")).await;
    let received = endpoint.receive(200).await;
    assert!(String::from_utf8_lossy(&received.body).contains(&heard.id.to_string()));
}

async fn a_webhook_is_made_changed_tried_and_deleted(server: &Server) {
    let mut endpoint = Endpoint::start().await;
    let body = wants(&endpoint.url, &["job.completed"]).to_string();
    let first = server.post_keyed(HOOKS, &body, "k").await.parse::<MadeWebhook>();
    let again = server.post_keyed(HOOKS, &body, "k").await;
    assert!(again.replayed());
    assert_eq!(again.parse::<MadeWebhook>().secret, None, "it is shown once");
    let id = first.webhook.id;
    let changed = json!({ "label": "theirs", "url": endpoint.url, "types": ["job.failed"] });
    let hook: Webhook = server.put(&format!("{HOOKS}/{id}"), &changed).await.ok();
    assert_eq!((hook.label.as_str(), hook.types.map(|types| types.len()), hook.projects), ("theirs", Some(1), None));
    server.post(&format!("{HOOKS}/{id}/disable"), &json!({})).await.ok::<Webhook>();
    let tried = server.post(&format!("{HOOKS}/{id}/test"), &json!({})).await;
    assert_eq!(tried.status, 201);
    let received = endpoint.receive(500).await;
    received.verify(first.secret.as_ref().unwrap());
    let body: Value = serde_json::from_slice(&received.body).unwrap();
    assert_eq!(body["type"], "webhook.test");
    let job = server.until(tried.parse::<Tried>().job_id, "job.failed").await;
    assert_eq!(job.attempts, 1, "a test is not repeated");
    let list: WebhookList = server.get(HOOKS).await.ok();
    assert_eq!(list.webhooks.iter().map(|hook| (hook.id, hook.failures)).collect::<Vec<_>>(), [(id, 0)]);
    assert_eq!(server.delete(&format!("{HOOKS}/{id}")).await.status, 204);
    for path in [format!("{HOOKS}/{id}"), format!("{HOOKS}/{id}/deliveries"), format!("{HOOKS}/whk_1")] {
        server.get(&path).await.refused(404, "webhook_not_found");
    }
    server.post(&format!("{HOOKS}/{id}/test"), &json!({})).await.refused(404, "webhook_not_found");
    assert!(server.get(HOOKS).await.ok::<WebhookList>().webhooks.is_empty());
    for bad in [
        json!({ "label": "x", "url": "ftp://example.com" }),
        json!({ "label": "x", "url": "https://example.com", "types": [] }),
        json!({ "label": "", "url": "https://example.com" }),
    ] {
        server.post(HOOKS, &bad).await.refused(422, "invalid_webhook");
    }
    for bad in [json!({ "label": "x" }), json!({ "label": "x", "url": "https://example.com", "types": ["JOB"] })] {
        server.post(HOOKS, &bad).await.refused(400, "invalid_request");
    }
}

async fn after_a_rotation_both_secrets_sign_for_a_while(server: &Server) {
    let mut endpoint = Endpoint::start().await;
    let made = make(server, wants(&endpoint.url, &["job.completed"])).await;
    let rotate = format!("{HOOKS}/{}/rotate", made.webhook.id);
    let next: MadeWebhook = server.post(&rotate, &json!({ "graceMs": 60_000 })).await.ok();
    server.enqueue(echo("a")).await;
    let received = endpoint.receive(200).await;
    received.verify(made.secret.as_ref().unwrap());
    received.verify(next.secret.as_ref().unwrap());
    let last: MadeWebhook = server.post(&rotate, &json!({})).await.ok();
    server.enqueue(echo("b")).await;
    let received = endpoint.receive(200).await;
    received.verify(last.secret.as_ref().unwrap());
    assert!(!received.is_signed_by(next.secret.as_ref().unwrap()));
    server.post(&rotate, &json!({ "graceMs": 864_000_000 })).await.refused(422, "invalid_webhook");
}

/// Two orgs in which everything has the same name, each with a webhook that wants everything.
async fn a_webhook_is_told_of_its_own_org_only(server: &Server) {
    let founded: FoundedOrg = server.post("/api/v1/orgs", &json!({ "org": "acme" })).await.parse();
    let keys = [server.admin.clone(), founded.key.secret.unwrap()];
    let mut endpoints = [Endpoint::start().await, Endpoint::start().await];
    let post = async |key: &str, path: &str, body: &Value| {
        let body = body.to_string();
        let reply = server.send_as(key, Ask { method: "POST", path, headers: &[JSON], body: body.as_bytes() }).await;
        assert_eq!(reply.status, 201, "{reply:?}");
        reply
    };
    for (key, endpoint) in keys.iter().zip(&endpoints) {
        post(key, HOOKS, &json!({ "label": "all", "url": endpoint.url })).await;
    }
    // In the first org first, so that what leaks has leaked before the second has anything to tell.
    let mut ids = Vec::new();
    for key in &keys {
        let job: Job = post(key, "/api/v1/jobs", &echo("same")).await.parse();
        ids.push(job.id.to_string());
        post(key, "/api/v1/keys", &json!({ "label": "same", "role": "viewer" })).await;
    }
    for (n, endpoint) in endpoints.iter_mut().enumerate() {
        let mut told = BTreeSet::new();
        // Deliveries overtake each other: all that there is to tell of the job and the key.
        while !["job.queued", "job.started", "job.completed", "key.created"].iter().all(|kind| told.contains(*kind)) {
            let received = endpoint.receive(200).await;
            let body: Value = serde_json::from_slice(&received.body).unwrap();
            let list = server.send_as(&keys[n], Ask { path: "/api/v1/events?limit=1000", ..Ask::default() }).await;
            let own = list.ok::<EventList>().events.iter().any(|event| json!(event.subject) == body["data"]["subject"]);
            assert!(own, "{body} was told to org {n}");
            assert_ne!(body["data"]["subject"], ids[1 - n]);
            told.insert(body["type"].as_str().unwrap().to_owned());
        }
    }
}

async fn an_address_that_is_not_public_is_not_called(server: &Server) {
    let endpoint = Endpoint::start().await;
    for url in [endpoint.url.clone(), endpoint.url.replace("127.0.0.1", "localhost"), "http://[::1]:9/".to_owned()] {
        let hook = make(server, json!({ "label": "inside", "url": url })).await.webhook;
        let tried: Tried = server.post(&format!("{HOOKS}/{}/test", hook.id), &json!({})).await.parse();
        let job = server.until(tried.job_id, "job.failed").await;
        assert!(job.error.unwrap().contains("address_refused"), "{url}");
    }
    assert!(endpoint.is_untouched());
}
