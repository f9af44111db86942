//! Agents, their tasks and the steps of each.

use super::checks::{Going, LISTED, in_order};
use super::{AGENT_TIMEOUT, ATTEMPTS, Compiler, MAX_STEPS, MAX_TASKS, STEP_TIMEOUT, TASK_TIMEOUT};
use crate::limits;
use crate::name::{PlanName, ToolName};
use crate::plan::document::{AgentDoc, StepDoc, TaskDoc};
use crate::plan::input::Input;
use crate::plan::near::nearest;
use crate::plan::problem::{self, Path};
use crate::plan::reference::Source;
use crate::plan::{AgentPlan, StepOrder, StepPlan, TaskOrder, TaskPlan, builtin};
use crate::span::SpanText;
use crate::time::Span;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The tasks of an agent and the steps of each, by name.
struct Names {
    tasks: BTreeMap<PlanName, u32>,
    steps: Vec<BTreeMap<PlanName, u32>>,
}

/// Where a step stands.
struct Standing<'a> {
    names: &'a Names,
    task: usize,
    tasks_go: Going,
    step: usize,
    steps_go: Going,
}

/// What must have ended before a step begins: siblings, and tasks beside its own.
struct Before {
    steps: Vec<u32>,
    tasks: Vec<u32>,
}

/// What is known of a step before its tool is.
struct Known<'a> {
    name: &'a PlanName,
    input: Value,
    parsed: Option<Input>,
    after: Vec<u32>,
}

impl Compiler<'_> {
    pub(super) fn agent(&mut self, agent: &AgentDoc, name: PlanName, path: &Path<'_>) -> AgentPlan {
        let order = agent.parallelism.unwrap_or_default();
        let subtask = agent.subtask.clone().unwrap_or_default();
        self.text(&path.field("subtask"), &subtask, limits::SUBTASK_CHARS);
        let width = (agent.max_tasks, kept(self.bounds.max_tasks, MAX_TASKS));
        let width = self.number(path, "max_tasks", width, 1..=limits::PLAN_WIDTH);
        AgentPlan {
            name,
            subtask,
            failure_mode: agent.failure_mode.unwrap_or_default(),
            attempts: self.attempts(path, "attempts", (agent.attempts, ATTEMPTS)),
            timeout: first([agent.timeout, self.bounds.agent_timeout], AGENT_TIMEOUT),
            order,
            width: if order == TaskOrder::Sequential { 1 } else { width },
            tasks: self.tasks(agent, order, path),
        }
    }

    fn tasks(&mut self, agent: &AgentDoc, order: TaskOrder, path: &Path<'_>) -> Vec<TaskPlan> {
        let Some(tasks) = &agent.tasks else {
            self.missing(path, "tasks");
            return Vec::new();
        };
        let path = &path.field("tasks");
        self.some(path, tasks.len(), limits::AGENT_TASKS, "tasks of an agent");
        let (task_names, by_name) = self.names(path, "task", tasks.iter().map(|task| task.name.as_ref()));
        // Inputs name steps of other tasks, so all names are known before any input is looked at.
        let mut names = Names { tasks: by_name, steps: Vec::with_capacity(tasks.len()) };
        let mut step_names = Vec::with_capacity(tasks.len());
        for (n, task) in tasks.iter().enumerate() {
            let given = task.steps.iter().flatten().map(|step| step.name.as_ref());
            let (listed, by_name) = self.names(&path.place(n).field("steps"), "step", given);
            step_names.push(listed);
            names.steps.push(by_name);
        }
        let mut plans: Vec<TaskPlan> = Vec::with_capacity(tasks.len());
        for (n, ((task, name), steps)) in tasks.iter().zip(task_names).zip(step_names).enumerate() {
            let path = &path.place(n);
            let mut plan = self.task(task, name, path);
            let going = if order == TaskOrder::Sequential { Going::InTurn } else { Going::AsTheyCan };
            let depends_on = task.depends_on.as_deref();
            let mut after = if order == TaskOrder::Parallel && depends_on.is_some_and(|names| !names.is_empty()) {
                let told =
                    format_args!("tasks in parallel do not wait for each other; give the agent parallelism: dag");
                self.problems.add(&path.field("depends_on"), problem::DEPENDS_ON_REFUSED, told);
                Vec::new()
            } else {
                self.depends_on(path, going, n, (depends_on, &names.tasks), problem::UNKNOWN_TASK)
            };
            let steps_go = if plan.order == StepOrder::Sequential { Going::InTurn } else { Going::AsTheyCan };
            let standing = Standing { names: &names, task: n, tasks_go: going, step: 0, steps_go };
            plan.steps = self.steps(task, steps, standing, &mut after, path);
            plan.after = in_order(after);
            plans.push(plan);
        }
        self.no_cycle(path, plans.iter().map(|task| task.after.as_slice()), |n| &plans[n].name);
        plans
    }

    /// All but its steps and what it waits for.
    fn task(&mut self, task: &TaskDoc, name: PlanName, path: &Path<'_>) -> TaskPlan {
        let order = task.parallelism.unwrap_or_default();
        let width = (task.max_steps, kept(self.bounds.max_steps, MAX_STEPS));
        let width = self.number(path, "max_steps", width, 1..=limits::PLAN_WIDTH);
        TaskPlan {
            name,
            failure_mode: task.failure_mode.unwrap_or_default(),
            attempts: self.attempts(path, "attempts", (task.attempts, ATTEMPTS)),
            timeout: first([task.timeout, self.bounds.task_timeout], TASK_TIMEOUT),
            order,
            width: if order == StepOrder::Sequential { 1 } else { width },
            after: Vec::new(),
            steps: Vec::new(),
        }
    }

    /// Adds the tasks that the steps name to those that the task waits for.
    fn steps(
        &mut self,
        task: &TaskDoc,
        names: Vec<PlanName>,
        standing: Standing<'_>,
        after: &mut Vec<u32>,
        path: &Path<'_>,
    ) -> Vec<StepPlan> {
        let Some(steps) = &task.steps else {
            self.missing(path, "steps");
            return Vec::new();
        };
        let path = &path.field("steps");
        self.some(path, steps.len(), limits::TASK_STEPS, "steps of a task");
        let before = self.steps;
        self.steps += steps.len();
        if before <= limits::RUN_STEPS {
            self.at_most(path, self.steps, limits::RUN_STEPS, "steps of a run, up to here");
        }
        // What waits for what is known of all steps, also of those whose tool is not.
        let mut waits = Vec::with_capacity(steps.len());
        let mut plans = Vec::with_capacity(steps.len());
        for (n, (step, name)) in steps.iter().zip(&names).enumerate() {
            let path = &path.place(n);
            let standing = Standing { step: n, ..standing };
            let input = step.input.clone().unwrap_or_else(|| Value::Object(Map::new()));
            let parsed = self.input(&input, path);
            let before = self.before(step, parsed.as_ref(), &standing, path);
            after.extend(before.tasks);
            waits.push(before.steps.clone());
            plans.extend(self.step(step, Known { name, input, parsed, after: before.steps }, path));
        }
        self.no_cycle(path, waits.iter().map(Vec::as_slice), |n| &names[n]);
        plans
    }

    fn input(&mut self, input: &Value, path: &Path<'_>) -> Option<Input> {
        let parsed = Input::parse(input);
        if let Err(bad) = &parsed {
            self.problems.add(&path.field("input"), bad.code(), format_args!("{bad}"));
        }
        parsed.ok()
    }

    fn before(&mut self, step: &StepDoc, input: Option<&Input>, standing: &Standing<'_>, path: &Path<'_>) -> Before {
        let Standing { names, task, tasks_go, step: own, steps_go } = *standing;
        let siblings = &names.steps[task];
        let depends_on = (step.depends_on.as_deref(), siblings);
        let mut steps = self.depends_on(path, steps_go, own, depends_on, problem::UNKNOWN_STEP);
        let mut tasks = Vec::new();
        let path = &path.field("input");
        for reference in input.map(Input::names).unwrap_or_default() {
            let (other, name) = match &reference.source {
                Source::Step(name) => (task, name),
                Source::Task(other, name) => match names.tasks.get(other) {
                    Some(other) => (*other as usize, name),
                    None => {
                        let told = format_args!("{reference}: the agent has no task {other}");
                        self.problems.add(path, problem::UNKNOWN_TASK, told);
                        continue;
                    }
                },
                _ => continue,
            };
            let Some(found) = names.steps[other].get(name) else {
                let told = format_args!("{reference}: the task has no step {name}");
                self.problems.add(path, problem::UNKNOWN_STEP, told);
                continue;
            };
            if other == task {
                steps.extend(self.wait(path, steps_go, own, (*found, reference)));
            } else {
                tasks.extend(self.wait(path, tasks_go, task, (other as u32, reference)));
            }
        }
        Before { steps: in_order(steps), tasks }
    }

    /// `None` without a tool, which was told.
    fn step(&mut self, step: &StepDoc, known: Known<'_>, path: &Path<'_>) -> Option<StepPlan> {
        let attempts = self.attempts(path, "attempts", (step.attempts, ATTEMPTS));
        let Some(name) = step.tool.clone() else {
            self.missing(path, "tool");
            return None;
        };
        let Some(tool) = self.tools.get(&name) else {
            self.unknown_tool(&path.field("tool"), &name);
            return None;
        };
        if let Some(literal) = known.parsed.filter(Input::is_literal).and_then(|input| input.render(&|_| None).ok())
            && let Err(why) = builtin::understands(tool.doer, &literal)
        {
            self.problems.add(&path.field("input"), problem::INVALID_INPUT, format_args!("{name}: {why}"));
        }
        let effect = step.effect.unwrap_or(tool.effect);
        if !effect.covers(tool.effect) {
            let (said, is) = (effect.as_str(), tool.effect.as_str());
            let told = format_args!("{name} is {is}, and a step cannot make it {said}");
            self.problems.add(&path.field("effect"), problem::EFFECT_TOO_SOFT, told);
        }
        let price = step.price.unwrap_or(tool.price);
        if !tool.doer.calls() && !price.is_zero() {
            let told = format_args!("{name} calls nobody and costs nothing");
            self.problems.add(&path.field("price"), problem::INVALID_VALUE, told);
        }
        if price < tool.price {
            let told = format_args!("a call of {name} costs {}, and a step cannot make it {price}", tool.price);
            self.problems.add(&path.field("price"), problem::PRICE_TOO_LOW, told);
        }
        Some(StepPlan {
            name: known.name.clone(),
            tool: name,
            doer: tool.doer,
            input: known.input,
            effect,
            repeat: step.repeat.unwrap_or_default(),
            timeout: step.timeout.map(SpanText::span).or(tool.timeout).unwrap_or(self.step_timeout()),
            attempts: if step.attempts.is_some() { attempts } else { tool.attempts.unwrap_or(ATTEMPTS) },
            price,
            after: known.after,
        })
    }

    fn step_timeout(&self) -> Span {
        self.bounds.step_timeout.map_or(STEP_TIMEOUT, SpanText::span)
    }

    fn unknown_tool(&mut self, path: &Path<'_>, name: &ToolName) {
        if self.problems.is_full() {
            return;
        }
        let near = nearest(name.as_str(), self.tools.names().map(ToolName::as_str));
        let hint = near.map(|near| format!("; did you mean {near}?")).unwrap_or_else(|| ".".to_owned());
        let known: Vec<&str> = self.tools.names().map(ToolName::as_str).take(LISTED).collect();
        let more = if self.tools.names().count() > LISTED { " and more" } else { "" };
        let told = format_args!("there is no tool {name}{hint} Known are {}{more}", known.join(", "));
        self.problems.add(path, problem::UNKNOWN_TOOL, told);
    }
}

/// A number of the run's limits, or what it falls back to; one out of bounds was told where it stands.
fn kept(given: Option<i64>, default: u32) -> u32 {
    given.and_then(|given| u32::try_from(given).ok()).unwrap_or(default)
}

fn first<const N: usize>(given: [Option<SpanText>; N], default: Span) -> Span {
    given.into_iter().flatten().next().map_or(default, SpanText::span)
}
