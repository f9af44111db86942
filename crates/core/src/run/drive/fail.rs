//! How failures go up: from a step to its task, its agent, its run, each by the mode of the one above.

use super::super::close::End;
use super::super::hand::{Doing, Done, Step, Task};
use super::super::record::Record;
use super::super::state::{StepState, TaskState};
use super::super::{Fault, backoff};
use super::Drive;
use crate::command::{Reads, Unseen};
use crate::decision::Case;
use crate::plan::FailureMode;
use crate::retry::Class;
use crate::time::Span;
use serde_json::json;

impl Drive<'_, '_> {
    pub(super) fn step_failed(
        &mut self,
        at: (u32, u32),
        fault: Fault,
        retry_after: Option<Span>,
    ) -> Result<(), Unseen> {
        let Some(plan) = self.step_plan(at) else { return Ok(()) };
        let attempts = plan.attempts;
        let attempt = self.agent.step(at.0, at.1).map_or(0, |step| step.attempt);
        if fault.class == Class::Transient && attempt < attempts && self.seen_run()?.has_patience() {
            self.run_mut()?.failures += 1;
            let delay = backoff(attempt, self.cx.rng).max(retry_after.unwrap_or_default());
            let until = self.cx.now.plus(delay);
            if let Some(step) = self.step_mut(at) {
                step.doing = Doing::Backoff(until);
                step.lost = 0;
            }
            let told = json!({ "attempt": attempt, "delay_ms": delay.0 / 1_000, "reason": fault.code, "until": until });
            self.tell_step("step.retrying", at, told);
            return Ok(());
        }
        let mode = self.plan.tasks.get(at.0 as usize).map(|task| task.failure_mode).unwrap_or_default();
        let state = if mode == FailureMode::Continue { StepState::Skipped } else { StepState::Failed };
        let error = Some(fault.clone());
        self.end_step(at, End { error, ..End::plain(state) });
        if mode == FailureMode::Continue {
            return Ok(());
        }
        self.task_failed(at.0, fault)
    }

    pub(super) fn task_failed(&mut self, task: u32, fault: Fault) -> Result<(), Unseen> {
        let Some(plan) = self.plan.tasks.get(task as usize) else { return Ok(()) };
        self.halt_task(task, &fault.code)?;
        let attempt = self.agent.tasks.get(&task).map_or(0, |task| task.attempt);
        let may = plan.failure_mode == FailureMode::Retry && attempt < plan.attempts && fault.class != Class::Fatal;
        if may && self.seen_run()?.has_patience() {
            self.run_mut()?.failures += 1;
            let delay = backoff(attempt, self.cx.rng);
            let until = self.cx.now.plus(delay);
            if let Some(task) = self.agent.tasks.get_mut(&task) {
                *task = Task {
                    attempt: attempt + 1,
                    not_before: Some(until),
                    deadline: until.plus(plan.timeout),
                    done: Done::default(),
                    skipped: 0,
                    ..task.clone()
                };
            }
            let told = json!({
                "attempt": attempt + 1, "delay_ms": delay.0 / 1_000, "reason": fault.code,
                "task": plan.name, "until": until,
            });
            self.tell("task.retrying", told);
            return Ok(());
        }
        if self.plan.failure_mode == FailureMode::Continue {
            self.end_task(task, TaskState::Skipped, Some(fault));
            return Ok(());
        }
        self.end_task(task, TaskState::Failed, Some(fault.clone()));
        self.agent_failed(fault)
    }

    pub(super) fn agent_failed(&mut self, fault: Fault) -> Result<(), Unseen> {
        for task in self.agent.tasks.keys().copied().collect::<Vec<_>>() {
            self.halt_task(task, &fault.code)?;
            self.end_task(task, TaskState::Cancelled, None);
        }
        let attempt = self.agent.attempt;
        let may =
            self.plan.failure_mode == FailureMode::Retry && attempt < self.plan.attempts && fault.class != Class::Fatal;
        if !(may && self.seen_run()?.has_patience()) {
            self.fell = Some(fault);
            return Ok(());
        }
        self.run_mut()?.failures += 1;
        let delay = backoff(attempt, self.cx.rng);
        let until = self.cx.now.plus(delay);
        self.agent.attempt += 1;
        self.agent.not_before = Some(until);
        self.agent.deadline = Some(until.plus(self.plan.timeout));
        (self.agent.done, self.agent.skipped) = (Done::default(), 0);
        let told = json!({
            "attempt": attempt + 1, "delay_ms": delay.0 / 1_000, "reason": fault.code, "until": until,
        });
        self.tell("agent.retrying", told);
        self.stirred = true;
        Ok(())
    }

    /// Whatever the task has begun ends now.
    pub(super) fn halt_task(&mut self, task: u32, reason: &str) -> Result<(), Unseen> {
        let steps: Vec<u32> =
            self.agent.tasks.get(&task).map(|task| task.steps.keys().copied().collect()).unwrap_or_default();
        let begun = self.agent.tasks.get(&task).into_iter().flat_map(|task| task.steps.values());
        let asked = begun.filter_map(Step::decision).map(Case::at).filter(|key| self.just_opened(key).is_none());
        self.view.see(Reads { docs: asked.collect(), ..Reads::none() })?;
        for step in steps {
            self.halt_step((task, step), reason);
        }
        Ok(())
    }

    fn halt_step(&mut self, at: (u32, u32), reason: &str) {
        let key = self.agent.step(at.0, at.1).and_then(Step::decision).map(Case::at);
        let asked = key.and_then(|key| self.just_opened(&key).or_else(|| self.view.doc(&key)).cloned());
        let (record, cut) = self.agent.cut(at, reason, asked.as_ref(), self.cx);
        self.changes = std::mem::take(&mut self.changes).and(cut);
        if let Some(record) = record {
            self.tell_end(at, &record);
            self.changes.records.push(Record::Step(record));
            self.stirred = true;
        }
    }

    /// A record is appended and the task leaves the hand.
    pub(super) fn end_task(&mut self, place: u32, state: TaskState, error: Option<Fault>) {
        let Some(record) = self.agent.end_task(place, state, error, self.cx.now) else { return };
        let kind = match state {
            TaskState::Completed => "task.completed",
            TaskState::Failed => "task.failed",
            TaskState::Skipped => "task.skipped",
            TaskState::Cancelled | TaskState::Pending | TaskState::Running | TaskState::Paused => "task.cancelled",
        };
        let name = self.plan.tasks.get(place as usize).map(|plan| &plan.name);
        let mut told = json!({ "attempts": record.attempts, "n": record.n, "state": state, "task": name });
        if let Some(error) = &record.error {
            told["reason"] = json!(error.code);
        }
        self.tell(kind, told);
        self.changes.records.push(Record::Task(record));
        self.stirred = true;
    }
}
