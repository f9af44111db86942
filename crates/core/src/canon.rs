//! Canonical JSON text and digests: what two parties must agree on byte for byte.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::fmt;

/// JSON as canonical text: object keys in order, no white space. Parsed only when needed.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Json(Box<str>);

impl Json {
    /// `serde_json` keeps objects in a sorted map, so printing a value is canonical.
    pub fn of(value: &Value) -> Self {
        Self(value.to_string().into())
    }

    /// For text that was canonical when it was stored.
    pub fn stored(text: impl Into<Box<str>>) -> Self {
        Self(text.into())
    }

    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        Ok(Self::of(&serde_json::from_str(text)?))
    }

    /// Text that is not JSON (a database edited by hand) reads as null, never as a panic.
    pub fn value(&self) -> Value {
        serde_json::from_str(&self.0).unwrap_or(Value::Null)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn digest(&self) -> Digest {
        Digest::of(&[self.0.as_bytes()])
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A SHA-256.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// What the first link of a chain points to.
    pub const ZERO: Self = Self([0; 32]);

    pub fn of(parts: &[&[u8]]) -> Self {
        let mut hasher = Sha256::new();
        for part in parts {
            hasher.update(part);
        }
        Self(hasher.finalize().into())
    }

    pub fn from_slice(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    pub fn from_hex(text: &str) -> Option<Self> {
        if text.len() != 64 || !text.is_ascii() {
            return None;
        }
        let mut out = [0u8; 32];
        for (i, byte) in out.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * i..2 * i + 2], 16).ok()?;
        }
        Some(Self(out))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        let mut text = [0u8; 64];
        for (i, byte) in self.0.iter().enumerate() {
            text[2 * i] = HEX[usize::from(byte >> 4)];
            text[2 * i + 1] = HEX[usize::from(byte & 15)];
        }
        f.write_str(std::str::from_utf8(&text).unwrap_or_default())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Digest {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        Self::from_hex(&text).ok_or_else(|| serde::de::Error::custom("not 64 hexadecimal digits"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_value_has_one_text() {
        let a = Json::parse(r#"{ "b": [1, 2.5], "a": {"y":null,"x":"ü"} }"#).unwrap();
        let b = Json::parse(r#"{"a":{"x":"ü","y":null},"b":[1,2.5]}"#).unwrap();
        assert_eq!(a, b);
        assert_eq!(a.as_str(), r#"{"a":{"x":"ü","y":null},"b":[1,2.5]}"#);
        assert_eq!(a.digest(), b.digest());
    }

    #[test]
    fn digests_go_to_hex_and_back() {
        let d = Digest::of(&[b"abc"]);
        assert_eq!(d.to_string(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(Digest::from_hex(&d.to_string()), Some(d));
        assert_eq!(Digest::from_hex("xy"), None);
        assert_eq!(Digest::from_hex(&"ä".repeat(32)), None);
    }
}
