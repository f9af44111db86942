//! Text that people write, as JSON that remembers where everything stood.
//!
//! YAML 1.2 with its core scalars, one document, and none of what makes a short text long or one text mean two things:
//! no anchors, no aliases, no tags, no key twice. JSON is read by its own rules, not as YAML.

mod json;
mod yaml;

use baton_core::limits::DOCUMENT_BYTES;
use serde_json::Value;
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Yaml,
    Json,
}

/// Where something stands, both counted from 1, columns in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub line: u32,
    pub column: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct SourceError {
    pub line: u32,
    pub column: u32,
    pub message: String,
}

/// Lists and objects inside each other, at most.
pub const DEPTH: usize = 64;

impl SourceError {
    fn at(place: Place, message: impl Into<String>) -> Self {
        Self { line: place.line, column: place.column, message: message.into() }
    }

    fn too_deep(place: Place) -> Self {
        Self::at(place, format!("there are more than {DEPTH} lists and objects inside each other"))
    }

    fn twice(place: Place, key: &str) -> Self {
        let key: String = key.chars().take(40).collect();
        Self::at(place, format!("the key {key:?} stands twice"))
    }
}

/// Where the values of a document stand.
#[derive(Clone, Debug)]
pub struct Positions(Node);

/// A value's place: a field's is that of its name.
#[derive(Clone, Debug)]
struct Node {
    place: Place,
    inside: Inside,
}

#[derive(Clone, Debug)]
enum Inside {
    Nothing,
    List(Vec<Node>),
    Object(BTreeMap<String, Node>),
}

impl Positions {
    /// Where a JSON pointer leads; if there is nothing, as near as it gets.
    pub fn at(&self, pointer: &str) -> Place {
        let mut node = &self.0;
        for token in pointer.split('/').skip(1) {
            let next = match &node.inside {
                Inside::Nothing => None,
                Inside::List(items) => token.parse::<usize>().ok().and_then(|n| items.get(n)),
                Inside::Object(fields) => fields.get(&token.replace("~1", "/").replace("~0", "~")),
            };
            match next {
                Some(next) => node = next,
                None => break,
            }
        }
        node.place
    }
}

/// Reads a document of at most [`DOCUMENT_BYTES`].
pub fn read(text: &str, format: Format) -> Result<(Value, Positions), SourceError> {
    if text.len() > DOCUMENT_BYTES {
        let start = Place { line: 1, column: 1 };
        return Err(SourceError::at(start, format!("the document is larger than {DOCUMENT_BYTES} bytes")));
    }
    // Some editors begin a file with a mark that says nothing.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (value, node) = match format {
        Format::Yaml => yaml::read(text)?,
        Format::Json => json::read(text)?,
    };
    Ok((value, Positions(node)))
}

#[cfg(test)]
mod tests;
