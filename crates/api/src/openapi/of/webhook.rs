//! Webhooks.

use super::super::example;
use super::super::operation::{Content, Operation, Tag};
use super::super::parameter;
use super::job::state;
use baton_wire::{DeliveryList, EnableWebhook, MadeWebhook, NewWebhook, RotateWebhook, Tried, Webhook, WebhookList};
use serde_json::json;

/// What can be asked of a webhook.
const ACTS: [&str; 8] = [
    "getWebhook",
    "updateWebhook",
    "deleteWebhook",
    "rotateWebhook",
    "enableWebhook",
    "disableWebhook",
    "testWebhook",
    "listDeliveries",
];

pub fn list() -> Operation {
    let page = json!({ "webhooks": [example::webhook()], "nextCursor": null });
    Operation::new("listWebhooks", Tag::Webhooks, "List the org's webhooks, newest first")
        .takes([parameter::order_by_time(), parameter::limit_names(), parameter::cursor()])
        .answers::<WebhookList>(200, "A page of them.", page)
        .refuses(&["out_of_scope"])
}

pub fn create() -> Operation {
    Operation::new("createWebhook", Tag::Webhooks, "Make a webhook")
        .about("It is told what happens from now on. Its secret is shown once.")
        .body::<NewWebhook>("whatever fails in one project", example::new_webhook())
        .answers::<MadeWebhook>(201, "The webhook, with the secret that it signs with.", example::made_webhook(true))
        .answers::<MadeWebhook>(200, "Said before under the same `Idempotency-Key`.", example::made_webhook(false))
        .leads(&ACTS, &[("webhookId", "$response.body#/id")])
        .refuses(&["out_of_scope", "invalid_webhook", "webhook_exists", "too_many_webhooks"])
}

pub fn get() -> Operation {
    Operation::new("getWebhook", Tag::Webhooks, "Show a webhook")
        .takes([parameter::webhook_id()])
        .answers::<Webhook>(200, "The webhook.", example::webhook())
        .refuses(&["out_of_scope", "webhook_not_found"])
}

pub fn update() -> Operation {
    Operation::new("updateWebhook", Tag::Webhooks, "Change a webhook")
        .takes([parameter::webhook_id()])
        .body::<NewWebhook>("as it shall be", example::new_webhook())
        .unkeyed()
        .answers::<Webhook>(200, "The webhook as it is now.", example::webhook())
        .refuses(&["out_of_scope", "webhook_not_found", "invalid_webhook"])
}

pub fn delete() -> Operation {
    Operation::new("deleteWebhook", Tag::Webhooks, "Delete a webhook")
        .about("What still waits to be delivered to it fails.")
        .takes([parameter::webhook_id()])
        .answer(204, "It is gone.", Content::Nothing)
        .refuses(&["out_of_scope", "webhook_not_found"])
}

pub fn rotate() -> Operation {
    Operation::new("rotateWebhook", Tag::Webhooks, "Give a webhook another secret")
        .takes([parameter::webhook_id()])
        .body_or_none::<RotateWebhook>("a day to change over", json!({ "graceMs": 86_400_000 }))
        .answers::<MadeWebhook>(200, "The webhook, with its new secret.", example::made_webhook(true))
        .refuses(&["out_of_scope", "webhook_not_found", "invalid_webhook"])
}

pub fn enable() -> Operation {
    Operation::new("enableWebhook", Tag::Webhooks, "Tell a webhook things again")
        .about("It goes on where it stopped, unless told to skip what it missed.")
        .takes([parameter::webhook_id()])
        .body_or_none::<EnableWebhook>("from now on", json!({ "skipMissed": true }))
        .answers::<Webhook>(200, "The webhook.", example::webhook())
        .refuses(&["out_of_scope", "webhook_not_found"])
}

pub fn disable() -> Operation {
    Operation::new("disableWebhook", Tag::Webhooks, "Tell a webhook nothing more")
        .takes([parameter::webhook_id()])
        .bare()
        .answers::<Webhook>(200, "The webhook.", example::webhook())
        .refuses(&["out_of_scope", "webhook_not_found"])
}

pub fn try_out() -> Operation {
    Operation::new("testWebhook", Tag::Webhooks, "Send a webhook something, to see whether it arrives")
        .about("Once, and also to one that is disabled. The delivery is a job that can be waited for.")
        .takes([parameter::webhook_id()])
        .bare()
        .answers::<Tried>(201, "What was sent.", json!({ "jobId": example::JOB_ID }))
        .answers::<Tried>(200, "Said before under the same `Idempotency-Key`.", json!({ "jobId": example::JOB_ID }))
        .refuses(&["out_of_scope", "webhook_not_found", "invalid_webhook"])
}

pub fn deliveries() -> Operation {
    let page = json!({ "deliveries": [example::delivery()], "nextCursor": null });
    Operation::new("listDeliveries", Tag::Webhooks, "List what was sent to a webhook, newest first")
        .takes([
            parameter::webhook_id(),
            state(),
            parameter::order_by_time(),
            parameter::limit_jobs(),
            parameter::cursor(),
        ])
        .answers::<DeliveryList>(200, "A page of them.", page)
        .refuses(&["out_of_scope", "webhook_not_found"])
}
