//! What `sleep`, `wait` and `ask` are given.

use super::Doer;
use crate::decision::question::{BadQuestion, Question};
use crate::limits;
use crate::name::SignalName;
use crate::span::SpanText;
use serde::Deserialize;
use serde_json::Value;

/// Waits for a while.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object that says `for` how long")]
pub struct Sleep {
    #[serde(rename = "for")]
    pub span: SpanText,
}

/// Waits for a signal; for ever, unless it says `within` how long.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object that names a `signal`")]
pub struct Wait {
    pub signal: SignalName,
    #[serde(default)]
    pub within: Option<SpanText>,
}

#[derive(Debug, thiserror::Error)]
pub enum BadCall {
    #[error("{0}")]
    Shape(serde_json::Error),
    #[error(transparent)]
    Question(#[from] BadQuestion),
    #[error("a question needs a prompt: the text that people are asked")]
    NoPrompt,
    #[error("a question has at most {max} bytes", max = limits::QUESTION_BYTES)]
    LongQuestion,
}

impl Sleep {
    pub fn of(input: &Value) -> Result<Self, BadCall> {
        Self::deserialize(input).map_err(BadCall::Shape)
    }
}

impl Wait {
    pub fn of(input: &Value) -> Result<Self, BadCall> {
        Self::deserialize(input).map_err(BadCall::Shape)
    }
}

/// What people are asked.
pub fn question(input: &Value) -> Result<Question, BadCall> {
    let question = Question::of(input)?;
    if question.prompt.trim().is_empty() {
        return Err(BadCall::NoPrompt);
    }
    if input.to_string().len() > limits::QUESTION_BYTES {
        return Err(BadCall::LongQuestion);
    }
    Ok(question)
}

/// Whether whoever does a step understands its input. Declared tools take anything.
pub fn understands(doer: Doer, input: &Value) -> Result<(), BadCall> {
    match doer {
        Doer::Tool | Doer::Remote => Ok(()),
        Doer::Sleep => Sleep::of(input).map(drop),
        Doer::Wait => Wait::of(input).map(drop),
        Doer::Ask => question(input).map(drop),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn waiting_is_said_in_few_words() {
        assert!(Sleep::of(&json!({ "for": "1h30m" })).is_ok());
        assert!(Wait::of(&json!({ "signal": "go.now" })).is_ok_and(|wait| wait.within.is_none()));
        assert!(Wait::of(&json!({ "signal": "go", "within": "7d" })).is_ok());
        assert!(question(&json!({ "prompt": "Ship?", "version": "1.2", "withinMs": 1000 })).is_ok());
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for (doer, input) in [
            (Doer::Sleep, json!({})),
            (Doer::Sleep, json!("1h")),
            (Doer::Sleep, json!({ "for": 30 })),
            (Doer::Sleep, json!({ "for": "367d" })),
            (Doer::Sleep, json!({ "for": "1s", "until": "noon" })),
            (Doer::Wait, json!({})),
            (Doer::Wait, json!({ "signal": "a b" })),
            (Doer::Wait, json!({ "signal": "x".repeat(65) })),
            (Doer::Wait, json!({ "signal": "x", "within": "soon" })),
            (Doer::Ask, json!({})),
            (Doer::Ask, json!({ "prompt": " " })),
            (Doer::Ask, json!({ "prompt": "x", "options": [] })),
            (Doer::Ask, json!({ "prompt": "x", "evidence": "y".repeat(limits::QUESTION_BYTES) })),
        ] {
            assert!(understands(doer, &input).is_err(), "{doer:?} {input}");
        }
        assert!(understands(Doer::Tool, &json!([1])).is_ok());
    }
}
