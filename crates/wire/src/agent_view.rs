//! Agents, their tasks and their steps on the wire.

use crate::run_view::LastError;
use crate::shape::Shape;
use crate::time::Time;
use baton_core::credits::Credits;
use baton_core::id::DecisionId;
use baton_core::name::{PlanName, ToolName};
use baton_core::plan::{AgentPlan, Effect, StepPlan};
use baton_core::run::hand::{self, Doing};
use baton_core::run::record::{StepRecord, TaskRecord};
use baton_core::run::{self, AgentState, StepState, TaskState};
use baton_core::{AgentId, JobId, RunId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One line of work of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Agent {
    #[schemars(with = "Shape<AgentId>")]
    pub id: AgentId,
    #[schemars(with = "Shape<RunId>")]
    pub run_id: RunId,
    /// The attempt of the run that it belongs to.
    pub run_attempt: u32,
    /// Its place in the plan, counted from 0.
    pub index: u32,
    #[schemars(with = "Shape<PlanName>")]
    pub name: PlanName,
    /// What it is about.
    pub subtask: String,
    #[schemars(with = "Shape<AgentState>")]
    pub status: AgentState,
    /// How often its tasks were begun from the first.
    pub attempt: u32,
    /// How often they may be.
    pub attempts: u32,
    #[schemars(with = "Shape<Credits>")]
    pub charged: Credits,
    /// What it was given and has not spent.
    #[schemars(with = "Shape<Credits>")]
    pub balance: Credits,
    pub tasks_total: u32,
    /// Of this attempt.
    pub tasks_done: u32,
    /// Of all its attempts.
    pub steps_done: u32,
    pub last_error: Option<LastError>,
    pub created_at: Time,
    pub started_at: Option<Time>,
    pub ended_at: Option<Time>,
    pub paused_at: Option<Time>,
    pub deadline_at: Option<Time>,
    /// The job that works on it, if any does.
    #[schemars(with = "Option<Shape<JobId>>")]
    pub job_id: Option<JobId>,
    /// The steps that it has begun and not ended.
    pub doing: Vec<StepInHand>,
}

/// A step that was begun and has not ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StepInHand {
    pub task: String,
    pub step: String,
    /// Which call of it.
    pub attempt: u32,
    #[schemars(with = "Shape<StepState>")]
    pub status: StepState,
    pub since: Time,
    pub waits_for: Option<WaitsFor>,
}

/// What a step waits for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WaitsFor {
    #[serde(rename = "for")]
    pub what: WaitKind,
    pub until: Option<Time>,
    pub signal: Option<String>,
    #[schemars(with = "Option<Shape<DecisionId>>")]
    pub decision_id: Option<DecisionId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WaitKind {
    /// Its tool.
    Call,
    /// The moment of its next call.
    Retry,
    Time,
    Signal,
    /// People, whom it has asked.
    Answer,
    /// People, who are asked what came of a call that was cut off.
    Outcome,
}

impl WaitsFor {
    pub fn of(doing: &Doing) -> Self {
        let plain = |what| Self { what, until: None, signal: None, decision_id: None };
        match doing {
            Doing::Call => plain(WaitKind::Call),
            Doing::Backoff(at) => Self { until: Some(Time(*at)), ..plain(WaitKind::Retry) },
            Doing::Sleep(at) => Self { until: Some(Time(*at)), ..plain(WaitKind::Time) },
            Doing::Signal { name, until } => {
                Self { until: until.map(Time), signal: Some(name.clone()), ..plain(WaitKind::Signal) }
            }
            Doing::Answer(id) => Self { decision_id: Some(*id), ..plain(WaitKind::Answer) },
            Doing::Unknown(id) => Self { decision_id: Some(*id), ..plain(WaitKind::Outcome) },
            // What follows is decided when its agent goes on.
            Doing::Broken { .. } => plain(WaitKind::Retry),
        }
    }
}

/// How a step stands that has not ended.
const fn state(step: &hand::Step) -> StepState {
    match step.doing {
        Doing::Backoff(_) | Doing::Broken { .. } => StepState::Pending,
        _ => StepState::Running,
    }
}

fn task_name(plan: Option<&AgentPlan>, place: u32) -> String {
    let task = plan.and_then(|plan| plan.tasks.get(place as usize));
    task.map_or_else(|| place.to_string(), |task| task.name.to_string())
}

fn step_plan(plan: Option<&AgentPlan>, at: (u32, u32)) -> Option<&StepPlan> {
    plan?.tasks.get(at.0 as usize)?.steps.get(at.1 as usize)
}

fn step_name(plan: Option<&AgentPlan>, at: (u32, u32)) -> String {
    step_plan(plan, at).map_or_else(|| at.1.to_string(), |step| step.name.to_string())
}

impl Agent {
    pub fn of(agent: &run::Agent, plan: Option<&AgentPlan>) -> Self {
        let doing = agent.steps().map(|(task, step, held)| StepInHand {
            task: task_name(plan, task),
            step: step_name(plan, (task, step)),
            attempt: held.attempt,
            status: state(held),
            since: Time(held.started_at),
            waits_for: Some(WaitsFor::of(&held.doing)),
        });
        Self {
            id: agent.id,
            run_id: agent.run,
            run_attempt: agent.run_attempt,
            index: agent.index,
            name: agent.name.clone(),
            subtask: plan.map(|plan| plan.subtask.clone()).unwrap_or_default(),
            status: agent.state,
            attempt: agent.attempt,
            attempts: plan.map_or(agent.attempt, |plan| plan.attempts),
            charged: agent.charged,
            balance: agent.purse.balance,
            tasks_total: plan.map_or(0, |plan| u32::try_from(plan.tasks.len()).unwrap_or(u32::MAX)),
            tasks_done: agent.done.len(),
            steps_done: agent.step_count,
            last_error: agent.error.as_ref().map(LastError::from),
            created_at: Time(agent.created_at),
            started_at: agent.started_at.map(Time),
            ended_at: agent.ended_at.map(Time),
            paused_at: agent.paused_at.map(Time),
            deadline_at: agent.deadline.map(Time),
            job_id: agent.job,
            doing: doing.collect(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgentList {
    /// In the order of the plan.
    pub agents: Vec<Agent>,
    pub next_cursor: Option<String>,
}

/// A task of an agent: ended, begun, or still to begin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Task {
    #[schemars(with = "Shape<AgentId>")]
    pub agent_id: AgentId,
    #[schemars(with = "Shape<PlanName>")]
    pub agent_name: PlanName,
    /// Counts the tasks of its agent that have ended; null until it has.
    pub n: Option<u32>,
    pub name: String,
    #[schemars(with = "Shape<TaskState>")]
    pub status: TaskState,
    /// The attempt of its agent.
    pub agent_attempt: u32,
    /// How often it was begun.
    pub attempts: u32,
    #[schemars(with = "Shape<Credits>")]
    pub charged: Credits,
    /// Steps of its last attempt that have ended.
    pub steps: u32,
    pub started_at: Option<Time>,
    pub ended_at: Option<Time>,
    pub last_error: Option<LastError>,
}

impl Task {
    pub fn ended(agent: &run::Agent, plan: Option<&AgentPlan>, record: &TaskRecord) -> Self {
        Self {
            agent_id: agent.id,
            agent_name: agent.name.clone(),
            n: Some(record.n),
            name: task_name(plan, record.task),
            status: record.state,
            agent_attempt: record.agent_attempt,
            attempts: record.attempts,
            charged: record.charged,
            steps: record.steps,
            started_at: Some(Time(record.started_at)),
            ended_at: Some(Time(record.ended_at)),
            last_error: record.error.as_ref().map(LastError::from),
        }
    }

    /// One that has not ended, by its place in the plan.
    pub fn open(agent: &run::Agent, plan: Option<&AgentPlan>, place: u32) -> Self {
        let begun = agent.tasks.get(&place);
        let waits = begun.is_none_or(|task| task.not_before.is_some());
        let in_hand = begun.map_or(0, |task| task.steps.values().fold(0, |sum, step| sum + step.charged.micros()));
        let spent = begun.map_or(0, |task| task.charged.micros()) + in_hand;
        Self {
            agent_id: agent.id,
            agent_name: agent.name.clone(),
            n: None,
            name: task_name(plan, place),
            status: match agent.state {
                AgentState::Paused => TaskState::Paused,
                _ if waits => TaskState::Pending,
                _ => TaskState::Running,
            },
            agent_attempt: agent.attempt,
            attempts: begun.map_or(0, |task| task.attempt),
            charged: Credits::from_micros(spent).unwrap_or_default(),
            steps: begun.map_or(0, |task| task.done.len()),
            started_at: begun.map(|task| Time(task.started_at)),
            ended_at: None,
            last_error: None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskList {
    /// Agent by agent: those that have ended, in that order, then those that were begun, then the others.
    pub tasks: Vec<Task>,
    pub next_cursor: Option<String>,
}

/// A step of a task: ended, begun, or still to begin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Step {
    #[schemars(with = "Shape<AgentId>")]
    pub agent_id: AgentId,
    #[schemars(with = "Shape<PlanName>")]
    pub agent_name: PlanName,
    /// Counts the steps of its agent that have ended; null until it has.
    pub n: Option<u32>,
    pub task: String,
    pub name: String,
    #[schemars(with = "Option<Shape<ToolName>>")]
    pub tool: Option<ToolName>,
    #[schemars(with = "Option<Shape<Effect>>")]
    pub effect: Option<Effect>,
    #[schemars(with = "Shape<StepState>")]
    pub status: StepState,
    pub agent_attempt: u32,
    pub task_attempt: u32,
    /// Calls that were made, the one under way included.
    pub attempts: u32,
    /// Of each call.
    #[schemars(with = "Option<Shape<Credits>>")]
    pub price: Option<Credits>,
    #[schemars(with = "Shape<Credits>")]
    pub charged: Credits,
    /// Its last call was cut off, so what it cost is what was set aside for it.
    pub estimated: bool,
    /// It was not done again: the result of an earlier one stands.
    pub carried: bool,
    pub started_at: Option<Time>,
    pub ended_at: Option<Time>,
    /// Only where results are asked for, and only if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    pub last_error: Option<LastError>,
    pub waits_for: Option<WaitsFor>,
}

impl Step {
    pub fn ended(agent: &run::Agent, plan: Option<&AgentPlan>, record: &StepRecord, with_result: bool) -> Self {
        let at = (record.at.task, record.at.step);
        let more = &record.more;
        Self {
            n: Some(record.n),
            status: record.state,
            agent_attempt: record.at.agent_attempt,
            task_attempt: record.at.task_attempt,
            attempts: more.attempts,
            charged: more.charged,
            estimated: more.estimated,
            carried: more.carried,
            started_at: Some(Time(more.started_at)),
            ended_at: Some(Time(record.ended_at)),
            result: record.result.as_ref().filter(|_| with_result).map(baton_core::canon::Json::value),
            last_error: more.error.as_ref().map(LastError::from),
            waits_for: None,
            ..Self::open(agent, plan, at)
        }
    }

    /// One that has not ended, by its places in the plan.
    pub fn open(agent: &run::Agent, plan: Option<&AgentPlan>, at: (u32, u32)) -> Self {
        let held = agent.step(at.0, at.1);
        let known = step_plan(plan, at);
        let fault = held.and_then(|step| match &step.doing {
            Doing::Broken { fault, .. } => Some(fault),
            _ => None,
        });
        Self {
            agent_id: agent.id,
            agent_name: agent.name.clone(),
            n: None,
            task: task_name(plan, at.0),
            name: step_name(plan, at),
            tool: known.map(|step| step.tool.clone()),
            effect: known.map(|step| step.effect),
            status: held.map_or(StepState::Pending, state),
            agent_attempt: agent.attempt,
            task_attempt: agent.tasks.get(&at.0).map_or(0, |task| task.attempt),
            attempts: held.map_or(0, |step| step.attempt),
            price: known.map(|step| step.price),
            charged: held.map_or(Credits::ZERO, |step| step.charged),
            estimated: false,
            carried: false,
            started_at: held.map(|step| Time(step.started_at)),
            ended_at: None,
            result: None,
            last_error: fault.map(LastError::from),
            waits_for: held.map(|step| WaitsFor::of(&step.doing)),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StepList {
    /// Agent by agent: those that have ended, in that order, then those that were begun, then the others.
    pub steps: Vec<Step>,
    pub next_cursor: Option<String>,
}
