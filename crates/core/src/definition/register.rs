//! Registering a version that whoever registers it has numbered.

use super::{Change, Definitions, Key};
use crate::canon::Json;
use crate::changes::Changes;
use crate::command::{Command, Ctx, Decision, Reads, Refusal};
use crate::event::{Event, Subject};
use crate::id::DefinitionId;
use crate::name::{OrgId, TypeName};
use crate::world::View;
use serde_json::json;

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

    fn reads(&self, _: &Definitions) -> Reads {
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
        Decision::Done(Registered::Now, added(&self.key, id, self.version, &self.body))
    }
}

/// A version more.
pub(super) fn added(key: &Key, id: DefinitionId, version: u32, body: &Json) -> Changes {
    let data = json!({
        "class": key.class.as_str(),
        "name": key.name,
        "sha256": body.digest(),
        "version": version,
    });
    let mut changes = Changes::none().event(Event::new(Subject::Definition(id), "definition.registered", data));
    changes.definitions.push(Change { key: key.clone(), id, version, body: body.clone() });
    changes
}
