//! Which request, and which trace, an exchange belongs to.
//!
//! Whoever asks may bring names for both, so that their log and ours can be laid side by side. What
//! cannot be used is passed over without a word, as W3C Trace Context wants it, and ours are drawn.

use axum::http::HeaderMap;
use axum::http::header::HeaderValue;
use baton_wire::header;
use std::fmt;

/// Characters of a request's id that is taken over.
const REQUEST_ID_MAX: usize = 128;
/// Of a `traceparent`: version, trace, span and flags, with dashes between.
const TRACEPARENT_CHARS: usize = 55;

/// The id that a request brings along, if it can be used.
pub fn request_id(headers: &HeaderMap) -> Option<String> {
    let text = only(headers, header::REQUEST_ID)?;
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"._:-".contains(&b);
    let fits = (1..=REQUEST_ID_MAX).contains(&text.len()) && text.bytes().all(plain);
    fits.then(|| text.to_owned())
}

/// A place in a trace, as it is told to whoever asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trace {
    id: u128,
    span: u64,
    flags: u8,
}

impl Trace {
    /// Goes on with the trace that a request belongs to, or begins one. `drawn` are random: the id
    /// of a trace, and that of our span in it.
    pub fn of(headers: &HeaderMap, (id, span): (u128, u64)) -> Self {
        // Nothing but zeros would mean that there is none.
        let span = span.max(1);
        match only(headers, header::TRACEPARENT).and_then(parent) {
            Some((id, flags)) => Self { id, span, flags },
            None => Self { id: id.max(1), span, flags: 0 },
        }
    }

    pub fn id(&self) -> String {
        format!("{:032x}", self.id)
    }
}

/// As a `traceparent`.
impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{:032x}-{:016x}-{:02x}", self.id, self.span, self.flags)
    }
}

/// Trace and flags of a `traceparent`.
fn parent(text: &str) -> Option<(u128, u8)> {
    let plain = |b: u8| b == b'-' || b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    if text.len() != TRACEPARENT_CHARS || !text.bytes().all(plain) {
        return None;
    }
    let mut parts = text.split('-');
    let mut part = |chars| parts.next().filter(|part| part.len() == chars);
    let (version, id, span, flags) = (part(2)?, part(32)?, part(16)?, part(2)?);
    let id = u128::from_str_radix(id, 16).ok().filter(|id| *id != 0)?;
    u64::from_str_radix(span, 16).ok().filter(|span| *span != 0)?;
    let flags = u8::from_str_radix(flags, 16).ok()?;
    (version == "00").then_some((id, flags))
}

/// A header that is given once, as text.
fn only<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next().and_then(|value: &HeaderValue| value.to_str().ok())?;
    values.next().is_none().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(name: &'static str, values: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        headers
    }

    #[test]
    fn a_requests_id_is_taken_over_if_it_is_plain_and_given_once() {
        let long = "x".repeat(REQUEST_ID_MAX);
        for good in ["a", "req_4f1d22a900000001", "A.b:c-d_9", &long] {
            assert_eq!(request_id(&given(header::REQUEST_ID, &[good])).as_deref(), Some(good));
        }
        let over = "x".repeat(REQUEST_ID_MAX + 1);
        for bad in [&[][..], &[""], &["a b"], &["a\"b"], &["a/b"], &["ü"], &["a,b"], &[&over], &["a", "a"]] {
            assert_eq!(request_id(&given(header::REQUEST_ID, bad)), None, "{bad:?}");
        }
    }

    #[test]
    fn a_trace_goes_on_only_from_a_parent_that_is_valid() {
        let drawn = (7, 9);
        let of = |values: &[&str]| Trace::of(&given(header::TRACEPARENT, values), drawn).to_string();
        let good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        assert_eq!(of(&[good]), "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000009-01");
        assert_eq!(of(&[&good.replace("-01", "-ff")]), "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000009-ff");
        let ours = "00-00000000000000000000000000000007-0000000000000009-00";
        let upper = good.to_uppercase();
        let longer = format!("{good}-00");
        for bad in [
            &[][..],
            &[""],
            &[good, good],
            &[&upper],
            &[&longer],
            &["ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"],
            &["01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"],
            &["00-00000000000000000000000000000000-00f067aa0ba902b7-01"],
            &["00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01"],
            &["00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-012"],
            &["00-4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7-01"],
            &["00-4bf92f3577b34da6a3ce929d0e0e473g-00f067aa0ba902b7-01"],
            &["00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0-"],
            &["-0-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"],
        ] {
            assert_eq!(of(bad), ours, "{bad:?}");
        }
        let zeros = Trace::of(&HeaderMap::new(), (0, 0)).to_string();
        assert_eq!(zeros, "00-00000000000000000000000000000001-0000000000000001-00");
    }
}
