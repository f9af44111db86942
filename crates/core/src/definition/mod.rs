//! Definitions: immutable versions of what work means. What uses one pins its version.
//!
//! The first kind is the job type. Versions are declared by whoever registers them; the same
//! version with other content is refused, so that a pinned version means one thing for ever. Where people
//! change a type, versions are counted for them (`put`).

mod known;
mod put;
mod register;

use crate::canon::{Digest, Json};
use crate::event::Head;
use crate::id::DefinitionId;
use crate::job::{self, Failure, Job, Kind, cancel};
use crate::name::{OrgId, TypeName};
use crate::rules::Rules;
use crate::time::Span;
use crate::{dedupe, lane, retry, sink};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

pub use known::{Definitions, Entry, Served};
pub use put::{PutJobType, PutTypeError, Registration};
pub use register::{Register, RegisterError, Registered};

/// Built-in definitions belong to no tenant; they stand under this org.
pub const SYSTEM_ORG: &str = "baton";

/// What kind of thing is defined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    JobType,
}

impl Class {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::JobType => "job_type",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        (text == Self::JobType.as_str()).then_some(Self::JobType)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    pub class: Class,
    pub name: TypeName,
}

/// A name with all that was registered under it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    pub id: DefinitionId,
    pub versions: BTreeMap<u32, Digest>,
    pub head: Head,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub key: Key,
    pub id: DefinitionId,
    pub version: u32,
    pub body: Json,
}

/// How jobs of one type are treated: data, so that it can be stored and shown.
///
/// What is at its default is left out of the stored text: a field that comes later does not change
/// what earlier versions were registered as.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobType {
    pub name: TypeName,
    pub version: u32,
    pub summary: String,
    /// Lower goes first.
    pub priority: i32,
    /// Executions; the configured number, unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<u32>,
    /// How long a lease lasts without a heartbeat.
    pub lease: Span,
    #[serde(default, skip_serializing_if = "lane::Rule::is_default")]
    pub lane: lane::Rule,
    #[serde(default, skip_serializing_if = "dedupe::Rule::is_default")]
    pub dedupe: dedupe::Rule,
    #[serde(default, skip_serializing_if = "retry::Policy::is_default")]
    pub retry: retry::Policy,
    #[serde(default, skip_serializing_if = "Timeout::is_default")]
    pub timeout: Timeout,
    #[serde(default, skip_serializing_if = "cancel::Rule::is_default")]
    pub cancel: cancel::Rule,
    #[serde(default, skip_serializing_if = "AtStop::is_default")]
    pub at_stop: AtStop,
    /// Only the engine asks for such jobs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub internal: bool,
    /// JSON Schema; anything is accepted without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_schema: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_schema: Option<Value>,
}

/// How long one execution may take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Timeout {
    /// As long as the configuration says.
    #[default]
    Configured,
    Never,
    After(Span),
}

impl Timeout {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// What becomes of a job that still runs when its node has waited long enough to stop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AtStop {
    /// Somebody else, or a later life, goes on with it.
    #[default]
    GiveBack,
    /// It ends as cancelled.
    Cancel,
}

impl AtStop {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl JobType {
    /// With everything at its default.
    pub fn new(name: TypeName, version: u32, summary: &str) -> Self {
        Self {
            name,
            version,
            summary: summary.to_owned(),
            priority: job::BACKGROUND,
            max_attempts: None,
            lease: Span::secs(30),
            lane: lane::Rule::default(),
            dedupe: dedupe::Rule::default(),
            retry: retry::Policy::default(),
            timeout: Timeout::default(),
            cancel: cancel::Rule::default(),
            at_stop: AtStop::default(),
            internal: false,
            payload_schema: None,
            result_schema: None,
        }
    }

    pub fn kind(&self) -> Kind {
        Kind { name: self.name.clone(), version: self.version }
    }

    pub fn register(&self) -> Register {
        Register {
            org: OrgId::system(),
            key: Key { class: Class::JobType, name: self.name.clone() },
            version: self.version,
            body: self.body(),
        }
    }

    /// As it is stored.
    pub fn body(&self) -> Json {
        Json::of(&serde_json::to_value(self).unwrap_or_default())
    }

    /// How much room its schemas take, which is where a type can be large.
    pub(crate) fn schema_size(&self) -> usize {
        let size = |schema: &Option<Value>| schema.as_ref().map_or(0, |schema| schema.to_string().len());
        size(&self.payload_schema) + size(&self.result_schema)
    }

    /// How long one execution may take; `None` is for ever.
    pub fn timeout(&self, rules: &Rules) -> Option<Span> {
        match self.timeout {
            Timeout::Configured => Some(rules.timeout),
            Timeout::Never => None,
            Timeout::After(span) => Some(span),
        }
    }

    /// Whether taking a job in looks at its payload.
    pub(crate) fn looks_inside(&self) -> bool {
        !self.lane.is_default() || !self.dedupe.is_default() || self.payload_schema.is_some()
    }
}

impl OrgId {
    pub fn system() -> Self {
        Self::reserved(SYSTEM_ORG)
    }
}

/// Says whether a value has the shape that a schema asks for.
pub trait Shape: Send + Sync {
    /// An error says where it does not fit, and why.
    fn check(&self, value: &Value) -> Result<(), String>;
}

/// A moment in a job's life that a hook hears of.
#[derive(Clone, Copy, Debug)]
pub enum Moment<'a> {
    Queued,
    Started,
    Completed(&'a Json),
    Failed(&'a Failure),
    Canceled(&'a str),
}

/// The code of a job type that takes part in decisions: pure, like everything here.
pub trait Hooks: Send + Sync {
    /// The payload of a waiting job after a duplicate was merged into it.
    fn merge(&self, waiting: &Value, incoming: &Value) -> Value {
        dedupe::merge_patch(waiting, incoming)
    }

    /// Rows to write in the commit of the move. An effect in the outside world is another job.
    fn sink(&self, job: &Job, payload: &Json, moment: Moment<'_>) -> Vec<sink::Row>;
}
