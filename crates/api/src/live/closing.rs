//! Why a listener is sent away, in the words of both ways to listen. Each is explained in
//! `docs/errors.md`.

use crate::limits::RECONNECT_MS;
use crate::problem::Fault;
use axum::extract::ws::{CloseFrame, Message};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closing {
    /// Baton stops: come again.
    Restart,
    /// It did not accept what it was sent: come again from the last position.
    Slow,
    /// The key was revoked, rotated away or has expired.
    Unauthenticated,
    /// The database does not answer: come again later.
    Trouble,
}

impl Closing {
    pub const fn code(self) -> &'static str {
        match self {
            Self::Restart => "service_restart",
            Self::Slow => "slow_reader",
            Self::Unauthenticated => "unauthenticated",
            Self::Trouble => "store_unavailable",
        }
    }

    /// Registered numbers where there are, else from the range that is everybody's.
    const fn number(self) -> u16 {
        match self {
            Self::Restart => 1012,
            Self::Trouble => 1013,
            Self::Unauthenticated => 4401,
            Self::Slow => 4408,
        }
    }

    pub fn frame(self) -> Message {
        Message::Close(Some(CloseFrame { code: self.number(), reason: self.code().into() }))
    }

    /// The last event of a stream.
    pub fn event(self) -> String {
        let name = if self == Self::Unauthenticated { "closed" } else { "reconnect" };
        format!("event: {name}\nretry: {RECONNECT_MS}\ndata: {{\"code\":\"{}\"}}\n\n", self.code())
    }
}

impl From<Fault> for Closing {
    fn from(fault: Fault) -> Self {
        match fault.code() {
            "unauthenticated" => Self::Unauthenticated,
            "store_closed" => Self::Restart,
            _ => Self::Trouble,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_is_explained() {
        for closing in [Closing::Restart, Closing::Slow, Closing::Unauthenticated, Closing::Trouble] {
            let heading = format!("\n### {}\n", closing.code());
            assert!(crate::docs::ERRORS.contains(&heading), "{}", closing.code());
        }
    }

    #[test]
    fn a_stream_is_told_whether_to_come_again() {
        let restart = "event: reconnect\nretry: 1000\ndata: {\"code\":\"service_restart\"}\n\n";
        assert_eq!(Closing::Restart.event(), restart);
        assert!(Closing::Unauthenticated.event().starts_with("event: closed\n"));
    }
}
