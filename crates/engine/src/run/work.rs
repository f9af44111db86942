//! Working on one agent, for as long as something is in flight.

use super::control;
use super::plans::{Pinned, Plans};
use super::remote::Remote;
use super::results::{Results, place};
use super::toolbox::{Called, ToolCall, ToolFailure, Toolbox};
use crate::job_cx::JobCx;
use crate::registry::{Handler, Outcome, Running};
use baton_core::canon::Json;
use baton_core::command::Actor;
use baton_core::job::{Failure, Fence};
use baton_core::plan::input::Input;
use baton_core::plan::reference::Source;
use baton_core::plan::{AgentPlan, Doer, StepPlan};
use baton_core::retry;
use baton_core::run::advance::{self, Advance, Ahead, Failed, Report};
use baton_core::run::hand::Doing;
use baton_core::run::take::{Take, TakeError};
use baton_core::run::{AgentState, Call, Errand, Fault, Turn};
use baton_core::time::Span;
use baton_store::{CommitError, Store, StoreError};
use futures_util::future::FutureExt as _;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;

/// After trouble with the store: what came of calls is kept and said again.
const TROUBLE_PAUSE: Duration = Duration::from_millis(200);
/// How often something is said that the database rejects.
const REJECTED_TRIES: u32 = 20;
/// While something is in flight and something else waits for people or signals, it is looked at this often.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// A tool that does not stop when its time is over is left this long after it.
const OVERTIME: Duration = Duration::from_secs(10);

/// Runs the jobs that work on agents.
pub struct Worker {
    inner: Arc<Inner>,
}

struct Inner {
    toolbox: Toolbox,
    plans: Plans,
}

impl Worker {
    pub fn new(toolbox: Toolbox) -> Self {
        Self { inner: Arc::new(Inner { toolbox, plans: Plans::default() }) }
    }
}

impl Handler for Worker {
    fn run(&self, cx: JobCx, payload: Json) -> Running {
        let inner = self.inner.clone();
        Box::pin(async move {
            match Shift::begin(&inner, cx, &payload).await {
                Ok(shift) => shift.work().await,
                Err(outcome) => outcome,
            }
        })
    }
}

/// How it went to say what came of calls.
enum Said {
    Heard,
    /// The agent is not ours any more.
    TooLate,
    /// The database rejects it, again and again: somebody else may have more luck.
    Cannot,
}

/// One worker's time with one agent.
struct Shift {
    inner: Arc<Inner>,
    cx: JobCx,
    pinned: Arc<Pinned>,
    errand: Errand,
    turn: Turn,
    /// When the turn was heard.
    heard: Instant,
    results: Results,
    /// Calls that take their time, each in a task of its own: they go on while their agent waits for a commit.
    flight: JoinSet<(u64, Report)>,
    in_flight: BTreeMap<Call, Flying>,
    /// Calls begun in this shift: what comes of one that is not waited for any more is told by its number.
    begun: u64,
}

struct Flying {
    number: u64,
    task: AbortHandle,
    /// A worker elsewhere makes the call.
    outside: bool,
}

fn unavailable(e: &StoreError) -> Outcome {
    Outcome::Failed(Failure::transient("unavailable", &format!("the agent could not be taken: {e}")))
}

/// There is nothing left to do for this job.
fn nothing() -> Outcome {
    Outcome::Done(Json::of(&Value::Null))
}

impl Shift {
    async fn begin(inner: &Arc<Inner>, cx: JobCx, payload: &Json) -> Result<Self, Outcome> {
        let Ok(errand) = serde_json::from_str::<Errand>(payload.as_str()) else {
            return Err(Outcome::Failed(Failure::fatal("invalid_payload", "the job names no agent")));
        };
        let Fence { org, .. } = cx.fence();
        let pinned = match inner.plans.get(cx.store(), org, errand.run).await {
            Ok(Some(pinned)) => pinned,
            Ok(None) => return Err(Outcome::Failed(Failure::fatal("run_not_found", "there is no plan to follow"))),
            Err(e) => return Err(unavailable(&e)),
        };
        let take =
            Take { fence: cx.fence().clone(), errand, plan: pinned.plan.clone(), digest: pinned.digest, agent: None };
        let turn = match cx.store().commit(take, cx.actor()).await {
            Ok(turn) => turn,
            Err(CommitError::Refused(TakeError::OtherPlan)) => {
                return Err(Outcome::Failed(Failure::fatal("other_plan", "the run pins another plan")));
            }
            Err(CommitError::Refused(TakeError::Over | TakeError::LeaseLost) | CommitError::KeyReused) => {
                return Err(nothing());
            }
            Err(CommitError::Store(e)) => return Err(unavailable(&e)),
        };
        let Some(plan) = pinned.plan.agents.get(turn.agent.index as usize) else { return Err(nothing()) };
        let results = Results::new(plan);
        Ok(Self {
            inner: inner.clone(),
            cx,
            pinned,
            errand,
            turn,
            heard: Instant::now(),
            results,
            flight: JoinSet::new(),
            in_flight: BTreeMap::new(),
            begun: 0,
        })
    }

    fn plan(&self) -> Option<&AgentPlan> {
        self.pinned.plan.agents.get(self.turn.agent.index as usize)
    }

    async fn work(mut self) -> Outcome {
        loop {
            let mut reports = match self.fly().await {
                Ok(reports) => reports,
                Err(e) => {
                    // What is in flight goes on; what could not begin is begun in a moment.
                    tracing::warn!(%e, agent = %self.turn.agent.id, "a call could not be begun yet");
                    tokio::time::sleep(TROUBLE_PAUSE).await;
                    continue;
                }
            };
            if self.turn.over {
                return nothing();
            }
            let leaving = self.cx.is_stopping();
            if self.in_flight.is_empty() && reports.is_empty() {
                if leaving {
                    return Outcome::GiveBack;
                }
                return Outcome::Park { until: self.turn.look_at, seen: self.cx.job.wakes };
            }
            if reports.is_empty() {
                let look_at = self.look_at();
                let mut due = false;
                let waits = self.in_flight.values().all(|flying| flying.outside);
                self.cx.waits(waits);
                tokio::select! {
                    biased;
                    // The job is over for somebody else's reasons, or the node can wait no longer.
                    () = self.cx.cancelled() => return Outcome::GiveBack,
                    Some(ended) = self.flight.join_next() => reports.extend(ended.ok().and_then(|ended| self.landed(ended))),
                    // Whoever leaves begins nothing, so there is nothing to look at but what is in flight.
                    () = tokio::time::sleep_until(look_at), if !leaving => due = true,
                }
                self.cx.waits(false);
                while let Some(ended) = self.flight.try_join_next() {
                    reports.extend(ended.ok().and_then(|ended| self.landed(ended)));
                }
                // Only a call that nobody waits for any more has ended.
                if reports.is_empty() && !due {
                    continue;
                }
            }
            match self.advance(reports).await {
                Said::Heard => {}
                Said::TooLate => return nothing(),
                Said::Cannot => return Outcome::GiveBack,
            }
        }
    }

    /// What came of a call, if it is still waited for.
    fn landed(&mut self, (number, report): (u64, Report)) -> Option<Report> {
        let call = *self.in_flight.iter().find(|(_, flying)| flying.number == number)?.0;
        self.in_flight.remove(&call);
        Some(report)
    }

    /// When something is to be looked at although no call has ended.
    fn look_at(&self) -> Instant {
        let waits = |doing: &Doing| matches!(doing, Doing::Signal { .. } | Doing::Answer(_) | Doing::Unknown(_));
        // Somebody who pauses or resumes it tells nobody here.
        let paused = self.turn.agent.state == AgentState::Paused;
        let waiting = paused || self.turn.agent.steps().any(|(_, _, step)| waits(&step.doing));
        let due = self.turn.look_at.map(|at| self.heard + at.since(self.turn.now).to_std());
        let often = waiting.then(|| Instant::now() + LOOK_EVERY);
        // Nothing to look at: a day is as good as any other time.
        due.into_iter().chain(often).min().unwrap_or_else(|| Instant::now() + Duration::from_secs(24 * 60 * 60))
    }

    async fn advance(&mut self, reports: Vec<Report>) -> Said {
        let failed = reports.iter().any(|report| matches!(report.outcome, advance::Outcome::Failed(_)));
        // Whoever is still in flight may be what ends it.
        let ahead = match self.turn.last && self.in_flight.is_empty() {
            true => Ahead::End,
            false if failed => Ahead::Failure,
            false => Ahead::Steps,
        };
        let advance = Advance {
            fence: self.cx.fence().clone(),
            run: self.errand.run,
            agent: self.turn.agent.id,
            plan: self.pinned.plan.clone(),
            index: self.turn.agent.index,
            leaving: self.cx.is_stopping(),
            ahead,
            reports,
        };
        let before = (self.turn.agent.attempt, self.attempts());
        let mut rejected = 0;
        loop {
            match self.cx.store().commit(advance.clone(), self.cx.actor()).await {
                Ok(turn) => {
                    self.turn = turn;
                    self.heard = Instant::now();
                    break;
                }
                Err(CommitError::Refused(_) | CommitError::KeyReused) => return Said::TooLate,
                Err(CommitError::Store(e)) if e.is_internal() && rejected >= REJECTED_TRIES => {
                    tracing::error!(%e, agent = %advance.agent, "what came of calls cannot be recorded");
                    return Said::Cannot;
                }
                // The calls were made: what came of them must not be forgotten. If our lease runs out
                // meanwhile, we are stopped.
                Err(CommitError::Store(e)) => {
                    rejected += u32::from(e.is_internal());
                    tracing::warn!(%e, agent = %advance.agent, "what came of calls could not be recorded yet");
                    tokio::time::sleep(TROUBLE_PAUSE).await;
                }
            }
        }
        if before != (self.turn.agent.attempt, self.attempts()) {
            self.results.forget();
        }
        for report in &advance.reports {
            if let advance::Outcome::Done(result) = &report.outcome {
                self.results.add((report.task, report.step), &result.value());
            }
        }
        Said::Heard
    }

    /// Which attempt each task is in that was begun more than once.
    fn attempts(&self) -> Vec<(u32, u32)> {
        let again = self.turn.agent.tasks.iter().filter(|(_, task)| task.attempt > 1);
        again.map(|(place, task)| (*place, task.attempt)).collect()
    }

    /// Begins the calls that are to be in flight and stops the others. Steps that call nobody are answered
    /// at once.
    async fn fly(&mut self) -> Result<Vec<Report>, StoreError> {
        let wanted: BTreeSet<Call> = self.turn.calls.iter().copied().collect();
        self.in_flight.retain(|call, flying| {
            let keep = wanted.contains(call);
            if !keep {
                flying.task.abort();
            }
            keep
        });
        let mut reports = Vec::new();
        for call in wanted {
            if !self.in_flight.contains_key(&call) {
                reports.extend(self.begin_call(call).await?);
            }
        }
        Ok(reports)
    }

    async fn begin_call(&mut self, call: Call) -> Result<Option<Report>, StoreError> {
        let report = |outcome| Report { task: call.task, step: call.step, attempt: call.attempt, outcome };
        let Some(plan) = self.plan() else { return Ok(None) };
        let Some((task, step)) = plan
            .tasks
            .get(call.task as usize)
            .and_then(|t| Some((t.name.clone(), t.steps.get(call.step as usize)?.clone())))
        else {
            return Ok(None);
        };
        let input = match self.input(call.task, &step).await? {
            Ok(input) => input,
            Err(failed) => return Ok(Some(report(advance::Outcome::Failed(failed)))),
        };
        if !step.doer.calls() {
            let begun = self.turn.agent.step(call.task, call.step).map_or(self.turn.now, |step| step.started_at);
            return Ok(Some(report(control::wait(step.doer, &input, begun))));
        }
        let agent = &self.turn.agent;
        let timeout = (step.timeout > Span::default()).then(|| step.timeout.to_std());
        let asked = ToolCall {
            input,
            key: format!("{}.{}.{}.{}.{}", agent.id, agent.attempt, call.task, call.task_attempt, call.step),
            run: self.errand.run,
            agent: agent.id,
            step: format!("{task}.{}", step.name),
            attempt: call.attempt,
            timeout,
        };
        let Some(called) = self.called(call, &step, asked) else {
            let fault = Fault::new("dependency_missing", &format!("this node has no tool called {}", step.tool));
            let failed = Failed { fault, called: false, unknown: false, retry_after: None };
            return Ok(Some(report(advance::Outcome::Failed(failed))));
        };
        let flying = async move {
            let ended = match timeout {
                Some(timeout) => tokio::time::timeout(timeout + OVERTIME, called).await.unwrap_or_else(|_| {
                    let fault = Fault::new("timeout", "the tool did not end in time");
                    Err(ToolFailure { may_have_acted: true, ..fault.into() })
                }),
                None => called.await,
            };
            match ended {
                Ok(result) => advance::Outcome::Done(Json::of(&result)),
                Err(ToolFailure { fault, not_called, may_have_acted, retry_after }) => {
                    advance::Outcome::Failed(Failed {
                        fault,
                        called: !not_called,
                        unknown: may_have_acted,
                        retry_after,
                    })
                }
            }
        };
        // A tool that panics has failed; what it did before is not known.
        let caught = AssertUnwindSafe(flying).catch_unwind().map(move |ended| {
            let outcome = ended.unwrap_or_else(|_| {
                let fault =
                    Fault { class: retry::Class::Deterministic, ..Fault::new("tool_crashed", "the tool panicked") };
                advance::Outcome::Failed(Failed { fault, called: true, unknown: true, retry_after: None })
            });
            Report { task: call.task, step: call.step, attempt: call.attempt, outcome }
        });
        let mut caught = Box::pin(caught);
        // What ends at once needs no task.
        if let Some(report) = caught.as_mut().now_or_never() {
            return Ok(Some(report));
        }
        self.begun += 1;
        let number = self.begun;
        let task = self.flight.spawn(async move { (number, caught.await) });
        self.in_flight.insert(call, Flying { number, task, outside: step.doer == Doer::Remote });
        Ok(None)
    }

    /// The call itself, made from here or by a worker outside; nothing if there is no such tool.
    fn called(&self, call: Call, step: &StepPlan, asked: ToolCall) -> Option<Called> {
        let toolbox = &self.inner.toolbox;
        if step.doer == Doer::Tool {
            return toolbox.tool(&step.tool).map(|tool| tool.call(asked));
        }
        let agent = &self.turn.agent;
        let begun = agent.step(call.task, call.step);
        let remote = Remote {
            store: self.cx.store().clone(),
            org: self.cx.fence().org.clone(),
            project: agent.project.clone(),
            priority: self.cx.job.priority,
            tool: toolbox.remote_type(&step.tool)?.name.clone(),
            effect: step.effect,
            call: asked,
            place: (call.task, call.step),
            task_attempt: call.task_attempt,
            agent_attempt: agent.attempt,
            again: begun.is_some_and(|step| step.lost > 0),
        };
        Some(Box::pin(remote.made()))
    }

    /// The step's input with all that it names filled in.
    async fn input(&mut self, task: u32, step: &StepPlan) -> Result<Result<Value, Failed>, StoreError> {
        let failed = |code: &str, message: &str| {
            Ok(Err(Failed { fault: Fault::new(code, message), called: false, unknown: false, retry_after: None }))
        };
        let input = match Input::parse(&step.input) {
            Ok(input) => input,
            Err(bad) => return failed(bad.code(), &bad.to_string()),
        };
        if input.is_literal() {
            return Ok(render(&input, &|_| None));
        }
        let pinned = self.pinned.clone();
        let Some(plan) = pinned.plan.agents.get(self.turn.agent.index as usize) else {
            return failed("missing_result", "the agent is not in the plan");
        };
        let wanted = input.names().iter().filter_map(|name| place(plan, task, &name.source)).collect();
        let org = self.cx.fence().org.clone();
        let store: Store = self.cx.store().clone();
        let found = self.results.of(&store, &org, &self.turn.agent, &wanted).await?;
        let (id, name) = (Value::from(self.errand.run.to_string()), Value::from(plan.name.as_str()));
        let subtask = Value::from(plan.subtask.as_str());
        Ok(render(&input, &|source| match source {
            Source::Step(_) | Source::Task(..) => found.get(&place(plan, task, source)?),
            Source::RunName => Some(&pinned.name),
            Source::RunTask => Some(&pinned.task),
            Source::RunId => Some(&id),
            Source::AgentName => Some(&name),
            Source::AgentSubtask => Some(&subtask),
        }))
    }
}

fn render<'a>(input: &Input, look: &dyn Fn(&Source) -> Option<&'a Value>) -> Result<Value, Failed> {
    input.render(look).map_err(|bad| Failed {
        fault: Fault::new(bad.code(), &bad.to_string()),
        called: false,
        unknown: false,
        retry_after: None,
    })
}

impl JobCx {
    fn actor(&self) -> Actor {
        Actor::Worker(self.fence().worker.clone())
    }
}
