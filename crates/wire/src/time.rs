//! Moments on the wire: RFC 3339 in UTC with microseconds.

use baton_core::Micros;
use jiff::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// A moment. Always six decimals, so that texts sort like the moments they name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(pub Micros);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a time must be RFC 3339 with an offset, such as 2026-01-31T09:30:00Z")]
pub struct BadTime;

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A moment outside the calendar can only come from a garbled row; show its nearest end.
        let end = if self.0.0 < 0 { Timestamp::MIN } else { Timestamp::MAX };
        let moment = Timestamp::from_microsecond(self.0.0).unwrap_or(end);
        write!(f, "{moment:.6}")
    }
}

impl FromStr for Time {
    type Err = BadTime;

    fn from_str(text: &str) -> Result<Self, BadTime> {
        let moment: Timestamp = text.parse().map_err(|_| BadTime)?;
        Ok(Self(Micros(moment.as_microsecond())))
    }
}

impl JsonSchema for Time {
    fn schema_name() -> Cow<'static, str> {
        "Time".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "format": "date-time",
            "description": "A moment: RFC 3339 with an offset. Answers are in UTC with six decimals.",
        })
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        String::deserialize(d)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_written_in_utc_with_six_decimals() {
        assert_eq!(Time(Micros(0)).to_string(), "1970-01-01T00:00:00.000000Z");
        assert_eq!(Time(Micros(1_700_000_000_123_456)).to_string(), "2023-11-14T22:13:20.123456Z");
        assert_eq!(Time(Micros(-1)).to_string(), "1969-12-31T23:59:59.999999Z");
    }

    #[test]
    fn a_moment_outside_the_calendar_is_shown_and_never_a_panic() {
        assert!(Time(Micros(i64::MAX)).to_string().starts_with("9999-"));
        assert!(Time(Micros(i64::MIN)).to_string().starts_with('-'));
    }

    #[test]
    fn any_offset_is_read_and_a_text_without_one_is_not() {
        let noon = Time(Micros(1_704_110_400_000_000));
        for text in ["2024-01-01T12:00:00Z", "2024-01-01T13:00:00+01:00", "2024-01-01T12:00:00.000000Z"] {
            assert_eq!(text.parse(), Ok(noon), "{text}");
        }
        for bad in ["", "now", "2024-01-01", "2024-01-01T12:00:00", "12:00Z", "2024-13-01T12:00:00Z", "1704110400"] {
            assert_eq!(bad.parse::<Time>(), Err(BadTime), "{bad}");
        }
    }
}
