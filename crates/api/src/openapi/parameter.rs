//! Parameters: where they stand, and what they may be.

use super::operation::Make;
use baton_core::id::{DecisionId, KeyId, WebhookId};
use baton_core::lane::LaneKey;
use baton_core::limits::IDEMPOTENCY_KEY_CHARS;
use baton_core::name::ScheduleName;
use baton_core::{AgentId, JobId, ProjectId, RunId, TypeName};
use baton_wire::shape::{Shape, Shaped};
use baton_wire::{Order, limit};
use schemars::json_schema;
use serde_json::{Value, json};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Path,
    Query,
    Header,
}

impl Place {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Query => "query",
            Self::Header => "header",
        }
    }
}

pub struct Param {
    pub name: &'static str,
    pub place: Place,
    pub about: &'static str,
    pub schema: Make,
    pub example: Option<Value>,
}

impl Param {
    pub fn to_json(&self, schema: Value) -> Value {
        let mut shown = json!({
            "name": self.name,
            "in": self.place.as_str(),
            "description": self.about,
            "required": self.place == Place::Path,
            "schema": schema,
        });
        if let Some(example) = &self.example {
            shown["example"] = example.clone();
        }
        shown
    }
}

fn shape<T: Shaped>(name: &'static str, place: Place, about: &'static str, example: &str) -> Param {
    Param { name, place, about, schema: |g| g.subschema_for::<Shape<T>>(), example: Some(json!(example)) }
}

pub fn path<T: Shaped>(name: &'static str, about: &'static str, example: &str) -> Param {
    shape::<T>(name, Place::Path, about, example)
}

pub fn query<T: Shaped>(name: &'static str, about: &'static str, example: &str) -> Param {
    shape::<T>(name, Place::Query, about, example)
}

/// One whose schema is written where it is used.
pub fn query_as(name: &'static str, about: &'static str, schema: Make) -> Param {
    Param { name, place: Place::Query, about, schema, example: None }
}

pub fn header(name: &'static str, about: &'static str, schema: Make) -> Param {
    Param { name, place: Place::Header, about, schema, example: None }
}

pub fn webhook_id() -> Param {
    path::<WebhookId>("webhookId", "Which webhook.", super::example::WEBHOOK_ID)
}

pub fn job_id() -> Param {
    path::<JobId>("jobId", "Which job.", super::example::JOB_ID)
}

pub fn run_id() -> Param {
    path::<RunId>("runId", "Which run.", super::example::RUN_ID)
}

pub fn agent_id() -> Param {
    path::<AgentId>("agentId", "Which agent.", super::example::AGENT_ID)
}

pub fn project_id() -> Param {
    path::<ProjectId>("projectId", "Whose they are.", "demo")
}

pub fn only_project() -> Param {
    query::<ProjectId>("projectId", "Only those of this project.", "demo")
}

pub fn schedule() -> [Param; 2] {
    [project_id(), path::<ScheduleName>("name", "Which schedule.", "morning")]
}

/// In a path dots alone mean a directory.
pub fn lane() -> Param {
    let schema: Make = |g| {
        let mut schema = g.subschema_for::<Shape<LaneKey>>();
        schema.insert("not".to_owned(), json!({ "enum": [".", ".."] }));
        schema
    };
    Param { schema, ..path::<LaneKey>("lane", "Which lane; percent-encoded.", "project:demo") }
}

pub fn key_id() -> Param {
    path::<KeyId>("keyId", "Which key.", super::example::KEY_ID)
}

pub fn decision_id() -> Param {
    path::<DecisionId>("decisionId", "Which decision.", super::example::DECISION_ID)
}

/// Opaque on purpose: what is refused is only one that was not handed out.
pub fn cursor() -> Param {
    query_as(
        "cursor",
        "A `nextCursor` of this list in this order, as it was handed out.",
        |_| json_schema!({ "type": "string", "minLength": 1 }),
    )
}

pub fn order_by_time() -> Param {
    order("By when they were made; `desc`, unless given: the newest first.", |_| order_schema(Order::Desc))
}

pub fn order_by_name() -> Param {
    order("By name; `asc`, unless given.", |_| order_schema(Order::Asc))
}

fn order(about: &'static str, schema: Make) -> Param {
    query_as("order", about, schema)
}

fn order_schema(default: Order) -> schemars::Schema {
    json_schema!({ "type": "string", "enum": Order::ALL.map(Order::as_str), "default": default.as_str() })
}

pub fn only_type() -> Param {
    query::<TypeName>("type", "Only those of this job type.", "echo")
}

pub fn limit_jobs() -> Param {
    query_as(
        "limit",
        "At most so many; a page may be shorter and still have a `nextCursor`.",
        |_| json_schema!({ "type": "integer", "minimum": 1, "maximum": limit::JOBS, "default": limit::JOBS_DEFAULT }),
    )
}

pub fn limit_names() -> Param {
    query_as(
        "limit",
        "At most so many; a page may be shorter and still have a `nextCursor`.",
        |_| json_schema!({ "type": "integer", "minimum": 1, "maximum": limit::NAMES, "default": limit::NAMES_DEFAULT }),
    )
}

/// What is kept under a key commits with the effect: see `docs/api.md`.
pub fn idempotency_key() -> Param {
    let about = "Names this request: repeated within 24 hours with the same body, it does nothing twice and is \
                 answered as it was the first time.";
    header("Idempotency-Key", about, |_| {
        json_schema!({
            "type": "string",
            "pattern": "^[!-~]([ -~]*[!-~])?$",
            "minLength": 1,
            "maxLength": IDEMPOTENCY_KEY_CHARS,
        })
    })
}
