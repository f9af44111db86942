//! Times and lengths of time as people type them.

use baton_core::time::Span;
use baton_wire::Time;

/// `250ms`, `5s`, `10m`, `2h`, `1d`.
pub fn span(text: &str) -> Result<Span, String> {
    const UNITS: [(&str, i64); 5] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let ms = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, ms)| *ms);
    let (Ok(number), Some(ms)) = (number.parse::<i64>(), ms) else {
        return Err("expected a number with its unit: 250ms, 5s, 10m, 2h or 1d".to_owned());
    };
    number.checked_mul(ms).map(Span::millis).ok_or_else(|| "that is too long".to_owned())
}

pub fn time(text: &str) -> Result<Time, String> {
    text.parse().map_err(|error: baton_wire::BadTime| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_have_a_number_and_a_unit() {
        let cases = [("0s", 0), ("250ms", 250), ("5s", 5_000), ("10m", 600_000), ("2h", 7_200_000), ("1d", 86_400_000)];
        for (text, ms) in cases {
            assert_eq!(span(text), Ok(Span::millis(ms)), "{text}");
        }
        for bad in ["", "5", "s", "-5s", "5 s", "1.5s", "5x", "99999999999999999999s", "9223372036854775807d"] {
            assert!(span(bad).is_err(), "{bad}");
        }
    }
}
