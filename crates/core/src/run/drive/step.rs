//! What came of a call, and how a step ends.

use super::super::advance::{Failed, Outcome, Report};
use super::super::close::End;
use super::super::hand::Doing;
use super::super::record::{Record, StepRecord};
use super::super::state::{AgentState, StepState};
use super::super::{Fault, hand};
use super::Drive;
use crate::canon::Json;
use crate::command::Unseen;
use crate::decision::{self, Case, Question, Subject};
use crate::id::DecisionId;
use crate::limits;
use crate::name::PlanName;
use crate::plan::{Doer, Effect};
use crate::told::Told;
use serde_json::{Value, json};

/// Workers that may be lost during one call before that counts as its failure.
const LOST_WORKERS: u32 = 20;

impl Drive<'_, '_> {
    pub(super) fn report(&mut self, report: &Report) -> Result<(), Unseen> {
        let at = (report.task, report.step);
        // Another call's, or one of a step that has ended meanwhile: nothing follows from it.
        let current = |step: &&hand::Step| step.is_call() && step.attempt == report.attempt;
        if self.agent.step(at.0, at.1).filter(current).is_none() {
            return Ok(());
        }
        match &report.outcome {
            Outcome::Done(result) if result.len() > limits::RESULT_BYTES => {
                let message =
                    format!("the result has {} bytes; at most {} are kept", result.len(), limits::RESULT_BYTES);
                self.charge(at);
                // It was done, although what came of it cannot be kept: not again without asking.
                if self.agent.step(at.0, at.1).is_some_and(|step| step.is_unsafe) {
                    self.agent.unknown.push(at);
                }
                self.broke(at, Fault::new("result_too_large", &message), None)
            }
            Outcome::Done(result) => {
                self.charge(at);
                self.completed(at, result.clone());
                Ok(())
            }
            Outcome::Failed(failed) => self.failed(at, failed),
            Outcome::Sleep(until) => {
                self.wait(at, Doing::Sleep(*until));
                Ok(())
            }
            Outcome::Wait { signal, until } => {
                self.wait(at, Doing::Signal { name: signal.clone(), until: *until });
                Ok(())
            }
            Outcome::Ask(question) => self.ask(at, question),
        }
    }

    fn wait(&mut self, at: (u32, u32), doing: Doing) {
        let told = match &doing {
            Doing::Sleep(until) => json!({ "for": "time", "until": until }),
            Doing::Signal { name, until } => json!({ "for": "signal", "signal": name, "until": until }),
            Doing::Answer(id) => json!({ "decision": id, "for": "answer" }),
            Doing::Unknown(id) => json!({ "decision": id, "for": "outcome" }),
            Doing::Call | Doing::Backoff(_) | Doing::Broken { .. } => json!({}),
        };
        if let Some(step) = self.step_mut(at) {
            step.doing = doing;
        }
        self.tell_step("step.waiting", at, told);
    }

    fn failed(&mut self, at: (u32, u32), failed: &Failed) -> Result<(), Unseen> {
        let is_unsafe = self.agent.step(at.0, at.1).is_some_and(|step| step.is_unsafe);
        if is_unsafe && failed.unknown {
            return self.unknown(at, &failed.fault);
        }
        if failed.called {
            self.charge(at);
        } else {
            self.release(at);
        }
        self.broke(at, failed.fault.clone(), failed.retry_after)
    }

    /// A worker is gone that was in the middle of this call.
    pub(in super::super) fn left_behind(&mut self, task: u32, step: u32) -> Result<(), Unseen> {
        let at = (task, step);
        // What a worker outside was asked for goes on, whoever waits for it.
        let goes_on = self.step_plan(at).is_some_and(|plan| plan.doer == Doer::Remote);
        let Some(found) = self.step_mut(at) else { return Ok(()) };
        if goes_on {
            // It is to be found again, not made anew.
            found.lost = 1;
            return Ok(());
        }
        if found.is_unsafe {
            return self.unknown(at, &Fault::new("worker_lost", "the worker was lost in the middle of the call"));
        }
        found.lost += 1;
        if found.lost >= LOST_WORKERS {
            let message = format!("{LOST_WORKERS} workers were lost in the middle of this call");
            self.charge(at);
            return self.broke(at, Fault::new("worker_lost", &message), None);
        }
        Ok(())
    }

    /// Nobody knows whether the call did what it does: people are asked, and it is not repeated.
    pub(super) fn unknown(&mut self, at: (u32, u32), why: &Fault) -> Result<(), Unseen> {
        let (task, step) = self.names(at.0, at.1);
        let attempts = self.agent.step(at.0, at.1).map_or(0, |step| step.attempt);
        let question = json!({
            "prompt": format!(
                "Was step {} of task {} done? Its call was cut off ({}), and it must not happen twice.",
                text(step), text(task), why.code
            ),
            "options": [
                { "name": "done", "label": "It was done: go on" },
                { "name": "not_done", "label": "It was not done: do it now" },
                { "name": "abort", "label": "Give up", "effect": "fail" },
            ],
            "agent": self.agent.id, "attempt": attempts, "error": why, "run": self.agent.run,
            "step": step, "task": task, "onBreach": "wait",
        });
        self.open(at, decision::STEP_OUTCOME, &question, Doing::Unknown)
    }

    fn ask(&mut self, at: (u32, u32), question: &Json) -> Result<(), Unseen> {
        if question.len() > limits::QUESTION_BYTES {
            let message =
                format!("the question has {} bytes; at most {} are kept", question.len(), limits::QUESTION_BYTES);
            return self.broke(at, Fault::new("question_too_large", &message), None);
        }
        self.open(at, decision::STEP_QUESTION, &question.value(), Doing::Answer)
    }

    fn open(
        &mut self,
        at: (u32, u32),
        kind: &str,
        question: &Value,
        doing: fn(DecisionId) -> Doing,
    ) -> Result<(), Unseen> {
        let asked = match Question::of(question) {
            Ok(asked) => asked,
            Err(why) => {
                let message = format!("the step asked what nobody can answer: {why}");
                return self.broke(at, Fault::new("invalid_question", &message), None);
            }
        };
        let id = DecisionId(self.cx.ids.uuid());
        let subject = Subject::Step { run: self.agent.run, agent: self.agent.id, task: at.0, step: at.1 };
        let case = Case::of_step(subject, self.agent.project.clone(), kind, asked, self.cx.now);
        self.changes = std::mem::take(&mut self.changes).and(case.opened(id));
        self.wait(at, doing(id));
        Ok(())
    }

    /// The step failed. While the agent is paused nothing follows yet.
    pub(super) fn broke(
        &mut self,
        at: (u32, u32),
        fault: Fault,
        retry_after: Option<crate::time::Span>,
    ) -> Result<(), Unseen> {
        if self.agent.state == AgentState::Paused {
            if let Some(step) = self.step_mut(at) {
                step.doing = Doing::Broken { fault, retry_after };
            }
            return Ok(());
        }
        self.step_failed(at, fault, retry_after)
    }

    pub(super) fn completed(&mut self, at: (u32, u32), result: Json) {
        if self.agent.step(at.0, at.1).is_some_and(|step| step.is_unsafe) {
            self.agent.kept.entry(at.0).or_default().insert(at.1);
        }
        self.end_step(at, End { result: Some(result), ..End::plain(StepState::Completed) });
    }

    /// A record is appended and the step leaves the hand.
    pub(super) fn end_step(&mut self, at: (u32, u32), end: End) {
        let Some(record) = self.agent.end_step(at, end, self.cx.now) else { return };
        self.tell_end(at, &record);
        self.changes.records.push(Record::Step(record));
        self.stirred = true;
    }

    pub(super) fn tell_end(&mut self, at: (u32, u32), record: &StepRecord) {
        let kind = match record.state {
            StepState::Completed => "step.completed",
            StepState::Failed => "step.failed",
            StepState::Skipped => "step.skipped",
            StepState::Cancelled | StepState::Pending | StepState::Running => "step.cancelled",
        };
        let more = &record.more;
        let mut told = Told::none().and("attempts", &more.attempts).and("n", &record.n).and("state", &record.state);
        if !more.charged.is_zero() {
            told.put("charged", &more.charged);
        }
        if let Some(result) = &record.result {
            told.put("result_sha256", &result.digest());
        }
        if let Some(error) = &more.error {
            told.put("reason", &error.code);
        }
        if more.carried {
            told.put("carried", &true);
        }
        self.tell_step(kind, at, told);
    }

    pub(super) fn step_mut(&mut self, at: (u32, u32)) -> Option<&mut hand::Step> {
        self.agent.step_mut(at)
    }

    pub(super) fn tell_step(&mut self, kind: &'static str, at: (u32, u32), more: impl Into<Told>) {
        let (task, step) = self.names(at.0, at.1);
        self.tell(kind, more.into().and("step", &step).and("task", &task));
    }

    pub(super) fn is_unsafe(&self, at: (u32, u32)) -> bool {
        self.step_plan(at).is_some_and(|plan| plan.effect == Effect::Unsafe)
    }

    pub(super) fn step_plan(&self, at: (u32, u32)) -> Option<&crate::plan::StepPlan> {
        self.plan.tasks.get(at.0 as usize)?.steps.get(at.1 as usize)
    }
}

fn text(name: Option<&PlanName>) -> &str {
    name.map_or("?", PlanName::as_str)
}
