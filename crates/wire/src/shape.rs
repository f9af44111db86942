//! The schemas of words that core owns: it says what is true, and knows nothing of documents.
//!
//! A field of such a type says `#[schemars(with = "Shape<JobId>")]`. Lengths, prefixes and words come
//! from core itself; what it only has as code, such as the characters of a name, is written here once
//! and compared with it in the tests.

use baton_core::access::Role;
use baton_core::canon::Digest;
use baton_core::credits::Credits;
use baton_core::cron::CatchUp;
use baton_core::decision::{Breach, Choice, ChoiceName};
use baton_core::dedupe::Mode;
use baton_core::id::{DecisionId, DocId, KeyId, WebhookId};
use baton_core::job::cancel::Strategy;
use baton_core::lane::LaneKey;
use baton_core::ledger;
use baton_core::name::{PlanName, Responsibility, ScheduleName, SessionId, SignalName, ToolName};
use baton_core::plan::{self, Doer, FailureMode};
use baton_core::retry::Class;
use baton_core::run::why::{self, What};
use baton_core::run::{self, AgentState, StepState, TaskState};
use baton_core::span::SpanText;
use baton_core::template::Template;
use baton_core::webhook::Pattern;
use baton_core::{AgentId, JobId, OrgId, ProjectId, RunId, TypeName};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use std::borrow::Cow;
use std::marker::PhantomData;

/// Stands for a `T` of core where a schema is made.
pub struct Shape<T>(PhantomData<T>);

/// A type of core that has a schema.
pub trait Shaped {
    /// What the schema is called in the document.
    const NAME: &'static str;

    fn shape(generator: &mut SchemaGenerator) -> Schema;
}

impl<T: Shaped> JsonSchema for Shape<T> {
    fn schema_name() -> Cow<'static, str> {
        T::NAME.into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::shape(generator)
    }
}

macro_rules! ids {
    ($($id:ident: $about:literal),* $(,)?) => {$(
        impl Shaped for $id {
            const NAME: &'static str = stringify!($id);

            fn shape(_: &mut SchemaGenerator) -> Schema {
                json_schema!({
                    "type": "string",
                    "description": $about,
                    "pattern": format!("^{}_[0-9a-f]{{32}}$", Self::PREFIX),
                })
            }
        }
    )*};
}

ids! {
    JobId: "The id of a job.",
    DocId: "The id of a schedule.",
    DecisionId: "The id of a decision.",
    KeyId: "The id of a key; it is no secret.",
    WebhookId: "The id of a webhook.",
    RunId: "The id of a run.",
    AgentId: "The id of an agent of a run.",
}

macro_rules! names {
    ($($name:ident: $class:literal, $about:literal),* $(,)?) => {$(
        impl Shaped for $name {
            const NAME: &'static str = stringify!($name);

            fn shape(_: &mut SchemaGenerator) -> Schema {
                json_schema!({
                    "type": "string",
                    "description": $about,
                    "pattern": concat!("^", $class, "+$"),
                    "minLength": 1,
                    "maxLength": Self::MAX,
                    "not": { "enum": [".", ".."] },
                })
            }
        }
    )*};
}

names! {
    OrgId: "[a-z0-9_-]", "The name of an org.",
    ProjectId: "[A-Za-z0-9._:-]", "The name of a project.",
    TypeName: "[a-z0-9._-]", "The name of a job type.",
    ScheduleName: "[A-Za-z0-9._-]", "The name of a schedule, unique in its project.",
    SessionId: "[A-Za-z0-9._:-]", "The name of a chat session.",
    Responsibility: "[A-Za-z0-9._-]", "Whose a decision is, such as `development_manager`.",
    ChoiceName: "[A-Za-z0-9_-]", "The name of an option.",
    PlanName: "[A-Za-z0-9_-]", "The name of a part of a plan, unique among its siblings.",
    ToolName: "[a-z0-9._-]", "The name of a tool.",
    SignalName: "[A-Za-z0-9._-]", "The name of a signal.",
}

impl Shaped for LaneKey {
    const NAME: &'static str = "LaneKey";

    fn shape(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "The name of a lane, such as `project:shop`; at most 200 bytes of UTF-8.",
            "pattern": "^[^\\u0000-\\u001f\\u007f-\\u009f]+$",
            "minLength": 1,
            "maxLength": Self::MAX,
        })
    }
}

impl Shaped for Pattern {
    const NAME: &'static str = "EventType";

    fn shape(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "A type of events, such as `job.completed`, or all that begin alike, such as `job.*`.",
            "pattern": "^[a-z_]+(\\.[a-z_]+)*(\\.\\*)?$",
            "maxLength": Self::MAX,
        })
    }
}

impl Shaped for Digest {
    const NAME: &'static str = "Digest";

    fn shape(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "description": "A SHA-256.", "pattern": "^[0-9a-f]{64}$" })
    }
}

impl Shaped for Role {
    const NAME: &'static str = "Role";

    fn shape(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "description": "What a key may do.", "enum": Self::ALL.map(Self::as_str) })
    }
}

impl Shaped for Credits {
    const NAME: &'static str = "Credits";

    fn shape(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "An amount of credits: digits with at most six decimals.",
            "pattern": "^[0-9]{1,12}(\\.[0-9]{1,6})?$",
        })
    }
}

impl Shaped for SpanText {
    const NAME: &'static str = "Span";

    fn shape(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "A length of time such as `30s` or `1h30m`, from 1ms to 366d: larger units first.",
            "pattern": "^([0-9]{1,3}d)?([0-9]{1,4}h)?([0-9]{1,6}m)?([0-9]{1,7}s)?([0-9]{1,9}ms)?$",
            "minLength": 2,
        })
    }
}

impl Shaped for Template {
    const NAME: &'static str = "KeyTemplate";

    fn shape(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "A key made from a job: text that may name `{project}`, `{session}` and `{payload.field}`.",
            "pattern": "^([^{}]|\\{(project|session|payload(\\.[^.{}]+)+)\\})+$",
            "maxLength": Self::MAX,
        })
    }
}

macro_rules! words {
    ($($type:ty as $name:literal: $about:literal, $words:expr);* $(;)?) => {$(
        impl Shaped for $type {
            const NAME: &'static str = $name;

            fn shape(_: &mut SchemaGenerator) -> Schema {
                let words: Vec<&str> = $words;
                json_schema!({ "type": "string", "description": $about, "enum": words })
            }
        }
    )*};
}

words! {
    run::State as "RunState": "Where a run stands.", Self::ALL.iter().map(|word| word.as_str()).collect();
    AgentState as "AgentState": "Where an agent stands.", Self::ALL.iter().map(|word| word.as_str()).collect();
    TaskState as "TaskState": "Where a task stands.", Self::ALL.iter().map(|word| word.as_str()).collect();
    StepState as "StepState": "Where a step stands.", Self::ALL.iter().map(|word| word.as_str()).collect();
    Class as "FailureClass": "Whether it may go better next time, would go wrong again, or can never go well.",
        vec!["transient", "deterministic", "fatal"];
    FailureMode as "FailureMode": "What a failure of a part does to the whole.",
        vec!["fail-fast", "continue", "retry"];
    plan::Effect as "StepEffect": "What calling a tool twice would do.", vec!["pure", "idempotent", "unsafe"];
    plan::Priority as "RunPriority": "How urgent a run is.", vec!["high", "normal"];
    Doer as "Doer": "Who does a step: a tool that the operator declared, or one that only waits.",
        vec!["tool", "remote", "sleep", "wait", "ask"];
    Mode as "DedupeMode": "What becomes of a job that was asked for before.",
        vec!["none", "single_flight", "drop_duplicate", "merge_duplicate"];
    Strategy as "CancelStrategy": "Whether a running job ends at once, or is told to and given time.",
        vec!["mark_canceled", "interrupt_turn"];
    ledger::Kind as "LedgerKind": "What an entry is for.", Self::ALL.iter().map(|word| word.as_str()).collect();
    why::Kind as "WhyKind": "What was asked about.", Self::ALL.iter().map(|word| word.as_str()).collect();
    What as "WaitingOn": "What something waits for.", Self::ALL.iter().map(|word| word.as_str()).collect();
}

/// Core's type again, for its shape alone.
macro_rules! mirror {
    ($($mirror:ident of $real:ident),* $(,)?) => {$(
        impl Shaped for $real {
            const NAME: &'static str = stringify!($real);

            fn shape(generator: &mut SchemaGenerator) -> Schema {
                $mirror::json_schema(generator)
            }
        }
    )*};
}

mirror!(CatchUpMirror of CatchUp, ChoiceMirror of Choice, BreachMirror of Breach);

/// What happens to moments that passed while nobody looked.
#[derive(JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "only its schema is used")]
enum CatchUpMirror {
    Skip,
    /// One job for all of them.
    One,
    /// A job for each, up to 100.
    All,
}

/// An option of a decision.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct ChoiceMirror {
    #[schemars(with = "Shape<ChoiceName>")]
    name: (),
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    effect: EffectMirror,
}

/// What an option does to whatever waits.
#[derive(JsonSchema)]
#[serde(rename = "Effect", rename_all = "snake_case")]
#[expect(dead_code, reason = "only its schema is used")]
enum EffectMirror {
    /// It goes on and is handed the answer.
    GoOn,
    /// It is cancelled.
    Cancel,
    /// It fails.
    Fail,
}

/// What happens when nobody has answered by the deadline.
#[derive(JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "only its schema is used")]
enum BreachMirror {
    /// It waits on, and is told to be overdue.
    Wait,
    Cancel,
    Fail,
    /// As if this option had been chosen.
    Choose(#[schemars(with = "Shape<ChoiceName>")] ()),
    /// Somebody else is asked.
    Escalate(EscalationMirror),
}

#[derive(JsonSchema)]
#[serde(rename = "Escalation", rename_all = "camelCase")]
#[expect(dead_code, reason = "only its schema is used")]
struct EscalationMirror {
    #[schemars(with = "Shape<Responsibility>")]
    to: (),
    /// How long they have; for ever, unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    within_ms: Option<u64>,
    #[schemars(with = "Shape<Breach>")]
    then: (),
}

#[cfg(test)]
mod tests;
