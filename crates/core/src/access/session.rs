//! Login sessions: what a browser holds instead of a key.
//!
//! Nothing is kept of them but that somebody has left one. A session says whose it is and until when, under a MAC that also covers
//! the proof of the key's secret: so it ends with its time, and with its key, be that revoked, expired
//! or given another secret.

use super::key::Proof;
use crate::canon::Digest;
use crate::id::KeyId;
use crate::time::{Micros, Span};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::fmt;
use std::str::FromStr;
use uuid::Uuid;

/// How long a session lasts.
pub const LIFE: Span = Span::secs(12 * 60 * 60);

const PREFIX: &str = "bs_";

/// Opens sessions and recognises them. All nodes of an installation must hold the same secret.
#[derive(Clone)]
pub struct Sessions([u8; 32]);

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sessions(hidden)")
    }
}

/// A session as its browser holds it. It shows itself only when asked to: see [`Session::reveal`].
#[derive(Clone, PartialEq, Eq)]
pub struct Session {
    pub key: KeyId,
    /// When it ends.
    pub until: Micros,
    mac: Digest,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is no session")]
pub struct BadSession;

impl Sessions {
    pub const fn new(secret: [u8; 32]) -> Self {
        Self(secret)
    }

    /// For somebody who has shown the secret of this proof.
    pub fn open(&self, key: KeyId, proof: &Proof, now: Micros) -> Session {
        let until = now.plus(LIFE);
        let mac = self.mac(key, until, proof).finalize().into_bytes();
        Session { key, until, mac: Digest(mac.into()) }
    }

    /// Whether it was opened here with the secret of this proof and goes on.
    pub fn accepts(&self, session: &Session, proof: &Proof, now: Micros) -> bool {
        let made_here = self.mac(session.key, session.until, proof).verify_slice(&session.mac.0).is_ok();
        made_here & (now < session.until)
    }

    fn mac(&self, key: KeyId, until: Micros, proof: &Proof) -> Hmac<Sha256> {
        // A key of any length is accepted.
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).unwrap_or_else(|e| unreachable!("{e}"));
        for part in [&b"session\0"[..], key.0.as_bytes(), &until.0.to_be_bytes(), &proof.0.0] {
            mac.update(part);
        }
        mac
    }
}

impl Session {
    /// What it is called where it may be read by others: nothing can be opened with it.
    pub fn name(&self) -> Digest {
        Digest::of(&[&self.mac.0])
    }

    /// The text itself. Whoever calls this hands a session to somebody.
    pub fn reveal(&self) -> String {
        format!("{PREFIX}{}_{:016x}_{}", self.key.0.simple(), self.until.0, self.mac)
    }
}

impl FromStr for Session {
    type Err = BadSession;

    fn from_str(text: &str) -> Result<Self, BadSession> {
        let mut parts = text.strip_prefix(PREFIX).ok_or(BadSession)?.split('_');
        let (Some(key), Some(until), Some(mac), None) = (parts.next(), parts.next(), parts.next(), parts.next()) else {
            return Err(BadSession);
        };
        let lower = |text: &str| text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        if key.len() != 32 || until.len() != 16 || ![key, until, mac].into_iter().all(lower) {
            return Err(BadSession);
        }
        let key = KeyId(Uuid::try_parse(key).map_err(|_| BadSession)?);
        let until = Micros(i64::from_str_radix(until, 16).map_err(|_| BadSession)?);
        Ok(Self { key, until, mac: Digest::from_hex(mac).ok_or(BadSession)? })
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}_…", self.key.0.simple())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Micros = Micros(1_700_000_000_000_000);

    fn key(n: u128) -> KeyId {
        KeyId(Uuid::from_u128(n))
    }

    fn proof(text: &str) -> Proof {
        Proof(Digest::of(&[text.as_bytes()]))
    }

    #[test]
    fn a_session_is_of_one_key_one_secret_and_one_time() {
        let here = Sessions::new([1; 32]);
        let session = here.open(key(7), &proof("a"), NOW);
        assert!(here.accepts(&session, &proof("a"), NOW));
        assert!(here.accepts(&session, &proof("a"), Micros(session.until.0 - 1)));
        assert!(!here.accepts(&session, &proof("a"), session.until), "it is over");
        assert!(!here.accepts(&session, &proof("b"), NOW), "the key has another secret");
        assert!(!Sessions::new([2; 32]).accepts(&session, &proof("a"), NOW), "it was opened elsewhere");
        let longer = Session { until: session.until.plus(Span(1)), ..session.clone() };
        let others = Session { key: key(8), ..session };
        assert!(!here.accepts(&longer, &proof("a"), NOW) && !here.accepts(&others, &proof("a"), NOW));
    }

    #[test]
    fn a_session_goes_there_and_back_and_hides_itself() {
        let session = Sessions::new([1; 32]).open(key(7), &proof("a"), NOW);
        let text = session.reveal();
        assert_eq!(text.parse::<Session>(), Ok(session.clone()));
        let mac = text.rsplit('_').next().unwrap();
        assert!(!format!("{session:?}").contains(mac));
        for bad in
            ["", "bs_", &text[3..], &text[..text.len() - 1], &format!("{text}_"), &text.to_uppercase(), "bs_1_2_3"]
        {
            assert_eq!(bad.parse::<Session>(), Err(BadSession), "{bad}");
        }
    }
}
