//! What is asked: as a handler says it, and as it is understood.

use crate::limits;
use crate::name::{BadName, Responsibility};
use crate::time::Span;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// The name of an option.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ChoiceName(String);

impl ChoiceName {
    pub const MAX: usize = 64;

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ChoiceName {
    type Err = BadName;

    fn from_str(text: &str) -> Result<Self, BadName> {
        let ok = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
        if text.is_empty() || text.len() > Self::MAX || !text.bytes().all(ok) {
            return Err(BadName { what: "an option", max: Self::MAX, allowed: "letters, digits, _ and -" });
        }
        Ok(Self(text.to_owned()))
    }
}

impl TryFrom<String> for ChoiceName {
    type Error = BadName;

    fn try_from(text: String) -> Result<Self, BadName> {
        text.parse()
    }
}

impl From<ChoiceName> for String {
    fn from(name: ChoiceName) -> Self {
        name.0
    }
}

impl fmt::Display for ChoiceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ChoiceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What an option does to whatever waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// It goes on and is handed the answer.
    #[default]
    GoOn,
    /// It is cancelled.
    Cancel,
    /// It fails.
    Fail,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Choice {
    pub name: ChoiceName,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    #[serde(default)]
    pub effect: Effect,
}

/// What happens when nobody has answered by the deadline.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Breach {
    /// It waits on, and is told to be overdue.
    Wait,
    Cancel,
    #[default]
    Fail,
    /// As if this option had been chosen.
    Choose(ChoiceName),
    /// Somebody else is asked.
    Escalate(Box<Escalation>),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Escalation {
    pub to: Responsibility,
    /// How long they have; for ever, unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within_ms: Option<u64>,
    #[serde(default)]
    pub then: Breach,
}

/// As a handler writes it. What is not named here is evidence like everything else.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Written {
    prompt: String,
    responsibility: Option<Responsibility>,
    options: Vec<Choice>,
    within_ms: Option<u64>,
    on_breach: Breach,
}

impl Default for Written {
    fn default() -> Self {
        Self {
            prompt: String::new(),
            responsibility: None,
            options: yes_or_no(),
            within_ms: None,
            on_breach: Breach::default(),
        }
    }
}

fn yes_or_no() -> Vec<Choice> {
    let named = |name: &str| Choice { name: ChoiceName(name.to_owned()), label: None, effect: Effect::GoOn };
    vec![named("confirm"), named("decline")]
}

/// As it is understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    pub prompt: String,
    pub responsibility: Option<Responsibility>,
    pub options: Vec<Choice>,
    pub within: Option<Span>,
    pub on_breach: Breach,
    /// All that was said.
    pub whole: Value,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadQuestion(String);

impl Question {
    pub fn of(whole: &Value) -> Result<Self, BadQuestion> {
        if !whole.is_object() {
            return Err(BadQuestion("a question is a JSON object".to_owned()));
        }
        let written = Written::deserialize(whole).map_err(|e| BadQuestion(e.to_string()))?;
        let bad = |why: String| Err(BadQuestion(why));
        let names: BTreeSet<&ChoiceName> = written.options.iter().map(|choice| &choice.name).collect();
        if names.len() != written.options.len() {
            return bad("two options have one name".to_owned());
        }
        if !(1..=limits::OPTIONS).contains(&names.len()) {
            return bad(format!("there are {} options; 1 to {} can be", names.len(), limits::OPTIONS));
        }
        let labels = written.options.iter().filter_map(|choice| choice.label.as_ref());
        if labels.map(|label| label.chars().count()).any(|n| n > limits::LABEL_CHARS) {
            return bad(format!("a label has more than {} characters", limits::LABEL_CHARS));
        }
        let within = written.within_ms.map(span).transpose()?;
        check(&written.on_breach, &names, 0)?;
        Ok(Self {
            prompt: limits::cut(&written.prompt, limits::PROMPT_CHARS),
            responsibility: written.responsibility,
            options: written.options,
            within,
            on_breach: written.on_breach,
            whole: whole.clone(),
        })
    }
}

/// A length of time that somebody gave.
pub(super) fn span(ms: u64) -> Result<Span, BadQuestion> {
    let span = i64::try_from(ms).ok().and_then(|ms| ms.checked_mul(1_000)).map(Span);
    span.filter(|span| *span <= limits::AHEAD)
        .ok_or_else(|| BadQuestion("a deadline lies more than a year ahead".to_owned()))
}

fn check(breach: &Breach, names: &BTreeSet<&ChoiceName>, deep: usize) -> Result<(), BadQuestion> {
    match breach {
        Breach::Choose(name) if !names.contains(name) => {
            Err(BadQuestion(format!("{name} is to be chosen at the deadline and is no option")))
        }
        Breach::Escalate(_) if deep >= limits::ESCALATIONS => {
            Err(BadQuestion(format!("it is escalated more than {} times", limits::ESCALATIONS)))
        }
        Breach::Escalate(further) => {
            further.within_ms.map(span).transpose()?;
            check(&further.then, names, deep + 1)
        }
        Breach::Wait | Breach::Cancel | Breach::Fail | Breach::Choose(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_plain_question_is_yes_or_no_for_anybody_and_for_ever() {
        let asked = Question::of(&json!({ "prompt": "sure?", "amount": 7 })).unwrap();
        assert_eq!(asked.options.iter().map(|c| c.name.as_str()).collect::<Vec<_>>(), ["confirm", "decline"]);
        assert!(asked.responsibility.is_none() && asked.within.is_none());
        assert_eq!(asked.whole["amount"], 7, "the rest is evidence");
    }

    #[test]
    fn everything_can_be_said() {
        let asked = Question::of(&json!({
            "responsibility": "cto",
            "options": [{ "name": "ship", "label": "Ship it" }, { "name": "stop", "effect": "cancel" }],
            "withinMs": 1_000,
            "onBreach": { "escalate": { "to": "board", "withinMs": 60_000, "then": { "choose": "stop" } } },
        }))
        .unwrap();
        assert_eq!(asked.within, Some(Span(1_000_000)));
        assert_eq!(asked.options[1].effect, Effect::Cancel);
        assert!(matches!(asked.on_breach, Breach::Escalate(e) if e.then == Breach::Choose("stop".parse().unwrap())));
    }

    #[test]
    fn what_cannot_be_asked_is_said_so() {
        let deep =
            (0..=limits::ESCALATIONS).fold(json!("wait"), |then, _| json!({ "escalate": { "to": "x", "then": then } }));
        let many: Vec<_> = (0..=limits::OPTIONS).map(|n| json!({ "name": format!("o{n}") })).collect();
        for bad in [
            json!("sure?"),
            json!({ "options": [] }),
            json!({ "options": many }),
            json!({ "options": [{ "name": "a" }, { "name": "a" }] }),
            json!({ "options": [{ "name": "a b" }] }),
            json!({ "options": [{ "name": "a", "effect": "explode" }] }),
            json!({ "options": [{ "name": "a", "label": "x".repeat(101) }] }),
            json!({ "withinMs": u64::MAX }),
            json!({ "withinMs": -1 }),
            json!({ "onBreach": { "choose": "nothing" } }),
            json!({ "onBreach": deep }),
            json!({ "responsibility": "a b" }),
        ] {
            assert!(Question::of(&bad).is_err(), "{bad}");
        }
    }
}
