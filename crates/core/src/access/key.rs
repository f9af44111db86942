//! A key as it is kept: whose it is, what it may do, and the hash of its secret. The secret itself
//! is shown once, where it was made, and never comes here.

use super::grant::Grant;
use crate::canon::{Digest, Json};
use crate::doc::{self, Doc};
use crate::id::KeyId;
use crate::time::{Micros, Span};
use serde::{Deserialize, Serialize};

/// SHA-256 of a secret. The secret has more random bits than anybody can guess, so it needs no salt
/// and no slow hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof(pub Digest);

impl Proof {
    /// Takes as long for every other proof, so that its time tells nothing of ours.
    pub fn matches(&self, other: &Self) -> bool {
        let differing = self.0.0.iter().zip(&other.0.0).fold(0u8, |seen, (a, b)| seen | (a ^ b));
        std::hint::black_box(differing) == 0
    }
}

/// A secret that was replaced and is still accepted for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replaced {
    pub proof: Proof,
    pub until: Micros,
}

/// A session that was ended before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    pub session: Digest,
    /// When it would have ended by itself; nobody needs to remember it longer.
    pub until: Micros,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    /// What people call it.
    pub label: String,
    pub grant: Grant,
    pub proof: Proof,
    #[serde(default)]
    pub replaced: Option<Replaced>,
    pub created_at: Micros,
    /// `None` never expires.
    #[serde(default)]
    pub expires_at: Option<Micros>,
    #[serde(default)]
    pub revoked_at: Option<Micros>,
    #[serde(default)]
    pub rotated_at: Option<Micros>,
    /// Sessions that somebody has left.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ended: Vec<Ended>,
}

impl Key {
    pub fn at(id: KeyId) -> doc::Key {
        doc::Key { class: doc::Class::Key, key: id.to_string() }
    }

    pub fn of(doc: &Doc) -> Option<Self> {
        serde_json::from_str(doc.body.as_str()).ok()
    }

    pub fn body(&self) -> Json {
        // Text keys only, so this cannot fail.
        Json::of(&serde_json::to_value(self).unwrap_or_default())
    }

    pub fn is_alive(&self, now: Micros) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|at| now < at)
    }

    /// The proofs of the secrets that open the door now, the key being alive.
    pub fn proofs(&self, now: Micros) -> impl Iterator<Item = Proof> {
        let before = self.replaced.filter(|old| now < old.until).map(|old| old.proof);
        [self.proof].into_iter().chain(before).filter(move |_| self.is_alive(now))
    }

    pub fn has_ended(&self, session: &Digest) -> bool {
        self.ended.iter().any(|ended| ended.session == *session)
    }

    /// Whether a secret with this hash opens the door now.
    pub fn accepts(&self, proof: &Proof, now: Micros) -> bool {
        // Both are compared whatever the first one says.
        let current = self.proof.matches(proof);
        let before = self.replaced.is_some_and(|old| old.proof.matches(proof) & (now < old.until));
        (current | before) && self.is_alive(now)
    }
}

/// Longest life of a replaced secret.
pub const GRACE_MAX: Span = Span::secs(7 * 24 * 60 * 60);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::role::Role;

    fn proof(text: &str) -> Proof {
        Proof(Digest::of(&[text.as_bytes()]))
    }

    fn key() -> Key {
        Key {
            label: "ci".to_owned(),
            grant: Grant::of(Role::Operator),
            proof: proof("new"),
            replaced: Some(Replaced { proof: proof("old"), until: Micros(50) }),
            created_at: Micros(1),
            expires_at: Some(Micros(100)),
            revoked_at: None,
            rotated_at: None,
            ended: vec![Ended { session: Digest::of(&[b"s"]), until: Micros(90) }],
        }
    }

    #[test]
    fn a_secret_opens_while_it_is_the_one_or_was_until_lately() {
        let accepts = |key: &Key, secret, at| key.accepts(&proof(secret), Micros(at));
        assert!(accepts(&key(), "new", 10) && accepts(&key(), "old", 49));
        assert!(!accepts(&key(), "old", 50), "its grace is over");
        assert!(accepts(&key(), "new", 99) && !accepts(&key(), "new", 100), "it expired");
        assert!(!accepts(&key(), "other", 10));
        let proofs = |key: &Key, at| key.proofs(Micros(at)).collect::<Vec<_>>();
        assert_eq!(proofs(&key(), 49), [proof("new"), proof("old")]);
        assert_eq!(proofs(&key(), 50), [proof("new")]);
        assert!(proofs(&key(), 100).is_empty());
        let revoked = Key { revoked_at: Some(Micros(5)), ..key() };
        assert!(!accepts(&revoked, "new", 10) && !accepts(&revoked, "old", 10));
    }

    #[test]
    fn what_is_kept_is_read_back() {
        let doc = Doc {
            id: crate::id::DocId(uuid::Uuid::nil()),
            flag: false,
            body: key().body(),
            head: crate::event::Head::NONE,
        };
        assert_eq!(Key::of(&doc), Some(key()));
    }
}
