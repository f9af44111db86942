//! Cold things: an id, a flag to look for, a JSON document and a history. Lanes that were paused,
//! schedules, what retention has removed, orgs and the keys to them.

use crate::canon::Json;
use crate::event::{Head, Subject};
use crate::id::DocId;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// A lane that was paused at least once; the flag says that it is.
    Lane,
    /// A recurring job; the flag says that it is paused.
    Schedule,
    /// What was pruned of a project.
    Retention,
    /// A tenant.
    Org,
    /// A key to come in with; the flag says that it was revoked.
    Key,
    /// A question to people; the flag says that it is open.
    Decision,
    /// An endpoint that is told what happens; the flag says that it is.
    Webhook,
    /// A signal that a run was given; the flag says nothing.
    Signal,
    /// What an org has to spend; the flag says nothing.
    Account,
    /// Credits that an org was given; the flag says nothing.
    Grant,
}

impl Class {
    pub const ALL: [Self; 10] = [
        Self::Lane,
        Self::Schedule,
        Self::Retention,
        Self::Org,
        Self::Key,
        Self::Decision,
        Self::Webhook,
        Self::Signal,
        Self::Account,
        Self::Grant,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Lane => "lane",
            Self::Schedule => "schedule",
            Self::Retention => "retention",
            Self::Org => "org",
            Self::Key => "key",
            Self::Decision => "decision",
            Self::Webhook => "webhook",
            Self::Signal => "signal",
            Self::Account => "account",
            Self::Grant => "grant",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.as_str() == text)
    }

    pub const fn subject(self, id: DocId) -> Subject {
        Subject::Doc(self, id)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    pub class: Class,
    pub key: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doc {
    pub id: DocId,
    pub flag: bool,
    pub body: Json,
    pub head: Head,
}

#[derive(Clone, Debug)]
pub enum Change {
    Put(Key, Doc),
}
