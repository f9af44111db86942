//! The worker protocol on the wire.

use crate::Object;
use crate::absent::{or_default, part, parts};
use crate::number::{optional, or_zero, required};
use crate::shape::Shape;
use crate::time::Time;
use baton_core::job::{self, Failure};
use baton_core::lane::LaneKey;
use baton_core::limits::{CODE_CHARS, ERROR_CHARS, JOBS_PER_COMMAND, NOTE_CHARS};
use baton_core::retry::Class;
use baton_core::{JobId, ProjectId, TypeName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Names in one ask.
pub const NAMES: usize = 64;
/// Jobs that one ask takes.
pub const LEASES: usize = 100;
/// Outcomes that are settled at once.
pub const OUTCOMES: usize = 100;
/// Leases that are beaten at once.
pub const BEATS: usize = JOBS_PER_COMMAND;
/// How long an ask may wait.
pub const WAIT_MS: u64 = 30_000;
/// Longest lease, and longest name of a worker.
pub const LEASE_CHARS: usize = 200;
pub const WORKER_CHARS: usize = 64;

/// A worker asks for jobs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "an object that says what to lease")]
pub struct LeaseJobs {
    #[schemars(with = "Vec<Shape<TypeName>>", length(min = 1, max = NAMES))]
    pub types: Vec<TypeName>,
    /// Only jobs of these lanes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<Shape<LaneKey>>>", length(min = 1, max = NAMES))]
    pub lanes: Option<Vec<Lane>>,
    /// Only jobs of these projects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<Shape<ProjectId>>>", length(min = 1, max = NAMES))]
    pub projects: Option<Vec<ProjectId>>,
    /// 1, unless given.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "optional")]
    #[schemars(range(min = 1, max = LEASES))]
    pub max: Option<usize>,
    /// How long to wait for the first; not at all, unless given.
    #[serde(default, deserialize_with = "or_zero")]
    #[schemars(with = "Option<u64>", range(max = WAIT_MS))]
    pub wait_ms: u64,
    /// What people shall call the worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = WORKER_CHARS), regex(pattern = "^[A-Za-z0-9._-]+$"))]
    pub worker: Option<String>,
    /// What is settled in the same commit.
    #[serde(default, deserialize_with = "parts", skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Option<Vec<Outcome>>", length(max = OUTCOMES))]
    pub settle: Vec<Outcome>,
}

/// A lane by its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Lane(pub LaneKey);

impl TryFrom<String> for Lane {
    type Error = baton_core::name::BadName;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse().map(Self)
    }
}

impl From<Lane> for String {
    fn from(lane: Lane) -> Self {
        lane.0.to_string()
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Leases {
    pub leases: Vec<LeasedJob>,
    /// What came of what was settled along with it, in its order.
    pub settled: Vec<SettledJob>,
}

/// A job in a worker's hands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LeasedJob {
    /// To be shown wherever something is said about the job.
    pub lease: String,
    /// How long it lasts without a heartbeat.
    pub lease_ms: u64,
    pub lease_until: Time,
    /// How long this execution may take in all; null is for ever.
    pub timeout_ms: Option<u64>,
    pub job: WorkersJob,
    pub payload: Object,
}

/// What a worker is told of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkersJob {
    #[schemars(with = "Shape<JobId>")]
    pub id: JobId,
    #[serde(rename = "type")]
    #[schemars(with = "Shape<TypeName>")]
    pub kind: TypeName,
    pub version: u32,
    #[schemars(with = "Shape<ProjectId>")]
    pub project_id: ProjectId,
    pub lane: String,
    pub priority: i32,
    /// Which execution this is, counted from one.
    pub attempt: u32,
    pub max_attempts: u32,
    pub failures: u32,
    pub created_at: Time,
    /// For parking: how often it was woken.
    pub wakes: i64,
    /// What a person answered, if it asked.
    pub answer: Option<Value>,
}

impl From<&job::Job> for WorkersJob {
    fn from(job: &job::Job) -> Self {
        Self {
            id: job.id,
            kind: job.kind.name.clone(),
            version: job.kind.version,
            project_id: job.project.clone(),
            lane: job.lane.key.to_string(),
            priority: job.priority,
            attempt: job.attempts,
            max_attempts: job.max_attempts,
            failures: job.failures,
            created_at: Time(job.created_at),
            wakes: job.wakes,
            answer: job.aside.as_ref().and_then(|aside| aside.answer.clone()),
        }
    }
}

/// A worker says what it still holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object with leases")]
pub struct Heartbeat {
    #[schemars(inner(length(max = LEASE_CHARS)), length(min = 1, max = BEATS))]
    pub leases: Vec<String>,
}

/// What a worker hears when it beats.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Beaten {
    /// No longer its own.
    pub lost: Vec<String>,
    /// Still its own, but somebody wants the job to end.
    pub cancelled: Vec<String>,
}

/// How far a job is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object with a lease and how far its job is")]
pub struct ReportProgress {
    #[schemars(length(max = LEASE_CHARS))]
    pub lease: String,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "optional")]
    #[schemars(range(max = 100))]
    pub percent: Option<u8>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = NOTE_CHARS))]
    pub note: Option<String>,
    /// What it works on outside.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "part")]
    pub context: Option<WorkContext>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct WorkContext {
    #[schemars(length(max = NOTE_CHARS))]
    pub thread_id: Option<String>,
    #[schemars(length(max = NOTE_CHARS))]
    pub turn_id: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProgressHeard {
    pub cancel_requested: bool,
}

/// What a worker can say in the end: alone with its lease, or as one of many outcomes.
macro_rules! said {
    ($($(#[$doc:meta])* $alone:ident, $one:ident { $($fields:tt)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        pub struct $alone {
            #[schemars(length(max = LEASE_CHARS))]
            pub lease: String,
            $($fields)*
        }

        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        pub struct $one {
            $($fields)*
        }
    )*};
}

said! {
    /// The job is done.
    CompleteJob, Complete {
        /// What it came to; nothing, unless given.
        #[serde(default, deserialize_with = "or_default")]
        #[schemars(with = "Option<Object>")]
        pub result: Object,
    }

    /// The job went wrong.
    FailJob, Fail {
        #[schemars(length(min = 1, max = CODE_CHARS))]
        pub code: String,
        #[serde(default, deserialize_with = "or_default")]
        #[schemars(with = "Option<String>", length(max = ERROR_CHARS))]
        pub message: String,
        /// Whether it may go better next time; as the code says, unless given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(with = "Option<Shape<Class>>")]
        pub class: Option<Class>,
        /// For calls of tools: false says that nothing was done outside, so that an unsafe step may be tried again
        /// without asking people.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub acted: Option<bool>,
    }

    /// The job waits without a worker.
    ParkJob, Park {
        /// So long at most; until it is woken, unless given.
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "optional")]
        #[schemars(range(max = PARK_MS))]
        pub for_ms: Option<u64>,
        /// How often it had been woken when it was handed out: its `wakes`. Not 0 unless given: once woken, a job that
        /// is parked so would be due at once for ever.
        #[serde(deserialize_with = "required")]
        pub seen: u64,
    }

    /// The job asks people, and waits for their answer.
    AskPeople, AskQuestion {
        pub question: Object,
    }

    /// The job is given back, unfinished and through no fault of its own.
    ReleaseJob, Release {}
}

/// Longest a job may say that it waits.
pub const PARK_MS: u64 = 366 * 24 * 60 * 60 * 1_000;

impl Fail {
    pub fn failure(&self) -> Failure {
        let plain = Failure::new(&self.code, &self.message);
        Failure { class: self.class.unwrap_or(plain.class), idle: self.acted == Some(false), ..plain }
    }
}

/// What came of one of many jobs: exactly one of the five.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("oneOf" = one_of()))]
pub struct Outcome {
    #[schemars(length(max = LEASE_CHARS))]
    pub lease: String,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "part")]
    pub complete: Option<Complete>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "part")]
    pub fail: Option<Fail>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "part")]
    pub park: Option<Park>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "part")]
    pub ask: Option<AskQuestion>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "part")]
    pub release: Option<Release>,
}

fn one_of() -> Value {
    let with = |word: &str| json!({ "required": [word], "properties": { word: { "type": "object" } } });
    json!(["complete", "fail", "park", "ask", "release"].map(with))
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object with a list of outcomes")]
pub struct SettleJobs {
    #[serde(deserialize_with = "parts")]
    #[schemars(length(min = 1, max = OUTCOMES))]
    pub outcomes: Vec<Outcome>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Settled {
    Now,
    /// This very lease was settled before.
    Already,
}

/// What settling one job came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SettledOne {
    pub settled: Settled,
}

/// What settling one of many came to: settled, or why it was not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SettledJob {
    pub lease: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled: Option<Settled>,
    /// Stable, as in problems.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SettledJobs {
    /// In the order of the outcomes.
    pub settled: Vec<SettledJob>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_no_outcome() {
        let read = |value: Value| serde_json::from_value::<SettleJobs>(value);
        assert!(read(json!({ "outcomes": [{ "lease": "x", "release": {} }] })).is_ok());
        for bad in
            [json!([["x"]]), json!([{ "lease": "x", "release": [] }]), json!([{ "lease": "x", "complete": [{}] }])]
        {
            assert!(read(json!({ "outcomes": bad })).is_err(), "{bad}");
        }
    }
}
