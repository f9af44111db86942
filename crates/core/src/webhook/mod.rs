//! Webhooks: endpoints of an org that are told what happens.
//!
//! An endpoint has a place in the history. Moving it past some events and enqueueing a delivery for
//! each of them that is wanted is one commit, so every wanted event becomes one delivery, whoever
//! reads the history and however often. A delivery is a job like any other: tried again, given up,
//! listed and pruned as jobs are.
//!
//! Invariants
//! - The flag of its document says that it is told things: neither disabled nor deleted.
//! - What happens to deliveries is not delivered.
//! - No secret is in the document: it is derived from a key that the database does not hold.
//!
//! Elsewhere: reading the history and sending (`baton-engine`).

pub mod change;
pub mod dispatch;
pub mod filter;
pub mod report;
pub mod sign;
pub mod try_out;

use crate::canon::Json;
use crate::changes::Changes;
use crate::definition::JobType;
use crate::doc::{self, Doc};
use crate::event::{Event, Head};
use crate::id::{DocId, WebhookId};
use crate::job::enqueue::{Enqueue, Origin};
use crate::lane::{LaneKey, Limit, Rule};
use crate::name::{OrgId, ProjectId, TypeName};
use crate::retry;
use crate::template::Template;
use crate::time::{Micros, Span};
pub use filter::{Filter, Pattern};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The type of deliveries.
pub const DELIVER: &str = "webhook.deliver";
/// What an endpoint is sent to try it out.
pub const TEST_EVENT: &str = "webhook.test";
/// Deliveries to one endpoint at once.
const AT_ONCE: u32 = 4;
/// How often a delivery is tried: over about three hours.
const ATTEMPTS: u32 = 12;
const BACKOFF: retry::Policy =
    retry::Policy { max_failures: None, base: Span::secs(5), max: Span::secs(3_600), jitter: true };

/// Why an endpoint is not told anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// Somebody wanted it so.
    Asked,
    /// It says that it is gone for good.
    Gone,
    /// Nothing has reached it for too long.
    Failing,
}

impl Why {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Asked => "asked",
            Self::Gone => "gone",
            Self::Failing => "failing",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disabled {
    pub at: Micros,
    pub why: Why,
}

/// A secret that was replaced and is still signed with for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replaced {
    pub version: u32,
    pub until: Micros,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Webhook {
    /// What people call it.
    pub label: String,
    pub url: String,
    pub filter: Filter,
    pub created_at: Micros,
    /// Which of its secrets it signs with: see [`sign`].
    pub secret: u32,
    #[serde(default)]
    pub replaced: Option<Replaced>,
    /// Which signer its secrets come from.
    pub signer: String,
    /// How far in the history it was told everything, as the store writes it.
    pub place: String,
    /// Attempts in a row that failed, and since when.
    #[serde(default)]
    pub failures: u32,
    #[serde(default)]
    pub failing_since: Option<Micros>,
    #[serde(default)]
    pub disabled: Option<Disabled>,
    #[serde(default)]
    pub deleted_at: Option<Micros>,
}

impl Webhook {
    pub fn at(id: WebhookId) -> doc::Key {
        doc::Key { class: doc::Class::Webhook, key: id.to_string() }
    }

    /// Also of one that was deleted.
    pub fn of(doc: &Doc) -> Option<Self> {
        serde_json::from_str(doc.body.as_str()).ok()
    }

    /// The project that its deliveries are listed under.
    pub fn project(id: WebhookId) -> ProjectId {
        let name = format!("webhook-{}", id.0.simple());
        name.parse().unwrap_or_else(|e| unreachable!("{name}: {e}"))
    }

    /// The lane of its deliveries.
    pub fn lane(id: WebhookId) -> Option<LaneKey> {
        LaneKey::new(&format!("webhook:{}", Self::project(id))).ok()
    }

    pub const fn is_live(&self) -> bool {
        self.disabled.is_none() && self.deleted_at.is_none()
    }

    fn doc(&self, id: WebhookId, head: Head) -> doc::Change {
        // Text keys only, so this cannot fail.
        let body = Json::of(&serde_json::to_value(self).unwrap_or_default());
        doc::Change::Put(Self::at(id), Doc { id: DocId(id.0), flag: self.is_live(), body, head })
    }

    /// Writes it and tells of it. The address is told as a digest: it may hold a token.
    fn put(&self, id: WebhookId, head: Head, kind: &'static str) -> Changes {
        let told = json!({
            "label": self.label,
            "reason": self.disabled.map(|disabled| disabled.why),
            "url_sha256": Json::of(&Value::from(self.url.as_str())).digest(),
        });
        let event = Event::new(doc::Class::Webhook.subject(DocId(id.0)), kind, told);
        Changes::none().doc(self.doc(id, head)).event(event)
    }
}

/// How deliveries are treated.
pub fn job_type() -> JobType {
    let key = Template::new("webhook:{project}").unwrap_or_else(|e| unreachable!("{e}"));
    JobType {
        internal: true,
        lane: Rule::Own { key, limit: Limit::At(AT_ONCE), depth: None },
        max_attempts: Some(ATTEMPTS),
        retry: BACKOFF,
        ..JobType::new(deliver(), 1, "tells a webhook what happened")
    }
}

/// One thing to tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Letter {
    /// What the other side tells repetitions by.
    pub message: String,
    /// The event as everybody is shown it.
    pub event: Value,
}

fn order(org: &OrgId, id: WebhookId, kind: &TypeName, letter: &Letter) -> Enqueue {
    let payload = json!({ "event": letter.event, "message": letter.message, "webhook": id });
    Enqueue {
        origin: Origin::Engine,
        ..Enqueue::new(org.clone(), Webhook::project(id), kind.clone(), Json::of(&payload))
    }
}

fn deliver() -> TypeName {
    DELIVER.parse().unwrap_or_else(|e| unreachable!("{e}"))
}
