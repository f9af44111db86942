//! Sending one letter to one endpoint.

use crate::job_cx::JobCx;
use crate::registry::{Handler, Outcome, Running};
use baton_core::Json;
use baton_core::command::Actor;
use baton_core::id::WebhookId;
use baton_core::job::Failure;
use baton_core::webhook::report::{How, Report};
use baton_core::webhook::sign::{self, Signer};
use baton_core::webhook::{TEST_EVENT, Webhook};
use baton_store::{CommitError, StoreError};
use serde::Deserialize;
use serde_json::{Value, json};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

/// What is to be sent.
#[derive(Clone)]
pub struct Parcel {
    pub url: String,
    pub message: String,
    /// Seconds since 1970.
    pub timestamp: i64,
    /// One or, after a rotation, two.
    pub signatures: Vec<String>,
    pub body: Vec<u8>,
}

/// Why nothing came back.
#[derive(Clone, Debug)]
pub struct Undelivered {
    pub code: String,
    pub detail: String,
    /// Whether it may arrive later.
    pub transient: bool,
}

pub type Carried = Pin<Box<dyn Future<Output = Result<u16, Undelivered>> + Send>>;

/// Whoever takes a parcel to its address, and says which status it was answered with.
pub trait Carrier: Send + Sync + 'static {
    fn carry(&self, parcel: Parcel) -> Carried;
}

/// The handler of deliveries.
#[derive(Clone)]
pub struct Deliver {
    pub signer: Signer,
    pub carrier: Arc<dyn Carrier>,
}

#[derive(Deserialize)]
struct Order {
    webhook: WebhookId,
    message: String,
    event: Value,
}

impl Handler for Deliver {
    fn run(&self, cx: JobCx, payload: Json) -> Running {
        let this = self.clone();
        Box::pin(async move {
            match this.deliver(&cx, &payload).await {
                Ok(status) => Outcome::Done(Json::of(&json!({ "status": status }))),
                Err(failure) => Outcome::Failed(failure),
            }
        })
    }
}

impl Deliver {
    async fn deliver(&self, cx: &JobCx, payload: &Json) -> Result<u16, Failure> {
        let order: Order =
            serde_json::from_str(payload.as_str()).map_err(|e| Failure::new("invalid_payload", &e.to_string()))?;
        let test = order.event["kind"] == TEST_EVENT;
        let webhook = self.endpoint(cx, order.webhook).await?;
        if !test && !webhook.is_live() {
            return Err(Failure::new("webhook_disabled", "the webhook was disabled; enable it and requeue this"));
        }
        let parcel = self.parcel(cx, &order, &webhook)?;
        let url = webhook.url;
        let carried = self.carrier.carry(parcel).await;
        let how = match &carried {
            Ok(200..=299) => How::Delivered,
            Ok(410) => How::Gone,
            Ok(_) | Err(_) => How::Failed,
        };
        if !test {
            self.report(cx, Report { org: cx.job.org.clone(), id: order.webhook, url, how }).await;
        }
        match carried {
            Ok(status @ 200..=299) => Ok(status),
            Ok(410) => Err(Failure::new("endpoint_gone", "the endpoint answered 410: it is gone for good")),
            // A test tells at once how it went.
            Ok(status) if test => Err(Failure::new("endpoint_failed", &format!("the endpoint answered {status}"))),
            Ok(status) => Err(Failure::transient("endpoint_failed", &format!("the endpoint answered {status}"))),
            Err(why) if why.transient && !test => Err(Failure::transient(&why.code, &why.detail)),
            Err(why) => {
                Err(Failure { class: baton_core::retry::Class::Deterministic, ..Failure::new(&why.code, &why.detail) })
            }
        }
    }

    async fn endpoint(&self, cx: &JobCx, id: WebhookId) -> Result<Webhook, Failure> {
        let found = cx.store().doc(&cx.job.org, &Webhook::at(id)).await.map_err(|e| unavailable(&e))?;
        let webhook = found.as_ref().and_then(Webhook::of).filter(|webhook| webhook.deleted_at.is_none());
        webhook.ok_or_else(|| Failure::new("webhook_deleted", "the webhook does not exist any more"))
    }

    fn parcel(&self, cx: &JobCx, order: &Order, webhook: &Webhook) -> Result<Parcel, Failure> {
        if webhook.signer != self.signer.fingerprint() {
            let why = "this node does not hold the secret that the webhook is signed with; \
                       give all nodes the same seal key, or rotate the webhook's secret";
            return Err(Failure::transient("signed_elsewhere", why));
        }
        let (at, org) = (cx.at, &cx.job.org);
        let body = json!({
            "type": order.event["kind"],
            "timestamp": order.event.get("at").cloned().unwrap_or_else(|| json!(baton_wire::Time(at))),
            "data": order.event,
        });
        let body = body.to_string().into_bytes();
        let before = webhook.replaced.filter(|old| at < old.until).map(|old| old.version);
        let versions = [Some(webhook.secret), before].into_iter().flatten();
        let sign = |version| self.signer.secret(org, order.webhook, version).sign(&order.message, at, &body);
        let signatures = versions.map(sign).collect();
        let timestamp = sign::seconds(at);
        Ok(Parcel { url: webhook.url.clone(), message: order.message.clone(), timestamp, signatures, body })
    }

    /// What the endpoint is like matters less than what becomes of the letter: it is not sent again
    /// because this could not be said.
    async fn report(&self, cx: &JobCx, report: Report) {
        let id = report.id;
        if let Err(CommitError::Store(e)) = cx.store().commit(report, Actor::Engine).await {
            tracing::warn!(webhook = %id, %e, "how a delivery went could not be noted");
        }
    }
}

fn unavailable(e: &StoreError) -> Failure {
    Failure::transient(e.code(), "the store did not answer")
}
