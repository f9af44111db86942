//! Runs on the wire.

use crate::shape::Shape;
use crate::time::Time;
use baton_core::credits::Credits;
use baton_core::plan::{FailureMode, Priority};
use baton_core::retry::Class;
use baton_core::run::record::AttemptRecord;
use baton_core::run::{self, Agent, Fault, State};
use baton_core::{Micros, ProjectId, RunId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Why something went wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LastError {
    /// Stable: programs may depend on it.
    pub code: String,
    pub message: String,
    #[schemars(with = "Shape<Class>")]
    pub class: Class,
}

impl From<&Fault> for LastError {
    fn from(fault: &Fault) -> Self {
        Self { code: fault.code.clone(), message: fault.message.clone(), class: fault.class }
    }
}

/// A run: agents at work on one plan and one budget.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    #[schemars(with = "Shape<RunId>")]
    pub id: RunId,
    pub name: String,
    #[schemars(with = "Shape<ProjectId>")]
    pub project_id: ProjectId,
    #[schemars(with = "Shape<Priority>")]
    pub priority: Priority,
    #[schemars(with = "Shape<State>")]
    pub status: State,
    pub labels: BTreeMap<String, String>,
    #[schemars(with = "Shape<FailureMode>")]
    pub failure_mode: FailureMode,
    /// 0 until it is started.
    pub attempt_number: u32,
    pub max_attempts: u32,
    /// Failures that were tried again, at all levels, in all attempts.
    pub failures: u32,
    /// How many of them it bears.
    pub failure_budget: u32,
    /// What an attempt may spend.
    #[schemars(with = "Shape<Credits>")]
    pub budget: Credits,
    /// For the current attempt, as the next two.
    #[schemars(with = "Shape<Credits>")]
    pub credits_reserved: Credits,
    #[schemars(with = "Shape<Credits>")]
    pub credits_charged: Credits,
    #[schemars(with = "Shape<Credits>")]
    pub credits_refunded: Credits,
    /// Agents of the current attempt.
    pub agent_count: u32,
    /// Tasks of it that have ended.
    pub task_count: u32,
    /// Steps of it that have ended.
    pub step_count: u32,
    pub last_error: Option<LastError>,
    /// Why it was cancelled.
    pub reason: Option<String>,
    pub created_at: Time,
    pub queued_at: Option<Time>,
    pub started_at: Option<Time>,
    /// When it completed, failed or was skipped.
    pub completed_at: Option<Time>,
    pub cancelled_at: Option<Time>,
    pub paused_at: Option<Time>,
    /// When its attempt has taken too long.
    pub deadline_at: Option<Time>,
    /// Of its attempt, from when it was taken; null before.
    pub duration_ms: Option<u64>,
    /// When something was last heard of its agents, while it is running.
    pub last_heartbeat: Option<Time>,
    /// What may be asked of it now.
    pub allowed_actions: Vec<RunAction>,
    pub deleted_at: Option<Time>,
}

/// What may be asked of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunAction {
    Start,
    Pause,
    Resume,
    Cancel,
    Retry,
    Delete,
}

impl RunAction {
    pub const ALL: [Self; 6] = [Self::Start, Self::Pause, Self::Resume, Self::Cancel, Self::Retry, Self::Delete];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Cancel => "cancel",
            Self::Retry => "retry",
            Self::Delete => "delete",
        }
    }
}

/// What agents that have not ended add to what their run counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Live {
    pub charged: Credits,
    pub tasks: u32,
    pub steps: u32,
    /// When something was last heard of any of them.
    pub heard: Option<Micros>,
}

impl Live {
    pub fn of<'a>(agents: impl IntoIterator<Item = &'a Agent>) -> Self {
        agents.into_iter().filter(|agent| !agent.is_ended()).fold(Self::default(), |sum, agent| Self {
            charged: sum.charged.plus(agent.charged).unwrap_or(sum.charged),
            tasks: sum.tasks.saturating_add(agent.task_count),
            steps: sum.steps.saturating_add(agent.step_count),
            heard: sum.heard.max(Some(agent.head.at)),
        })
    }
}

fn millis(micros: i64) -> u64 {
    u64::try_from(micros / 1_000).unwrap_or(0)
}

impl Run {
    pub fn of(run: &run::Run, live: &Live, now: Micros) -> Self {
        let ended = run.ended_at.map(Time);
        let cancelled = run.state == State::Cancelled;
        let known = |name: &&str| RunAction::ALL.into_iter().find(|action| action.as_str() == *name);
        Self {
            id: run.id,
            name: run.name.clone(),
            project_id: run.project.clone(),
            priority: run.priority,
            status: run.state,
            labels: run.labels.clone(),
            failure_mode: run.terms.failure_mode,
            attempt_number: run.attempt,
            max_attempts: run.terms.max_attempts,
            failures: run.failures,
            failure_budget: run.terms.failure_budget,
            budget: run.budget,
            credits_reserved: run.money.reserved,
            credits_charged: run.money.charged.plus(live.charged).unwrap_or(run.money.charged),
            credits_refunded: run.money.refunded,
            agent_count: run.counts.agents,
            task_count: run.counts.tasks.saturating_add(live.tasks),
            step_count: run.counts.steps.saturating_add(live.steps),
            last_error: run.error.as_ref().map(LastError::from),
            reason: run.reason.clone(),
            created_at: Time(run.created_at),
            queued_at: run.queued_at.map(Time),
            started_at: run.started_at.map(Time),
            completed_at: ended.filter(|_| !cancelled),
            cancelled_at: ended.filter(|_| cancelled),
            paused_at: run.paused_at.map(Time),
            deadline_at: run.deadline.map(Time),
            duration_ms: run.duration(now).map(|span| millis(span.0)),
            last_heartbeat: live.heard.max(run.started_at).filter(|_| run.state == State::Running).map(Time),
            allowed_actions: run.actions().iter().filter_map(known).collect(),
            deleted_at: run.deleted_at.map(Time),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunList {
    /// By when they were made.
    pub runs: Vec<Run>,
    /// Where the list goes on; null at the end.
    pub next_cursor: Option<String>,
}

/// The document that a run was made from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunSource {
    #[schemars(with = "Shape<RunId>")]
    pub run_id: RunId,
    /// As it was sent, as JSON.
    pub document: Value,
    /// What became of it: everything that was left open is filled in. Times are in microseconds.
    pub plan: Value,
}

/// One attempt of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Attempt {
    pub attempt_number: u32,
    #[schemars(with = "Shape<State>")]
    pub status: State,
    pub queued_at: Option<Time>,
    pub started_at: Option<Time>,
    pub ended_at: Option<Time>,
    #[schemars(with = "Shape<Credits>")]
    pub credits_reserved: Credits,
    #[schemars(with = "Shape<Credits>")]
    pub credits_charged: Credits,
    #[schemars(with = "Shape<Credits>")]
    pub credits_refunded: Credits,
    pub agent_count: u32,
    pub task_count: u32,
    pub step_count: u32,
    pub last_error: Option<LastError>,
}

impl From<&AttemptRecord> for Attempt {
    fn from(record: &AttemptRecord) -> Self {
        Self {
            attempt_number: record.attempt,
            status: record.state,
            queued_at: record.queued_at.map(Time),
            started_at: record.started_at.map(Time),
            ended_at: Some(Time(record.ended_at)),
            credits_reserved: record.reserved,
            credits_charged: record.charged,
            credits_refunded: record.refunded,
            agent_count: record.counts.agents,
            task_count: record.counts.tasks,
            step_count: record.counts.steps,
            last_error: record.error.as_ref().map(LastError::from),
        }
    }
}

impl From<&Run> for Attempt {
    /// The one that is under way.
    fn from(run: &Run) -> Self {
        Self {
            attempt_number: run.attempt_number,
            status: run.status,
            queued_at: run.queued_at,
            started_at: run.started_at,
            ended_at: None,
            credits_reserved: run.credits_reserved,
            credits_charged: run.credits_charged,
            credits_refunded: run.credits_refunded,
            agent_count: run.agent_count,
            task_count: run.task_count,
            step_count: run.step_count,
            last_error: run.last_error.clone(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AttemptList {
    /// In their order, the one that is under way last.
    pub attempts: Vec<Attempt>,
}

/// A signal that a run was given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Signalled {
    #[schemars(with = "Shape<RunId>")]
    pub run_id: RunId,
    pub name: String,
    /// Whether it is the first of its name, which is the one that stands.
    pub news: bool,
}
