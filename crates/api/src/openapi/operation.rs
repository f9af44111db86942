//! What a route says about itself. Every entry of the route table has one of these.
//!
//! What follows from the entry is not repeated here: whoever asks for a right can answer
//! `unauthenticated`, whoever has a body `invalid_json`, and so on ([`super::codes`]).

use super::parameter::Param;
use baton_wire::{Object, Problem};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::Value;

/// Makes a schema, or a reference to one.
pub type Make = fn(&mut SchemaGenerator) -> Schema;

/// What operations are grouped by, in the order in which they are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tag {
    Jobs,
    JobTypes,
    Workers,
    Runs,
    Credits,
    Orchestrator,
    DeadLetters,
    Lanes,
    Schedules,
    Decisions,
    Events,
    Webhooks,
    Access,
    Installation,
    Documents,
}

impl Tag {
    pub const ALL: [Self; 15] = [
        Self::Jobs,
        Self::JobTypes,
        Self::Workers,
        Self::Runs,
        Self::Credits,
        Self::Orchestrator,
        Self::DeadLetters,
        Self::Lanes,
        Self::Schedules,
        Self::Decisions,
        Self::Events,
        Self::Webhooks,
        Self::Access,
        Self::Installation,
        Self::Documents,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Jobs => "Jobs",
            Self::JobTypes => "Job types",
            Self::Workers => "Workers",
            Self::Runs => "Runs",
            Self::Credits => "Credits",
            Self::Orchestrator => "Orchestrator",
            Self::DeadLetters => "Dead letters",
            Self::Lanes => "Lanes",
            Self::Schedules => "Schedules",
            Self::Decisions => "Decisions",
            Self::Events => "Events",
            Self::Webhooks => "Webhooks",
            Self::Access => "Access",
            Self::Installation => "Installation",
            Self::Documents => "Documents",
        }
    }

    pub const fn about(self) -> &'static str {
        match self {
            Self::Jobs => "Pieces of queued work, from their request to their end.",
            Self::JobTypes => {
                "What work means: its schemas, its lane, how it is tried again. Every change is a version."
            }
            Self::Workers => "The worker protocol: programs that take jobs over HTTP and say what came of them.",
            Self::Runs => "Agents at work on one plan and one budget.",
            Self::Credits => "What an org has to spend, and every entry of it.",
            Self::Orchestrator => "Jobs in the orchestrator's words: the same jobs, other names for their states.",
            Self::DeadLetters => "Jobs that failed for good and were not requeued.",
            Self::Lanes => "How many jobs of one key may run at once.",
            Self::Schedules => "Jobs that come again and again.",
            Self::Decisions => "What people are asked, and their answers.",
            Self::Events => "What happened, in order, and while it happens.",
            Self::Webhooks => "Endpoints that are told what happens, signed by the Standard Webhooks scheme.",
            Self::Access => "Keys and orgs: who may come in.",
            Self::Installation => "About the whole installation: its history, its health, its numbers.",
            Self::Documents => "These pages.",
        }
    }
}

/// A piece of text or JSON to look at.
pub struct Example {
    pub name: &'static str,
    pub value: Value,
}

pub struct Body {
    pub schema: Make,
    /// Whether it can be left empty.
    pub optional: bool,
    /// The same as YAML, where that is understood.
    pub yaml: Option<&'static str>,
    pub examples: Vec<Example>,
}

/// What stands in an answer.
pub enum Content {
    Nothing,
    Json { schema: Make, examples: Vec<Example> },
    Text { media: &'static str, about: &'static str, example: &'static str },
}

/// Where one can go on from a success: to these operations, with these of its values as parameters.
pub struct Link {
    pub to: &'static [&'static str],
    pub from: &'static [(&'static str, &'static str)],
}

/// A success.
pub struct Answer {
    pub status: u16,
    pub about: &'static str,
    pub content: Content,
}

pub struct Operation {
    pub id: &'static str,
    pub tag: Tag,
    pub summary: &'static str,
    pub about: &'static str,
    pub params: Vec<Param>,
    pub body: Option<Body>,
    /// Takes an `Idempotency-Key`.
    pub keyed: bool,
    pub answers: Vec<Answer>,
    /// What it refuses with, besides what follows from the rest.
    pub codes: Vec<&'static str>,
    pub links: Vec<Link>,
}

impl Operation {
    pub fn new(id: &'static str, tag: Tag, summary: &'static str) -> Self {
        Self {
            id,
            tag,
            summary,
            about: "",
            params: Vec::new(),
            body: None,
            keyed: false,
            answers: Vec::new(),
            codes: Vec::new(),
            links: Vec::new(),
        }
    }

    #[must_use]
    pub fn about(self, about: &'static str) -> Self {
        Self { about, ..self }
    }

    #[must_use]
    pub fn takes(mut self, params: impl IntoIterator<Item = Param>) -> Self {
        self.params.extend(params);
        self
    }

    /// A body that must be there, and may be said again under a key.
    #[must_use]
    pub fn body<T: JsonSchema>(self, name: &'static str, example: Value) -> Self {
        let examples = vec![Example { name, value: example }];
        Self {
            body: Some(Body { schema: |g| g.subschema_for::<T>(), optional: false, yaml: None, examples }),
            keyed: true,
            ..self
        }
    }

    /// The body may also be YAML.
    #[must_use]
    pub fn or_yaml(self, example: &'static str) -> Self {
        Self { body: self.body.map(|body| Body { yaml: Some(example), ..body }), ..self }
    }

    /// A body that may be left empty.
    #[must_use]
    pub fn body_or_none<T: JsonSchema>(self, name: &'static str, example: Value) -> Self {
        let operation = self.body::<T>(name, example);
        Self { body: operation.body.map(|body| Body { optional: true, ..body }), ..operation }
    }

    /// No body, or an empty object.
    #[must_use]
    pub fn bare(self) -> Self {
        self.body_or_none::<Nothing>("nothing", Value::Object(Object::new()))
    }

    /// Putting and deleting twice is doing it once: no key is needed.
    #[must_use]
    pub fn unkeyed(self) -> Self {
        Self { keyed: false, ..self }
    }

    #[must_use]
    pub fn answers<T: JsonSchema>(self, status: u16, about: &'static str, example: Value) -> Self {
        let examples = vec![Example { name: "answer", value: example }];
        self.answer(status, about, Content::Json { schema: |g| g.subschema_for::<T>(), examples })
    }

    #[must_use]
    pub fn answer(mut self, status: u16, about: &'static str, content: Content) -> Self {
        self.answers.push(Answer { status, about, content });
        self
    }

    #[must_use]
    pub fn leads(mut self, to: &'static [&'static str], from: &'static [(&'static str, &'static str)]) -> Self {
        self.links.push(Link { to, from });
        self
    }

    #[must_use]
    pub fn refuses(mut self, codes: &[&'static str]) -> Self {
        self.codes.extend_from_slice(codes);
        self
    }
}

/// An empty object.
#[derive(JsonSchema)]
#[serde(deny_unknown_fields)]
struct Nothing {}

/// A problem as every refusal has it.
pub fn problem(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<Problem>()
}
