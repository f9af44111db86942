//! Money: who has how much, and every entry that made it so.
//!
//! Accounts form a tree: an org's, one of each attempt of a run below it, one of each agent below that.
//! An entry moves an amount into or out of one account; its kind says which way. Whoever changes a
//! balance says so in the same commit, so that entries and balances are two views of one thing.
//!
//! Invariants
//! - No balance is ever negative, and no entry is ever changed or removed.
//! - Entries of an account are numbered 1, 2, 3 … and carry the balance after them.
//! - One entry per (account, kind, key): saying the same thing twice moves nothing twice. The databases refuse a
//!   second one of the org's account; of the others the audit finds it.
//! - Only grants, reservations and refunds touch the org's account; so steps of different runs never
//!   wait for one row. That row is locked while it is looked at, which is why reading what others have
//!   committed is isolation enough: whoever reserves next sees what was reserved before.

pub mod grant;

use crate::canon::Json;
use crate::changes::Changes;
use crate::command::Reads;
use crate::credits::Credits;
use crate::doc::{self, Doc};
use crate::event::{Event, Head};
use crate::id::{AgentId, Ids, RunId};
use crate::time::Micros;
use crate::world::View;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::fmt;

/// Whose balance an entry changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Account {
    Org,
    /// One attempt of a run.
    Run(RunId, u32),
    Agent(AgentId),
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Org => f.write_str("org"),
            Self::Run(run, attempt) => write!(f, "{run}/{attempt}"),
            Self::Agent(agent) => agent.fmt(f),
        }
    }
}

/// What an entry is for. Each leads into an account or out of one, never both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Into an org: somebody gave it credits.
    Grant,
    /// Out of an org: for an attempt of a run.
    Reserve,
    /// Into an attempt: what was reserved for it.
    Reserved,
    /// Out of an attempt: for one of its agents.
    Allocate,
    /// Into an agent: what was allocated to it.
    Allocated,
    /// Out of an agent: spent on a call.
    Charge,
    /// Out of an agent that ended: what it did not spend.
    GiveBack,
    /// Into an attempt: what an agent gave back.
    Returned,
    /// Out of an attempt that ended: what was not spent.
    Release,
    /// Into an org: what an attempt did not spend.
    Refund,
}

impl Kind {
    pub const ALL: [Self; 10] = [
        Self::Grant,
        Self::Reserve,
        Self::Reserved,
        Self::Allocate,
        Self::Allocated,
        Self::Charge,
        Self::GiveBack,
        Self::Returned,
        Self::Release,
        Self::Refund,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Grant => "grant",
            Self::Reserve => "reserve",
            Self::Reserved => "reserved",
            Self::Allocate => "allocate",
            Self::Allocated => "allocated",
            Self::Charge => "charge",
            Self::GiveBack => "give_back",
            Self::Returned => "returned",
            Self::Release => "release",
            Self::Refund => "refund",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }

    /// Whether the balance grows by it.
    pub const fn is_into(self) -> bool {
        matches!(self, Self::Grant | Self::Reserved | Self::Allocated | Self::Returned | Self::Refund)
    }
}

/// One entry, as it is appended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Posting {
    pub account: Account,
    pub n: i64,
    pub kind: Kind,
    pub amount: Credits,
    pub balance_after: Credits,
    /// What it is for, once per account and kind.
    pub key: String,
    /// The run it was made for, if any.
    pub run: Option<RunId>,
    pub at: Micros,
}

/// A balance, and how many entries made it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Purse {
    pub balance: Credits,
    pub n: i64,
}

/// There is not that much, or there would be too much.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the balance is {balance}, and {amount} cannot be moved")]
pub struct Short {
    pub balance: Credits,
    pub amount: Credits,
}

/// What an entry is about, beside its amount.
#[derive(Clone, Debug)]
pub struct Entry {
    pub account: Account,
    pub kind: Kind,
    pub key: String,
    pub run: Option<RunId>,
    pub at: Micros,
}

impl Purse {
    /// Moves an amount and says so. Nothing is said of nothing.
    pub fn post(&mut self, amount: Credits, entry: Entry) -> Result<Option<Posting>, Short> {
        if amount.is_zero() {
            return Ok(None);
        }
        let after = if entry.kind.is_into() { self.balance.plus(amount) } else { self.balance.minus(amount) };
        let balance_after = after.ok_or(Short { balance: self.balance, amount })?;
        *self = Self { balance: balance_after, n: self.n + 1 };
        let Entry { account, kind, key, run, at } = entry;
        Ok(Some(Posting { account, n: self.n, kind, amount, balance_after, key, run, at }))
    }
}

/// The document that says what an org has to spend.
#[derive(Clone, Debug)]
pub struct OrgAccount {
    pub purse: Purse,
    /// Reserved for attempts that have not ended.
    pub reserved: Credits,
    known: Option<Doc>,
}

/// As it is stored.
#[derive(Default, Serialize, Deserialize)]
struct OrgBody {
    #[serde(flatten)]
    purse: Purse,
    reserved: Credits,
}

impl OrgAccount {
    fn at() -> doc::Key {
        doc::Key { class: doc::Class::Account, key: "org".to_owned() }
    }

    pub fn reads() -> Reads {
        Reads::doc(Self::at())
    }

    pub fn of(view: &View<'_>) -> Self {
        match view.doc(&Self::at()) {
            Some(doc) => Self::from_doc(doc.clone()),
            None => Self { purse: Purse::default(), reserved: Credits::ZERO, known: None },
        }
    }

    /// As a command has left it.
    pub fn from_doc(doc: Doc) -> Self {
        let OrgBody { purse, reserved } = serde_json::from_str(doc.body.as_str()).unwrap_or_default();
        Self { purse, reserved, known: Some(doc) }
    }

    /// Writes it. Its entries tell what happened to it; its own history only that it was opened.
    pub fn put(&self, ids: &mut Ids) -> Changes {
        let body = OrgBody { purse: self.purse, reserved: self.reserved };
        let body = Json::of(&serde_json::to_value(body).unwrap_or_default());
        match &self.known {
            Some(doc) => Changes::none().doc(doc::Change::Put(Self::at(), Doc { body, ..doc.clone() })),
            None => {
                let doc = Doc { id: ids.doc(), flag: false, body, head: Head::NONE };
                let opened = Event::new(doc::Class::Account.subject(doc.id), "account.opened", json!({}));
                Changes::none().doc(doc::Change::Put(Self::at(), doc)).event(opened)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    fn entry(kind: Kind) -> Entry {
        Entry { account: Account::Org, kind, key: "k".to_owned(), run: None, at: Micros(1) }
    }

    #[test]
    fn nothing_is_moved_that_is_not_there_and_nothing_is_said_of_nothing() {
        let mut purse = Purse::default();
        assert!(purse.post(Credits::whole(1), entry(Kind::Reserve)).is_err());
        assert_eq!(purse.post(Credits::ZERO, entry(Kind::Reserve)), Ok(None));
        assert_eq!(purse, Purse::default());
        assert!(purse.post(Credits::MAX, entry(Kind::Grant)).is_ok());
        assert!(purse.post(Credits::whole(1), entry(Kind::Grant)).is_err(), "more than anybody can have");
    }

    proptest! {
        #[test]
        fn entries_always_sum_up_to_the_balance(moves in proptest::collection::vec((0usize..10, 0i64..1_000), 0..60)) {
            let mut purse = Purse::default();
            let (mut sum, mut n) = (0i64, 0);
            for (kind, amount) in moves {
                let kind = Kind::ALL[kind];
                let posted = purse.post(Credits::from_micros(amount).unwrap(), entry(kind));
                if let Ok(Some(posting)) = posted {
                    sum += if kind.is_into() { amount } else { -amount };
                    n += 1;
                    prop_assert_eq!(posting.balance_after.micros(), sum);
                    prop_assert_eq!(posting.n, n);
                }
                prop_assert!(sum >= 0);
                prop_assert_eq!(purse.balance.micros(), sum);
            }
        }
    }
}
