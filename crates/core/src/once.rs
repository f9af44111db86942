//! Saying the same thing twice: the idempotency record that commits with its effect.

use crate::canon::Digest;
use crate::name::OrgId;
use crate::time::{Micros, Span};

/// How long a record is kept.
pub const KEPT_FOR: Span = Span::secs(24 * 60 * 60);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    pub org: OrgId,
    /// The endpoint: the same key at another endpoint is another key.
    pub scope: String,
    pub key: String,
}

/// The answer as it was given, to be given again byte for byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendered {
    pub status: u16,
    pub body: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub request: Digest,
    pub answer: Rendered,
    pub expires_at: Micros,
}

impl Record {
    /// An expired record may still stand in the table; it no longer speaks.
    pub fn speaks_at(&self, now: Micros) -> bool {
        now < self.expires_at
    }
}
