//! What an agent does next: a pure function of its hand, its plan and what came of its calls.
//!
//! A commit brings outcomes in, looks at what has come due, ends what is over, and begins whatever may
//! begin, as wide as the plan allows and never out of order. Failures go up level by level until a mode
//! stops them.

mod begin;
mod due;
mod fail;
mod finish;
mod money;
mod step;

use super::advance::Report;
use super::hand::Doing;
use super::state::AgentState;
use super::{Agent, Fault, Run};
use crate::changes::Changes;
use crate::command::{Ctx, Reads, Unseen};
use crate::event::Event;
use crate::name::PlanName;
use crate::plan::AgentPlan;
use crate::time::Micros;
use crate::told::Told;
use crate::world::View;
use serde_json::json;

pub(super) use money::allocate;

/// What a worker has to do until it speaks again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Calls that are to be in flight now; what else is in flight is to be stopped.
    pub calls: Vec<Call>,
    /// There is something to look at by then, although no call has ended.
    pub look_at: Option<Micros>,
    /// The worker's job is done: the agent has ended, or is paused and nothing is in flight.
    pub over: bool,
    /// No step is left to begin: whatever ends next may end the agent.
    pub last: bool,
    pub agent: Agent,
    /// When this was decided.
    pub now: Micros,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Call {
    pub task: u32,
    pub step: u32,
    /// Which call of the step it is.
    pub attempt: u32,
    /// Which attempt of the task.
    pub task_attempt: u32,
}

impl Turn {
    pub(super) fn paused(agent: Agent, now: Micros) -> Self {
        Self { calls: Vec::new(), look_at: None, over: true, last: false, agent, now }
    }

    /// Nothing was begun yet; it is to be looked at once more, at once.
    pub(super) fn again(agent: Agent, now: Micros) -> Self {
        Self { calls: Vec::new(), look_at: Some(now), over: false, last: true, agent, now }
    }
}

pub(super) struct Drive<'a, 'c> {
    view: View<'a>,
    cx: &'a mut Ctx<'c>,
    plan: &'a AgentPlan,
    pub(super) agent: Agent,
    run: Option<Run>,
    run_touched: bool,
    changes: Changes,
    /// Steps that were begun in this commit; the last event names them.
    begun: Vec<String>,
    /// Something has changed that others may wait for.
    stirred: bool,
    /// The agent has failed, and its own mode did not help.
    fell: Option<Fault>,
    /// Its work is done.
    done: bool,
    /// Nothing more begins.
    pub(super) leaving: bool,
}

impl<'a, 'c> Drive<'a, 'c> {
    pub(super) fn new(
        view: View<'a>,
        cx: &'a mut Ctx<'c>,
        plan: &'a AgentPlan,
        agent: Agent,
        run: Option<Run>,
        run_touched: bool,
    ) -> Self {
        let changes = Changes::none();
        Self {
            view,
            cx,
            plan,
            agent,
            run,
            run_touched,
            changes,
            begun: Vec::new(),
            stirred: false,
            fell: None,
            done: false,
            leaving: false,
        }
    }

    pub(super) fn advance(&mut self, reports: &[Report]) -> Result<(), Unseen> {
        if self.run.is_none() && self.agent.state == AgentState::Running && self.was_pending() {
            let mut run = self.seen_run()?.clone();
            let told = super::hold::resumed(&mut run, self.cx.now);
            self.run_touched |= run != *self.seen_run()?;
            self.run = Some(run);
            self.changes = std::mem::take(&mut self.changes).and(told);
            self.tell("agent.running", json!({ "attempt": self.agent.attempt, "resumed": true }));
        }
        if reports.iter().any(Report::failed) {
            // A failure may take everything with it, so all of it is looked at, and the run.
            self.see_hand()?;
            self.seen_run()?;
        }
        // What is known to be done stays so, whatever a sibling's failure cuts off.
        for report in reports.iter().filter(|report| !report.failed()) {
            self.report(report)?;
        }
        for report in reports.iter().filter(|report| report.failed()) {
            self.report(report)?;
        }
        self.go()
    }

    /// It failed, and its own mode did not help.
    pub(super) const fn has_fallen(&self) -> bool {
        self.fell.is_some()
    }

    fn was_pending(&self) -> bool {
        self.view.agent(self.agent.id).is_some_and(|agent| agent.state == AgentState::Pending)
    }

    /// Everything that follows from how things stand now.
    pub(super) fn go(&mut self) -> Result<(), Unseen> {
        if self.agent.state == AgentState::Paused {
            return Ok(());
        }
        loop {
            self.stirred = false;
            self.see_hand()?;
            self.broken()?;
            self.due()?;
            // What has ended in time is not late, also if it is looked at late.
            self.close()?;
            if self.fell.is_none() && !self.done {
                self.overdue()?;
                self.close()?;
            }
            if self.fell.is_some() || self.done {
                return Ok(());
            }
            if self.leaving {
                return Ok(());
            }
            self.begin()?;
            if !self.stirred {
                return Ok(());
            }
        }
    }

    /// The run, for looking at; it is locked first.
    fn seen_run(&self) -> Result<&Run, Unseen> {
        if let Some(run) = &self.run {
            return Ok(run);
        }
        let reads = Reads::run(self.agent.run);
        self.view.see(reads.clone())?;
        // An agent never outlives its run's row.
        self.view.run(self.agent.run).ok_or_else(|| Unseen(Box::new(reads)))
    }

    /// The run, for changing.
    fn run_mut(&mut self) -> Result<&mut Run, Unseen> {
        let run = self.seen_run()?.clone();
        self.run_touched = true;
        Ok(self.run.insert(run))
    }

    pub(super) fn tell(&mut self, kind: &'static str, more: impl Into<Told>) {
        let event = self.agent.tells(kind, more);
        self.changes.events.push(event);
    }

    /// How a task and a step are called.
    fn names(&self, task: u32, step: u32) -> (Option<&'a PlanName>, Option<&'a PlanName>) {
        let plan = self.plan.tasks.get(task as usize);
        let step = plan.and_then(|plan| plan.steps.get(step as usize));
        (plan.map(|plan| &plan.name), step.map(|step| &step.name))
    }

    /// What the worker does next, and all that is to be written.
    pub(super) fn end(mut self) -> Result<(Turn, Changes), Unseen> {
        if self.fell.is_some() || self.done {
            return self.finish();
        }
        let paused = self.agent.state == AgentState::Paused;
        let calls = self.calls();
        let over = paused && calls.is_empty();
        if over {
            self.agent.job = None;
        }
        self.name_begun();
        let look_at = if paused { None } else { self.look_at() };
        let last = self.agent.tasks.len() + self.agent.done.len() as usize == self.plan.tasks.len()
            && self.agent.tasks.iter().all(|(place, task)| {
                let steps = self.plan.tasks.get(*place as usize).map_or(0, |plan| plan.steps.len());
                task.not_before.is_none() && task.steps.len() + task.done.len() as usize >= steps
            });
        let turn = Turn { calls, look_at, over, last, agent: self.agent.clone(), now: self.cx.now };
        let mut changes = self.changes;
        // A look that found nothing new writes nothing.
        if !changes.events.is_empty() || self.view.agent(self.agent.id) != Some(&self.agent) {
            changes.agents.push(self.agent);
        }
        if let Some(run) = self.run.filter(|_| self.run_touched) {
            changes = changes.run(run);
        }
        Ok((turn, changes))
    }

    /// Steps that were begun are named by the last event, so that a step's beginning is told of without
    /// costing an entry of its own.
    fn name_begun(&mut self) {
        if self.begun.is_empty() {
            return;
        }
        let begun = std::mem::take(&mut self.begun);
        let of_agent = |event: &&mut Event| event.subject == crate::event::Subject::Agent(self.agent.id);
        match self.changes.events.iter_mut().rev().find(of_agent) {
            Some(event) => event.data.put("begun", &begun[..]),
            None => self.tell("step.started", Told::none().and("begun", &begun[..])),
        }
    }

    fn calls(&self) -> Vec<Call> {
        let tasks = self.agent.tasks.iter();
        let calls = tasks.flat_map(|(place, task)| {
            let steps = task.steps.iter().filter(|(_, step)| step.is_call());
            steps.map(|(step, s)| Call { task: *place, step: *step, attempt: s.attempt, task_attempt: task.attempt })
        });
        calls.collect()
    }

    /// When something is to be looked at again, at the latest.
    fn look_at(&self) -> Option<Micros> {
        let agent = self.agent.not_before.into_iter().chain(self.agent.deadline);
        let tasks = self.agent.tasks.values().flat_map(|task| {
            let steps = task.steps.values().filter_map(|step| match &step.doing {
                Doing::Backoff(at) | Doing::Sleep(at) => Some(*at),
                Doing::Signal { until, .. } => *until,
                _ => None,
            });
            steps.chain(task.not_before).chain([task.deadline])
        });
        agent.chain(tasks).min()
    }
}
