//! Webhooks: endpoints that are told what happens.

use crate::absent::or_default;
use crate::job::Job;
use crate::number::or_zero;
use crate::shape::Shape;
use crate::state::JobState;
use crate::time::Time;
use baton_core::id::WebhookId;
use baton_core::limits::{GRANT_NAMES, LABEL_CHARS, URL_BYTES};
use baton_core::webhook::change::{GRACE_MAX, Spec};
use baton_core::webhook::{Filter, Pattern, Webhook as Kept};
use baton_core::{JobId, ProjectId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Webhook {
    #[schemars(with = "Shape<WebhookId>")]
    pub id: WebhookId,
    pub label: String,
    pub url: String,
    /// `null` is all of them.
    #[schemars(with = "Option<BTreeSet<Shape<Pattern>>>")]
    pub types: Option<BTreeSet<Pattern>>,
    /// `null` is all of them, and what belongs to no project.
    #[schemars(with = "Option<BTreeSet<Shape<ProjectId>>>")]
    pub projects: Option<BTreeSet<ProjectId>>,
    pub enabled: bool,
    pub disabled_at: Option<Time>,
    /// `asked`, `gone` or `failing`.
    pub disabled_why: Option<String>,
    /// Attempts in a row that failed.
    pub failures: u32,
    pub failing_since: Option<Time>,
    /// How far in the history it was told everything.
    pub cursor: String,
    pub created_at: Time,
}

impl Webhook {
    pub fn of(id: WebhookId, kept: &Kept) -> Self {
        Self {
            id,
            label: kept.label.clone(),
            url: kept.url.clone(),
            types: kept.filter.types.clone(),
            projects: kept.filter.projects.clone(),
            enabled: kept.is_live(),
            disabled_at: kept.disabled.map(|off| Time(off.at)),
            disabled_why: kept.disabled.map(|off| off.why.as_str().to_owned()),
            failures: kept.failures,
            failing_since: kept.failing_since.map(Time),
            cursor: kept.place.clone(),
            created_at: Time(kept.created_at),
        }
    }
}

/// One with the secret that it signs with, shown this once.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MadeWebhook {
    #[serde(flatten)]
    pub webhook: Webhook,
    /// Not said again when the request is repeated.
    pub secret: Option<String>,
}

impl std::fmt::Debug for MadeWebhook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MadeWebhook").field("webhook", &self.webhook).finish_non_exhaustive()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WebhookList {
    pub webhooks: Vec<Webhook>,
    pub next_cursor: Option<String>,
}

/// A webhook as it is wanted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "an object with the fields of a webhook")]
pub struct NewWebhook {
    /// What people call it; printable, and not blank.
    #[schemars(length(min = 1, max = LABEL_CHARS))]
    pub label: String,
    /// `https://`, or `http://`, which anybody on the way can read.
    #[schemars(length(min = 1, max = URL_BYTES))]
    pub url: String,
    /// Such as `job.completed` or `job.*`; all, unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<Shape<Pattern>>>", length(min = 1, max = GRANT_NAMES))]
    pub types: Option<BTreeSet<Pattern>>,
    /// All, unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<Shape<ProjectId>>>", length(min = 1, max = GRANT_NAMES))]
    pub projects: Option<BTreeSet<ProjectId>>,
}

impl NewWebhook {
    pub fn spec(&self) -> Spec {
        let filter = Filter { types: self.types.clone(), projects: self.projects.clone() };
        Spec { label: self.label.clone(), url: self.url.clone(), filter }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default, expecting = "an object that says how to rotate")]
pub struct RotateWebhook {
    /// How long it also signs with the old secret; not at all, unless given.
    #[serde(deserialize_with = "or_zero")]
    #[schemars(with = "Option<u64>", range(max = GRACE_MAX.0 / 1_000))]
    pub grace_ms: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default, expecting = "an object that says how to enable it")]
pub struct EnableWebhook {
    /// Begin with what happens from now on, instead of where it stopped.
    #[serde(deserialize_with = "or_default")]
    #[schemars(with = "Option<bool>")]
    pub skip_missed: bool,
}

/// One event on its way to one webhook: a job, which can be cancelled and requeued as such.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Delivery {
    #[schemars(with = "Shape<JobId>")]
    pub id: JobId,
    /// The `webhook-id` that it is sent with.
    pub message: String,
    /// Such as `job.completed`.
    pub event: String,
    pub state: JobState,
    pub attempts: u32,
    pub max_attempts: u32,
    /// What it was answered with, once it was accepted.
    pub status: Option<u16>,
    /// What went wrong last.
    pub error: Option<String>,
    pub created_at: Time,
    /// When it is tried again.
    pub due_at: Option<Time>,
    pub completed_at: Option<Time>,
}

impl Delivery {
    /// Nothing, of a job that is no delivery.
    pub fn of(job: &Job) -> Option<Self> {
        let status = job.result.as_ref().and_then(|result| result["status"].as_u64());
        Some(Self {
            id: job.id,
            message: job.payload["message"].as_str()?.to_owned(),
            event: job.payload["event"]["kind"].as_str()?.to_owned(),
            state: job.state,
            attempts: job.attempts,
            max_attempts: job.max_attempts,
            status: status.and_then(|status| u16::try_from(status).ok()),
            error: job.error.clone().or_else(|| job.last_error.clone()),
            created_at: job.created_at,
            due_at: job.due_at,
            completed_at: job.completed_at,
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeliveryList {
    pub deliveries: Vec<Delivery>,
    pub next_cursor: Option<String>,
}

/// A delivery that was asked for to see whether it arrives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Tried {
    #[schemars(with = "Shape<JobId>")]
    pub job_id: JobId,
}
