//! From a run document to a plan: everything is checked, everything that was left open is filled in.
//!
//! Elsewhere: what a document says (`document`), what its inputs name (`input`).

mod checks;
mod parts;
#[cfg(test)]
mod tests;

use super::document::{Document, LimitsDoc, Priority};
use super::problem::{self, Path, Problem, Problems};
use super::tools::Tools;
use super::{AgentPlan, Plan, StepPlan, read};
use crate::credits::Credits;
use crate::limits;
use crate::name::ProjectId;
use crate::span::SpanText;
use crate::time::Span;
use serde_json::Value;
use std::collections::BTreeMap;

/// What became of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiled {
    pub plan: Plan,
    pub budget: Credits,
    pub name: String,
    /// What it is about; empty if nobody said.
    pub task: String,
    pub project: ProjectId,
    pub priority: Priority,
    pub labels: BTreeMap<String, String>,
}

/// Attempts of whatever does not say how many.
const ATTEMPTS: u32 = 3;

/// What the limits of a run are unless it says otherwise.
const MAX_AGENTS: u32 = 10;
const MAX_TASKS: u32 = 5;
const MAX_STEPS: u32 = 3;
const FAILURE_BUDGET: u32 = 30;
const RUN_TIMEOUT: Span = Span::secs(24 * 60 * 60);
const PAUSE_TIMEOUT: Span = Span::secs(7 * 24 * 60 * 60);
const AGENT_TIMEOUT: Span = Span::secs(6 * 60 * 60);
const TASK_TIMEOUT: Span = Span::secs(60 * 60);
const STEP_TIMEOUT: Span = Span::secs(30);

/// Reads and compiles at once, so that all that is wrong is told at once.
pub fn check(value: &Value, tools: &Tools) -> Result<Compiled, Vec<Problem>> {
    let (document, mut problems) = read::document(value);
    match compile(&document, tools) {
        Ok(compiled) if problems.is_empty() => Ok(compiled),
        compiled => {
            problems.follow(compiled.err().unwrap_or_default());
            Err(problems.into_vec())
        }
    }
}

pub fn compile(document: &Document, tools: &Tools) -> Result<Compiled, Vec<Problem>> {
    let bounds = document.limits.clone().unwrap_or_default();
    let mut compiler = Compiler { tools, bounds, problems: Problems::default(), steps: 0 };
    let compiled = compiler.run(document);
    match compiled {
        Some(compiled) if compiler.problems.is_empty() => Ok(compiled),
        _ => Err(compiler.problems.into_vec()),
    }
}

struct Compiler<'a> {
    tools: &'a Tools,
    bounds: LimitsDoc,
    problems: Problems,
    /// Of all tasks so far.
    steps: usize,
}

impl Compiler<'_> {
    /// `None` only where a problem was told.
    fn run(&mut self, document: &Document) -> Option<Compiled> {
        let root = &Path::ROOT;
        let name = document.name.clone().unwrap_or_default();
        if document.name.is_none() {
            self.missing(root, "name");
        } else {
            self.line(&root.field("name"), &name, 1..=limits::RUN_NAME_CHARS);
        }
        let task = document.task.clone().unwrap_or_default();
        self.text(&root.field("task"), &task, limits::RUN_TASK_CHARS);
        self.labels(document);
        let plan = self.plan(document);
        let budget = self.budget(document, &plan);
        Some(Compiled {
            plan,
            budget: budget?,
            name,
            task,
            project: document.project.clone().unwrap_or_default(),
            priority: document.priority.unwrap_or_default(),
            labels: document.labels.clone().unwrap_or_default(),
        })
    }

    fn labels(&mut self, document: &Document) {
        let Some(labels) = &document.labels else { return };
        let path = Path::ROOT.field("labels");
        self.at_most(&path, labels.len(), limits::RUN_LABELS, "labels of a run");
        for (name, value) in labels {
            let path = path.field(name);
            self.line(&path, name, 1..=limits::RUN_LABEL_NAME_CHARS);
            self.line(&path, value, 0..=limits::RUN_LABEL_CHARS);
        }
    }

    fn plan(&mut self, document: &Document) -> Plan {
        let root = &Path::ROOT;
        let path = root.field("limits");
        let bounds = self.bounds.clone();
        let width = 1..=limits::PLAN_WIDTH;
        // All of them are looked at, also those that no agent or task falls back to.
        self.number(&path, "max_tasks", (bounds.max_tasks, MAX_TASKS), width.clone());
        self.number(&path, "max_steps", (bounds.max_steps, MAX_STEPS), width.clone());
        let failures = (bounds.failure_budget, FAILURE_BUDGET);
        Plan {
            failure_mode: document.failure_mode.unwrap_or_default(),
            max_attempts: self.attempts(root, "max_attempts", (document.max_attempts, ATTEMPTS)),
            failure_budget: self.number(&path, "failure_budget", failures, 0..=limits::FAILURE_BUDGET),
            max_agents: self.number(&path, "max_agents", (bounds.max_agents, MAX_AGENTS), width),
            timeout: bounds.run_timeout.map_or(RUN_TIMEOUT, SpanText::span),
            paused_for: bounds.pause_timeout.map_or(PAUSE_TIMEOUT, SpanText::span),
            agents: self.agents(document),
        }
    }

    fn budget(&mut self, document: &Document, plan: &Plan) -> Option<Credits> {
        let Some(estimate) = plan.estimate() else {
            let path = Path::ROOT.field("plan");
            let max = Credits::MAX;
            self.problems.add(&path, problem::COST_OVERFLOW, format_args!("all its steps may cost more than {max}"));
            return None;
        };
        let Some(budget) = document.budget else { return Some(estimate) };
        let steps = plan.agents.iter().flat_map(|agent| &agent.tasks).flat_map(|task| &task.steps);
        if let Some(dearest) = steps.max_by_key(|step| step.price).filter(|step| step.price > budget) {
            let (path, StepPlan { name, price, .. }) = (Path::ROOT.field("budget"), dearest);
            let told = format_args!("the budget is {budget}, and one call of the step {name} costs {price}");
            self.problems.add(&path, problem::BUDGET_TOO_SMALL, told);
        }
        Some(budget)
    }

    fn agents(&mut self, document: &Document) -> Vec<AgentPlan> {
        let Some(plan) = &document.plan else {
            self.missing(&Path::ROOT, "plan");
            return Vec::new();
        };
        let path = Path::ROOT.field("plan");
        let Some(agents) = &plan.agents else {
            self.missing(&path, "agents");
            return Vec::new();
        };
        let path = path.field("agents");
        self.some(&path, agents.len(), limits::RUN_AGENTS, "agents of a run");
        let (names, _) = self.names(&path, "agent", agents.iter().map(|agent| agent.name.as_ref()));
        let agents = agents.iter().zip(names).enumerate();
        agents.map(|(n, (agent, name))| self.agent(agent, name, &path.place(n))).collect()
    }
}
