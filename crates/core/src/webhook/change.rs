//! Making, changing and removing endpoints.

use super::filter::Filter;
use super::{Disabled, Replaced, Webhook, Why};
use crate::changes::Changes;
use crate::command::{Command, Ctx, Decision, Reads, Refusal};
use crate::definition::Definitions;
use crate::doc::Doc;
use crate::event::Head;
use crate::id::WebhookId;
use crate::limits;
use crate::name::OrgId;
use crate::time::{Micros, Span};
use crate::world::View;

/// Longest time that a replaced secret is still signed with.
pub const GRACE_MAX: Span = Span::secs(7 * 24 * 60 * 60);

/// What somebody wants an endpoint to be like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    pub label: String,
    pub url: String,
    pub filter: Filter,
}

#[derive(Clone, Debug)]
pub enum Act {
    /// Begins at this place in the history, if there is room for it. Whoever asks draws the id: what
    /// is decided here may be decided twice.
    Create {
        spec: Spec,
        place: String,
        signer: String,
        room: bool,
    },
    Update(Spec),
    /// Another secret; also with the old one for `grace` more.
    Rotate {
        grace: Span,
        signer: String,
    },
    /// Goes on where it stopped, or at another place, if there is room for it.
    Enable {
        place: Option<String>,
        room: bool,
    },
    Disable,
    Delete,
}

#[derive(Clone, Debug)]
pub struct Change {
    pub org: OrgId,
    pub id: WebhookId,
    pub act: Act,
}

/// An endpoint as it stands after a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    pub id: WebhookId,
    pub webhook: Webhook,
    pub changed: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WebhookError {
    #[error("webhook {0} does not exist")]
    NotFound(WebhookId),
    #[error("there is a webhook {0} already")]
    Exists(WebhookId),
    #[error("an org can have {} webhooks that are told things; disable or delete one first", limits::WEBHOOKS)]
    TooMany,
    #[error("{0}")]
    Invalid(String),
}

impl Refusal for WebhookError {
    fn code(&self) -> &'static str {
        match self {
            Self::NotFound(_) => "webhook_not_found",
            Self::Exists(_) => "webhook_exists",
            Self::TooMany => "too_many_webhooks",
            Self::Invalid(_) => "invalid_webhook",
        }
    }
}

impl Spec {
    fn check(&self) -> Result<(), WebhookError> {
        let bad = |why: String| Err(WebhookError::Invalid(why));
        let printable = !self.label.trim().is_empty() && !self.label.chars().any(char::is_control);
        if !printable || self.label.chars().count() > limits::LABEL_CHARS {
            return bad(format!("a webhook's label has 1 to {} printable characters", limits::LABEL_CHARS));
        }
        let web = self.url.starts_with("https://") || self.url.starts_with("http://");
        if !web || self.url.len() > limits::URL_BYTES || self.url.bytes().any(|b| !b.is_ascii_graphic()) {
            return bad(format!(
                "a webhook's address begins with https:// and has at most {} bytes",
                limits::URL_BYTES
            ));
        }
        if !self.filter.fits() {
            return bad(format!("a filter names 1 to {} types or projects, or is left out", limits::GRANT_NAMES));
        }
        Ok(())
    }

    fn made(&self, place: &str, signer: &str, now: Micros) -> Webhook {
        Webhook {
            label: self.label.clone(),
            url: self.url.clone(),
            filter: self.filter.clone(),
            created_at: now,
            secret: 1,
            replaced: None,
            signer: signer.to_owned(),
            place: place.to_owned(),
            failures: 0,
            failing_since: None,
            disabled: None,
            deleted_at: None,
        }
    }
}

impl Change {
    fn decided(&self, doc: Option<&Doc>, now: Micros) -> Result<(Kept, Changes), WebhookError> {
        let head = doc.map_or(Head::NONE, |doc| doc.head);
        if let Act::Create { spec, place, signer, room } = &self.act {
            if doc.is_some() {
                return Err(WebhookError::Exists(self.id));
            }
            if !room {
                return Err(WebhookError::TooMany);
            }
            spec.check()?;
            return Ok(self.kept(spec.made(place, signer, now), head, "webhook.created"));
        }
        let known = doc.and_then(Webhook::of).filter(|known| known.deleted_at.is_none());
        let known = known.ok_or(WebhookError::NotFound(self.id))?;
        let (next, kind) = match &self.act {
            Act::Create { .. } => return Err(WebhookError::Exists(self.id)),
            Act::Update(spec) => {
                spec.check()?;
                let (label, url, filter) = (spec.label.clone(), spec.url.clone(), spec.filter.clone());
                (Webhook { label, url, filter, ..known.clone() }, "webhook.updated")
            }
            Act::Rotate { grace, .. } if *grace > GRACE_MAX || grace.0 < 0 => {
                let days = GRACE_MAX.0 / Span::secs(86_400).0;
                return Err(WebhookError::Invalid(format!("a replaced secret is kept for at most {days} days")));
            }
            Act::Rotate { grace, signer } => {
                // What another signer made cannot be signed with here.
                let kept = grace.0 > 0 && *signer == known.signer;
                let replaced = kept.then(|| Replaced { version: known.secret, until: now.plus(*grace) });
                let next = Webhook { secret: known.secret + 1, replaced, signer: signer.clone(), ..known.clone() };
                (next, "webhook.rotated")
            }
            Act::Enable { room: false, .. } if known.disabled.is_some() => return Err(WebhookError::TooMany),
            Act::Enable { place, .. } => {
                let place = place.clone().unwrap_or_else(|| known.place.clone());
                let next = Webhook { disabled: None, failures: 0, failing_since: None, place, ..known.clone() };
                (next, "webhook.enabled")
            }
            Act::Disable if known.disabled.is_some() => (known.clone(), "webhook.disabled"),
            Act::Disable => {
                let disabled = Some(Disabled { at: now, why: Why::Asked });
                (Webhook { disabled, ..known.clone() }, "webhook.disabled")
            }
            Act::Delete => (Webhook { deleted_at: Some(now), ..known.clone() }, "webhook.deleted"),
        };
        if next == known {
            return Ok((Kept { id: self.id, webhook: known, changed: false }, Changes::none()));
        }
        Ok(self.kept(next, head, kind))
    }

    fn kept(&self, webhook: Webhook, head: Head, kind: &'static str) -> (Kept, Changes) {
        let changes = webhook.put(self.id, head, kind);
        (Kept { id: self.id, webhook, changed: true }, changes)
    }
}

impl Command for Change {
    type Out = Kept;
    type No = WebhookError;

    fn org(&self) -> &OrgId {
        &self.org
    }

    fn reads(&self, _: &Definitions) -> Reads {
        Reads::doc(Webhook::at(self.id))
    }

    fn decide(&self, view: &View<'_>, cx: &mut Ctx<'_>) -> Decision<Kept, WebhookError> {
        match self.decided(view.doc(&Webhook::at(self.id)), cx.now) {
            Ok((kept, changes)) => Decision::Done(kept, changes),
            Err(no) => Decision::Refused(no),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::job::bench_top::BenchTop;
    use uuid::Uuid;

    pub const ID: WebhookId = WebhookId(Uuid::from_u128(5));

    pub fn spec() -> Spec {
        Spec { label: "ours".to_owned(), url: "https://example.com/in".to_owned(), filter: Filter::default() }
    }

    pub fn change(act: Act) -> Change {
        Change { org: OrgId::default(), id: ID, act }
    }

    pub fn create() -> Change {
        change(Act::Create { spec: spec(), place: "c0".to_owned(), signer: "s".to_owned(), room: true })
    }

    #[test]
    fn an_endpoint_lives_until_it_is_deleted() {
        let mut top = BenchTop::new();
        assert_eq!(top.refuse(&change(Act::Disable)).code(), "webhook_not_found");
        assert!(top.done(&create()).webhook.is_live());
        assert_eq!(top.refuse(&create()).code(), "webhook_exists");
        assert!(!top.done(&change(Act::Disable)).webhook.is_live());
        assert!(!top.done(&change(Act::Disable)).changed, "it was before");
        let on = top.done(&change(Act::Enable { place: Some("c9".to_owned()), room: true }));
        assert_eq!((on.webhook.is_live(), on.webhook.place.as_str()), (true, "c9"));
        let other = Spec { url: "https://example.com/other".to_owned(), ..spec() };
        assert_eq!(top.done(&change(Act::Update(other.clone()))).webhook.url, other.url);
        top.done(&change(Act::Delete));
        for act in [Act::Delete, Act::Disable, Act::Update(other), Act::Enable { place: None, room: true }] {
            assert_eq!(top.refuse(&change(act)).code(), "webhook_not_found");
        }
        assert_eq!(top.refuse(&create()).code(), "webhook_exists", "an id is used once");
    }

    #[test]
    fn the_last_secret_is_kept_for_a_while_if_the_same_signer_made_it() {
        let mut top = BenchTop::new();
        top.done(&create());
        let rotate = |grace, signer: &str| change(Act::Rotate { grace, signer: signer.to_owned() });
        let once = top.done(&rotate(Span::secs(60), "s")).webhook;
        let until = top.now.plus(Span::secs(60));
        assert_eq!((once.secret, once.replaced), (2, Some(Replaced { version: 1, until })));
        let twice = top.done(&rotate(Span::secs(0), "s")).webhook;
        assert_eq!((twice.secret, twice.replaced), (3, None));
        let elsewhere = top.done(&rotate(Span::secs(60), "t")).webhook;
        assert_eq!((elsewhere.secret, elsewhere.replaced, elsewhere.signer.as_str()), (4, None, "t"));
        assert_eq!(top.refuse(&rotate(Span(GRACE_MAX.0 + 1), "s")).code(), "invalid_webhook");
    }

    #[test]
    fn what_cannot_be_an_endpoint_is_refused() {
        let mut top = BenchTop::new();
        for bad in [
            Spec { label: " ".to_owned(), ..spec() },
            Spec { url: "ftp://example.com".to_owned(), ..spec() },
            Spec { url: "https://example.com/a b".to_owned(), ..spec() },
            Spec { url: format!("https://example.com/{}", "x".repeat(limits::URL_BYTES)), ..spec() },
            Spec { filter: Filter { projects: Some(Default::default()), types: None }, ..spec() },
        ] {
            let made = change(Act::Create { spec: bad, place: "c0".to_owned(), signer: "s".to_owned(), room: true });
            assert_eq!(top.refuse(&made).code(), "invalid_webhook");
        }
        let full = Act::Create { spec: spec(), place: "c0".to_owned(), signer: "s".to_owned(), room: false };
        assert_eq!(top.refuse(&change(full)).code(), "too_many_webhooks");
    }
}
