//! Whole numbers. JSON has one kind of number: `5.0` is as whole as `5`, and many programs write it.

use serde::{Deserialize, Deserializer};
use serde_json::Number;

/// The number, if nothing is behind its point and it is not below zero.
pub(crate) fn whole(number: f64) -> Option<u64> {
    let cut = number as u64;
    (cut as f64 == number).then_some(cut)
}

pub(crate) fn read(number: &Number) -> Option<u64> {
    number.as_u64().or_else(|| number.as_f64().and_then(whole))
}

/// A number that may be left out or null.
pub(crate) fn optional<'de, D: Deserializer<'de>, T: TryFrom<u64>>(d: D) -> Result<Option<T>, D::Error> {
    Option::<Number>::deserialize(d)?.map(|number| fitting(&number)).transpose()
}

/// A number that must be given.
pub(crate) fn required<'de, D: Deserializer<'de>, T: TryFrom<u64>>(d: D) -> Result<T, D::Error> {
    fitting(&Number::deserialize(d)?)
}

fn fitting<T: TryFrom<u64>, E: serde::de::Error>(number: &Number) -> Result<T, E> {
    if number.as_f64().is_some_and(|number| number >= 0.0 && number.fract() == 0.0) {
        let fits = read(number).and_then(|number| T::try_from(number).ok());
        return fits.ok_or_else(|| E::custom("must be a smaller number"));
    }
    Err(E::custom("must be a whole number that is not negative"))
}

/// The same, with 0 for one that is left out.
pub(crate) fn or_zero<'de, D: Deserializer<'de>>(d: D) -> Result<u64, D::Error> {
    Ok(optional(d)?.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_whole_however_it_is_written() {
        let read = |text: &str| read(&serde_json::from_str(text).unwrap());
        for (text, number) in [("5", 5), ("5.0", 5), ("5e2", 500), ("-0.0", 0), ("18446744073709551615", u64::MAX)] {
            assert_eq!(read(text), Some(number), "{text}");
        }
        for bad in ["5.5", "-1", "-1.0", "1e300", "0.1"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
