//! A worker begins to work on an agent: for the first time, or where somebody else left off.
//!
//! Whoever comes first of an attempt finds no agents and spawns them all. Idempotent: a second worker with
//! the same errand finds them, and one whose agent is in other hands or has ended finds nothing to do.

use super::drive::{Drive, Turn};
use super::hand::Doing;
use super::job::{self, Errand};
use super::state::AgentState;
use super::{Agent, Run, State};
use crate::canon::Digest;
use crate::changes::Changes;
use crate::command::{Command, Ctx, Decision, Reads, Refusal, Unseen};
use crate::credits::Credits;
use crate::definition::Definitions;
use crate::event::Head;
use crate::id::AgentId;
use crate::job::Fence;
use crate::ledger::Purse;
use crate::name::OrgId;
use crate::plan::Plan;
use crate::world::View;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Clone, Debug)]
pub struct Take {
    pub fence: Fence,
    pub errand: Errand,
    pub plan: Arc<Plan>,
    /// The plan's digest, which must be the one that the run pins.
    pub digest: Digest,
    /// The agent, if it is known.
    pub agent: Option<AgentId>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TakeError {
    #[error("the job is no longer held")]
    LeaseLost,
    #[error("there is nothing to do for this job any more")]
    Over,
    #[error("the plan is another one than the run's")]
    OtherPlan,
}

impl Refusal for TakeError {
    fn code(&self) -> &'static str {
        match self {
            Self::LeaseLost => "lease_lost",
            Self::Over => "run_over",
            Self::OtherPlan => "other_plan",
        }
    }
}

impl Command for Take {
    type Out = Turn;
    type No = TakeError;

    fn org(&self) -> &OrgId {
        &self.fence.org
    }

    fn reads(&self, _: &Definitions) -> Reads {
        let mut reads = Reads::run(self.errand.run).and(Reads::job(self.fence.job));
        reads.agents.extend(self.agent);
        reads
    }

    fn decide(&self, view: &View<'_>, cx: &mut Ctx<'_>) -> Decision<Turn, TakeError> {
        match self.taken(view, cx) {
            Ok((turn, changes)) => Decision::Done(turn, changes),
            Err(Stop::No(no)) => Decision::Refused(no),
            Err(Stop::Need(unseen)) => unseen.into(),
        }
    }
}

enum Stop {
    No(TakeError),
    Need(Unseen),
}

impl From<Unseen> for Stop {
    fn from(unseen: Unseen) -> Self {
        Self::Need(unseen)
    }
}

fn see(view: &View<'_>, reads: Reads) -> Result<(), Stop> {
    view.see(reads).map_err(Stop::Need)
}

impl Take {
    fn taken(&self, view: &View<'_>, cx: &mut Ctx<'_>) -> Result<(Turn, Changes), Stop> {
        if !view.job(self.fence.job).is_some_and(|job| job.held_by(&self.fence)) {
            return Err(Stop::No(TakeError::LeaseLost));
        }
        let over = || Stop::No(TakeError::Over);
        let Some(run) = view.run(self.errand.run) else { return Err(over()) };
        if run.terms.plan != self.digest {
            return Err(Stop::No(TakeError::OtherPlan));
        }
        if run.attempt != self.errand.attempt || run.state.is_ended() {
            return Err(over());
        }
        let mut run = run.clone();
        let mut changes = Changes::none();
        let first = run.state == State::Pending;
        let mut agent = if first {
            if run.job != Some(self.fence.job) {
                return Err(over());
            }
            let (agents, spawned) = self.spawn(&mut run, view, cx)?;
            changes = changes.and(spawned);
            agents.into_iter().next().ok_or_else(over)?
        } else {
            let id = run.agents.get(self.errand.index as usize).copied().ok_or_else(over)?;
            see(view, Reads::agent(id))?;
            view.agent(id).cloned().ok_or_else(over)?
        };
        if agent.job != Some(self.fence.job) || agent.is_ended() {
            return Err(over());
        }
        changes = changes.and(super::hold::resumed(&mut run, cx.now));
        let touched = run != *view.run(run.id).unwrap_or(&run);
        agent.token = self.fence.token;
        if agent.state == AgentState::Paused {
            // What was in flight is looked at when it goes on.
            agent.job = None;
            changes.agents.push(agent.clone());
            let changes = if touched { changes.run(run) } else { changes };
            return Ok((Turn::paused(agent, cx.now), changes));
        }
        let Some(plan) = self.plan.agents.get(agent.index as usize) else { return Err(over()) };
        let was_running = agent.state == AgentState::Running;
        if agent.moved(AgentState::Running).is_err() {
            return Err(over());
        }
        if agent.started_at.is_none() {
            agent.started_at = Some(cx.now);
            agent.deadline = Some(cx.now.plus(plan.timeout));
        }
        // The others are there only from this commit on, so it cannot end them: one that falls at once is
        // looked at again.
        let others = first && self.plan.agents.len() > 1;
        let kept = others.then(|| (agent.clone(), run.clone()));
        let mut drive = Drive::new(*view, cx, plan, agent, Some(run), touched);
        drive.taken(was_running)?;
        if let Some((agent, run)) = kept.filter(|_| drive.has_fallen()) {
            let told = json!({ "attempt": agent.attempt, "left": 0, "token": agent.token });
            changes = changes.event(agent.tells("agent.running", told));
            changes.agents.push(agent.clone());
            return Ok((Turn::again(agent, cx.now), changes.run(run)));
        }
        let (turn, driven) = drive.end()?;
        Ok((turn, changes.and(driven)))
    }

    /// All agents of the attempt, with what they may spend, and jobs for all but the one at hand.
    fn spawn(&self, run: &mut Run, view: &View<'_>, cx: &mut Ctx<'_>) -> Result<(Vec<Agent>, Changes), Stop> {
        let before = Reads { agents: run.before.iter().copied().collect(), ..Reads::none() };
        see(view, before.and(job::reads(run, cx.defs)))?;
        if run.moved(State::Running).is_err() {
            return Err(Stop::No(TakeError::Over));
        }
        run.started_at = Some(cx.now);
        run.job = None;
        let rest = 1..u32::try_from(self.plan.agents.len()).unwrap_or(u32::MAX);
        let (jobs, mut changes) = job::enqueue(run, rest, view, cx);
        let jobs = std::iter::once(self.fence.job).chain(jobs);
        // With enough for all, everybody has what they may need at once; otherwise as they go.
        let enough = run.terms.estimate <= run.money.purse.balance;
        let mut agents = Vec::with_capacity(self.plan.agents.len());
        for (index, (plan, job)) in self.plan.agents.iter().zip(jobs).enumerate() {
            let earlier = run.before.get(index).and_then(|id| view.agent(*id));
            let mut agent = Agent {
                org: run.org.clone(),
                id: AgentId(cx.ids.uuid()),
                run: run.id,
                project: run.project.clone(),
                index: u32::try_from(index).unwrap_or(u32::MAX),
                name: plan.name.clone(),
                run_attempt: run.attempt,
                state: AgentState::Pending,
                attempt: 1,
                error: None,
                created_at: cx.now,
                started_at: None,
                ended_at: None,
                paused_at: None,
                paused_by: None,
                deadline: None,
                not_before: None,
                job: Some(job),
                token: 0,
                purse: Purse::default(),
                charged: Credits::ZERO,
                done: super::hand::Done::default(),
                skipped: 0,
                tasks: BTreeMap::new(),
                task_count: 0,
                step_count: 0,
                kept: earlier.map(|agent| agent.kept.clone()).unwrap_or_default(),
                unknown: earlier.map(|agent| agent.unknown.clone()).unwrap_or_default(),
                before: earlier.map(|agent| agent.id),
                head: Head::NONE,
            };
            if enough && let Some(amount) = plan.estimate() {
                changes.postings.extend(super::drive::allocate(run, &mut agent, amount, cx.now));
            }
            let told = json!({ "index": agent.index, "job": agent.job, "run_attempt": agent.run_attempt });
            changes = changes.event(agent.tells("agent.spawned", told));
            agents.push(agent);
        }
        run.before.clear();
        run.agents = agents.iter().map(|agent| agent.id).collect();
        run.counts = super::Counts { agents: u32::try_from(agents.len()).unwrap_or(u32::MAX), ..Default::default() };
        let mut told = changes.event(run.tells("run.running", json!({ "agents": run.counts.agents })));
        told.agents.extend(agents.iter().cloned());
        Ok((agents, told))
    }
}

impl Drive<'_, '_> {
    /// A worker has the agent from here on. Whoever had it before may have left calls behind.
    pub(super) fn taken(&mut self, was_running: bool) -> Result<(), Unseen> {
        let left: Vec<(u32, u32)> =
            self.agent.steps().filter(|(_, _, step)| step.doing == Doing::Call).map(|(t, s, _)| (t, s)).collect();
        let kind = match (was_running, left.is_empty()) {
            (false, _) => "agent.running",
            // It had only waited, and what it waited for may be there.
            (true, true) => "agent.woken",
            (true, false) => "agent.taken_over",
        };
        self.tell(kind, json!({ "attempt": self.agent.attempt, "left": left.len(), "token": self.agent.token }));
        for (task, step) in left {
            self.left_behind(task, step)?;
        }
        self.go()
    }
}
