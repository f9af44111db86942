//! Lengths of time as people write them: `30s`, `250ms`, `1h30m`, `7d`.

use crate::limits;
use crate::time::Span;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;
use std::str::FromStr;

/// A length of time that was written as text: whole milliseconds, from one up to a year.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SpanText(Span);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a length of time: numbers with the units d, h, m, s and ms, the larger first, \
     such as 30s or 1h30m, from 1ms to 366d"
)]
pub struct BadSpan(pub String);

/// Larger ones first, as they are written.
const UNITS: [(&str, i64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

impl SpanText {
    pub const MIN: Span = Span::millis(1);
    pub const MAX: Span = limits::AHEAD;
    pub const LONGEST: Self = Self(Self::MAX);

    /// What lies below a millisecond is dropped. `None` if it is out of bounds.
    pub fn new(span: Span) -> Option<Self> {
        let whole = Span(span.0 - span.0.rem_euclid(Self::MIN.0));
        (Self::MIN..=Self::MAX).contains(&whole).then_some(Self(whole))
    }

    pub const fn span(self) -> Span {
        self.0
    }
}

impl FromStr for SpanText {
    type Err = BadSpan;

    fn from_str(text: &str) -> Result<Self, BadSpan> {
        let bad = || BadSpan(text.chars().take(40).collect());
        let mut units = UNITS.iter();
        let mut ms: i64 = 0;
        let mut rest = text;
        loop {
            let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            let (number, after) = rest.split_at(digits);
            let word = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
            let (unit, after) = after.split_at(word);
            // The units that were passed are gone: none comes twice, or before a larger one.
            let (_, each) = units.find(|(name, _)| *name == unit).ok_or_else(bad)?;
            let part = number.parse::<i64>().ok().and_then(|n| n.checked_mul(*each));
            ms = part.and_then(|part| ms.checked_add(part)).ok_or_else(bad)?;
            rest = after;
            if rest.is_empty() {
                return Self::new(Span::millis(ms)).ok_or_else(bad);
            }
        }
    }
}

impl fmt::Display for SpanText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut ms = self.0.0 / Self::MIN.0;
        for (unit, each) in UNITS {
            if ms >= each {
                write!(f, "{}{unit}", ms / each)?;
                ms %= each;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for SpanText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for SpanText {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for SpanText {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        String::deserialize(d)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    #[test]
    fn people_write_numbers_with_units() {
        for (text, ms) in [
            ("1ms", 1),
            ("250ms", 250),
            ("30s", 30_000),
            ("1h", 3_600_000),
            ("1h30m", 5_400_000),
            ("7d", 604_800_000),
            ("1d2h3m4s5ms", 93_784_005),
            ("90s", 90_000),
            ("366d", 31_622_400_000),
            ("0h1s", 1_000),
        ] {
            assert_eq!(text.parse::<SpanText>().map(SpanText::span), Ok(Span::millis(ms)), "{text}");
        }
        assert_eq!("90s".parse::<SpanText>().unwrap().to_string(), "1m30s");
    }

    #[test]
    fn everything_else_is_refused() {
        for bad in [
            "",
            "0s",
            "30",
            "s",
            "-1s",
            "+1s",
            "1.5h",
            "1 h",
            "30m1h",
            "1s1s",
            "1S",
            "1w",
            "366d1ms",
            "ü",
            "1ü",
            "1hh",
            "99999999999999999999d",
            "9223372036854775807d",
            "1h ",
        ] {
            assert!(bad.parse::<SpanText>().is_err(), "{bad:?}");
        }
        assert!(serde_json::from_str::<SpanText>("30").is_err(), "a number has no unit");
    }

    proptest! {
        #[test]
        fn text_goes_there_and_back(ms in 1i64..=31_622_400_000) {
            let span = SpanText::new(Span::millis(ms)).unwrap();
            prop_assert_eq!(span.to_string().parse::<SpanText>(), Ok(span));
        }

        #[test]
        fn no_text_makes_it_panic(text in any::<String>()) {
            let _ = text.parse::<SpanText>();
        }
    }
}
