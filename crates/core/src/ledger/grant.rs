//! Giving an org credits.

use super::{Account, Entry, Kind, OrgAccount, Posting};
use crate::canon::Json;
use crate::changes::Changes;
use crate::command::{Command, Ctx, Decision, Reads, Refusal};
use crate::credits::Credits;
use crate::definition::Definitions;
use crate::doc::{self, Doc};
use crate::event::{Event, Head};
use crate::limits;
use crate::name::OrgId;
use crate::world::View;
use serde_json::json;

#[derive(Clone, Debug)]
pub struct Grant {
    pub org: OrgId,
    pub amount: Credits,
    /// The same key again, with the same amount, gives nothing more.
    pub key: String,
    pub note: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Granted {
    /// Nothing if a grant with this key was given before.
    pub posting: Option<Posting>,
    pub balance: Credits,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GrantError {
    #[error("an amount to grant is more than nothing")]
    Nothing,
    #[error("the balance would be more than {}", Credits::MAX)]
    TooMuch,
    #[error("the key of a grant has 1 to {} characters, and no NUL among them", limits::IDEMPOTENCY_KEY_CHARS)]
    BadKey,
    #[error("the key {0} was used to grant another amount")]
    OtherAmount(String),
}

impl Refusal for GrantError {
    fn code(&self) -> &'static str {
        match self {
            Self::Nothing => "invalid_amount",
            Self::TooMuch => "balance_too_large",
            Self::BadKey => "invalid_key",
            Self::OtherAmount(_) => "idempotency_key_reused",
        }
    }
}

impl Grant {
    fn doc(&self) -> doc::Key {
        doc::Key { class: doc::Class::Grant, key: self.key.clone() }
    }
}

impl Command for Grant {
    type Out = Granted;
    type No = GrantError;

    fn org(&self) -> &OrgId {
        &self.org
    }

    fn reads(&self, _: &Definitions) -> Reads {
        let mut reads = OrgAccount::reads();
        reads.docs.insert(self.doc());
        reads
    }

    fn decide(&self, view: &View<'_>, cx: &mut Ctx<'_>) -> Decision<Granted, GrantError> {
        let chars = self.key.chars().count();
        if chars == 0 || chars > limits::IDEMPOTENCY_KEY_CHARS || self.key.contains('\0') {
            return Decision::Refused(GrantError::BadKey);
        }
        if self.amount.is_zero() {
            return Decision::Refused(GrantError::Nothing);
        }
        let mut account = OrgAccount::of(view);
        if let Some(given) = view.doc(&self.doc()) {
            if given.body.value()["amount"] != json!(self.amount) {
                return Decision::Refused(GrantError::OtherAmount(self.key.clone()));
            }
            return Decision::Done(Granted { posting: None, balance: account.purse.balance }, Changes::none());
        }
        // What is reserved comes back, and must fit too.
        let all = account.reserved.plus(account.purse.balance).and_then(|all| all.plus(self.amount));
        if all.is_none() {
            return Decision::Refused(GrantError::TooMuch);
        }
        let entry = Entry { account: Account::Org, kind: Kind::Grant, key: self.key.clone(), run: None, at: cx.now };
        let Ok(Some(posting)) = account.purse.post(self.amount, entry) else {
            return Decision::Refused(GrantError::TooMuch);
        };
        let id = cx.ids.doc();
        let note = self.note.as_deref().map(|note| limits::cut(note, limits::NOTE_CHARS));
        let body = Json::of(&json!({ "amount": self.amount, "at": cx.now, "by": cx.actor.to_string(), "note": note }));
        let told = json!({ "amount": self.amount, "balance": account.purse.balance, "n": posting.n });
        let mut changes = account.put(cx.ids);
        changes.postings.push(posting.clone());
        let balance = account.purse.balance;
        let changes = changes
            .doc(doc::Change::Put(self.doc(), Doc { id, flag: false, body, head: Head::NONE }))
            .event(Event::new(doc::Class::Grant.subject(id), "grant.given", told));
        Decision::Done(Granted { posting: Some(posting), balance }, changes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::bench_top::BenchTop;

    fn grant(amount: u32, key: &str) -> Grant {
        Grant { org: OrgId::default(), amount: Credits::whole(amount), key: key.to_owned(), note: None }
    }

    #[test]
    fn a_grant_is_given_once_per_key() {
        let mut top = BenchTop::new();
        let given = top.done(&grant(5, "a"));
        assert_eq!((given.posting.unwrap().n, given.balance), (1, Credits::whole(5)));
        let again = top.done(&grant(5, "a"));
        assert_eq!((again.posting, again.balance), (None, Credits::whole(5)));
        assert_eq!(top.done(&grant(2, "b")).balance, Credits::whole(7));
        assert_eq!(top.kinds(), ["account.opened", "grant.given", "grant.given"]);
        assert_eq!(top.refuse(&grant(0, "c")), GrantError::Nothing);
        assert_eq!(top.refuse(&grant(1, "")), GrantError::BadKey);
        assert_eq!(top.refuse(&Grant { amount: Credits::MAX, ..grant(1, "d") }), GrantError::TooMuch);
    }
}
