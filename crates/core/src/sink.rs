//! Sinks: what a job type's hooks leave behind. Rows by key, written in the commit of the
//! transition that they tell of, so that replaying one replaces its row and never adds another.

use crate::canon::Json;

/// Largest value of a row, as canonical JSON text.
pub const VALUE_BYTES: usize = 512 * 1024;
/// Longest space and key.
pub const KEY_CHARS: usize = 300;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// What kind of row it is, such as `transcript`.
    pub space: String,
    pub key: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub key: Key,
    pub value: Json,
}

impl Row {
    pub fn new(space: &str, key: &str, value: &serde_json::Value) -> Self {
        Self { key: Key { space: space.to_owned(), key: key.to_owned() }, value: Json::of(value) }
    }

    /// A hook that returns anything else is wrong, and leaves nothing.
    pub fn fits(&self) -> bool {
        let name = |text: &str| !text.is_empty() && text.chars().count() <= KEY_CHARS && !text.contains('\0');
        name(&self.key.space) && name(&self.key.key) && self.value.len() <= VALUE_BYTES
    }
}
