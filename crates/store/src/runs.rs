//! What reading gives back of runs and of money.

use crate::order::Order;
use baton_core::credits::Credits;
use baton_core::event::Head;
use baton_core::ledger::{Kind, Posting};
use baton_core::run::record::{StepMore, StepRecord, TaskRecord};
use baton_core::run::{Agent, Run, State};
use baton_core::{AgentId, Micros, OrgId, ProjectId, RunId};

/// Which runs of an org to list, by when they were made.
#[derive(Clone, Debug)]
pub struct ListRuns {
    pub org: OrgId,
    pub project: Option<ProjectId>,
    pub state: Option<State>,
    pub order: Order,
    /// Beyond this one, in that order.
    pub after: Option<RunId>,
    pub limit: usize,
}

/// One entry of an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerRow {
    pub account: String,
    pub n: i64,
    pub kind: Kind,
    pub amount: Credits,
    pub balance_after: Credits,
    pub key: String,
    pub run: Option<RunId>,
    pub at: Micros,
}

impl From<Posting> for LedgerRow {
    fn from(posting: Posting) -> Self {
        let Posting { account, n, kind, amount, balance_after, key, run, at } = posting;
        Self { account: account.to_string(), n, kind, amount, balance_after, key, run, at }
    }
}

/// Which entries to list: of these accounts, account by account, each from its last or first.
#[derive(Clone, Debug)]
pub struct ListLedger {
    pub org: OrgId,
    /// In the order of their names.
    pub accounts: Vec<String>,
    pub order: Order,
    /// Beyond this entry.
    pub after: Option<(String, i64)>,
    pub limit: usize,
}

/// Columns of an open row, as they were found.
pub(crate) struct Opened<'a> {
    pub org: OrgId,
    pub body: &'a str,
    pub head: Head,
}

pub(crate) fn run(id: RunId, row: Opened<'_>) -> Result<Run, serde_json::Error> {
    let run: Run = serde_json::from_str(row.body)?;
    Ok(Run { org: row.org, id, head: row.head, ..run })
}

pub(crate) fn agent(id: AgentId, run: RunId, row: Opened<'_>) -> Result<Agent, serde_json::Error> {
    let agent: Agent = serde_json::from_str(row.body)?;
    Ok(Agent { org: row.org, id, run, head: row.head, ..agent })
}

pub(crate) fn task(agent: AgentId, run: RunId, body: &str) -> Result<TaskRecord, serde_json::Error> {
    let record: TaskRecord = serde_json::from_str(body)?;
    Ok(TaskRecord { agent, run, ..record })
}

pub(crate) fn more(step: &StepRecord) -> String {
    text(&step.more)
}

pub(crate) fn step_more(text: &str) -> Result<StepMore, serde_json::Error> {
    serde_json::from_str(text)
}

/// Structs of plain fields, so this cannot fail.
pub(crate) fn text(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

pub(crate) fn credits(micros: i64) -> Option<Credits> {
    Credits::from_micros(micros)
}
