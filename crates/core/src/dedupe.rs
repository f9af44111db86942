//! Not doing twice what was asked for twice.

use crate::canon::Digest;
use crate::name::{ProjectId, TypeName};
use crate::template::{Facts, Template};
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    #[default]
    None,
    /// While one has not ended, asking again gives that one.
    SingleFlight,
    /// The same, and also after it has completed, for as long as it is kept.
    DropDuplicate,
    /// What waits takes the new payload in; what runs gets one follow-up.
    MergeDuplicate,
    /// There is one for each key, however it ends, for as long as it is kept. For what Baton does for itself.
    Once,
}

/// How duplicates are told and what becomes of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    pub mode: Mode,
    /// A job for which it cannot be filled in has no duplicates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Template>,
}

impl Rule {
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    pub fn key(&self, kind: &TypeName, facts: &Facts<'_>) -> Option<Key> {
        if self.mode == Mode::None {
            return None;
        }
        let text = self.key.as_ref()?.fill(facts).ok()?;
        Some(Key { kind: kind.clone(), text: fitting(text) })
    }
}

/// Longest key that is stored as it is; a longer one is replaced by its digest.
const KEY_MAX: usize = 512;

fn fitting(text: String) -> String {
    if text.len() <= KEY_MAX && !text.contains('\0') {
        return text;
    }
    format!("sha256:{}", Digest::of(&[text.as_bytes()]))
}

/// What duplicates have in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    pub kind: TypeName,
    pub text: String,
}

impl Key {
    /// The same inside of a project.
    pub(crate) fn within(self, project: &ProjectId) -> Self {
        Self { text: fitting(format!("{project}/{}", self.text)), ..self }
    }
}

/// JSON merge patch: fields of `patch` replace those of `target`, null removes one.
pub fn merge_patch(target: &Value, patch: &Value) -> Value {
    let Value::Object(fields) = patch else { return patch.clone() };
    let mut merged = target.as_object().cloned().unwrap_or_default();
    for (name, value) in fields {
        if value.is_null() {
            merged.remove(name);
        } else {
            let before = merged.get(name).cloned().unwrap_or_default();
            merged.insert(name.clone(), merge_patch(&before, value));
        }
    }
    Value::Object(merged)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn merging_follows_the_rules_of_merge_patch() {
        for (target, patch, merged) in [
            (json!({ "a": "b" }), json!({ "a": "c" }), json!({ "a": "c" })),
            (json!({ "a": "b" }), json!({ "b": "c" }), json!({ "a": "b", "b": "c" })),
            (json!({ "a": "b", "b": "c" }), json!({ "a": null }), json!({ "b": "c" })),
            (json!({ "a": ["b"] }), json!({ "a": "c" }), json!({ "a": "c" })),
            (json!({ "a": { "b": "c" } }), json!({ "a": { "b": "d", "c": null } }), json!({ "a": { "b": "d" } })),
            (json!(["a"]), json!({ "a": 1 }), json!({ "a": 1 })),
            (json!({ "a": 1 }), json!(["c"]), json!(["c"])),
        ] {
            assert_eq!(merge_patch(&target, &patch), merged);
        }
    }
}
