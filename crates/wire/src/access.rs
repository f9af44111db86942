//! Keys and orgs.

use crate::absent::or_default;
use crate::number::or_zero;
use crate::shape::Shape;
use crate::time::Time;
use baton_core::access::key::GRACE_MAX;
use baton_core::access::{Grant, Key as Kept, Role};
use baton_core::id::KeyId;
use baton_core::limits::{GRANT_NAMES, LABEL_CHARS};
use baton_core::name::Responsibility;
use baton_core::{OrgId, ProjectId, TypeName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// A key as it is shown; its secret never is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Key {
    #[schemars(with = "Shape<KeyId>")]
    pub id: KeyId,
    pub label: String,
    #[schemars(with = "Shape<Role>")]
    pub role: Role,
    #[schemars(with = "BTreeSet<Shape<Responsibility>>")]
    pub responsibilities: BTreeSet<Responsibility>,
    /// `null` reaches all projects.
    #[schemars(with = "Option<BTreeSet<Shape<ProjectId>>>")]
    pub projects: Option<BTreeSet<ProjectId>>,
    /// `null` reaches all job types.
    #[schemars(with = "Option<BTreeSet<Shape<TypeName>>>")]
    pub types: Option<BTreeSet<TypeName>>,
    pub created_at: Time,
    pub expires_at: Option<Time>,
    pub rotated_at: Option<Time>,
    pub revoked_at: Option<Time>,
}

impl Key {
    pub fn of(id: KeyId, key: &Kept) -> Self {
        Self {
            id,
            label: key.label.clone(),
            role: key.grant.role,
            responsibilities: key.grant.responsibilities.clone(),
            projects: key.grant.projects.clone(),
            types: key.grant.types.clone(),
            created_at: Time(key.created_at),
            expires_at: key.expires_at.map(Time),
            rotated_at: key.rotated_at.map(Time),
            revoked_at: key.revoked_at.map(Time),
        }
    }
}

/// A key that was just made, with the text that is shown this once.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MadeKey {
    #[serde(flatten)]
    pub key: Key,
    /// Not said again when the request is repeated.
    pub secret: Option<String>,
}

impl std::fmt::Debug for MadeKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MadeKey").field("key", &self.key).finish_non_exhaustive()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KeyList {
    pub keys: Vec<Key>,
    pub next_cursor: Option<String>,
}

/// A key to make.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "an object with the fields of a key")]
pub struct NewKey {
    /// What people call it; printable, and not blank.
    #[schemars(length(min = 1, max = LABEL_CHARS))]
    pub label: String,
    #[schemars(with = "Shape<Role>")]
    pub role: Role,
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeSet::is_empty")]
    #[schemars(with = "Option<Vec<Shape<Responsibility>>>", length(max = GRANT_NAMES))]
    pub responsibilities: BTreeSet<Responsibility>,
    /// All, unless given; not for admins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<Shape<ProjectId>>>", length(min = 1, max = GRANT_NAMES))]
    pub projects: Option<BTreeSet<ProjectId>>,
    /// All, unless given; not for admins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<Shape<TypeName>>>", length(min = 1, max = GRANT_NAMES))]
    pub types: Option<BTreeSet<TypeName>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,
}

impl NewKey {
    pub fn grant(&self) -> Grant {
        Grant {
            role: self.role,
            responsibilities: self.responsibilities.clone(),
            projects: self.projects.clone(),
            types: self.types.clone(),
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default, expecting = "an object that says how to rotate")]
pub struct RotateKey {
    /// How long the old secret is accepted beside the new one; not at all, unless given.
    #[serde(deserialize_with = "or_zero")]
    #[schemars(with = "Option<u64>", range(max = GRACE_MAX.0 / 1_000))]
    pub grace_ms: u64,
}

/// An org to found, with its first admin key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "an object with the fields of an org")]
pub struct NewOrg {
    #[schemars(with = "Shape<OrgId>")]
    pub org: OrgId,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FoundedOrg {
    #[schemars(with = "Shape<OrgId>")]
    pub org: OrgId,
    pub key: MadeKey,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OrgList {
    /// By name.
    #[schemars(with = "Vec<Shape<OrgId>>")]
    pub orgs: Vec<OrgId>,
    /// Where the list goes on; null at the end.
    pub next_cursor: Option<String>,
}

/// Who somebody is, as the server sees them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Me {
    #[schemars(with = "Shape<OrgId>")]
    pub org: OrgId,
    pub key: Key,
    /// What this key may do.
    pub rights: Vec<String>,
}
