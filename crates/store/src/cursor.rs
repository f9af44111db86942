//! Where a reader of the history stands. Opaque outside: only its order of reading is promised.

use std::fmt;
use std::str::FromStr;

/// After the event at this position. The default is before the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cursor(pub(crate) i64);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is not a cursor that Baton handed out")]
pub struct BadCursor;

impl Cursor {
    pub const START: Self = Self(0);
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "c1{:016x}", self.0)
    }
}

impl FromStr for Cursor {
    type Err = BadCursor;

    fn from_str(text: &str) -> Result<Self, BadCursor> {
        let hex = text.strip_prefix("c1").filter(|h| h.len() == 16).ok_or(BadCursor)?;
        if !hex.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)) {
            return Err(BadCursor);
        }
        match i64::from_str_radix(hex, 16) {
            Ok(pos) => Ok(Self(pos)),
            Err(_) => Err(BadCursor),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_go_to_text_and_back_and_nothing_else_passes() {
        for pos in [0, 1, 77, i64::MAX] {
            assert_eq!(Cursor(pos).to_string().parse(), Ok(Cursor(pos)));
        }
        for bad in [
            "",
            "c1",
            "c1zz",
            "17",
            "c2000000000000004d",
            "c1ffffffffffffffff",
            "c1+00000000000004d",
            "c100000000000000ä",
        ] {
            assert_eq!(bad.parse::<Cursor>(), Err(BadCursor), "{bad}");
        }
    }
}
