//! Keys made from facts of a job: `project:{project}`, `{payload.thread.id}`.

use crate::name::{ProjectId, SessionId};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::Value;

/// What a template may name.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    pub project: &'a ProjectId,
    pub session: Option<&'a SessionId>,
    pub payload: &'a Value,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Project,
    Session,
    Payload(Vec<String>),
}

/// A parsed template. Its text is kept, because that is what is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    text: String,
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a key template: {why}; it may name {{project}}, {{session}} and {{payload.field}}")]
pub struct BadTemplate {
    pub text: String,
    pub why: &'static str,
}

impl Template {
    pub const MAX: usize = 300;

    pub fn new(text: &str) -> Result<Self, BadTemplate> {
        let bad = |why| BadTemplate { text: text.chars().take(80).collect(), why };
        if text.is_empty() || text.len() > Self::MAX {
            return Err(bad("it must have 1 to 300 characters"));
        }
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            if before.contains('}') {
                return Err(bad("a brace closes that was not opened"));
            }
            if !before.is_empty() {
                pieces.push(Piece::Text(before.to_owned()));
            }
            let (name, after) = after.split_once('}').ok_or_else(|| bad("a brace is not closed"))?;
            pieces.push(match name.split_once('.') {
                None if name == "project" => Piece::Project,
                None if name == "session" => Piece::Session,
                Some(("payload", path)) if path.split('.').all(|field| !field.is_empty()) => {
                    Piece::Payload(path.split('.').map(str::to_owned).collect())
                }
                _ => return Err(bad("it names something else")),
            });
            rest = after;
        }
        if rest.contains('}') {
            return Err(bad("a brace closes that was not opened"));
        }
        if !rest.is_empty() {
            pieces.push(Piece::Text(rest.to_owned()));
        }
        Ok(Self { text: text.to_owned(), pieces })
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The key; an error names the fact that is missing.
    pub fn fill(&self, facts: &Facts<'_>) -> Result<String, String> {
        let mut key = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => key.push_str(text),
                Piece::Project => key.push_str(facts.project.as_str()),
                Piece::Session => key.push_str(facts.session.ok_or("session")?.as_str()),
                Piece::Payload(path) => {
                    let missing = || format!("payload.{}", path.join("."));
                    let value = path.iter().try_fold(facts.payload, |value, field| value.get(field));
                    match value.ok_or_else(missing)? {
                        Value::String(text) => key.push_str(text),
                        value @ (Value::Number(_) | Value::Bool(_)) => key.push_str(&value.to_string()),
                        Value::Null | Value::Array(_) | Value::Object(_) => return Err(missing()),
                    }
                }
            }
        }
        Ok(key)
    }
}

impl std::str::FromStr for Template {
    type Err = BadTemplate;

    fn from_str(text: &str) -> Result<Self, BadTemplate> {
        Self::new(text)
    }
}

impl Serialize for Template {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for Template {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Self::new(&String::deserialize(d)?).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_template_takes_its_facts_from_the_job() {
        let (project, session) = ("shop".parse().unwrap(), "s-1".parse().unwrap());
        let payload = json!({ "a": { "b": "x" }, "n": 7, "list": [] });
        let facts = Facts { project: &project, session: Some(&session), payload: &payload };
        let fill = |text: &str| Template::new(text).unwrap().fill(&facts);
        assert_eq!(fill("{project}:{session}:{payload.a.b}-{payload.n}!"), Ok("shop:s-1:x-7!".to_owned()));
        for (text, missing) in
            [("{payload.c}", "payload.c"), ("{payload.a}", "payload.a"), ("{payload.list}", "payload.list")]
        {
            assert_eq!(fill(text), Err(missing.to_owned()));
        }
        let nobody = Facts { session: None, ..facts };
        assert_eq!(Template::new("{session}").unwrap().fill(&nobody), Err("session".to_owned()));
    }

    #[test]
    fn what_is_no_template_is_said_to_be_none() {
        for bad in ["", "{", "}", "a}b", "{moon}", "{payload}", "{payload.}", "{payload..a}", "a{b"] {
            assert!(Template::new(bad).is_err(), "{bad:?}");
        }
    }
}
