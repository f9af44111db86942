//! The history: what happened to a subject, in order, chained by hash.
//!
//! Invariants
//! - Per subject, `n` counts 1, 2, 3 …; each hash covers the one before and the canonical text.
//! - Data holds references and digests, never payloads or secrets: what is append-only cannot
//!   be erased.
//! - Time never goes backwards per subject, even if a clock does.
//!
//! Elsewhere: positions for readers (`baton-store`), sealing ([`crate::seal`]).

use crate::canon::{Digest, Json};
use crate::doc;
use crate::id::{AgentId, DecisionId, DefinitionId, DocId, JobId, KeyId, RunId, WebhookId};
use crate::name::{OrgId, ProjectId, TypeName};
use crate::time::{Micros, Span};
use crate::told::Told;
use std::fmt;
use uuid::Uuid;

/// What an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    Job(JobId),
    Definition(DefinitionId),
    Run(RunId),
    /// Its tasks and steps are told of under it.
    Agent(AgentId),
    Doc(doc::Class, DocId),
}

impl Subject {
    pub const fn uuid(self) -> Uuid {
        match self {
            Self::Job(id) => id.0,
            Self::Definition(id) => id.0,
            Self::Run(id) => id.0,
            Self::Agent(id) => id.0,
            Self::Doc(_, id) => id.0,
        }
    }

    /// The event's kind starts with the subject's word, so rows need no column for it.
    pub fn of(kind: &str, id: Uuid) -> Option<Self> {
        match kind.split('.').next()? {
            "job" => Some(Self::Job(JobId(id))),
            "definition" => Some(Self::Definition(DefinitionId(id))),
            "run" => Some(Self::Run(RunId(id))),
            "agent" | "task" | "step" => Some(Self::Agent(AgentId(id))),
            word => doc::Class::parse(word).map(|class| Self::Doc(class, DocId(id))),
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Job(id) => id.fmt(f),
            Self::Definition(id) => id.fmt(f),
            Self::Run(id) => id.fmt(f),
            Self::Agent(id) => id.fmt(f),
            Self::Doc(doc::Class::Key, id) => KeyId(id.0).fmt(f),
            Self::Doc(doc::Class::Decision, id) => DecisionId(id.0).fmt(f),
            Self::Doc(doc::Class::Webhook, id) => WebhookId(id.0).fmt(f),
            Self::Doc(_, id) => id.fmt(f),
        }
    }
}

/// Something that a command says has happened; the chain numbers and hashes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub subject: Subject,
    /// `subject.verb_in_past`, such as `job.completed`.
    pub kind: &'static str,
    pub data: Told,
}

impl Event {
    pub fn new(subject: Subject, kind: &'static str, data: impl Into<Told>) -> Self {
        Self { subject, kind, data: data.into() }
    }
}

/// What logs and counters are told of a job's move, or of a request that came to nothing new.
/// Not part of the history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    pub job: JobId,
    pub project: ProjectId,
    pub kind: TypeName,
    pub attempt: u32,
    /// The event, or `job.deduplicated`.
    pub what: &'static str,
    pub reason: Option<String>,
    /// How long it could have been handed out before it was.
    pub waited: Option<Span>,
    /// From its first start to its end.
    pub ran: Option<Span>,
    pub background: bool,
}

/// Where a subject's chain ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    pub n: i64,
    pub hash: Digest,
    pub at: Micros,
}

impl Head {
    /// Before the first event.
    pub const NONE: Self = Self { n: 0, hash: Digest::ZERO, at: Micros(i64::MIN) };
}

/// An event as it stands in the history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    pub org: OrgId,
    pub subject: Uuid,
    pub n: i64,
    pub at: Micros,
    pub kind: String,
    pub actor: String,
    pub data: Json,
    pub hash: Digest,
}

impl Recorded {
    /// Appends `event` after `head`: the row, and the new head.
    pub fn append(head: Head, org: &OrgId, actor: impl Into<String>, now: Micros, event: Event) -> (Self, Head) {
        let mut row = Self {
            org: org.clone(),
            subject: event.subject.uuid(),
            n: head.n + 1,
            at: now.max(head.at),
            kind: event.kind.to_owned(),
            actor: actor.into(),
            data: event.data.json(),
            hash: Digest::ZERO,
        };
        row.hash = row.hash_after(head.hash);
        let head = Head { n: row.n, hash: row.hash, at: row.at };
        (row, head)
    }

    /// What the hash of this row must be if the row before it has `prev`.
    pub fn hash_after(&self, prev: Digest) -> Digest {
        Digest::of(&[&prev.0, &self.canonical()])
    }

    /// The text that is hashed. Keys in order, like all canonical JSON here.
    fn canonical(&self) -> Vec<u8> {
        let mut text = Vec::with_capacity(self.data.len() + 224);
        // Names and kinds are plain ASCII by construction, but a forged row need not be:
        // Debug of &str would not be JSON, so strings go through serde_json. Memory never fails to be written to.
        text.extend_from_slice(br#"{"actor":"#);
        let _ = serde_json::to_writer(&mut text, &self.actor);
        text.extend_from_slice(br#","at":"#);
        let _ = serde_json::to_writer(&mut text, &self.at.0);
        text.extend_from_slice(br#","data":"#);
        text.extend_from_slice(self.data.as_str().as_bytes());
        text.extend_from_slice(br#","kind":"#);
        let _ = serde_json::to_writer(&mut text, &self.kind);
        text.extend_from_slice(br#","n":"#);
        let _ = serde_json::to_writer(&mut text, &self.n);
        text.extend_from_slice(br#","org":"#);
        let _ = serde_json::to_writer(&mut text, self.org.as_str());
        text.extend_from_slice(br#","subject":""#);
        text.extend_from_slice(self.subject.simple().encode_lower(&mut [0; 32]).as_bytes());
        text.extend_from_slice(br#""}"#);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn event(text: &str) -> Event {
        Event {
            subject: Subject::Job(JobId(Uuid::from_u128(7))),
            kind: "job.queued",
            data: json!({ "t": text }).into(),
        }
    }

    #[test]
    fn a_chain_counts_links_and_never_turns_back_in_time() {
        let org = OrgId::default();
        let (a, head) = Recorded::append(Head::NONE, &org, "api", Micros(10), event("a"));
        let (b, head) = Recorded::append(head, &org, "api", Micros(5), event("b"));
        assert_eq!((a.n, b.n, b.at), (1, 2, Micros(10)));
        assert_eq!(b.hash, b.hash_after(a.hash));
        assert_eq!(head.hash, b.hash);
        let mut forged = b.clone();
        forged.data = Json::of(&json!({ "t": "c" }));
        assert_ne!(forged.hash_after(a.hash), b.hash);
    }

    #[test]
    fn the_kind_names_the_subject() {
        let id = Uuid::from_u128(9);
        assert_eq!(Subject::of("job.queued", id), Some(Subject::Job(JobId(id))));
        assert_eq!(Subject::of("definition.registered", id), Some(Subject::Definition(DefinitionId(id))));
        assert_eq!(Subject::of("moon.full", id), None);
    }
}
