//! One clock of deadlines: lean rows, set in the commit that needs them.
//!
//! Firing a timer issues a command that looks at the state first, so a late or repeated timer
//! is harmless. A timer is touched only under the lock of its subject.

use crate::name::OrgId;
use crate::time::Micros;
use std::fmt;
use uuid::Uuid;

/// What a timer is for. One row per (subject, kind).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The job must have ended by then.
    JobDeadline,
    /// The graceful window of a cancellation is over.
    JobCancel,
    /// A recurring job is due.
    Schedule,
    /// A decision must have been answered by then.
    Decision,
    /// A run has waited, run or been paused for too long, or is to be attempted again.
    Run,
}

impl Kind {
    pub const ALL: [Self; 5] = [Self::JobDeadline, Self::JobCancel, Self::Schedule, Self::Decision, Self::Run];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::JobDeadline => "job.deadline",
            Self::JobCancel => "job.cancel",
            Self::Schedule => "schedule",
            Self::Decision => "decision",
            Self::Run => "run",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    pub subject: Uuid,
    pub kind: Kind,
}

/// A timer that has come due, as the engine finds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Due {
    pub org: OrgId,
    pub key: Key,
    pub at: Micros,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Set { key: Key, at: Micros },
    Clear { key: Key },
}
