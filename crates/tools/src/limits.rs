//! How long and how large things may be, each with its name.

use std::time::Duration;

/// Finding the address, connecting and agreeing on keys.
pub const CONNECT: Duration = Duration::from_secs(10);
/// From the first look at the address to the last byte of the answer.
pub const TOTAL: Duration = Duration::from_secs(30);
/// A URL.
pub const URL_BYTES: usize = 8 * 1024;
/// Headers of a request.
pub const REQUEST_HEADERS: usize = 64;
/// The same in bytes, together.
pub const REQUEST_HEAD_BYTES: usize = 32 * 1024;
/// Body of a request.
pub const REQUEST_BYTES: usize = 8 * 1024 * 1024;
/// Headers of an answer.
pub const ANSWER_HEADERS: usize = 100;
/// The same in bytes, together. The library stops reading at some 400 KiB by itself.
pub const ANSWER_HEAD_BYTES: usize = 64 * 1024;
/// Body of an answer.
pub const ANSWER_BYTES: usize = 8 * 1024 * 1024;
/// Connections kept for the next request, per host.
pub const IDLE: usize = 8;
/// How long they are kept.
pub const IDLE_WAIT: Duration = Duration::from_secs(30);

/// What one call may take. A policy sets them for all calls; a call can only lower them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub total: Duration,
    pub request_bytes: usize,
    pub answer_headers: usize,
    pub answer_head_bytes: usize,
    pub answer_bytes: usize,
}

impl Limits {
    /// Those of the policy and no others.
    pub const INHERITED: Self = Self {
        total: Duration::MAX,
        request_bytes: usize::MAX,
        answer_headers: usize::MAX,
        answer_head_bytes: usize::MAX,
        answer_bytes: usize::MAX,
    };

    pub(crate) fn within(self, outer: Self) -> Self {
        Self {
            total: self.total.min(outer.total),
            request_bytes: self.request_bytes.min(outer.request_bytes),
            answer_headers: self.answer_headers.min(outer.answer_headers),
            answer_head_bytes: self.answer_head_bytes.min(outer.answer_head_bytes),
            answer_bytes: self.answer_bytes.min(outer.answer_bytes),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            total: TOTAL,
            request_bytes: REQUEST_BYTES,
            answer_headers: ANSWER_HEADERS,
            answer_head_bytes: ANSWER_HEAD_BYTES,
            answer_bytes: ANSWER_BYTES,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_lowers_limits_and_never_raises_them() {
        let policy = Limits::default();
        assert_eq!(Limits::INHERITED.within(policy), policy);
        let call = Limits { total: Duration::from_secs(1), answer_bytes: usize::MAX, ..Limits::INHERITED };
        assert_eq!(call.within(policy), Limits { total: Duration::from_secs(1), ..policy });
    }
}
