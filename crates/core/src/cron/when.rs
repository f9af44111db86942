//! What a cron expression in a time zone means.

use super::step;
use crate::time::Micros;
use croner::parser::{CronParser, Seconds, Year};
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use serde::{Deserialize, Serialize};

/// A cron expression and the time zone it is meant in. Five fields, or six with seconds first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct When {
    pub cron: String,
    pub time_zone: String,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadWhen {
    #[error("{cron:?} is not a cron expression: {why}")]
    Cron { cron: String, why: String },
    #[error("{0:?} is not a time zone; give a name such as UTC or Europe/Berlin")]
    TimeZone(String),
    #[error("{0:?} never comes")]
    Never(String),
}

/// Longest expression.
pub const CRON_CHARS: usize = 100;

struct Parsed {
    cron: croner::Cron,
    zone: TimeZone,
}

impl When {
    fn parsed(&self) -> Result<Parsed, BadWhen> {
        let bad = |why: String| BadWhen::Cron { cron: self.cron.chars().take(CRON_CHARS).collect(), why };
        if self.cron.len() > CRON_CHARS {
            return Err(bad(format!("it is longer than {CRON_CHARS} characters")));
        }
        let parser = CronParser::builder().seconds(Seconds::Optional).year(Year::Disallowed).build();
        let cron = parser.parse(&self.cron).map_err(|e| bad(e.to_string()))?;
        let unknown = || BadWhen::TimeZone(self.time_zone.chars().take(CRON_CHARS).collect());
        let zone = TimeZone::get(&self.time_zone).map_err(|_| unknown())?;
        Ok(Parsed { cron, zone })
    }

    /// Whether it means what somebody can have meant. Asked of new ones only: one that was taken in
    /// once goes on.
    pub fn check(&self) -> Result<(), BadWhen> {
        match step::too_long(&self.cron) {
            Some(why) => Err(BadWhen::Cron { cron: self.cron.clone(), why }),
            None => Ok(()),
        }
    }

    /// The first moment after `at`.
    pub fn next_after(&self, at: Micros) -> Result<Micros, BadWhen> {
        let Parsed { cron, zone } = self.parsed()?;
        let never = || BadWhen::Never(self.cron.clone());
        let start: Zoned = Timestamp::from_microsecond(at.0).map_err(|_| never())?.to_zoned(zone);
        let next = cron.find_next_occurrence(&start, false).map_err(|_| never())?;
        Ok(Micros(next.timestamp().as_microsecond()))
    }

    /// The last moment that is not after `at`.
    pub fn last_until(&self, at: Micros) -> Result<Micros, BadWhen> {
        let Parsed { cron, zone } = self.parsed()?;
        let never = || BadWhen::Never(self.cron.clone());
        let end: Zoned = Timestamp::from_microsecond(at.0).map_err(|_| never())?.to_zoned(zone);
        let last = cron.find_previous_occurrence(&end, true).map_err(|_| never())?;
        Ok(Micros(last.timestamp().as_microsecond()))
    }

    /// The expression in words.
    pub fn words(&self) -> String {
        self.parsed().map(|parsed| parsed.cron.describe()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Micros {
        Micros(text.parse::<Timestamp>().unwrap().as_microsecond())
    }

    fn when(cron: &str, zone: &str) -> When {
        When { cron: cron.to_owned(), time_zone: zone.to_owned() }
    }

    #[test]
    fn moments_follow_the_clock_of_the_zone() {
        for (cron, zone, after, next) in [
            ("*/5 * * * *", "UTC", "2026-03-01T10:02:00Z", "2026-03-01T10:05:00Z"),
            ("*/5 * * * *", "UTC", "2026-03-01T10:05:00Z", "2026-03-01T10:10:00Z"),
            ("0 9 * * 1-5", "Europe/Berlin", "2026-01-02T20:00:00Z", "2026-01-05T08:00:00Z"),
            ("0 9 * * 1-5", "Europe/Berlin", "2026-07-03T20:00:00Z", "2026-07-06T07:00:00Z"),
            ("30 5 1 1 *", "America/New_York", "2026-01-02T00:00:00Z", "2027-01-01T10:30:00Z"),
            ("*/10 * * * * *", "UTC", "2026-03-01T10:00:01Z", "2026-03-01T10:00:10Z"),
        ] {
            assert_eq!(when(cron, zone).next_after(at(after)), Ok(at(next)), "{cron} {zone} {after}");
        }
    }

    #[test]
    fn the_last_moment_may_be_this_very_one() {
        for (cron, until, last) in [
            ("*/5 * * * *", "2026-03-01T10:05:00Z", "2026-03-01T10:05:00Z"),
            ("*/5 * * * *", "2026-03-01T10:09:59Z", "2026-03-01T10:05:00Z"),
            ("0 9 * * 1", "2026-03-01T10:00:00Z", "2026-02-23T09:00:00Z"),
        ] {
            assert_eq!(when(cron, "UTC").last_until(at(until)), Ok(at(last)), "{cron} {until}");
        }
    }

    #[test]
    fn a_day_is_neither_lost_nor_doubled_when_clocks_change() {
        let daily = when("30 2 * * *", "Europe/Berlin");
        let mut now = at("2026-03-27T12:00:00Z");
        let mut days = Vec::new();
        for _ in 0..4 {
            now = daily.next_after(now).unwrap();
            days.push(now.0 / 86_400_000_000);
        }
        days.dedup();
        assert_eq!(days.len(), 4, "in spring, though 02:30 does not exist once");
        let mut now = at("2026-10-23T12:00:00Z");
        let mut moments = Vec::new();
        for _ in 0..4 {
            now = daily.next_after(now).unwrap();
            moments.push(now.0 / 86_400_000_000);
        }
        moments.dedup();
        assert_eq!(moments.len(), 4, "in autumn, though 02:30 exists twice once");
    }

    #[test]
    fn a_moment_that_clocks_pass_over_comes_when_they_have_and_one_that_they_repeat_comes_once() {
        let moments = |cron: &str, after: &str, many: usize| {
            let when = when(cron, "Europe/Berlin");
            std::iter::successors(Some(at(after)), |last| when.next_after(*last).ok())
                .skip(1)
                .take(many)
                .collect::<Vec<_>>()
        };
        // 02:00 becomes 03:00 at 01:00 UTC on 29 March 2026; 03:00 becomes 02:00 at 01:00 UTC on 25 October.
        for (cron, after, expected) in [
            ("30 2 * * *", "2026-03-28T12:00:00Z", ["2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"]),
            ("30 2 * * *", "2026-10-24T12:00:00Z", ["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]),
            // Those that step or take every value of the minutes or hours follow what the clock shows.
            ("30 * * * *", "2026-03-29T00:00:00Z", ["2026-03-29T00:30:00Z", "2026-03-29T01:30:00Z"]),
            ("30 */2 * * *", "2026-03-28T23:45:00Z", ["2026-03-29T02:30:00Z", "2026-03-29T04:30:00Z"]),
            ("0,30 2 * * *", "2026-03-28T12:00:00Z", ["2026-03-30T00:00:00Z", "2026-03-30T00:30:00Z"]),
            ("0,30 2 * * *", "2026-10-25T00:15:00Z", ["2026-10-25T00:30:00Z", "2026-10-25T01:00:00Z"]),
            ("30 * * * *", "2026-10-25T00:00:00Z", ["2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"]),
        ] {
            assert_eq!(moments(cron, after, 2), expected.map(at), "{cron} {after}");
        }
    }

    #[test]
    fn a_step_that_leads_nowhere_is_refused_at_first() {
        let far = when("*/70 * * * *", "UTC");
        assert!(matches!(far.check(), Err(BadWhen::Cron { .. })));
        assert!(far.next_after(at("2026-03-01T00:00:00Z")).is_ok(), "one that is there goes on");
        assert_eq!(when("*/5 * * * *", "UTC").check(), Ok(()));
    }

    #[test]
    fn what_is_no_expression_no_zone_or_never_comes_is_told_apart() {
        let now = at("2026-03-01T00:00:00Z");
        assert!(matches!(when("* * *", "UTC").next_after(now), Err(BadWhen::Cron { .. })));
        assert!(matches!(when("61 * * * *", "UTC").next_after(now), Err(BadWhen::Cron { .. })));
        assert!(matches!(when(&"*".repeat(500), "UTC").next_after(now), Err(BadWhen::Cron { .. })));
        assert!(matches!(when("0 0 0 1 1 * 2030", "UTC").next_after(now), Err(BadWhen::Cron { .. })));
        assert!(matches!(when("* * * * *", "Moon/Crater").next_after(now), Err(BadWhen::TimeZone(_))));
        assert!(matches!(when("0 0 30 2 *", "UTC").next_after(now), Err(BadWhen::Never(_) | BadWhen::Cron { .. })));
    }
}
