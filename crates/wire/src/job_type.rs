//! Job types on the wire, and in the configuration: the same fields in both.

use crate::Object;
use crate::absent::{or_default, part};
use crate::number::optional;
use crate::priority::PriorityNumber;
use crate::shape::Shape;
use baton_core::TypeName;
use baton_core::dedupe::{self, Mode};
use baton_core::definition::{Entry, JobType as Core, Served, Timeout};
use baton_core::job::cancel::{self, Strategy};
use baton_core::lane::{self, Limit};
use baton_core::limits::{JOB_TYPE_ATTEMPTS, LANE_DEPTH, LANE_LIMIT, SUMMARY_CHARS};
use baton_core::retry;
use baton_core::span::SpanText;
use baton_core::template::Template;
use baton_core::time::Span;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::Value;
use std::borrow::Cow;

/// What a type is like. Everything can be left out; the configuration writes names with underscores.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default, expecting = "an object with the fields of a job type")]
pub struct NewJobType {
    /// What it does, for people.
    #[serde(deserialize_with = "or_default")]
    #[schemars(with = "Option<String>", length(max = SUMMARY_CHARS))]
    pub summary: String,
    /// Of jobs that say nothing; `background`, unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<PriorityNumber>,
    /// Executions of a job, crashes included; the configured number, unless given.
    #[serde(alias = "max_attempts", skip_serializing_if = "Option::is_none", deserialize_with = "optional")]
    #[schemars(range(min = 1, max = JOB_TYPE_ATTEMPTS))]
    pub max_attempts: Option<u32>,
    /// How long a lease lasts without a heartbeat; `30s`, unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Shape<SpanText>>")]
    pub lease: Option<SpanText>,
    /// How long one execution may take, or `never`; as long as the configuration says, unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<TimeLimit>,
    /// Where its jobs wait; the lane of their project, one at a time, unless given.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "part")]
    pub lane: Option<LaneRule>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "part")]
    pub dedupe: Option<DedupeRule>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "part")]
    pub retry: Option<RetryRule>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "part")]
    pub cancel: Option<CancelRule>,
    /// JSON Schema of payloads.
    #[serde(alias = "payload_schema", skip_serializing_if = "Option::is_none")]
    pub payload_schema: Option<Object>,
    /// JSON Schema of results.
    #[serde(alias = "result_schema", skip_serializing_if = "Option::is_none")]
    pub result_schema: Option<Object>,
}

/// A lane of the type's own choosing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LaneRule {
    /// Its name, made from a job: `mail:{payload.to}`.
    #[schemars(with = "Shape<Template>")]
    pub key: Template,
    /// Jobs at the same time; any number, unless given.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "optional")]
    #[schemars(range(min = 1, max = LANE_LIMIT))]
    pub limit: Option<u32>,
    /// Jobs that may wait in it; any number, unless given.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "optional")]
    #[schemars(range(min = 1, max = LANE_DEPTH))]
    pub depth: Option<u32>,
}

/// What becomes of jobs that were asked for before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DedupeRule {
    #[schemars(with = "Shape<Mode>")]
    pub mode: Mode,
    /// What duplicates have in common: `{payload.orderId}`.
    #[schemars(with = "Shape<Template>")]
    pub key: Template,
}

/// When a job that failed is tried again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct RetryRule {
    /// After the first failure, doubled with each further one; `1s`, unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Shape<SpanText>>")]
    pub base: Option<SpanText>,
    /// Never longer than this; `1m`, unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Shape<SpanText>>")]
    pub max: Option<SpanText>,
    /// Spreads the delays by a tenth either way; so, unless told otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<bool>,
    /// Failures that a job may report; as many as attempts, unless given.
    #[serde(alias = "max_failures", skip_serializing_if = "Option::is_none", deserialize_with = "optional")]
    #[schemars(range(min = 1, max = JOB_TYPE_ATTEMPTS))]
    pub max_failures: Option<u32>,
}

/// How a running job is cancelled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CancelRule {
    #[schemars(with = "Shape<Strategy>")]
    pub strategy: Strategy,
    /// How long an interrupted job may take to end; `5s`, unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Shape<SpanText>>")]
    pub grace: Option<SpanText>,
}

/// A length of time, or `never`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeLimit {
    Never,
    After(SpanText),
}

const NEVER: &str = "never";

impl Serialize for TimeLimit {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Never => s.serialize_str(NEVER),
            Self::After(span) => span.serialize(s),
        }
    }
}

impl<'de> Deserialize<'de> for TimeLimit {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        if text == NEVER {
            return Ok(Self::Never);
        }
        text.parse().map(Self::After).map_err(|e| de::Error::custom(format!("{e}, or never")))
    }
}

impl JsonSchema for TimeLimit {
    fn schema_name() -> Cow<'static, str> {
        "TimeLimit".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let span = generator.subschema_for::<Shape<SpanText>>();
        json_schema!({ "anyOf": [{ "const": NEVER }, span] })
    }
}

impl NewJobType {
    /// With every default filled in. Its version is counted where it is registered.
    pub fn named(self, name: TypeName) -> Core {
        let plain = Core::new(name, 1, &self.summary);
        let span = |text: Option<SpanText>, or: Span| text.map_or(or, SpanText::span);
        let value = |object: Option<Object>| object.map(Value::Object);
        Core {
            priority: self.priority.map_or(plain.priority, PriorityNumber::get),
            max_attempts: self.max_attempts,
            lease: span(self.lease, plain.lease),
            timeout: match self.timeout {
                None => Timeout::Configured,
                Some(TimeLimit::Never) => Timeout::Never,
                Some(TimeLimit::After(text)) => Timeout::After(text.span()),
            },
            lane: self.lane.map_or(lane::Rule::Project, |rule| lane::Rule::Own {
                key: rule.key,
                limit: rule.limit.map_or(Limit::None, Limit::At),
                depth: rule.depth,
            }),
            dedupe: self.dedupe.map_or_else(dedupe::Rule::default, |rule| match rule.mode {
                Mode::None => dedupe::Rule::default(),
                mode => dedupe::Rule { mode, key: Some(rule.key) },
            }),
            retry: self.retry.map_or_else(retry::Policy::default, |rule| retry::Policy {
                max_failures: rule.max_failures,
                base: span(rule.base, plain.retry.base),
                max: span(rule.max, plain.retry.max),
                jitter: rule.jitter.unwrap_or(plain.retry.jitter),
            }),
            cancel: self.cancel.map_or_else(cancel::Rule::default, |rule| cancel::Rule {
                strategy: rule.strategy,
                grace: span(rule.grace, plain.cancel.grace),
            }),
            payload_schema: value(self.payload_schema),
            result_schema: value(self.result_schema),
            ..plain
        }
    }
}

/// Who does the jobs of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ServedBy {
    /// The server itself.
    Server,
    /// Whoever leases them over the worker protocol.
    Workers,
}

/// A job type as it is shown: one version of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobType {
    #[serde(rename = "type")]
    #[schemars(with = "Shape<TypeName>")]
    pub name: TypeName,
    pub version: u32,
    pub served_by: ServedBy,
    pub summary: String,
    pub priority: PriorityNumber,
    /// Null is as many as the configuration says.
    pub max_attempts: Option<u32>,
    #[schemars(with = "Shape<SpanText>")]
    pub lease: SpanText,
    /// Null is as long as the configuration says.
    pub timeout: Option<TimeLimit>,
    /// Null is the lane of the project.
    pub lane: Option<LaneRule>,
    pub dedupe: Option<DedupeRule>,
    pub retry: RetryRule,
    pub cancel: CancelRule,
    pub payload_schema: Option<Value>,
    pub result_schema: Option<Value>,
}

impl JobType {
    pub fn of(kind: &Core, served: Served) -> Self {
        let span = |span: Span| SpanText::new(span);
        Self {
            name: kind.name.clone(),
            version: kind.version,
            served_by: if served == Served::Here { ServedBy::Server } else { ServedBy::Workers },
            summary: kind.summary.clone(),
            priority: PriorityNumber::kept(kind.priority),
            max_attempts: kind.max_attempts,
            lease: span(kind.lease).unwrap_or(SpanText::LONGEST),
            timeout: match kind.timeout {
                Timeout::Configured => None,
                Timeout::Never => Some(TimeLimit::Never),
                Timeout::After(after) => Some(span(after).map_or(TimeLimit::Never, TimeLimit::After)),
            },
            lane: match &kind.lane {
                lane::Rule::Project => None,
                lane::Rule::Own { key, limit, depth } => {
                    let limit = match limit {
                        Limit::None => None,
                        Limit::At(max) => Some(*max),
                    };
                    Some(LaneRule { key: key.clone(), limit, depth: *depth })
                }
            },
            dedupe: kind.dedupe.key.clone().map(|key| DedupeRule { mode: kind.dedupe.mode, key }),
            retry: RetryRule {
                base: span(kind.retry.base),
                max: span(kind.retry.max),
                jitter: Some(kind.retry.jitter),
                max_failures: kind.retry.max_failures,
            },
            cancel: CancelRule { strategy: kind.cancel.strategy, grace: span(kind.cancel.grace) },
            payload_schema: kind.payload_schema.clone(),
            result_schema: kind.result_schema.clone(),
        }
    }
}

impl From<&Entry> for JobType {
    fn from(entry: &Entry) -> Self {
        Self::of(&entry.job_type, entry.served)
    }
}

/// The newest version of each type that there is for the org, by name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobTypeList {
    pub job_types: Vec<JobType>,
    pub next_cursor: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_put_is_what_is_shown() {
        let said = json!({
            "summary": "sends mail", "priority": "interactive", "maxAttempts": 3, "lease": "10s", "timeout": "never",
            "lane": { "key": "mail:{payload.to}", "limit": 2, "depth": 100 },
            "dedupe": { "mode": "single_flight", "key": "{payload.id}" },
            "retry": { "base": "2s", "max": "1m", "jitter": false, "maxFailures": 2 },
            "cancel": { "strategy": "interrupt_turn", "grace": "5s" },
            "payloadSchema": { "type": "object" },
        });
        let new: NewJobType = serde_json::from_value(said.clone()).unwrap();
        let core = new.named("mail".parse().unwrap());
        let shown = serde_json::to_value(JobType::of(&core, Served::ByWorkers)).unwrap();
        for (field, value) in said.as_object().unwrap() {
            assert_eq!(&shown[field], value, "{field}");
        }
        assert_eq!((&shown["type"], &shown["servedBy"]), (&json!("mail"), &json!("workers")));
    }

    #[test]
    fn nothing_said_is_everything_at_its_default() {
        let core = NewJobType::default().named("mail".parse().unwrap());
        assert_eq!(core, Core::new("mail".parse().unwrap(), 1, ""));
        for bad in [
            json!({ "colour": 1 }),
            json!({ "lease": "soon" }),
            json!({ "lane": { "key": "{x}" } }),
            json!({ "retry": [null] }),
        ] {
            assert!(serde_json::from_value::<NewJobType>(bad.clone()).is_err(), "{bad}");
        }
    }
}
