//! How urgent a job is: two words that people use, and the number behind them.

use baton_core::job;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// The class that a job's number falls into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Priority {
    Interactive,
    Background,
}

impl Priority {
    const ALL: [Self; 2] = [Self::Interactive, Self::Background];

    /// Everything from [`job::BACKGROUND`] on counts as background.
    pub const fn of(priority: i32) -> Self {
        if priority >= job::BACKGROUND { Self::Background } else { Self::Interactive }
    }

    pub const fn number(self) -> PriorityNumber {
        PriorityNumber(match self {
            Self::Interactive => job::INTERACTIVE,
            Self::Background => job::BACKGROUND,
        })
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Interactive => "interactive",
            Self::Background => "background",
        }
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A priority as it is asked for: a word, or a number of which lower ones go first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PriorityNumber(i32);

impl PriorityNumber {
    pub const MAX: i32 = 999;

    pub fn new(number: i64) -> Result<Self, BadPriority> {
        match i32::try_from(number) {
            Ok(number @ 0..=Self::MAX) => Ok(Self(number)),
            _ => Err(BadPriority),
        }
    }

    /// One that is known to be in bounds: it was let in before.
    pub const fn kept(number: i32) -> Self {
        Self(number)
    }

    pub const fn get(self) -> i32 {
        self.0
    }

    fn word(self) -> Option<Priority> {
        Priority::ALL.into_iter().find(|priority| priority.number() == self)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a priority is interactive, background, or a whole number from 0 to {max}", max = PriorityNumber::MAX)]
pub struct BadPriority;

impl FromStr for PriorityNumber {
    type Err = BadPriority;

    fn from_str(text: &str) -> Result<Self, BadPriority> {
        match Priority::ALL.into_iter().find(|priority| priority.as_str() == text) {
            Some(word) => Ok(word.number()),
            None => text.parse().map_err(|_| BadPriority).and_then(Self::new),
        }
    }
}

impl fmt::Display for PriorityNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.word() {
            Some(word) => word.fmt(f),
            None => self.0.fmt(f),
        }
    }
}

impl JsonSchema for PriorityNumber {
    fn schema_name() -> Cow<'static, str> {
        "PriorityNumber".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "How urgent a job is: a word, or a number of which lower ones go first.",
            "oneOf": [
                { "type": "string", "enum": Priority::ALL.map(Priority::as_str) },
                { "type": "integer", "minimum": 0, "maximum": Self::MAX },
            ],
        })
    }
}

impl Serialize for PriorityNumber {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self.word() {
            Some(word) => word.serialize(s),
            None => s.serialize_i32(self.0),
        }
    }
}

impl<'de> Deserialize<'de> for PriorityNumber {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Reader;

        impl de::Visitor<'_> for Reader {
            type Value = PriorityNumber;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "interactive, background, or a whole number from 0 to {}", PriorityNumber::MAX)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<PriorityNumber, E> {
                // A number in quotes is a number somebody did not mean to quote: say so.
                let word = Priority::ALL.into_iter().find(|priority| priority.as_str() == text);
                word.map(Priority::number).ok_or_else(|| E::custom(BadPriority))
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<PriorityNumber, E> {
                PriorityNumber::new(i64::try_from(number).unwrap_or(i64::MAX)).map_err(E::custom)
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<PriorityNumber, E> {
                PriorityNumber::new(number).map_err(E::custom)
            }
        }

        d.deserialize_any(Reader)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priorities_from_two_hundred_on_are_background() {
        assert_eq!(
            [0, 100, 199, 200, 900].map(Priority::of).map(Priority::as_str),
            ["interactive", "interactive", "interactive", "background", "background"]
        );
    }

    #[test]
    fn a_priority_is_a_word_or_a_number_within_bounds() {
        let read = |text: &str| serde_json::from_str::<PriorityNumber>(text).ok().map(PriorityNumber::get);
        for (text, number) in [("\"interactive\"", 100), ("\"background\"", 200), ("0", 0), ("150", 150), ("999", 999)]
        {
            assert_eq!(read(text), Some(number), "{text}");
        }
        for bad in ["-1", "1000", "1.5", "\"high\"", "\"100\"", "null", "true", "[]", "99999999999999999999"] {
            assert_eq!(read(bad), None, "{bad}");
        }
        assert_eq!("7".parse::<PriorityNumber>().map(PriorityNumber::get), Ok(7));
        assert_eq!("background".parse::<PriorityNumber>().map(PriorityNumber::get), Ok(200));
        assert!("1000".parse::<PriorityNumber>().is_err());
    }

    #[test]
    fn a_number_with_a_word_is_written_as_the_word() {
        for (number, text) in [(100, "\"interactive\""), (200, "\"background\""), (150, "150")] {
            assert_eq!(serde_json::to_string(&PriorityNumber(number)).unwrap(), text);
        }
    }
}
