//! The text that somebody comes in with: `bk_`, the key's id, and a secret that nobody can guess.

use baton_core::access::Proof;
use baton_core::canon::Digest;
use baton_core::id::KeyId;
use std::fmt;
use std::str::FromStr;
use uuid::Uuid;

/// What every key begins with, so that scanners for leaked secrets know it.
pub const PREFIX: &str = "bk_";
const SECRET_BYTES: usize = 32;

/// A key as its owner holds it. It shows itself only when asked to by name: see [`Token::reveal`].
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    pub id: KeyId,
    secret: [u8; SECRET_BYTES],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is no key; one begins with {PREFIX} and has 100 characters")]
pub struct BadToken;

impl Token {
    pub const fn new(id: KeyId, secret: [u8; SECRET_BYTES]) -> Self {
        Self { id, secret }
    }

    /// The same secret under another id.
    #[must_use]
    pub const fn renamed(self, id: KeyId) -> Self {
        Self { id, ..self }
    }

    /// What is kept of it.
    pub fn proof(&self) -> Proof {
        Proof(Digest::of(&[&self.secret]))
    }

    /// The text itself. Whoever calls this shows a secret to somebody.
    pub fn reveal(&self) -> String {
        use fmt::Write as _;
        let mut text = format!("{PREFIX}{}_", self.id.0.simple());
        for byte in self.secret {
            let _ = write!(text, "{byte:02x}");
        }
        text
    }
}

impl FromStr for Token {
    type Err = BadToken;

    fn from_str(text: &str) -> Result<Self, BadToken> {
        let (id, secret) = text.strip_prefix(PREFIX).and_then(|rest| rest.split_once('_')).ok_or(BadToken)?;
        let lower = |text: &str| text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        if id.len() != 32 || !lower(id) || !lower(secret) {
            return Err(BadToken);
        }
        let id = Uuid::try_parse(id).map_err(|_| BadToken)?;
        let secret = Digest::from_hex(secret).ok_or(BadToken)?.0;
        Ok(Self { id: KeyId(id), secret })
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}_…", self.id.0.simple())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_goes_there_and_back_and_hides_its_secret() {
        let token = Token::new(KeyId(Uuid::from_u128(7)), [0xab; 32]);
        let text = token.reveal();
        assert_eq!(text.len(), 100);
        assert_eq!(text.parse::<Token>(), Ok(token.clone()));
        assert!(!format!("{token:?}").contains("abab"));
        assert_ne!(token.proof(), Token::new(token.id, [0; 32]).proof());
    }

    #[test]
    fn nothing_else_is_a_key() {
        let text = Token::new(KeyId(Uuid::from_u128(7)), [1; 32]).reveal();
        for bad in [
            "",
            "bk_",
            "bk_7_1",
            &text[3..],
            &text[..99],
            &format!("{text}0"),
            &text.to_uppercase(),
            &text.replace("_01", "-01"),
            &text.replacen('0', "ü", 1),
        ] {
            assert_eq!(bad.parse::<Token>(), Err(BadToken), "{bad}");
        }
    }
}
