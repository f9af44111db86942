//! What is sent, and what comes back.

use crate::headers::Headers;
use crate::limits::Limits;
use bytes::Bytes;
use http::{Method, StatusCode};
use std::fmt;

pub struct Request {
    pub method: Method,
    pub url: String,
    pub headers: Headers,
    pub body: Bytes,
    /// Only what is lower than the policy's counts.
    pub limits: Limits,
    pub excess: Excess,
}

/// What to do with an answer whose body is too long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Excess {
    /// Take it for no answer.
    #[default]
    Refuse,
    /// Keep the beginning, for those who only want to show it.
    Cut,
}

#[derive(Clone)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: Headers,
    pub body: Bytes,
    /// The body went on; see [`Excess::Cut`].
    pub cut: bool,
}

impl Request {
    /// Without headers or body, within the policy's limits.
    pub fn new(method: Method, url: impl Into<String>) -> Self {
        let (headers, body, limits) = (Headers::new(), Bytes::new(), Limits::INHERITED);
        Self { method, url: url.into(), headers, body, limits, excess: Excess::default() }
    }
}

/// Without the URL: in its path or query there may be a secret.
impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Request");
        out.field("method", &self.method).field("headers", &self.headers).field("body_bytes", &self.body.len());
        out.field("limits", &self.limits).field("excess", &self.excess).finish_non_exhaustive()
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Answer");
        out.field("status", &self.status).field("headers", &self.headers).field("body_bytes", &self.body.len());
        out.field("cut", &self.cut).finish_non_exhaustive()
    }
}
