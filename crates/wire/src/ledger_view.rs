//! Money on the wire.

use crate::shape::Shape;
use crate::time::Time;
use baton_core::RunId;
use baton_core::credits::Credits;
use baton_core::ledger::Kind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which way an entry moves a balance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    In,
    Out,
}

impl Direction {
    pub const fn of(kind: Kind) -> Self {
        if kind.is_into() { Self::In } else { Self::Out }
    }
}

/// One entry of an account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LedgerEntry {
    /// `org`, an attempt of a run as `run_…/1`, or an agent.
    pub account: String,
    /// Counts 1, 2, 3 … per account.
    pub n: i64,
    #[schemars(with = "Shape<Kind>")]
    pub kind: Kind,
    pub direction: Direction,
    #[schemars(with = "Shape<Credits>")]
    pub amount: Credits,
    #[schemars(with = "Shape<Credits>")]
    pub balance_after: Credits,
    /// What it is for, once per account and kind.
    pub key: String,
    /// The run that it was made for, if any.
    #[schemars(with = "Option<Shape<RunId>>")]
    pub run_id: Option<RunId>,
    pub at: Time,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LedgerList {
    pub entries: Vec<LedgerEntry>,
    pub next_cursor: Option<String>,
}

/// What an org has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Balance {
    /// What can be reserved for runs.
    #[schemars(with = "Shape<Credits>")]
    pub available: Credits,
    /// What is reserved for runs that have not ended, spent or not.
    #[schemars(with = "Shape<Credits>")]
    pub reserved: Credits,
    /// Entries of the org's account so far.
    pub entries: i64,
}

/// Credits that an org is to be given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object with an amount")]
pub struct NewGrant {
    #[schemars(with = "Shape<Credits>")]
    pub amount: Credits,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Credits that an org was given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Granted {
    #[schemars(with = "Shape<Credits>")]
    pub amount: Credits,
    /// What the org can spend from then on.
    #[schemars(with = "Shape<Credits>")]
    pub balance: Credits,
    /// Null if a grant under this key was given before.
    pub entry: Option<LedgerEntry>,
}
