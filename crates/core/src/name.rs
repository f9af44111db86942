//! Names that people choose: validated once, cheap to pass around.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Says why a text is not a name of the wanted kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} must be 1 to {max} characters from {allowed}, and not . or .. alone")]
pub struct BadName {
    pub what: &'static str,
    pub max: usize,
    pub allowed: &'static str,
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $what:literal, $max:literal, $allowed:literal, $ok:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            pub const MAX: usize = $max;

            pub fn new(text: &str) -> Result<Self, BadName> {
                let ok: fn(u8) -> bool = $ok;
                // Dots alone mean a directory wherever names become paths, in URLs for instance.
                let dots = matches!(text, "." | "..");
                if text.is_empty() || text.len() > $max || dots || !text.bytes().all(ok) {
                    return Err(BadName { what: $what, max: $max, allowed: $allowed });
                }
                Ok(Self(text.into()))
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl FromStr for $name {
            type Err = BadName;
            fn from_str(text: &str) -> Result<Self, BadName> {
                Self::new(text)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                Self::new(&String::deserialize(d)?).map_err(de::Error::custom)
            }
        }
    };
}

name!(
    /// A tenant. First part of every key.
    OrgId, "an org", 64, "a-z, 0-9, - and _",
    |b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_'
);
name!(
    /// A project inside an org; named by its users.
    ProjectId, "a project id", 128, "letters, digits and . _ : -",
    |b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b':' | b'-')
);
name!(
    /// The type of a job, such as `echo`.
    TypeName, "a job type", 64, "a-z, 0-9 and . _ -",
    |b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'.' | b'_' | b'-')
);
name!(
    /// Who holds a lease: a node, and later a remote worker's key.
    WorkerId, "a worker id", 128, "letters, digits and . _ : / -",
    |b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b':' | b'/' | b'-')
);
name!(
    /// A recurring job of a project; named by its users.
    ScheduleName, "a schedule name", 64, "letters, digits and . _ -",
    |b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-')
);
name!(
    /// A chat session that a job was started from.
    SessionId, "a session id", 128, "letters, digits and . _ : -",
    |b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b':' | b'-')
);

name!(
    /// Whose a decision is, such as `development_manager`; named by its users.
    Responsibility, "a responsibility", 64, "letters, digits and . _ -",
    |b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-')
);

name!(
    /// An agent, a task or a step inside a plan; named by whoever wrote it.
    PlanName, "a name in a plan", 64, "letters, digits, _ and -",
    |b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-')
);
name!(
    /// A tool, by the name that the operator gave it; `sleep`, `wait` and `ask` are there without.
    ToolName, "a tool name", 64, "a-z, 0-9 and . _ -",
    |b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'.' | b'_' | b'-')
);
name!(
    /// What a step waits for; named by whoever wrote the plan.
    SignalName, "a signal", 64, "letters, digits and . _ -",
    |b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-')
);

impl WorkerId {
    /// A worker outside goes by the key that it comes with, a node by a name of its own.
    pub fn is_outside(&self) -> bool {
        self.0.starts_with("key_")
    }
}

/// The one org that exists until there are keys to tell tenants apart.
pub const DEFAULT_ORG: &str = "default";
/// The project of what names none.
pub const DEFAULT_PROJECT: &str = "default";

impl OrgId {
    /// For the names that Baton itself gives; they are valid by being written here.
    pub(crate) fn reserved(name: &'static str) -> Self {
        debug_assert!(Self::new(name).is_ok());
        Self(name.into())
    }
}

/// Jobs that work on agents stand in a project of their own, so that they do not push those of their run's
/// project out of what is kept.
pub const AGENTS_PROJECT: &str = "baton:agents";

impl ProjectId {
    pub(crate) fn agents() -> Self {
        debug_assert!(Self::new(AGENTS_PROJECT).is_ok());
        Self(AGENTS_PROJECT.into())
    }
}

impl Default for OrgId {
    fn default() -> Self {
        Self::reserved(DEFAULT_ORG)
    }
}

impl Default for ProjectId {
    fn default() -> Self {
        Self(DEFAULT_PROJECT.into())
    }
}

impl PlanName {
    /// What the n-th of its kind is called if nobody said.
    pub(crate) fn numbered(kind: &'static str, n: usize) -> Self {
        let name = format!("{kind}-{n}");
        debug_assert!(Self::new(&name).is_ok());
        Self(name.into())
    }
}

impl ToolName {
    /// For the tools that are there without being declared.
    pub(crate) fn reserved(name: &'static str) -> Self {
        debug_assert!(Self::new(name).is_ok());
        Self(name.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked_where_they_enter() {
        assert!(OrgId::new("acme-1").is_ok());
        for bad in ["", "Acme", "a/b", "ä", "a b", "a\0b", &"x".repeat(65)] {
            assert!(OrgId::new(bad).is_err(), "{bad:?}");
        }
        assert!(ProjectId::new("Web.Shop:eu-1").is_ok());
        for bad in ["a/b", ".", ".."] {
            assert!(ProjectId::new(bad).is_err(), "{bad}");
        }
        assert!(ProjectId::new("...").is_ok());
        assert!(serde_json::from_str::<TypeName>("\"Echo\"").is_err());
    }
}
