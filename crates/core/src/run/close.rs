//! How parts of an agent end: they leave its hand, what they cost is charged, and a record is left.

use super::Fault;
use super::agent::Agent;
use super::hand::{Doing, Step};
use super::record::{Record, StepAt, StepMore, StepRecord, TaskRecord};
use super::state::{AgentState, StepState, TaskState};
use crate::canon::Json;
use crate::changes::Changes;
use crate::command::Ctx;
use crate::credits::Credits;
use crate::decision::{self, Case};
use crate::doc::Doc;
use crate::ledger::{Kind, Posting};
use crate::time::Micros;
use crate::world::View;

/// How a step ends.
pub(super) struct End {
    pub state: StepState,
    pub result: Option<Json>,
    pub error: Option<Fault>,
    pub estimated: bool,
    pub carried: bool,
}

impl End {
    pub const fn plain(state: StepState) -> Self {
        Self { state, result: None, error: None, estimated: false, carried: false }
    }
}

impl Agent {
    pub(super) fn step_mut(&mut self, at: (u32, u32)) -> Option<&mut Step> {
        self.tasks.get_mut(&at.0)?.steps.get_mut(&at.1)
    }

    /// The call has ended: what was set aside for it is spent.
    pub(super) fn charge(&mut self, at: (u32, u32), now: Micros) -> Option<Posting> {
        let task_attempt = self.tasks.get(&at.0)?.attempt;
        let step = self.step_mut(at)?;
        let amount = std::mem::take(&mut step.held);
        step.charged = step.charged.plus(amount).unwrap_or(step.charged);
        let key = format!("{}.{}.{task_attempt}.{}.{}", self.attempt, at.0, at.1, self.step(at.0, at.1)?.attempt);
        // It was set aside, so it is there.
        let posting = self.post(Kind::Charge, amount, key, now).ok()?;
        self.charged = self.charged.plus(amount).unwrap_or(self.charged);
        posting
    }

    pub(super) fn end_step(&mut self, at: (u32, u32), end: End, now: Micros) -> Option<StepRecord> {
        let agent_attempt = self.attempt;
        let task = self.tasks.get_mut(&at.0)?;
        let step = task.steps.remove(&at.1)?;
        task.done.insert(at.1);
        task.skipped += u32::from(end.state == StepState::Skipped);
        task.charged = task.charged.plus(step.charged).unwrap_or(task.charged);
        let place = StepAt { agent_attempt, task: at.0, task_attempt: task.attempt, step: at.1 };
        self.step_count += 1;
        Some(StepRecord {
            run: self.run,
            agent: self.id,
            n: self.step_count,
            at: place,
            state: end.state,
            ended_at: now.max(step.started_at),
            more: StepMore {
                attempts: step.attempt,
                started_at: step.started_at,
                charged: step.charged,
                estimated: end.estimated,
                error: end.error,
                carried: end.carried,
            },
            result: end.result,
        })
    }

    pub(super) fn end_task(
        &mut self,
        place: u32,
        state: TaskState,
        error: Option<Fault>,
        now: Micros,
    ) -> Option<TaskRecord> {
        let task = self.tasks.remove(&place)?;
        self.done.insert(place);
        self.skipped += u32::from(state == TaskState::Skipped);
        self.task_count += 1;
        Some(TaskRecord {
            run: self.run,
            agent: self.id,
            n: self.task_count,
            agent_attempt: self.attempt,
            task: place,
            attempts: task.attempt,
            state,
            started_at: task.started_at,
            ended_at: now.max(task.started_at),
            charged: task.charged,
            steps: task.done.len(),
            error,
        })
    }

    /// Ends a step that nobody waits for any more, and withdraws what it asked.
    pub(super) fn cut(
        &mut self,
        at: (u32, u32),
        reason: &str,
        asked: Option<&Doc>,
        cx: &Ctx<'_>,
    ) -> (Option<StepRecord>, Changes) {
        let mut changes = Changes::none();
        let Some(step) = self.step(at.0, at.1) else { return (None, changes) };
        let unknown = matches!(step.doing, Doing::Unknown(_));
        let cut_off = (step.is_call() && step.is_unsafe) || unknown;
        // What was called is paid for, although nobody waits for it any more.
        let estimated = (step.is_call() || unknown) && !step.held.is_zero();
        if let Some(doc) = asked {
            changes = decision::withdraw_doc(doc, &cx.actor.to_string(), reason, cx.now);
        }
        if cut_off {
            self.unknown.push(at);
        }
        if estimated {
            changes.postings.extend(self.charge(at, cx.now));
        }
        let end = End { estimated, ..End::plain(StepState::Cancelled) };
        (self.end_step(at, end, cx.now), changes)
    }

    /// Ends the whole agent from outside: everything it has begun is cut. Its questions must have been seen.
    pub(super) fn cut_all(&mut self, reason: &str, view: &View<'_>, cx: &Ctx<'_>) -> Changes {
        let mut changes = Changes::none();
        let steps: Vec<(u32, u32)> = self.steps().map(|(task, step, _)| (task, step)).collect();
        for at in steps {
            let asked = self.step(at.0, at.1).and_then(Step::decision).and_then(|id| view.doc(&Case::at(id)));
            let (record, more) = self.cut(at, reason, asked, cx);
            changes = changes.and(more);
            changes.records.extend(record.map(Record::Step));
        }
        for place in self.tasks.keys().copied().collect::<Vec<_>>() {
            let record = self.end_task(place, TaskState::Cancelled, None, cx.now);
            changes.records.extend(record.map(Record::Task));
        }
        changes
    }

    /// The agent has ended. What it did not spend is handed back by the caller.
    pub(super) fn ended(&mut self, state: AgentState, error: Option<Fault>, now: Micros) -> Credits {
        // Every caller has looked at the state.
        let _ = self.moved(state);
        self.error = error;
        self.ended_at = Some(now.max(self.created_at));
        self.paused_at = None;
        self.paused_by = None;
        self.not_before = None;
        self.job = None;
        self.purse.balance
    }
}
