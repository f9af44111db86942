//! What went wrong, for programs and for people (RFC 9457).

use crate::shape::Shape;
use baton_core::credits::Credits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The body of every error.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// Where the code is explained, relative to the server.
    #[serde(rename = "type")]
    pub kind: String,
    pub title: String,
    /// The HTTP status; absent where no server was involved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// What is wrong with this request.
    pub detail: String,
    /// Stable: programs may depend on it.
    pub code: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    #[serde(flatten)]
    pub members: Members,
}

/// What some problems say besides.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Members {
    /// Which one of a list, counted from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<usize>,
    /// How many may wait where it is full.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// How many do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting: Option<u32>,
    /// After how long it is worth asking again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u32>,
    /// The state that something is in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The state that it cannot go to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The states that it can go to instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed: Option<Vec<String>>,
    /// Credits that would have to be there.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Shape<Credits>>")]
    pub needed: Option<Credits>,
    /// Credits that are.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Shape<Credits>>")]
    pub available: Option<Credits>,
    /// All that is wrong with a run document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problems: Option<Vec<DocumentProblem>>,
}

/// One thing that is wrong with a run document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DocumentProblem {
    /// A JSON pointer, such as `/plan/agents/0/tasks/1/steps/0/tool`.
    pub path: String,
    /// Stable: programs may depend on it.
    pub code: String,
    pub message: String,
    /// Where that stands in the text that was sent, both counted from 1.
    pub line: u32,
    pub column: u32,
}

impl Problem {
    pub const CONTENT_TYPE: &'static str = "application/problem+json";

    /// The page that explains a code.
    pub fn page(code: &str) -> String {
        format!("/docs/errors#{code}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn members_stand_beside_the_other_fields_and_only_if_they_are_known() {
        let plain = json!({ "type": "t", "title": "", "detail": "d", "code": "c" });
        let read: Problem = serde_json::from_value(plain.clone()).unwrap();
        assert_eq!(read.members, Members::default());
        assert_eq!(serde_json::to_value(&read).unwrap(), plain);
        let full = Members { index: Some(3), retry_after_ms: Some(1_000), ..Members::default() };
        let said = serde_json::to_value(Problem { members: full.clone(), ..read }).unwrap();
        assert_eq!((&said["index"], &said["retryAfterMs"]), (&json!(3), &json!(1000)));
        assert_eq!(serde_json::from_value::<Problem>(said).unwrap().members, full);
    }
}
