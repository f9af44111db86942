//! Seals: a closed range of an org's history under a key that the database does not hold.
//!
//! Hash chains find a changed event. Seals also find a cut-off tail and a history rewritten
//! from the start, because whoever rewrites it cannot make the MAC. Each seal names the one
//! before, and all are written to the log as well.

use crate::canon::Digest;
use crate::changes::Changes;
use crate::command::{Command, Ctx, Decision, Reads, Refusal};
use crate::definition::Definitions;
use crate::name::OrgId;
use crate::time::Micros;
use crate::world::View;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest as _, Sha256};
use std::fmt;

/// The sealing key. Kept outside the database; never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Key([u8; 32]);

impl Key {
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

impl Key {
    /// Another key, for another purpose, from which this one cannot be told.
    pub fn derive(&self, purpose: &str) -> [u8; 32] {
        // A key of any length is accepted.
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).unwrap_or_else(|e| unreachable!("{e}"));
        mac.update(b"derive\0");
        mac.update(purpose.as_bytes());
        mac.finalize().into_bytes().into()
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(hidden)")
    }
}

/// The last seal of an org, as far as the next one cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SealHead {
    pub n: i64,
    pub to_pos: i64,
    pub mac: Digest,
}

impl SealHead {
    /// Before the first seal.
    pub const NONE: Self = Self { n: 0, to_pos: 0, mac: Digest::ZERO };
}

/// One closed range: every event of `org` with `from_pos < pos <= to_pos`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seal {
    pub org: OrgId,
    pub n: i64,
    pub from_pos: i64,
    pub to_pos: i64,
    pub count: i64,
    pub root: Digest,
    /// The MAC of the seal before.
    pub prev: Digest,
    pub at: Micros,
    pub mac: Digest,
}

impl Seal {
    pub const fn head(&self) -> SealHead {
        SealHead { n: self.n, to_pos: self.to_pos, mac: self.mac }
    }

    /// The seal after `last`, over a range that ends at `to_pos`.
    pub fn next(org: &OrgId, last: SealHead, to_pos: i64, root: Root, at: Micros, key: &Key) -> Self {
        let count = root.count;
        let mut seal = Self {
            org: org.clone(),
            n: last.n + 1,
            from_pos: last.to_pos,
            to_pos,
            count,
            root: root.finish(),
            prev: last.mac,
            at,
            mac: Digest::ZERO,
        };
        seal.mac = seal.mac_under(key);
        seal
    }

    /// The MAC this seal must carry under `key`.
    pub fn mac_under(&self, key: &Key) -> Digest {
        let text = format!(
            "baton seal 1\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}",
            self.org, self.n, self.from_pos, self.to_pos, self.count, self.root, self.prev, self.at.0
        );
        // HMAC takes keys of any length, so this cannot fail; a zero MAC would verify nowhere.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&key.0) else { return Digest::ZERO };
        mac.update(text.as_bytes());
        Digest(mac.finalize().into_bytes().into())
    }
}

/// The root over a range: fed position and hash of each event in order.
#[derive(Clone)]
pub struct Root {
    hasher: Sha256,
    pub count: i64,
}

impl Default for Root {
    fn default() -> Self {
        Self { hasher: Sha256::new(), count: 0 }
    }
}

impl Root {
    pub fn add(&mut self, pos: i64, hash: Digest) {
        self.hasher.update(pos.to_be_bytes());
        self.hasher.update(hash.0);
        self.count += 1;
    }

    pub fn finish(self) -> Digest {
        Digest(self.hasher.finalize().into())
    }
}

/// Closes a range. Of several nodes that try, one wins.
#[derive(Clone, Debug)]
pub struct Close {
    pub seal: Seal,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CloseError {
    #[error("another node sealed first")]
    Stale,
}

impl Refusal for CloseError {
    fn code(&self) -> &'static str {
        "seal_stale"
    }
}

impl Command for Close {
    type Out = ();
    type No = CloseError;

    fn org(&self) -> &OrgId {
        &self.seal.org
    }

    fn reads(&self, _: &Definitions) -> Reads {
        Reads::seal()
    }

    fn decide(&self, view: &View<'_>, _: &mut Ctx<'_>) -> Decision<(), CloseError> {
        let last = view.seal().copied().unwrap_or(SealHead::NONE);
        let seal = &self.seal;
        let follows = seal.n == last.n + 1 && seal.from_pos == last.to_pos && seal.prev == last.mac;
        if !follows || seal.to_pos <= seal.from_pos {
            return Decision::Refused(CloseError::Stale);
        }
        let mut changes = Changes::none();
        changes.seals.push(seal.clone());
        Decision::Done((), changes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seal() -> Seal {
        let mut root = Root::default();
        root.add(1, Digest::of(&[b"a"]));
        root.add(2, Digest::of(&[b"b"]));
        Seal {
            org: OrgId::default(),
            n: 1,
            from_pos: 0,
            to_pos: 2,
            count: root.count,
            root: root.finish(),
            prev: Digest::ZERO,
            at: Micros(5),
            mac: Digest::ZERO,
        }
    }

    #[test]
    fn the_mac_covers_every_field_and_the_key() {
        let key = Key::new([7; 32]);
        let good = seal().mac_under(&key);
        assert_eq!(good, seal().mac_under(&key));
        assert_ne!(good, seal().mac_under(&Key::new([8; 32])));
        let changed: [fn(&mut Seal); 7] = [
            |s| s.n += 1,
            |s| s.from_pos += 1,
            |s| s.to_pos += 1,
            |s| s.count += 1,
            |s| s.root = Digest::ZERO,
            |s| s.prev = Digest::of(&[b"x"]),
            |s| s.at = Micros(6),
        ];
        for change in changed {
            let mut s = seal();
            change(&mut s);
            assert_ne!(good, s.mac_under(&key));
        }
        assert_eq!(format!("{key:?}"), "Key(hidden)");
    }

    #[test]
    fn the_root_depends_on_order_and_position() {
        let (a, b) = (Digest::of(&[b"a"]), Digest::of(&[b"b"]));
        let root = |pairs: &[(i64, Digest)]| {
            let mut r = Root::default();
            pairs.iter().for_each(|(p, d)| r.add(*p, *d));
            r.finish()
        };
        assert_ne!(root(&[(1, a), (2, b)]), root(&[(1, b), (2, a)]));
        assert_ne!(root(&[(1, a)]), root(&[(2, a)]));
    }
}
