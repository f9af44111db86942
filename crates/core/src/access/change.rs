//! Making, rotating and revoking keys, and founding the orgs that they belong to.

use super::grant::{BadGrant, Grant};
use super::key::{Ended, GRACE_MAX, Key, Proof, Replaced};
use crate::canon::Json;
use crate::changes::Changes;
use crate::command::{Command, Ctx, Decision, Reads, Refusal};
use crate::definition::Definitions;
use crate::doc::{self, Doc};
use crate::event::{Event, Head};
use crate::id::{DocId, KeyId};
use crate::limits;
use crate::name::OrgId;
use crate::time::{Micros, Span};
use crate::world::View;
use serde_json::json;

/// A key that somebody asks for. Whoever asks draws the id and the secret: what is decided here
/// may be decided twice, and never sees more than the secret's hash.
#[derive(Clone, Debug)]
pub struct NewKey {
    pub id: KeyId,
    pub label: String,
    pub grant: Grant,
    pub proof: Proof,
    pub expires_at: Option<Micros>,
}

/// A key as it stands after a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    pub id: KeyId,
    pub key: Key,
    /// It was not so before.
    pub changed: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    #[error("key {0} does not exist")]
    NotFound(KeyId),
    #[error("there is a key {0} already")]
    Exists(KeyId),
    #[error("there is an org {0} already")]
    OrgExists(OrgId),
    #[error(transparent)]
    Grant(#[from] BadGrant),
    #[error("a key's label has 1 to {max} characters and none that cannot be printed")]
    Label { max: usize },
    #[error("a key cannot expire before it is made")]
    Expired,
    #[error("a replaced secret can be accepted for at most {} days more", max.0 / Span::secs(86_400).0)]
    Grace { max: Span },
    #[error("key {0} was revoked or has expired; make a new one")]
    Dead(KeyId),
    #[error("key {0} cannot revoke itself; use another admin key")]
    Own(KeyId),
    #[error("key {0}, which asks for this, was revoked or has expired meanwhile")]
    Shut(KeyId),
    #[error(
        "{max} sessions of key {id} were ended lately, which is as many as are remembered; rotate the key to end all"
    )]
    Sessions { id: KeyId, max: usize },
}

impl Refusal for KeyError {
    fn code(&self) -> &'static str {
        match self {
            Self::NotFound(_) => "key_not_found",
            Self::Exists(_) => "key_exists",
            Self::OrgExists(_) => "org_exists",
            Self::Grant(_) | Self::Label { .. } | Self::Expired | Self::Grace { .. } => "invalid_key",
            Self::Dead(_) => "key_dead",
            Self::Own(_) => "own_key",
            Self::Shut(_) => "unauthenticated",
            Self::Sessions { .. } => "too_many_sessions",
        }
    }
}

impl NewKey {
    fn made(&self, now: Micros) -> Result<Key, KeyError> {
        self.grant.check()?;
        let printable = !self.label.trim().is_empty() && !self.label.chars().any(char::is_control);
        if !printable || self.label.chars().count() > limits::LABEL_CHARS {
            return Err(KeyError::Label { max: limits::LABEL_CHARS });
        }
        if self.expires_at.is_some_and(|at| at <= now) {
            return Err(KeyError::Expired);
        }
        Ok(Key {
            label: self.label.clone(),
            grant: self.grant.clone(),
            proof: self.proof,
            replaced: None,
            created_at: now,
            expires_at: self.expires_at,
            revoked_at: None,
            rotated_at: None,
            ended: Vec::new(),
        })
    }
}

/// Writes a key and tells of it. The history names what it may do, never what it is proven by.
fn put(id: KeyId, key: &Key, head: Head, kind: &'static str) -> Changes {
    let told = json!({
        "expires_at": key.expires_at,
        "label": key.label,
        "projects": key.grant.projects,
        "responsibilities": key.grant.responsibilities,
        "role": key.grant.role,
        "types": key.grant.types,
    });
    let doc = Doc { id: DocId(id.0), flag: key.revoked_at.is_some(), body: key.body(), head };
    let subject = doc::Class::Key.subject(doc.id);
    Changes::none().doc(doc::Change::Put(Key::at(id), doc)).event(Event::new(subject, kind, told))
}

/// Makes an org, with the admin key that it is governed by.
#[derive(Clone, Debug)]
pub struct Found {
    pub org: OrgId,
    pub first: NewKey,
}

impl Found {
    pub fn at(org: &OrgId) -> doc::Key {
        doc::Key { class: doc::Class::Org, key: org.to_string() }
    }
}

impl Command for Found {
    type Out = Kept;
    type No = KeyError;

    fn org(&self) -> &OrgId {
        &self.org
    }

    fn reads(&self, _: &Definitions) -> Reads {
        let mut reads = Reads::doc(Self::at(&self.org));
        reads.docs.insert(Key::at(self.first.id));
        reads
    }

    fn decide(&self, view: &View<'_>, cx: &mut Ctx<'_>) -> Decision<Kept, KeyError> {
        // What belongs to no tenant stands under an org that nobody may found.
        if view.doc(&Self::at(&self.org)).is_some() || self.org == OrgId::system() {
            return Decision::Refused(KeyError::OrgExists(self.org.clone()));
        }
        let key = match self.first.made(cx.now) {
            Ok(key) => key,
            Err(no) => return Decision::Refused(no),
        };
        let body = Json::of(&json!({ "created_at": cx.now }));
        let org = Doc { id: cx.ids.doc(), flag: false, body, head: Head::NONE };
        let told = json!({ "org": self.org });
        let event = Event::new(doc::Class::Org.subject(org.id), "org.founded", told);
        let founded = Changes::none().doc(doc::Change::Put(Self::at(&self.org), org)).event(event);
        let changes = founded.and(put(self.first.id, &key, Head::NONE, "key.created"));
        Decision::Done(Kept { id: self.first.id, key, changed: true }, changes)
    }
}

/// What to do with a key.
#[derive(Clone, Debug)]
pub enum Act {
    Create(Box<NewKey>),
    /// Gives it another secret; the old one is accepted for `grace` more.
    Rotate {
        proof: Proof,
        grace: Span,
    },
    Revoke,
    /// A session that was opened with it is not to be used any more.
    Leave(Ended),
}

#[derive(Clone, Debug)]
pub struct Change {
    pub org: OrgId,
    pub id: KeyId,
    pub act: Act,
    /// The key of the same org whose holder asks. It must be alive in this very commit: of two
    /// that revoke each other at once one is first, and the other one is not heard any more.
    pub by: Option<KeyId>,
}

impl Change {
    fn decided(&self, view: &View<'_>, cx: &Ctx<'_>) -> Result<(Kept, Changes), KeyError> {
        if let Some(by) = self.by
            && !view.doc(&Key::at(by)).and_then(Key::of).is_some_and(|key| key.is_alive(cx.now))
        {
            return Err(KeyError::Shut(by));
        }
        let doc = view.doc(&Key::at(self.id));
        let known = doc.and_then(Key::of);
        let head = doc.map_or(Head::NONE, |doc| doc.head);
        let none = || KeyError::NotFound(self.id);
        let (key, kind) = match &self.act {
            Act::Create(_) if doc.is_some() => return Err(KeyError::Exists(self.id)),
            Act::Create(new) => (new.made(cx.now)?, "key.created"),
            Act::Rotate { grace, .. } if *grace > GRACE_MAX || grace.0 < 0 => {
                return Err(KeyError::Grace { max: GRACE_MAX });
            }
            Act::Rotate { proof, grace } => {
                let old = known.ok_or_else(none)?;
                if !old.is_alive(cx.now) {
                    return Err(KeyError::Dead(self.id));
                }
                let replaced = (grace.0 > 0).then(|| Replaced { proof: old.proof, until: cx.now.plus(*grace) });
                // Without the old secret its sessions are over, and need not be remembered.
                let ended = if replaced.is_some() { old.ended } else { Vec::new() };
                (Key { proof: *proof, replaced, rotated_at: Some(cx.now), ended, ..old }, "key.rotated")
            }
            // Somebody who can still come in is left, always.
            Act::Revoke if self.by == Some(self.id) => return Err(KeyError::Own(self.id)),
            Act::Revoke => {
                let old = known.ok_or_else(none)?;
                if old.revoked_at.is_some() {
                    return Ok((Kept { id: self.id, key: old, changed: false }, Changes::none()));
                }
                (Key { revoked_at: Some(cx.now), replaced: None, ended: Vec::new(), ..old }, "key.revoked")
            }
            Act::Leave(session) => {
                let mut key = known.ok_or_else(none)?;
                if key.has_ended(&session.session) {
                    return Ok((Kept { id: self.id, key, changed: false }, Changes::none()));
                }
                key.ended.retain(|ended| cx.now < ended.until);
                if key.ended.len() >= limits::ENDED_SESSIONS {
                    return Err(KeyError::Sessions { id: self.id, max: limits::ENDED_SESSIONS });
                }
                key.ended.push(*session);
                (key, "key.session_ended")
            }
        };
        let changes = put(self.id, &key, head, kind);
        Ok((Kept { id: self.id, key, changed: true }, changes))
    }
}

impl Command for Change {
    type Out = Kept;
    type No = KeyError;

    fn org(&self) -> &OrgId {
        &self.org
    }

    fn reads(&self, _: &Definitions) -> Reads {
        let mut reads = Reads::doc(Key::at(self.id));
        reads.docs.extend(self.by.map(Key::at));
        reads
    }

    fn decide(&self, view: &View<'_>, cx: &mut Ctx<'_>) -> Decision<Kept, KeyError> {
        match self.decided(view, cx) {
            Ok((kept, changes)) => Decision::Done(kept, changes),
            Err(no) => Decision::Refused(no),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::role::Role;
    use crate::canon::Digest;
    use crate::job::bench_top::{BenchTop, NOW};
    use uuid::Uuid;

    const ID: KeyId = KeyId(Uuid::from_u128(7));

    fn proof(text: &str) -> Proof {
        Proof(Digest::of(&[text.as_bytes()]))
    }

    fn new(role: Role) -> NewKey {
        NewKey { id: ID, label: "ci".to_owned(), grant: Grant::of(role), proof: proof("one"), expires_at: None }
    }

    fn act(act: Act) -> Change {
        Change { org: OrgId::default(), id: ID, act, by: None }
    }

    fn create(new: NewKey) -> Change {
        Change { id: new.id, ..act(Act::Create(Box::new(new))) }
    }

    #[test]
    fn an_org_is_founded_once_with_a_key_to_it() {
        let mut top = BenchTop::new();
        let found = Found { org: "acme".parse().unwrap(), first: new(Role::Admin) };
        assert!(top.done(&found).key.accepts(&proof("one"), NOW));
        assert_eq!(top.refuse(&found).code(), "org_exists");
        let elsewhere = Found { org: "other".parse().unwrap(), ..found };
        assert!(top.done(&elsewhere).changed, "orgs do not see each other's keys");
    }

    #[test]
    fn a_key_is_made_rotated_and_revoked() {
        let mut top = BenchTop::new();
        let create = create(new(Role::Operator));
        assert_eq!(top.refuse(&act(Act::Revoke)).code(), "key_not_found");
        top.done(&create);
        assert_eq!(top.refuse(&create).code(), "key_exists");
        let rotate = |secret: &str, grace| act(Act::Rotate { proof: proof(secret), grace });
        let kept = top.done(&rotate("two", Span::secs(60))).key;
        assert!(kept.accepts(&proof("one"), NOW) && kept.accepts(&proof("two"), NOW));
        assert!(!kept.accepts(&proof("one"), NOW.plus(Span::secs(60))));
        let kept = top.done(&rotate("three", Span(0))).key;
        assert!(!kept.accepts(&proof("two"), NOW), "without grace the old secret is nothing");
        assert_eq!(top.refuse(&rotate("four", Span::secs(8 * 86_400))).code(), "invalid_key");
        assert!(top.done(&act(Act::Revoke)).changed);
        assert!(!top.done(&act(Act::Revoke)).changed, "it was so already");
        assert_eq!(top.refuse(&rotate("four", Span(0))).code(), "key_dead");
        for secret in ["one", "two", "three"] {
            let hash = proof(secret).0.to_string();
            assert!(!top.texts().contains(&hash), "the history holds nothing to try secrets on");
        }
    }

    #[test]
    fn nobody_locks_the_door_behind_themselves() {
        let mut top = BenchTop::new();
        let other = KeyId(Uuid::from_u128(8));
        top.done(&create(new(Role::Admin)));
        top.done(&create(NewKey { id: other, ..new(Role::Admin) }));
        let revoke = |id, by| Change { id, by: Some(by), ..act(Act::Revoke) };
        assert_eq!(top.refuse(&revoke(ID, ID)).code(), "own_key");
        assert!(top.done(&revoke(ID, other)).changed);
        assert_eq!(top.refuse(&revoke(other, ID)), KeyError::Shut(ID), "it was first");
        assert_eq!(top.refuse(&revoke(ID, KeyId(Uuid::from_u128(9)))).code(), "unauthenticated");
    }

    #[test]
    fn sessions_that_were_left_are_remembered_until_they_would_be_over() {
        let mut top = BenchTop::new();
        top.done(&create(new(Role::Viewer)));
        let session = |n: usize, until| Ended { session: Digest::of(&[&n.to_be_bytes()]), until };
        let soon = NOW.plus(Span::secs(60));
        for n in 0..limits::ENDED_SESSIONS {
            assert!(top.done(&act(Act::Leave(session(n, soon)))).changed);
        }
        assert!(!top.done(&act(Act::Leave(session(0, soon)))).changed, "it was left before");
        let late = act(Act::Leave(session(limits::ENDED_SESSIONS, soon.plus(Span::secs(60)))));
        assert_eq!(top.refuse(&late).code(), "too_many_sessions");
        let rotate = |grace| act(Act::Rotate { proof: proof("two"), grace });
        assert_eq!(top.done(&rotate(Span::secs(1))).key.ended.len(), limits::ENDED_SESSIONS);
        assert!(top.done(&rotate(Span(0))).key.ended.is_empty(), "no session outlives its secret");
        for n in 0..limits::ENDED_SESSIONS {
            top.done(&act(Act::Leave(session(n, soon))));
        }
        top.now = soon;
        let kept = top.done(&late).key;
        assert_eq!(kept.ended.len(), 1, "the others are over anyway");
        assert!(kept.has_ended(&session(limits::ENDED_SESSIONS, soon).session));
    }

    #[test]
    fn what_cannot_be_a_key_is_said_so() {
        let mut top = BenchTop::new();
        let long = "x".repeat(limits::LABEL_CHARS + 1);
        for bad in [
            NewKey { label: " ".to_owned(), ..new(Role::Viewer) },
            NewKey { label: "a\nb".to_owned(), ..new(Role::Viewer) },
            NewKey { label: long, ..new(Role::Viewer) },
            NewKey { expires_at: Some(NOW), ..new(Role::Viewer) },
            NewKey { grant: Grant { types: Some([].into()), ..Grant::of(Role::Worker) }, ..new(Role::Worker) },
        ] {
            assert_eq!(top.refuse(&create(bad)).code(), "invalid_key");
        }
    }
}
