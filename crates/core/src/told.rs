//! What an event tells: named values, written down as they come and put in order at the end.
//!
//! Every step of a run tells something, so this is on the hottest path of all: a value is printed once, into one
//! text, and no tree is built of what is only going to be text.

use crate::canon::Json;
use serde::Serialize;
use serde_json::Value;
use std::borrow::Cow;

/// See the module. Of two values of one name the later one counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    text: Vec<u8>,
    /// Names, each with where its value ends in the text. It begins where the one before ends.
    ends: Vec<(Cow<'static, str>, usize)>,
}

/// Plain values and trees of them: they print in one way only.
pub trait Fact: Serialize {}

impl Fact for Value {}
impl Fact for bool {}
impl Fact for u32 {}
impl Fact for i64 {}
impl Fact for str {}
impl Fact for String {}
impl Fact for [String] {}
impl<T: Fact> Fact for Option<T> {}
impl<T: Fact + ?Sized> Fact for &T {}
impl Fact for crate::canon::Digest {}
impl Fact for crate::credits::Credits {}
impl Fact for crate::id::RunId {}
impl Fact for crate::id::AgentId {}
impl Fact for crate::id::JobId {}
impl Fact for crate::name::PlanName {}
impl Fact for crate::name::ProjectId {}
impl Fact for crate::name::SessionId {}
impl Fact for crate::name::TypeName {}
impl Fact for crate::name::WorkerId {}
impl Fact for crate::run::State {}
impl Fact for crate::run::StepState {}
impl Fact for crate::time::Micros {}

impl Told {
    pub fn none() -> Self {
        Self { text: Vec::with_capacity(256), ends: Vec::with_capacity(12) }
    }

    #[must_use]
    pub fn and(mut self, name: &'static str, value: &(impl Fact + ?Sized)) -> Self {
        self.put(name, value);
        self
    }

    /// This too, unless something of that name is told already.
    #[must_use]
    pub fn unless_told(mut self, name: &'static str, value: &(impl Fact + ?Sized)) -> Self {
        if !self.ends.iter().any(|(known, _)| known == name) {
            self.put(name, value);
        }
        self
    }

    pub fn put(&mut self, name: &'static str, value: &(impl Fact + ?Sized)) {
        self.add(Cow::Borrowed(name), value);
    }

    fn add(&mut self, name: Cow<'static, str>, value: &(impl Fact + ?Sized)) {
        // Plain values always print, and memory never fails to be written to.
        let _ = serde_json::to_writer(&mut self.text, value);
        self.ends.push((name, self.text.len()));
    }

    #[must_use]
    pub fn with(mut self, more: Self) -> Self {
        let shift = self.text.len();
        self.text.extend_from_slice(&more.text);
        self.ends.extend(more.ends.into_iter().map(|(name, end)| (name, end + shift)));
        self
    }

    /// A value that is a string.
    pub fn word(&self, name: &str) -> Option<String> {
        let at = self.ends.iter().rposition(|(known, _)| known == name)?;
        let begin = at.checked_sub(1).map_or(0, |before| self.ends[before].1);
        serde_json::from_slice(&self.text[begin..self.ends[at].1]).ok()
    }

    /// The canonical text of an object with these members.
    pub fn json(&self) -> Json {
        let mut begin = 0;
        let mut parts: Vec<(&str, &[u8])> = Vec::with_capacity(self.ends.len());
        for (name, end) in &self.ends {
            parts.push((name, &self.text[begin..*end]));
            begin = *end;
        }
        // Stable, so that among equals the later stays behind.
        parts.sort_by_key(|(name, _)| *name);
        let names: usize = parts.iter().map(|(name, _)| name.len() + 4).sum();
        let mut text = Vec::with_capacity(self.text.len() + names + 2);
        text.push(b'{');
        for (i, (name, value)) in parts.iter().enumerate() {
            if parts.get(i + 1).is_some_and(|(next, _)| next == name) {
                continue;
            }
            if text.len() > 1 {
                text.push(b',');
            }
            let _ = serde_json::to_writer(&mut text, name);
            text.push(b':');
            text.extend_from_slice(value);
        }
        text.push(b'}');
        Json::stored(String::from_utf8(text).unwrap_or_default())
    }
}

impl From<Value> for Told {
    /// The members of an object; nothing else tells anything.
    fn from(value: Value) -> Self {
        let mut facts = Self::none();
        if let Value::Object(members) = value {
            for (name, member) in members {
                facts.add(Cow::Owned(name), &member);
            }
        }
        facts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{prop_assert_eq, proptest};
    use serde_json::json;

    #[test]
    fn the_text_is_that_of_the_same_object() {
        let facts = Told::none().and("state", &true).and("agent", "a \"b\"").and("n", &7u32).and("agent", "c");
        assert_eq!(facts.json(), Json::of(&json!({ "agent": "c", "n": 7, "state": true })));
        assert_eq!((facts.word("agent").as_deref(), facts.word("n"), facts.word("x")), (Some("c"), None, None));
        assert_eq!(Told::none().json().as_str(), "{}");
        let more = Told::from(json!({ "m": [1, null], "b": { "y": 1, "x": "\u{7}" } }));
        let once = Told::none().and("a", &1u32).unless_told("a", &2u32).unless_told("b", &3u32);
        assert_eq!(once.json(), Json::of(&json!({ "a": 1, "b": 3 })));
        let both = Told::none().and("c", &None::<u32>).with(more);
        assert_eq!(both.json(), Json::of(&json!({ "m": [1, null], "b": { "y": 1, "x": "\u{7}" }, "c": null })));
    }

    proptest! {
        #[test]
        fn objects_come_out_as_they_went_in(members in proptest::collection::btree_map(".{0,4}", ".{0,6}", 0..6)) {
            let value = json!(members);
            prop_assert_eq!(Told::from(value.clone()).json(), Json::of(&value));
        }
    }
}
