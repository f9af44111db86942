//! A run: agents at work on one plan and one budget, resumable anywhere.
//!
//! Two rows are open while a run is at work: its own, and one of each agent, which holds all that the
//! agent has begun and not ended (its *hand*). What has ended is appended and never touched again: steps,
//! tasks, attempts. What has not begun stands in the plan. So a step's commit touches one small row,
//! however long the plan is.
//!
//! Invariants
//! - A run, an agent, a task and a step move only along the tables of [`state`].
//! - An agent that is pending or running has a live job; whoever holds that job's token moves the agent.
//! - `charged + refunded = reserved` once an attempt has ended; never more is charged than was reserved.
//! - A call of an unsafe step whose outcome is unknown is never repeated without a person's word.
//!
//! Elsewhere: plans ([`crate::plan`]), money ([`crate::ledger`]), calling tools (`baton-engine`).

pub mod advance;
pub mod agent;
pub mod audit;
pub mod cancel;
pub mod clock;
mod close;
pub mod create;
mod drive;
mod ending;
pub mod hand;
pub mod hold;
mod job;
pub mod lost;
pub mod record;
pub mod remote;
pub mod retry;
pub mod signal;
#[cfg(test)]
mod stage;
pub mod start;
pub mod state;
pub mod take;
pub mod why;

#[cfg(test)]
mod tests;

use crate::canon::{Digest, Json};
use crate::changes::Changes;
use crate::credits::Credits;
use crate::event::{Event, Head, Subject};
use crate::id::{AgentId, JobId, RunId};
use crate::ledger::{Account, Entry, Kind, Posting, Purse, Short};
use crate::name::{OrgId, ProjectId};
pub use crate::plan::Priority;
use crate::plan::{FailureMode, Plan};
use crate::retry as policy;
use crate::rng::Rng;
use crate::time::{Micros, Span};
use crate::timer;
use crate::told::Told;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub use agent::Agent;
pub use drive::{Call, Turn};
pub use job::{AGENT_JOB, Errand, OfRun, agent_job_type};
pub use state::{AgentState, IllegalMove, State, StepState, TaskState};

/// Why something went wrong, as it is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    pub code: String,
    pub message: String,
    pub class: policy::Class,
}

impl From<crate::job::Failure> for Fault {
    fn from(failure: crate::job::Failure) -> Self {
        Self { code: failure.code, message: failure.message, class: failure.class }
    }
}

impl Fault {
    pub fn new(code: &str, message: &str) -> Self {
        crate::job::Failure::new(code, message).into()
    }

    pub fn fatal(code: &str, message: &str) -> Self {
        crate::job::Failure::fatal(code, message).into()
    }
}

/// What of its plan a run is decided by without looking at the plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terms {
    /// The plan, by its digest.
    pub plan: Digest,
    pub failure_mode: FailureMode,
    pub max_attempts: u32,
    pub failure_budget: u32,
    pub max_agents: u32,
    /// Agents of the plan.
    pub agents: u32,
    pub timeout: Span,
    pub paused_for: Span,
    /// Of one attempt, if every step is tried as often as it may be.
    pub estimate: Credits,
}

impl Terms {
    pub fn of(plan: &Plan, digest: Digest) -> Self {
        Self {
            plan: digest,
            failure_mode: plan.failure_mode,
            max_attempts: plan.max_attempts,
            failure_budget: plan.failure_budget,
            max_agents: plan.max_agents,
            agents: u32::try_from(plan.agents.len()).unwrap_or(u32::MAX),
            timeout: plan.timeout,
            paused_for: plan.paused_for,
            estimate: plan.estimate().unwrap_or(Credits::MAX),
        }
    }
}

/// What was counted of the current attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Agents that were spawned.
    pub agents: u32,
    /// Of those, how many have ended, and how.
    pub completed: u32,
    pub failed: u32,
    pub skipped: u32,
    pub cancelled: u32,
    /// Tasks and steps that ended, of agents that have ended.
    pub tasks: u32,
    pub steps: u32,
}

impl Counts {
    pub const fn ended(&self) -> u32 {
        self.completed + self.failed + self.skipped + self.cancelled
    }
}

/// What a run may spend, and has, in its current attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Money {
    pub reserved: Credits,
    /// By agents that have ended.
    pub charged: Credits,
    pub refunded: Credits,
    /// What is not allocated to an agent.
    pub purse: Purse,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    #[serde(skip, default = "nobody")]
    pub org: OrgId,
    #[serde(skip, default = "no_run")]
    pub id: RunId,
    pub project: ProjectId,
    pub name: String,
    pub labels: BTreeMap<String, String>,
    pub priority: Priority,
    pub terms: Terms,
    pub budget: Credits,
    pub state: State,
    /// 0 until it is started.
    pub attempt: u32,
    /// Failures that were tried again, at all levels, in all attempts.
    pub failures: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Fault>,
    /// Why it was cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub created_at: Micros,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queued_at: Option<Micros>,
    /// Of the current attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Micros>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Micros>,
    /// When it was paused, or began to resume: its clock stands still since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_at: Option<Micros>,
    /// Who paused it, while it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_by: Option<String>,
    /// When its attempt has taken too long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Micros>,
    pub money: Money,
    pub counts: Counts,
    /// The current attempt's agents, in the order of the plan.
    pub agents: Vec<AgentId>,
    /// Those of the attempt before, until this one's are spawned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<AgentId>,
    /// Signals that it was given.
    #[serde(default, skip_serializing_if = "hand::is_zero")]
    pub signals: u32,
    /// The job that will spawn them, while it waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted_at: Option<Micros>,
    #[serde(skip, default = "no_head")]
    pub head: Head,
}

/// Columns that stand beside the body fill these in.
fn nobody() -> OrgId {
    OrgId::default()
}

const fn no_run() -> RunId {
    RunId(uuid::Uuid::nil())
}

const fn no_head() -> Head {
    Head::NONE
}

/// How often, and with which delays, anything of a run is tried again.
pub(crate) fn backoff(failures: u32, rng: &mut Rng) -> Span {
    let policy = policy::Policy { max_failures: None, base: Span::millis(100), max: Span::secs(30), jitter: true };
    policy.delay(failures, rng)
}

impl Run {
    pub const fn timer(id: RunId) -> timer::Key {
        timer::Key { subject: id.0, kind: timer::Kind::Run }
    }

    pub const fn account(&self) -> Account {
        Account::Run(self.id, self.attempt)
    }

    /// Whether one more failure may be tried again, at whatever level.
    pub const fn has_patience(&self) -> bool {
        self.failures < self.terms.failure_budget
    }

    /// What may be asked of it as it stands.
    pub fn actions(&self) -> &'static [&'static str] {
        if self.is_deleted() {
            return &[];
        }
        match self.state {
            State::Created => &["start", "cancel", "delete"],
            State::Pending | State::Retrying => &["cancel"],
            State::Running | State::Resuming => &["pause", "cancel"],
            State::Paused => &["resume", "cancel"],
            State::Failed if self.attempt < self.terms.max_attempts => &["retry", "delete"],
            State::Failed | State::Completed | State::Cancelled | State::Skipped => &["delete"],
        }
    }

    /// It is not listed any more.
    pub const fn is_deleted(&self) -> bool {
        self.deleted_at.is_some()
    }

    /// How long the attempt took, or has taken by now.
    pub fn duration(&self, now: Micros) -> Option<Span> {
        Some(self.ended_at.unwrap_or(now).since(self.started_at?))
    }

    pub(crate) fn post(
        &mut self,
        kind: Kind,
        amount: Credits,
        key: String,
        at: Micros,
    ) -> Result<Option<Posting>, Short> {
        let entry = Entry { account: self.account(), kind, key, run: Some(self.id), at };
        self.money.purse.post(amount, entry)
    }

    pub(crate) fn moved(&mut self, to: State) -> Result<(), IllegalMove> {
        self.state.check(to)?;
        self.state = to;
        Ok(())
    }

    /// An event of this run's with the facts that every reader wants, and `more`.
    pub(crate) fn tells(&self, kind: &'static str, more: impl Into<Told>) -> Event {
        let facts = Told::none().and("attempt", &self.attempt).and("project", &self.project).and("state", &self.state);
        Event::new(Subject::Run(self.id), kind, facts.with(more.into()))
    }

    /// Sets the one timer of the run to this moment, or clears it.
    pub(crate) fn clock(&self, at: Option<Micros>) -> timer::Change {
        let key = Self::timer(self.id);
        match at {
            Some(at) => timer::Change::Set { key, at },
            None => timer::Change::Clear { key },
        }
    }
}

/// What changes about runs.
#[derive(Clone, Debug)]
pub enum Change {
    /// A new run, with its document and its plan.
    Create(Box<Run>, Json, Json),
    Put(Box<Run>),
}

impl Changes {
    #[must_use]
    pub(crate) fn run(mut self, run: Run) -> Self {
        self.runs.push(Change::Put(Box::new(run)));
        self
    }
}

/// Why a command about a run is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    #[error("run {0} does not exist")]
    NotFound(RunId),
    #[error("agent {0} does not exist")]
    NoAgent(AgentId),
    #[error("{0}")]
    Illegal(IllegalMove),
    #[error("run {run} has used {attempt} of {max} attempts")]
    AttemptsExhausted { run: RunId, attempt: u32, max: u32 },
    #[error("{wanted} credits are needed and {available} are there")]
    Short { wanted: Credits, available: Credits },
    #[error("a run can be deleted before it starts and after it ended; this one is {0}")]
    AtWork(State),
    #[error("run {run} was given {max} signals, and more are not kept")]
    TooManySignals { run: RunId, max: u32 },
}

impl crate::command::Refusal for RunError {
    fn code(&self) -> &'static str {
        match self {
            Self::NotFound(_) => "run_not_found",
            Self::NoAgent(_) => "agent_not_found",
            Self::Illegal(_) | Self::AtWork(_) => "invalid_transition",
            Self::AttemptsExhausted { .. } => "attempts_exhausted",
            Self::Short { .. } => "insufficient_credits",
            Self::TooManySignals { .. } => "too_many_signals",
        }
    }
}
