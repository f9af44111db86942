//! Money: whole micro-credits inside, decimal text outside. Never a float.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;
use std::str::FromStr;

/// An amount of credits, in millionths. Never negative: the kind of an entry gives the sign.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Credits(i64);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an amount of credits: digits with at most six decimals, up to {max}", max = Credits::MAX)]
pub struct BadCredits(pub String);

/// Micro-credits in one credit.
const MICROS: i64 = 1_000_000;

impl Credits {
    pub const ZERO: Self = Self(0);
    /// A billion credits: sums of many of them still fit.
    pub const MAX: Self = Self(1_000_000_000 * MICROS);

    pub const fn whole(credits: u32) -> Self {
        Self(credits as i64 * MICROS)
    }

    /// `None` if it is negative or more than anybody can have.
    pub const fn from_micros(micros: i64) -> Option<Self> {
        if micros < 0 || micros > Self::MAX.0 { None } else { Some(Self(micros)) }
    }

    pub const fn micros(self) -> i64 {
        self.0
    }

    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// `None` if it would be more than anybody can have.
    #[must_use]
    pub const fn plus(self, other: Self) -> Option<Self> {
        Self::from_micros(self.0 + other.0)
    }

    /// `None` if there is not that much.
    #[must_use]
    pub const fn minus(self, other: Self) -> Option<Self> {
        Self::from_micros(self.0 - other.0)
    }

    /// `None` if it would be more than anybody can have.
    #[must_use]
    pub const fn times(self, n: u32) -> Option<Self> {
        match self.0.checked_mul(n as i64) {
            Some(micros) => Self::from_micros(micros),
            None => None,
        }
    }
}

impl fmt::Display for Credits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, part) = (self.0 / MICROS, self.0 % MICROS);
        if part == 0 {
            return write!(f, "{whole}");
        }
        let part = format!("{part:06}");
        write!(f, "{whole}.{}", part.trim_end_matches('0'))
    }
}

impl FromStr for Credits {
    type Err = BadCredits;

    fn from_str(text: &str) -> Result<Self, BadCredits> {
        let bad = || BadCredits(text.chars().take(40).collect());
        let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
        let digits =
            |part: &str, max: usize| (1..=max).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
        if !digits(whole, 12) || !digits(part, 6) {
            return Err(bad());
        }
        let whole: i64 = whole.parse().map_err(|_| bad())?;
        let part: i64 = format!("{part:0<6}").parse().map_err(|_| bad())?;
        Self::from_micros(whole * MICROS + part).ok_or_else(bad)
    }
}

impl Serialize for Credits {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Credits {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        String::deserialize(d)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{prop_assert_eq, proptest};

    #[test]
    fn what_is_no_amount_is_said_to_be_none() {
        for bad in ["", "-1", "+1", "1e3", "1.", ".5", "1.0000001", "1,5", " 1", "1000000000.000001", "NaN"] {
            assert!(bad.parse::<Credits>().is_err(), "{bad:?}");
        }
        for (text, micros) in [("0", 0), ("1", 1_000_000), ("0.5", 500_000), ("1000000000", 1_000_000_000_000_000)] {
            assert_eq!(text.parse::<Credits>().unwrap().micros(), micros);
        }
    }

    proptest! {
        #[test]
        fn text_goes_there_and_back(micros in 0i64..=1_000_000_000_000_000) {
            let credits = Credits::from_micros(micros).unwrap();
            prop_assert_eq!(credits.to_string().parse::<Credits>(), Ok(credits));
        }
    }
}
