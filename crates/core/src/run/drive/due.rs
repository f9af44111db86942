//! What has come due: sleeps, signals, answers, delays, deadlines.

use super::super::Fault;
use super::super::hand::Doing;
use super::super::signal;
use super::super::state::TaskState;
use super::Drive;
use crate::canon::Json;
use crate::command::{Reads, Unseen};
use crate::decision::{Case, Effect};
use crate::doc;
use serde_json::json;

impl Drive<'_, '_> {
    /// What failed while the agent was paused.
    pub(super) fn broken(&mut self) -> Result<(), Unseen> {
        let broken: Vec<_> = self
            .agent
            .steps()
            .filter_map(|(task, step, s)| match &s.doing {
                Doing::Broken { fault, retry_after } => Some(((task, step), fault.clone(), *retry_after)),
                _ => None,
            })
            .collect();
        for (at, fault, retry_after) in broken {
            // An earlier one may have taken its task with it.
            if matches!(self.agent.step(at.0, at.1).map(|step| &step.doing), Some(Doing::Broken { .. })) {
                self.step_failed(at, fault, retry_after)?;
            }
        }
        Ok(())
    }

    /// Everything that the hand waits for, in one look: many questions are no more rounds than one.
    pub(super) fn see_hand(&self) -> Result<(), Unseen> {
        let mut reads = Reads::none();
        for (_, _, step) in self.agent.steps() {
            match &step.doing {
                Doing::Signal { name, .. } => {
                    reads.docs.insert(signal::at(self.agent.run, name));
                }
                Doing::Answer(id) | Doing::Unknown(id) => {
                    reads.docs.insert(Case::at(*id));
                }
                _ => {}
            }
        }
        // Those that were opened in this very commit cannot have been answered.
        reads.docs.retain(|key| self.just_opened(key).is_none());
        self.view.see(reads)
    }

    pub(super) fn due(&mut self) -> Result<(), Unseen> {
        self.see_hand()?;
        let waiting: Vec<_> = self.agent.steps().map(|(task, step, s)| ((task, step), s.doing.clone())).collect();
        for (at, doing) in waiting {
            if self.agent.step(at.0, at.1).map(|step| &step.doing) != Some(&doing) {
                continue;
            }
            match doing {
                Doing::Sleep(until) if until <= self.cx.now => {
                    self.completed(at, Json::of(&json!({ "until": until })));
                }
                Doing::Signal { name, until } => self.heard(at, &name, until),
                Doing::Answer(id) => {
                    if let Some(case) = self.answer(&Case::at(id)) {
                        self.answered(at, &case)?;
                    }
                }
                Doing::Unknown(id) => {
                    if let Some(case) = self.answer(&Case::at(id)) {
                        self.known(at, &case)?;
                    }
                }
                Doing::Backoff(until) if until <= self.cx.now && !self.leaving => self.call_again(at)?,
                Doing::Call | Doing::Sleep(_) | Doing::Backoff(_) | Doing::Broken { .. } => {}
            }
        }
        Ok(())
    }

    /// A decision that was opened in this very commit.
    pub(super) fn just_opened(&self, key: &doc::Key) -> Option<&doc::Doc> {
        self.changes.docs.iter().rev().find_map(|doc::Change::Put(new, doc)| (new == key).then_some(doc))
    }

    /// A decision that was closed.
    fn answer(&self, key: &doc::Key) -> Option<Case> {
        if self.just_opened(key).is_some() {
            return None;
        }
        self.view.doc(key).and_then(Case::of).filter(|case| case.closed.is_some())
    }

    fn heard(&mut self, at: (u32, u32), name: &str, until: Option<crate::time::Micros>) {
        let given = self.view.doc(&signal::at(self.agent.run, name)).map(|doc| doc.body.value());
        match given {
            Some(body) => {
                let result = json!({ "at": body["at"], "data": body["data"], "signal": name });
                self.completed(at, Json::of(&result));
            }
            None if until.is_some_and(|until| until <= self.cx.now) => {
                self.completed(at, Json::of(&json!({ "signal": null, "until": until })));
            }
            None => {}
        }
    }

    fn answered(&mut self, at: (u32, u32), case: &Case) -> Result<(), Unseen> {
        let Some(closed) = &case.closed else { return Ok(()) };
        if case.effect() == Some(Effect::GoOn) {
            let result = json!({
                "by": closed.by, "comment": closed.comment, "data": closed.data, "option": closed.option,
            });
            self.completed(at, Json::of(&result));
            return Ok(());
        }
        let fault = match &closed.option {
            Some(option) => Fault::fatal("declined", &format!("{option} was decided")),
            None => Fault::fatal("decision_expired", "nobody had answered by the deadline"),
        };
        self.step_failed(at, fault, None)
    }

    /// What people say came of a call that was cut off.
    fn known(&mut self, at: (u32, u32), case: &Case) -> Result<(), Unseen> {
        let Some(closed) = &case.closed else { return Ok(()) };
        match closed.option.as_ref().map(crate::decision::ChoiceName::as_str) {
            Some("done") => {
                self.charge(at);
                let result = closed.data.clone().unwrap_or(serde_json::Value::Null);
                self.completed(at, Json::of(&result));
                Ok(())
            }
            Some("not_done") => {
                self.release(at);
                self.call_again(at)
            }
            _ => {
                self.charge(at);
                // Should it ever be begun again, people are asked again.
                self.agent.unknown.push(at);
                let message = "it is not known what came of the call, and it was given up";
                self.step_failed(at, Fault::fatal("outcome_unknown", message), None)
            }
        }
    }

    /// Tasks and agents that have taken too long.
    pub(super) fn overdue(&mut self) -> Result<(), Unseen> {
        if self.fell.is_some() {
            return Ok(());
        }
        let now = self.cx.now;
        if self.agent.deadline.is_some_and(|deadline| deadline <= now) {
            let fault = Fault {
                class: crate::retry::Class::Transient,
                ..Fault::new("agent_timeout", "the agent took too long")
            };
            return self.agent_failed(fault);
        }
        let late: Vec<u32> =
            self.agent.tasks.iter().filter(|(_, task)| task.deadline <= now).map(|(place, _)| *place).collect();
        for task in late {
            if self.agent.tasks.get(&task).is_some_and(|task| task.deadline <= now) {
                let fault = Fault {
                    class: crate::retry::Class::Transient,
                    ..Fault::new("task_timeout", "the task took too long")
                };
                self.task_failed(task, fault)?;
            }
            if self.fell.is_some() {
                break;
            }
        }
        Ok(())
    }

    /// Tasks of which every step has ended, and the agent if every task has.
    pub(super) fn close(&mut self) -> Result<(), Unseen> {
        if self.fell.is_some() {
            return Ok(());
        }
        let tasks: Vec<(u32, bool)> = self
            .agent
            .tasks
            .iter()
            .filter(|(place, task)| {
                let steps = self.plan.tasks.get(**place as usize).map_or(0, |plan| plan.steps.len());
                task.done.len() as usize >= steps
            })
            .map(|(place, task)| (*place, task.skipped == task.done.len()))
            .collect();
        for (place, skipped) in tasks {
            let state = if skipped { TaskState::Skipped } else { TaskState::Completed };
            self.end_task(place, state, None);
        }
        self.done = self.agent.done.len() as usize >= self.plan.tasks.len();
        Ok(())
    }
}
