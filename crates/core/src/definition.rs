//! Definitions: immutable versions of what work means. What uses one pins its version.
//!
//! The first kind is the job type. Versions are declared by whoever registers them; the same
//! version with other content is refused, so that a pinned version means one thing for ever.

use crate::canon::{Digest, Json};
use crate::changes::Changes;
use crate::command::{Command, Ctx, Decision, Reads, Refusal};
use crate::event::{Event, Head, Subject};
use crate::id::DefinitionId;
use crate::job::Kind;
use crate::name::{OrgId, TypeName};
use crate::time::Span;
use crate::world::View;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;

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

/// How jobs of one type are treated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobType {
    pub name: TypeName,
    pub version: u32,
    pub summary: String,
    /// Lower goes first.
    pub priority: i32,
    pub max_attempts: u32,
    /// How long a lease lasts without a heartbeat.
    pub lease: Span,
}

impl JobType {
    pub fn kind(&self) -> Kind {
        Kind { name: self.name.clone(), version: self.version }
    }

    pub fn register(&self) -> Register {
        Register {
            org: OrgId::system(),
            key: Key { class: Class::JobType, name: self.name.clone() },
            version: self.version,
            body: Json::of(&serde_json::to_value(self).unwrap_or_default()),
        }
    }
}

impl OrgId {
    pub fn system() -> Self {
        Self::reserved(SYSTEM_ORG)
    }
}

/// The definitions a node knows; handed to every decision.
#[derive(Clone, Debug, Default)]
pub struct Definitions {
    job_types: BTreeMap<TypeName, BTreeMap<u32, JobType>>,
}

impl Definitions {
    pub fn of(types: impl IntoIterator<Item = JobType>) -> Self {
        let mut all = Self::default();
        for t in types {
            all.job_types.entry(t.name.clone()).or_default().insert(t.version, t);
        }
        all
    }

    /// The newest version of a job type.
    pub fn newest(&self, name: &TypeName) -> Option<&JobType> {
        self.job_types.get(name)?.values().next_back()
    }

    pub fn pinned(&self, kind: &Kind) -> Option<&JobType> {
        self.job_types.get(&kind.name)?.get(&kind.version)
    }

    pub fn job_types(&self) -> impl Iterator<Item = &JobType> {
        self.job_types.values().flat_map(BTreeMap::values)
    }
}

/// Registers one version. Registering it again is a no-op.
#[derive(Clone, Debug)]
pub struct Register {
    pub org: OrgId,
    pub key: Key,
    pub version: u32,
    pub body: Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Registered {
    Now,
    Before,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegisterError {
    #[error(
        "{name} version {version} is already registered with other content; give the changed definition a new version"
    )]
    Changed { name: TypeName, version: u32 },
}

impl Refusal for RegisterError {
    fn code(&self) -> &'static str {
        "definition_changed"
    }
}

impl Command for Register {
    type Out = Registered;
    type No = RegisterError;

    fn org(&self) -> &OrgId {
        &self.org
    }

    fn reads(&self) -> Reads {
        Reads::definition(self.key.clone())
    }

    fn decide(&self, view: &View<'_>, cx: &mut Ctx<'_>) -> Decision<Registered, RegisterError> {
        let digest = self.body.digest();
        let known = view.definition(&self.key);
        if let Some(before) = known.and_then(|d| d.versions.get(&self.version)) {
            return if *before == digest {
                Decision::Done(Registered::Before, Changes::none())
            } else {
                Decision::Refused(RegisterError::Changed { name: self.key.name.clone(), version: self.version })
            };
        }
        let id = known.map_or_else(|| cx.ids.definition(), |d| d.id);
        let mut changes = Changes::none().event(Event {
            subject: Subject::Definition(id),
            kind: "definition.registered",
            data: Json::of(&json!({
                "class": self.key.class.as_str(),
                "name": self.key.name,
                "sha256": digest,
                "version": self.version,
            })),
        });
        changes.definitions.push(Change { key: self.key.clone(), id, version: self.version, body: self.body.clone() });
        Decision::Done(Registered::Now, changes)
    }
}
