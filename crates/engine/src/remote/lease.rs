//! A lease as a worker outside holds it: a text that means nothing to it.
//!
//! It names the job, the token and when the execution has taken too long. Who may use it is not in it: that is the
//! key that the request comes with, so a lease that somebody else got hold of is worth nothing to him.

use baton_core::id::{JobId, KeyId};
use baton_core::job::Fence;
use baton_core::{Micros, OrgId, WorkerId};
use std::fmt;
use std::str::FromStr;
use uuid::Uuid;

/// What people call a worker.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name(String);

impl Name {
    pub const MAX: usize = 64;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a worker's name must be 1 to 64 characters from letters, digits and . _ -")]
pub struct BadWorker;

impl FromStr for Name {
    type Err = BadWorker;

    fn from_str(text: &str) -> Result<Self, BadWorker> {
        let ok = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
        if text.is_empty() || text.len() > Self::MAX || !text.bytes().all(ok) {
            return Err(BadWorker);
        }
        Ok(Self(text.to_owned()))
    }
}

/// Who asks: a key, and what it calls itself.
#[derive(Clone, Debug)]
pub struct Worker {
    pub org: OrgId,
    pub key: KeyId,
    pub name: Option<Name>,
}

impl Worker {
    /// As it stands in leases and in the history.
    pub fn id(&self) -> WorkerId {
        let text = match &self.name {
            Some(Name(name)) => format!("{}/{name}", self.key),
            None => self.key.to_string(),
        };
        WorkerId::new(&text).unwrap_or_else(|e| unreachable!("{text}: {e}"))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    pub job: JobId,
    pub token: i64,
    /// When the execution has taken too long.
    pub ends: Option<Micros>,
    pub name: Option<Name>,
}

impl Lease {
    /// What whoever holds this key shows.
    pub fn fence(&self, org: &OrgId, key: KeyId) -> Fence {
        let worker = Worker { org: org.clone(), key, name: self.name.clone() };
        Fence { org: org.clone(), job: self.job, token: self.token, worker: worker.id() }
    }
}

impl fmt::Display for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ends = self.ends.map_or(0, |at| at.0);
        write!(f, "{}.{:x}.{ends:x}", self.job.0.simple(), self.token)?;
        self.name.as_ref().map_or(Ok(()), |Name(name)| write!(f, ".{name}"))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is not a lease as it was handed out")]
pub struct BadLease;

impl FromStr for Lease {
    type Err = BadLease;

    fn from_str(text: &str) -> Result<Self, BadLease> {
        let mut parts = text.splitn(4, '.');
        let mut part = || parts.next().ok_or(BadLease);
        let job = Uuid::try_parse(part()?).map_err(|_| BadLease)?;
        let token = i64::from_str_radix(part()?, 16).map_err(|_| BadLease)?;
        let ends = i64::from_str_radix(part()?, 16).map_err(|_| BadLease)?;
        let name = parts.next().map(Name::from_str).transpose().map_err(|_| BadLease)?;
        Ok(Self { job: JobId(job), token, ends: (ends > 0).then_some(Micros(ends)), name })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_goes_there_and_back_and_nothing_else_is_one() {
        for name in [None, Some("mailer-1.eu".parse().unwrap())] {
            for ends in [None, Some(Micros(1_800_000_000_000_000))] {
                let lease = Lease { job: JobId(Uuid::from_u128(7)), token: 41, ends, name: name.clone() };
                assert_eq!(lease.to_string().parse(), Ok(lease));
            }
        }
        for bad in ["", "x", "a.b.c", "00000000000000000000000000000007.1", "00000000000000000000000000000007.1.0./"] {
            assert_eq!(bad.parse::<Lease>(), Err(BadLease), "{bad}");
        }
    }

    #[test]
    fn another_key_makes_another_fence() {
        let lease = Lease { job: JobId(Uuid::from_u128(7)), token: 1, ends: None, name: None };
        let (one, two) = (KeyId(Uuid::from_u128(1)), KeyId(Uuid::from_u128(2)));
        let org = OrgId::default();
        assert_ne!(lease.fence(&org, one), lease.fence(&org, two));
    }
}
