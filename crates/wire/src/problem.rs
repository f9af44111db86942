//! What went wrong, for programs and for people (RFC 9457).

use serde::{Deserialize, Serialize};

/// The body of every error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
}

impl Problem {
    pub const CONTENT_TYPE: &'static str = "application/problem+json";

    /// The page that explains a code.
    pub fn page(code: &str) -> String {
        format!("/docs/errors#{code}")
    }
}
