//! Why there is no answer.

use crate::resolve::{Refused, Unresolved};
use std::error::Error;
use std::io;
use std::time::Duration;

/// Says where it was to go (scheme, host and port), never more of the URL, and no header.
#[derive(Debug, thiserror::Error)]
pub enum Unsent {
    #[error("the URL cannot be called: {0}")]
    InvalidUrl(&'static str),
    #[error("the request cannot be sent: {0}")]
    Unsendable(String),
    #[error("the {part} of the request is over the limit of {limit}")]
    RequestTooLarge { part: &'static str, limit: usize },
    #[error("{origin} may not be called: its address is {why}")]
    AddressRefused { origin: String, why: &'static str },
    #[error("the name in {origin} cannot be resolved")]
    NameUnresolved { origin: String, source: Cause },
    #[error("no connection to {origin}")]
    ConnectFailed { origin: String, source: Cause },
    #[error("no trusted connection to {origin}")]
    TlsFailed { origin: String, source: Cause },
    #[error("{origin} did not answer within {} ms", after.as_millis())]
    TimedOut { origin: String, after: Duration, connected: bool },
    #[error("the {part} of the answer of {origin} is over the limit of {limit}")]
    AnswerTooLarge { origin: String, part: &'static str, limit: usize },
    #[error("the answer of {origin} broke off or is not HTTP")]
    AnswerBroken { origin: String, source: Cause },
}

pub type Cause = Box<dyn Error + Send + Sync>;

/// Every code there is.
pub const CODES: [&str; 10] = [
    "invalid_url",
    "unsendable",
    "request_too_large",
    "address_refused",
    "name_unresolved",
    "connect_failed",
    "tls_failed",
    "timed_out",
    "response_too_large",
    "response_broken",
];

impl Unsent {
    /// Stable.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::InvalidUrl(_) => "invalid_url",
            Self::Unsendable(_) => "unsendable",
            Self::RequestTooLarge { .. } => "request_too_large",
            Self::AddressRefused { .. } => "address_refused",
            Self::NameUnresolved { .. } => "name_unresolved",
            Self::ConnectFailed { .. } => "connect_failed",
            Self::TlsFailed { .. } => "tls_failed",
            Self::TimedOut { .. } => "timed_out",
            Self::AnswerTooLarge { .. } => "response_too_large",
            Self::AnswerBroken { .. } => "response_broken",
        }
    }

    /// Whether the same request may be answered a little later. A certificate that is not believed
    /// now is not believed then.
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::NameUnresolved { .. }
            | Self::ConnectFailed { .. }
            | Self::TimedOut { .. }
            | Self::AnswerBroken { .. } => true,
            Self::InvalidUrl(_)
            | Self::Unsendable(_)
            | Self::RequestTooLarge { .. }
            | Self::AddressRefused { .. }
            | Self::TlsFailed { .. }
            | Self::AnswerTooLarge { .. } => false,
        }
    }

    /// Whether the other side may have received the request, and acted on it. If in doubt: yes.
    pub const fn may_have_arrived(&self) -> bool {
        match self {
            Self::TimedOut { connected, .. } => *connected,
            Self::AnswerTooLarge { .. } | Self::AnswerBroken { .. } => true,
            Self::InvalidUrl(_)
            | Self::Unsendable(_)
            | Self::RequestTooLarge { .. }
            | Self::AddressRefused { .. }
            | Self::NameUnresolved { .. }
            | Self::ConnectFailed { .. }
            | Self::TlsFailed { .. } => false,
        }
    }
}

/// Whether an error of a client that [`crate::Trust`] made is about whom to believe.
pub fn is_untrusted(error: &(dyn Error + 'static)) -> bool {
    matches!(heart(error), Heart::Tls)
}

/// What the library's error was at heart.
pub enum Heart {
    Refused(&'static str),
    Unresolved,
    Tls,
    HeadTooLarge,
    Other,
}

pub fn heart(error: &(dyn Error + 'static)) -> Heart {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(refused) = error.downcast_ref::<Refused>() {
            return Heart::Refused(refused.why);
        }
        if error.is::<Unresolved>() {
            return Heart::Unresolved;
        }
        if error.is::<rustls::Error>() {
            return Heart::Tls;
        }
        if error.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_parse_too_large) {
            return Heart::HeadTooLarge;
        }
        // An IO error passes over the error that it wraps when asked for its source.
        next = match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    Heart::Other
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_explained_and_every_explained_code_exists() {
        let text = include_str!("../../../docs/errors.md");
        let start = text.find("\n## Requests that Baton sends\n").expect("the section exists") + 4;
        let rest = &text[start..];
        let end = rest.find("\n## ").unwrap_or(rest.len());
        let explained: Vec<_> = rest[..end].lines().filter_map(|line| line.strip_prefix("### ")).collect();
        assert_eq!(explained, CODES);
    }
}
