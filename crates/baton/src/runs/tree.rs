//! A run as a tree: agents, their tasks, the steps of each, in the order of the document.

use super::line::Line;
use super::{part_path, run_path};
use crate::args::PageArgs;
use crate::client::Client;
use crate::fault::Fault;
use crate::jobs::seconds;
use crate::pages::{self, Ask};
use crate::paint;
use anstyle::Style;
use baton_core::credits::Credits;
use baton_core::plan::Plan;
use baton_core::run::{AgentState, State, StepState, TaskState};
use baton_core::{AgentId, Micros, RunId};
use baton_wire::{Agent, AgentList, Run, RunSource, Step, StepList, Task, TaskList, Time, WaitKind, WaitsFor};
use std::collections::BTreeMap;

/// Parts of a run that are read at most: as many as a run can have steps.
const PARTS: usize = 10_000;

pub struct Tree {
    pub run: Run,
    pub agents: Vec<AgentNode>,
}

pub struct AgentNode {
    name: String,
    seen: Option<Agent>,
    tasks: Vec<TaskNode>,
}

struct TaskNode {
    name: String,
    seen: Option<Task>,
    steps: Vec<StepNode>,
}

struct StepNode {
    name: String,
    tool: String,
    seen: Option<Step>,
}

/// What there is to do, without anything that happened; read once.
pub struct Outline(Plan);

impl Outline {
    pub async fn read(client: &Client, id: RunId) -> Result<Self, Fault> {
        let source: RunSource = client.get(&part_path(id, "document"), &[]).await?;
        let plan = serde_json::from_value(source.plan);
        plan.map(Self)
            .map_err(|error| Fault::new("unexpected_answer", format!("the plan cannot be understood: {error}")))
    }
}

impl Tree {
    pub async fn read(client: &Client, id: RunId, outline: &Outline) -> Result<Self, Fault> {
        // The run first: what its parts say is at least as new.
        let run: Run = client.get(&run_path(id), &[]).await?;
        let page = PageArgs { limit: PARTS, order: None, cursor: None };
        let agents: AgentList = all(client, id, "agents", &page).await?;
        let tasks: TaskList = all(client, id, "tasks", &page).await?;
        let steps: StepList = all(client, id, "steps", &page).await?;
        Ok(Self::new(run, outline, agents.agents, tasks.tasks, steps.steps))
    }

    fn new(run: Run, outline: &Outline, agents: Vec<Agent>, tasks: Vec<Task>, steps: Vec<Step>) -> Self {
        // What comes later is newer: records before what is at hand, that before what is planned.
        let mut by_place: BTreeMap<u32, Agent> = agents.into_iter().map(|agent| (agent.index, agent)).collect();
        let mut tasks: BTreeMap<(AgentId, String), Task> =
            tasks.into_iter().map(|task| ((task.agent_id, task.name.clone()), task)).collect();
        let mut steps: BTreeMap<(AgentId, String, String), Step> =
            steps.into_iter().map(|step| ((step.agent_id, step.task.clone(), step.name.clone()), step)).collect();
        let nodes = outline.0.agents.iter().zip(0..).map(|(planned, place)| {
            let seen = by_place.remove(&place);
            let id = seen.as_ref().map(|agent| agent.id);
            let tasks = planned.tasks.iter().map(|task| {
                let name = task.name.to_string();
                let steps = task.steps.iter().map(|step| StepNode {
                    name: step.name.to_string(),
                    tool: step.tool.to_string(),
                    seen: id.and_then(|id| steps.remove(&(id, name.clone(), step.name.to_string()))),
                });
                let steps = steps.collect();
                TaskNode { seen: id.and_then(|id| tasks.remove(&(id, name.clone()))), name, steps }
            });
            AgentNode { name: planned.name.to_string(), tasks: tasks.collect(), seen }
        });
        Self { agents: nodes.collect(), run }
    }

    fn steps(&self) -> impl Iterator<Item = &StepNode> {
        self.agents.iter().flat_map(|agent| &agent.tasks).flat_map(|task| &task.steps)
    }

    /// Steps that ended, of all.
    pub fn progress(&self) -> (usize, usize) {
        (self.steps().filter(|step| step.is_done()).count(), self.steps().count())
    }

    pub fn lines(&self, now: Micros) -> Vec<Line> {
        let mut all = vec![self.title(now)];
        for agent in &self.agents {
            agent.lines(now, self.run.id, &mut all);
        }
        all
    }

    /// As much as has room: ended agents shrink to a line first, then tasks, then the rest is counted.
    pub fn lines_within(&self, now: Micros, rows: usize) -> Vec<Line> {
        let whole = self.lines(now);
        if whole.len() <= rows {
            return whole;
        }
        let mut all = vec![self.title(now)];
        for agent in &self.agents {
            if agent.is_done() {
                all.push(agent.line(now));
            } else {
                agent.open_lines(now, self.run.id, &mut all);
            }
        }
        if all.len() > rows {
            let keep = rows.saturating_sub(1).max(1);
            let more = all.len() - keep;
            all.truncate(keep);
            all.push(Line::new().dim(format_args!("  … and {more} more lines: baton runs show {}", self.run.id)));
        }
        all
    }

    pub fn title(&self, now: Micros) -> Line {
        let run = &self.run;
        let (mark, style) = run_mark(run.status);
        let (done, all) = self.progress();
        let attempt = match run.attempt_number {
            0 | 1 => String::new(),
            n => format!("attempt {n}/{}", run.max_attempts),
        };
        let title = Line::new().styled(style, mark).plain(" ").styled(paint::BOLD, &run.name);
        let title = title.also(style, run.status.as_str()).also(paint::PLAIN, &format!("{done}/{all} steps"));
        let title = title.also(paint::PLAIN, &credits(run.credits_charged)).also(paint::WARN, &attempt);
        title.also(paint::DIM, &span(run.started_at, ended_at(run), now)).also(paint::DIM, &run.id.to_string())
    }

    /// Steps that ended badly, with why.
    pub fn failures(&self) -> Vec<Line> {
        let mut all = Vec::new();
        for agent in &self.agents {
            for task in &agent.tasks {
                for step in task.steps.iter().filter_map(|step| step.seen.as_ref()) {
                    let Some(error) = step.last_error.as_ref().filter(|_| is_bad(step.status)) else { continue };
                    let line = Line::new()
                        .plain("  ")
                        .styled(paint::BAD, format_args!("{}.{}.{}", agent.name, task.name, step.name));
                    let line = line.plain(format_args!("  {}: {}", error.code, first_line(&error.message)));
                    all.push(line.also(paint::DIM, &format!("after {} attempts", step.attempts)));
                }
            }
        }
        all
    }
}

/// What a run waits for that somebody can do something about.
pub fn unblock(step: &WaitsFor, run: RunId) -> Option<String> {
    match step.what {
        WaitKind::Signal => Some(format!("baton runs signal {run} {}", step.signal.as_deref()?)),
        WaitKind::Answer | WaitKind::Outcome => Some(format!("baton decisions show {}", step.decision_id?)),
        WaitKind::Call | WaitKind::Retry | WaitKind::Time => None,
    }
}

impl AgentNode {
    fn is_done(&self) -> bool {
        self.seen.as_ref().is_some_and(|agent| agent.status.is_final())
    }

    fn line(&self, now: Micros) -> Line {
        let status = self.seen.as_ref().map_or(AgentState::Pending, |agent| agent.status);
        let (mark, style) = agent_mark(status);
        let done = self.tasks.iter().flat_map(|task| &task.steps).filter(|step| step.is_done()).count();
        let all: usize = self.tasks.iter().map(|task| task.steps.len()).sum();
        let line = Line::new().plain("  ").styled(style, mark).plain(" ").styled(paint::BOLD, &self.name);
        let Some(seen) = &self.seen else { return line.also(paint::DIM, "waits for its turn") };
        let line = line.also(paint::PLAIN, &format!("{done}/{all} steps")).also(paint::PLAIN, &credits(seen.charged));
        let line = line.also(paint::DIM, &span(seen.started_at, seen.ended_at, now));
        let attempt =
            if seen.attempt > 1 { format!("attempt {}/{}", seen.attempt, seen.attempts) } else { String::new() };
        let line = line.also(paint::WARN, &attempt);
        let why = seen.last_error.as_ref().filter(|_| status == AgentState::Failed).map(|error| error.code.as_str());
        line.also(paint::BAD, why.unwrap_or_default())
    }

    fn lines(&self, now: Micros, run: RunId, all: &mut Vec<Line>) {
        all.push(self.line(now));
        for task in &self.tasks {
            all.push(task.line(now));
            all.extend(task.steps.iter().map(|step| step.line(now, run)));
        }
    }

    /// Only tasks that are at work have their steps shown, and those that ended are not shown.
    fn open_lines(&self, now: Micros, run: RunId, all: &mut Vec<Line>) {
        all.push(self.line(now));
        for task in self.tasks.iter().filter(|task| task.status() == TaskState::Running) {
            all.push(task.line(now));
            all.extend(task.steps.iter().filter(|step| step.is_at_work()).map(|step| step.line(now, run)));
        }
    }
}

impl TaskNode {
    fn status(&self) -> TaskState {
        self.seen.as_ref().map_or(TaskState::Pending, |task| task.status)
    }

    fn line(&self, now: Micros) -> Line {
        let (mark, style) = task_mark(self.status());
        let line = Line::new().plain("    ").styled(style, mark).plain(" ").plain(&self.name);
        let Some(seen) = &self.seen else { return line };
        let attempt = if seen.attempts > 1 { format!("attempt {}", seen.attempts) } else { String::new() };
        line.also(paint::WARN, &attempt).also(paint::DIM, &span(seen.started_at, seen.ended_at, now))
    }
}

impl StepNode {
    fn status(&self) -> StepState {
        self.seen.as_ref().map_or(StepState::Pending, |step| step.status)
    }

    fn is_done(&self) -> bool {
        self.status().is_final()
    }

    fn is_at_work(&self) -> bool {
        self.status() == StepState::Running || self.seen.as_ref().is_some_and(|step| step.waits_for.is_some())
    }

    fn line(&self, now: Micros, run: RunId) -> Line {
        let (mark, style) = step_mark(self.status());
        let waits = self.seen.as_ref().and_then(|step| step.waits_for.as_ref());
        let (mark, style) =
            if waits.is_some_and(|waits| waits.what != WaitKind::Call) { ("◷", paint::WARN) } else { (mark, style) };
        let line = Line::new().plain("      ").styled(style, mark).plain(" ").plain(&self.name);
        let line = line.also(paint::DIM, &self.tool);
        let Some(seen) = &self.seen else { return line };
        let line = line
            .also(paint::PLAIN, &credits(seen.charged))
            .also(paint::DIM, &span(seen.started_at, seen.ended_at, now));
        let attempts = if seen.attempts > 1 { format!("attempt {}", seen.attempts) } else { String::new() };
        let line = line.also(paint::WARN, &attempts);
        let line = line.also(paint::DIM, if seen.carried { "kept from before" } else { "" });
        let line = line.also(paint::WARN, &waits.map(|waits| waiting(waits, run)).unwrap_or_default());
        let error = seen.last_error.as_ref().map(|error| format!("{}: {}", error.code, first_line(&error.message)));
        line.also(if is_bad(seen.status) { paint::BAD } else { paint::DIM }, &error.unwrap_or_default())
    }
}

/// A step that ended and did not do what it was there for.
const fn is_bad(status: StepState) -> bool {
    matches!(status, StepState::Failed | StepState::Skipped)
}

fn waiting(waits: &WaitsFor, run: RunId) -> String {
    let until = waits.until.map(seconds);
    let then = unblock(waits, run).map(|command| format!(": {command}")).unwrap_or_default();
    match waits.what {
        WaitKind::Time => format!("until {}", until.unwrap_or_default()),
        WaitKind::Retry => until.map_or_else(|| "again soon".to_owned(), |until| format!("again at {until}")),
        WaitKind::Signal => format!("waits for the signal {}{then}", waits.signal.as_deref().unwrap_or_default()),
        WaitKind::Answer => format!("waits for an answer{then}"),
        WaitKind::Outcome => format!("somebody must say whether it was done{then}"),
        WaitKind::Call => String::new(),
    }
}

pub fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

async fn all<P: pages::Page>(client: &Client, id: RunId, part: &str, page: &PageArgs) -> Result<P, Fault> {
    pages::read(client, Ask { path: &part_path(id, part), query: Vec::new(), page }).await
}

fn credits(amount: Credits) -> String {
    if amount.is_zero() { String::new() } else { format!("{amount} credits") }
}

pub fn ended_at(run: &Run) -> Option<Time> {
    run.completed_at.or(run.cancelled_at)
}

/// How long something took, or has taken so far.
fn span(from: Option<Time>, to: Option<Time>, now: Micros) -> String {
    let ms = |from: Time| to.map_or(now, |to| to.0).0.saturating_sub(from.0.0) / 1_000;
    from.map(|from| length(u64::try_from(ms(from)).unwrap_or(0))).unwrap_or_default()
}

/// Milliseconds as people say them.
pub fn length(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        60_000..3_600_000 => format!("{} min {} s", ms / 60_000, ms % 60_000 / 1_000),
        _ => format!("{} h {} min", ms / 3_600_000, ms % 3_600_000 / 60_000),
    }
}

pub const fn run_mark(state: State) -> (&'static str, Style) {
    match state {
        State::Created | State::Pending => ("·", paint::DIM),
        State::Running | State::Resuming => ("▸", paint::BUSY),
        State::Retrying => ("↻", paint::WARN),
        State::Paused => ("‖", paint::WARN),
        State::Completed => ("✓", paint::GOOD),
        State::Failed => ("✗", paint::BAD),
        State::Cancelled => ("⊘", paint::WARN),
        State::Skipped => ("–", paint::WARN),
    }
}

const fn agent_mark(state: AgentState) -> (&'static str, Style) {
    match state {
        AgentState::Pending => run_mark(State::Pending),
        AgentState::Running => run_mark(State::Running),
        AgentState::Paused => run_mark(State::Paused),
        AgentState::Completed => run_mark(State::Completed),
        AgentState::Failed => run_mark(State::Failed),
        AgentState::Skipped => run_mark(State::Skipped),
        AgentState::Cancelled => run_mark(State::Cancelled),
    }
}

const fn task_mark(state: TaskState) -> (&'static str, Style) {
    match state {
        TaskState::Pending => run_mark(State::Pending),
        TaskState::Running => run_mark(State::Running),
        TaskState::Paused => run_mark(State::Paused),
        TaskState::Completed => run_mark(State::Completed),
        TaskState::Failed => run_mark(State::Failed),
        TaskState::Skipped => run_mark(State::Skipped),
        TaskState::Cancelled => run_mark(State::Cancelled),
    }
}

const fn step_mark(state: StepState) -> (&'static str, Style) {
    match state {
        StepState::Pending => run_mark(State::Pending),
        StepState::Running => run_mark(State::Running),
        StepState::Completed => run_mark(State::Completed),
        StepState::Failed => run_mark(State::Failed),
        StepState::Skipped => run_mark(State::Skipped),
        StepState::Cancelled => run_mark(State::Cancelled),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_core::plan::{Tools, check};
    use serde_json::{Value, json};

    const RUN: &str = "run_018bcfe568007001800000000000002a";
    const AGENT: &str = "agt_018bcfe568007001800000000000002b";
    const START: &str = "2026-01-31T09:30:00.000000Z";
    const END: &str = "2026-01-31T09:30:01.500000Z";

    fn step(name: &str, more: Value) -> Step {
        let mut step = json!({
            "agent_id": AGENT, "agent_name": "a", "n": null, "task": "t", "name": name, "tool": "sleep", "effect": "pure",
            "status": "pending", "agent_attempt": 1, "task_attempt": 1, "attempts": 0, "price": "0", "charged": "0",
            "estimated": false, "carried": false, "started_at": null, "ended_at": null, "last_error": null,
            "waits_for": null,
        });
        if let (Value::Object(step), Value::Object(more)) = (&mut step, more) {
            step.extend(more);
        }
        serde_json::from_value(step).unwrap()
    }

    /// Two agents; the first has completed a step, failed another and waits with the third.
    fn tree() -> Tree {
        let steps =
            ["one", "two", "three"].map(|name| json!({ "name": name, "tool": "sleep", "input": { "for": "1s" } }));
        let agent = |name: &str| json!({ "name": name, "tasks": [{ "name": "t", "steps": steps }] });
        let document = json!({ "name": "r", "plan": { "agents": [agent("a"), agent("b")] } });
        let plan = check(&document, &Tools::builtin()).unwrap().plan;
        let run = serde_json::from_value(json!({
            "id": RUN, "name": "r\u{1b}[2J", "project_id": "p", "priority": "normal", "status": "running", "labels": {},
            "failure_mode": "fail-fast", "attempt_number": 2, "max_attempts": 3, "failures": 0, "failure_budget": 30,
            "budget": "9", "credits_reserved": "9", "credits_charged": "1.5", "credits_refunded": "0", "agent_count": 1,
            "task_count": 0, "step_count": 2, "last_error": null, "reason": null, "created_at": START,
            "queued_at": START, "started_at": START, "completed_at": null, "cancelled_at": null, "paused_at": null,
            "deadline_at": null, "duration_ms": 1500, "last_heartbeat": null, "allowed_actions": ["pause", "cancel"],
            "deleted_at": null,
        }));
        let agent = json!({
            "id": AGENT, "run_id": RUN, "run_attempt": 2, "index": 0, "name": "a", "subtask": "", "status": "running",
            "attempt": 1, "attempts": 3, "charged": "1.5", "balance": "7.5", "tasks_total": 1, "tasks_done": 0,
            "steps_done": 2, "last_error": null, "created_at": START, "started_at": START, "ended_at": null,
            "paused_at": null, "deadline_at": null, "job_id": null, "doing": [],
        });
        let task = json!({
            "agent_id": AGENT, "agent_name": "a", "n": null, "name": "t", "status": "running", "agent_attempt": 1,
            "attempts": 1, "charged": "1.5", "steps": 2, "started_at": START, "ended_at": null, "last_error": null,
        });
        let fault = json!({ "code": "timeout", "message": "too slow\nmore", "class": "transient" });
        let steps = vec![
            step("one", json!({ "status": "failed", "n": 1, "task_attempt": 1 })),
            step(
                "one",
                json!({ "status": "completed", "n": 2, "charged": "1.5", "started_at": START, "ended_at": END }),
            ),
            step("two", json!({ "status": "skipped", "n": 3, "attempts": 3, "last_error": fault })),
            step(
                "three",
                json!({
                    "status": "running", "attempts": 1, "started_at": START,
                    "waits_for": { "for": "signal", "until": null, "signal": "go", "decision_id": null },
                }),
            ),
        ];
        let parts = (serde_json::from_value(agent).unwrap(), serde_json::from_value(task).unwrap());
        Tree::new(run.unwrap(), &Outline(plan), vec![parts.0], vec![parts.1], steps)
    }

    fn text(lines: Vec<Line>) -> Vec<String> {
        lines.iter().map(|line| anstream::adapter::strip_str(&line.to_string()).to_string()).collect()
    }

    #[test]
    fn a_tree_has_what_happened_in_the_order_of_the_plan() {
        let now = END.parse::<Time>().unwrap().0;
        let expected = [
            &format!("▸ r\\u{{1b}}[2J  running  2/6 steps  1.5 credits  attempt 2/3  1.5 s  {RUN}"),
            "  ▸ a  2/3 steps  1.5 credits  1.5 s",
            "    ▸ t  1.5 s",
            "      ✓ one  sleep  1.5 credits  1.5 s",
            "      – two  sleep  attempt 3  timeout: too slow",
            &format!("      ◷ three  sleep  1.5 s  waits for the signal go: baton runs signal {RUN} go"),
            "  · b  waits for its turn",
            "    · t",
            "      · one  sleep",
            "      · two  sleep",
            "      · three  sleep",
        ];
        assert_eq!(text(tree().lines(now)), expected);
        assert_eq!(text(tree().failures()), ["  a.t.two  timeout: too slow  after 3 attempts"]);
    }

    #[test]
    fn a_small_terminal_shows_what_is_at_work_and_counts_the_rest() {
        let now = END.parse::<Time>().unwrap().0;
        let lines = text(tree().lines_within(now, 6));
        assert_eq!((lines.len(), lines[3].trim_start().starts_with('◷')), (5, true), "{lines:#?}");
        let lines = text(tree().lines_within(now, 3));
        assert_eq!(lines.len(), 3);
        assert!(lines[2].starts_with("  … and 3 more lines: baton runs show"), "{lines:#?}");
    }

    #[test]
    fn lengths_are_said_as_people_do() {
        for (ms, said) in [(7, "7 ms"), (1_500, "1.5 s"), (61_000, "1 min 1 s"), (3_660_000, "1 h 1 min")] {
            assert_eq!(length(ms), said);
        }
    }
}
