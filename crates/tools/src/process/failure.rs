//! Why a call of a program has no result.

use serde::Deserialize;
use std::borrow::Cow;
use std::time::Duration;

/// The message may hold what the program wrote to its stderr.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ToolFailure {
    /// One of [`CODES`], or one that the program has given itself.
    pub code: Cow<'static, str>,
    pub message: String,
    pub class: Class,
    /// Whether the program may have done something. If in doubt: yes.
    pub may_have_acted: bool,
    /// The program asked not to be called again before.
    pub retry_after: Option<Duration>,
}

/// What kind a failure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// May go better next time.
    Transient,
    /// Goes the same way next time.
    Deterministic,
    /// Whatever the call is part of cannot go on.
    Fatal,
}

/// Every code that a program has not given itself.
pub const CODES: [&str; 12] = [
    TIMEOUT,
    TOOL_CRASHED,
    INVALID_OUTPUT,
    RATE_LIMITED,
    DEPENDENCY_MISSING,
    OUT_OF_MEMORY,
    OUTPUT_TOO_LARGE,
    FILE_TOO_LARGE,
    INPUT_TOO_LARGE,
    CANCELLED,
    NOT_STARTED,
    KEEPER_LOST,
];

pub(super) const TIMEOUT: &str = "timeout";
pub(super) const TOOL_CRASHED: &str = "tool_crashed";
pub(super) const INVALID_OUTPUT: &str = "invalid_output";
pub(super) const RATE_LIMITED: &str = "rate_limited";
pub(super) const DEPENDENCY_MISSING: &str = "dependency_missing";
pub(super) const OUT_OF_MEMORY: &str = "out_of_memory";
pub(super) const OUTPUT_TOO_LARGE: &str = "output_too_large";
pub(super) const FILE_TOO_LARGE: &str = "file_too_large";
pub(super) const INPUT_TOO_LARGE: &str = "tool_input_too_large";
pub(super) const CANCELLED: &str = "cancelled";
pub(super) const NOT_STARTED: &str = "not_started";
pub(super) const KEEPER_LOST: &str = "keeper_lost";

impl ToolFailure {
    /// Of a program that ran, so that it may have acted.
    pub(super) fn ran(code: &'static str, class: Class, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into(), class, may_have_acted: true, retry_after: None }
    }

    /// Of a program that was never started.
    pub(super) fn never_ran(code: &'static str, class: Class, message: impl Into<String>) -> Self {
        Self { may_have_acted: false, ..Self::ran(code, class, message) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_explained_and_every_explained_code_exists() {
        let text = include_str!("../../../../docs/errors.md");
        let headings = |text: &'static str| text.lines().filter_map(|line| line.strip_prefix("### "));
        for code in CODES {
            assert!(headings(text).any(|heading| heading == code), "{code} is not explained");
        }
        let start = text.find("\n## Failures of tools\n").expect("the section exists") + 4;
        let rest = &text[start..];
        let end = rest.find("\n## ").unwrap_or(rest.len());
        for heading in headings(&rest[..end]) {
            assert!(CODES.contains(&heading), "{heading} does not exist");
        }
    }
}
