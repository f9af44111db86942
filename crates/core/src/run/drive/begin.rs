//! Beginning whatever may begin.

use super::super::Fault;
use super::super::close::End;
use super::super::hand::{Doing, Done, Step, Task};
use super::super::state::StepState;
use super::Drive;
use crate::command::Unseen;
use crate::credits::Credits;
use crate::name::PlanName;
use std::collections::BTreeMap;

impl Drive<'_, '_> {
    pub(super) fn begin(&mut self) -> Result<(), Unseen> {
        if self.agent.not_before.is_some_and(|at| at > self.cx.now) {
            return Ok(());
        }
        self.agent.not_before = None;
        self.begin_tasks();
        for task in self.agent.tasks.keys().copied().collect::<Vec<_>>() {
            self.begin_steps(task)?;
            // A step that failed before it began may have taken everything with it.
            if self.stirred {
                return Ok(());
            }
        }
        Ok(())
    }

    fn begin_tasks(&mut self) {
        let width = self.plan.width as usize;
        let mut place = self.agent.done.first_gap();
        while self.agent.tasks.len() < width {
            let Some(plan) = self.plan.tasks.get(place as usize) else { break };
            let begun = self.agent.done.contains(place) || self.agent.tasks.contains_key(&place);
            if !begun && plan.after.iter().all(|before| self.agent.done.contains(*before)) {
                let task = Task {
                    attempt: 1,
                    started_at: self.cx.now,
                    deadline: self.cx.now.plus(plan.timeout),
                    not_before: None,
                    done: Done::default(),
                    skipped: 0,
                    charged: Credits::ZERO,
                    steps: BTreeMap::new(),
                };
                self.agent.tasks.insert(place, task);
            }
            place += 1;
        }
    }

    fn begin_steps(&mut self, place: u32) -> Result<(), Unseen> {
        let Some(plan) = self.plan.tasks.get(place as usize) else { return Ok(()) };
        let now = self.cx.now;
        let Some(task) = self.agent.tasks.get_mut(&place) else { return Ok(()) };
        if task.not_before.is_some_and(|at| at > now) {
            return Ok(());
        }
        task.not_before = None;
        let mut step = task.done.first_gap();
        while (step as usize) < plan.steps.len() {
            let Some(task) = self.agent.tasks.get(&place) else { return Ok(()) };
            if task.steps.len() >= plan.width as usize {
                return Ok(());
            }
            let begun = task.done.contains(step) || task.steps.contains_key(&step);
            let after = &plan.steps[step as usize].after;
            if !begun && after.iter().all(|before| task.done.contains(*before)) {
                self.begin_step((place, step))?;
                if self.stirred {
                    return Ok(());
                }
            }
            step += 1;
        }
        Ok(())
    }

    fn begin_step(&mut self, at: (u32, u32)) -> Result<(), Unseen> {
        let is_unsafe = self.is_unsafe(at);
        let Some(plan) = self.step_plan(at) else { return Ok(()) };
        let repeat = plan.repeat;
        let step = Step {
            attempt: 0,
            started_at: self.cx.now,
            held: Credits::ZERO,
            charged: Credits::ZERO,
            lost: 0,
            is_unsafe,
            doing: Doing::Call,
        };
        let Some(task) = self.agent.tasks.get_mut(&at.0) else { return Ok(()) };
        task.steps.insert(at.1, step);
        if is_unsafe && !repeat && self.agent.kept.get(&at.0).is_some_and(|kept| kept.contains(at.1)) {
            self.end_step(at, End { carried: true, ..End::plain(StepState::Completed) });
            return Ok(());
        }
        if let Some(found) = self.agent.unknown.iter().position(|cut| *cut == at) {
            self.agent.unknown.swap_remove(found);
            let why = Fault::new("cut_off", "an earlier attempt was ended in the middle of the call");
            return self.unknown(at, &why);
        }
        self.call_again(at)
    }

    /// One more call, if it can be paid.
    pub(super) fn call_again(&mut self, at: (u32, u32)) -> Result<(), Unseen> {
        let Some(price) = self.step_plan(at).map(|plan| plan.price) else { return Ok(()) };
        if !self.hold(at, price)? {
            let message = format!("a call costs {price}, and less than that is left of the run's budget");
            return self.step_failed(at, Fault::fatal("insufficient_credits", &message), None);
        }
        let (task, step) = self.names(at.0, at.1);
        let (task, step) = (task.map_or("?", PlanName::as_str), step.map_or("?", PlanName::as_str));
        self.begun.push(format!("{task}.{step}"));
        if let Some(step) = self.step_mut(at) {
            step.attempt += 1;
            step.lost = 0;
            step.doing = Doing::Call;
        }
        Ok(())
    }
}
