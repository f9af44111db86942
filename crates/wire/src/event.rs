//! The history as readers get it.

use crate::shape::Shape;
use crate::time::Time;
use baton_core::canon::Digest;
use baton_core::event::{Recorded, Subject};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// As `after`: only what happens from now on.
pub const TAIL: &str = "tail";

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// Reading goes on after this one with `after=`.
    pub cursor: String,
    /// What it happened to, such as `job_…`.
    pub subject: String,
    /// Counts 1, 2, 3 … per subject.
    pub n: i64,
    pub at: Time,
    /// Such as `job.completed`.
    pub kind: String,
    /// Who did it.
    pub actor: String,
    pub data: Value,
    /// Over the event and the hash of the subject's event before it.
    #[schemars(with = "Shape<Digest>")]
    pub hash: Digest,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventList {
    pub events: Vec<Event>,
    /// Always present; the one asked with if there is nothing new.
    pub next: String,
}

impl Event {
    pub fn new(cursor: String, recorded: &Recorded) -> Self {
        // A kind that this version does not know still has a subject to show.
        let subject = Subject::of(&recorded.kind, recorded.subject)
            .map_or_else(|| recorded.subject.simple().to_string(), |subject| subject.to_string());
        Self {
            cursor,
            subject,
            n: recorded.n,
            at: Time(recorded.at),
            kind: recorded.kind.clone(),
            actor: recorded.actor.clone(),
            data: recorded.data.value(),
            hash: recorded.hash,
        }
    }
}
