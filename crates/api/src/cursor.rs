//! Where a list goes on: opaque to clients, and good only for the list that handed it out.

use crate::problem::Fault;
use crate::query::Params;
use baton_core::JobId;
use std::fmt::Write as _;

/// A list whose cursors these are.
#[derive(Clone, Copy)]
pub struct List(&'static str);

pub const JOBS: List = List("j1");
pub const LETTERS: List = List("d1");
pub const LANES: List = List("l1");
pub const SCHEDULES: List = List("s1");
pub const KEYS: List = List("k1");
pub const WEBHOOKS: List = List("w1");
pub const DECISIONS: List = List("q1");

/// Longer than any name in a list.
const TEXT_MAX: usize = 1_000;

impl List {
    pub fn job(self, id: JobId) -> String {
        format!("{}{}", self.0, id.0.simple())
    }

    /// Names hold all sorts of characters, not all of which are fit for a URL.
    pub fn text(self, name: &str) -> String {
        let mut cursor = self.0.to_owned();
        for byte in name.bytes() {
            let _ = write!(cursor, "{byte:02x}");
        }
        cursor
    }

    pub fn read_job(self, params: &Params) -> Result<Option<JobId>, Fault> {
        let read =
            |text: &str| text.strip_prefix(self.0).and_then(|hex| format!("{}_{hex}", JobId::PREFIX).parse().ok());
        params.one("cursor")?.map(|text| read(text).ok_or_else(foreign)).transpose()
    }

    pub fn read_text(self, params: &Params) -> Result<Option<String>, Fault> {
        let read = |text: &str| text.strip_prefix(self.0).and_then(from_hex);
        params.one("cursor")?.map(|text| read(text).ok_or_else(foreign)).transpose()
    }
}

fn from_hex(hex: &str) -> Option<String> {
    let plain = hex.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    if hex.is_empty() || hex.len() > 2 * TEXT_MAX || hex.len() % 2 == 1 || !plain {
        return None;
    }
    let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).ok();
    let bytes: Option<Vec<u8>> = (0..hex.len()).step_by(2).map(byte).collect();
    // No name holds a control character, and not every database could look for one.
    String::from_utf8(bytes?).ok().filter(|name| !name.chars().any(char::is_control))
}

pub fn foreign() -> Fault {
    Fault::new("invalid_cursor", "use a nextCursor as it was handed out")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(cursor: &str) -> Params {
        Params::of(&[("cursor", cursor)])
    }

    #[test]
    fn cursors_go_to_text_and_back_and_nothing_else_passes() {
        let id: JobId = "job_018bcfe568007001800000000000002a".parse().unwrap();
        assert_eq!(JOBS.read_job(&given(&JOBS.job(id))).unwrap(), Some(id));
        assert_eq!(JOBS.read_job(&Params::of(&[])).unwrap(), None);
        let other = LETTERS.job(id);
        for bad in ["", "j1", "018bcfe568007001800000000000002a", "j1zz", "c10000000000000001", &id.to_string(), &other]
        {
            assert_eq!(JOBS.read_job(&given(bad)).unwrap_err().code(), "invalid_cursor", "{bad}");
        }
        for name in ["project:shop", "a/b ü\u{10ffff}", "p/nightly"] {
            assert_eq!(LANES.read_text(&given(&LANES.text(name))).unwrap().as_deref(), Some(name));
        }
        for bad in
            ["", "l1", "l1f", "l1FF", "l1ff", "s161", "l1+1", "l100", &format!("l1{}", "61".repeat(TEXT_MAX + 1))]
        {
            assert_eq!(LANES.read_text(&given(bad)).unwrap_err().code(), "invalid_cursor", "{bad}");
        }
    }
}
