//! Reads a run document out of JSON, and goes on where something is wrong: whoever wrote it wants to know it all.
//!
//! A value that cannot be read is left out, as if it had not been said.

use super::document::{AgentDoc, Document, LimitsDoc, PlanDoc, Priority, StepDoc, TaskDoc};
use super::near::nearest;
use super::problem::{INVALID_VALUE, Path, Problems, UNKNOWN_FIELD, WRONG_TYPE};
use super::{Effect, FailureMode, StepOrder, TaskOrder};
use crate::credits::Credits;
use crate::limits;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::str::FromStr;

/// How much of a text is repeated where it is wrong.
const SHOWN_CHARS: usize = 40;

const PRIORITIES: [(&str, Priority); 2] = [("high", Priority::High), ("normal", Priority::Normal)];
/// The first spelling is the one that is told.
const FAILURE_MODES: [(&str, FailureMode); 4] = [
    ("fail-fast", FailureMode::FailFast),
    ("fail_fast", FailureMode::FailFast),
    ("continue", FailureMode::Continue),
    ("retry", FailureMode::Retry),
];
const TASK_ORDERS: [(&str, TaskOrder); 3] =
    [("sequential", TaskOrder::Sequential), ("parallel", TaskOrder::Parallel), ("dag", TaskOrder::Dag)];
const STEP_ORDERS: [(&str, StepOrder); 2] = [("sequential", StepOrder::Sequential), ("parallel", StepOrder::Parallel)];
const EFFECTS: [(&str, Effect); 3] =
    [("pure", Effect::Pure), ("idempotent", Effect::Idempotent), ("unsafe", Effect::Unsafe)];

pub(super) fn document(value: &Value) -> (Document, Problems) {
    let mut problems = Problems::default();
    let document = Fields::of(value, &Path::ROOT, Document::FIELDS, &mut problems).map(|mut fields| Document {
        name: fields.text("name"),
        task: fields.text("task"),
        project: fields.parsed("project"),
        priority: fields.word("priority", &PRIORITIES),
        budget: fields.credits("budget"),
        failure_mode: fields.word("failure_mode", &FAILURE_MODES),
        max_attempts: fields.number("max_attempts"),
        limits: fields.inside("limits", bounds),
        labels: fields.inside("labels", labels),
        plan: fields.inside("plan", plan),
    });
    (document.unwrap_or_default(), problems)
}

fn bounds(value: &Value, path: &Path<'_>, problems: &mut Problems) -> LimitsDoc {
    let Some(mut fields) = Fields::of(value, path, LimitsDoc::FIELDS, problems) else { return LimitsDoc::default() };
    LimitsDoc {
        max_agents: fields.number("max_agents"),
        max_tasks: fields.number("max_tasks"),
        max_steps: fields.number("max_steps"),
        failure_budget: fields.number("failure_budget"),
        run_timeout: fields.parsed("run_timeout"),
        pause_timeout: fields.parsed("pause_timeout"),
        agent_timeout: fields.parsed("agent_timeout"),
        task_timeout: fields.parsed("task_timeout"),
        step_timeout: fields.parsed("step_timeout"),
    }
}

fn labels(value: &Value, path: &Path<'_>, problems: &mut Problems) -> BTreeMap<String, String> {
    let Some(mut fields) = Fields::open(value, path, problems) else { return BTreeMap::new() };
    let names: Vec<&String> = fields.fields.keys().collect();
    names.into_iter().filter_map(|name| Some((name.clone(), fields.text(name)?))).collect()
}

fn plan(value: &Value, path: &Path<'_>, problems: &mut Problems) -> PlanDoc {
    let Some(mut fields) = Fields::of(value, path, PlanDoc::FIELDS, problems) else { return PlanDoc::default() };
    PlanDoc { agents: fields.list("agents", agent) }
}

fn agent(value: &Value, path: &Path<'_>, problems: &mut Problems) -> AgentDoc {
    let Some(mut fields) = Fields::of(value, path, AgentDoc::FIELDS, problems) else { return AgentDoc::default() };
    AgentDoc {
        name: fields.parsed("name"),
        subtask: fields.text("subtask"),
        failure_mode: fields.word("failure_mode", &FAILURE_MODES),
        attempts: fields.number("attempts"),
        timeout: fields.parsed("timeout"),
        parallelism: fields.word("parallelism", &TASK_ORDERS),
        max_tasks: fields.number("max_tasks"),
        tasks: fields.list("tasks", task),
    }
}

fn task(value: &Value, path: &Path<'_>, problems: &mut Problems) -> TaskDoc {
    let Some(mut fields) = Fields::of(value, path, TaskDoc::FIELDS, problems) else { return TaskDoc::default() };
    TaskDoc {
        name: fields.parsed("name"),
        depends_on: fields.all("depends_on"),
        failure_mode: fields.word("failure_mode", &FAILURE_MODES),
        attempts: fields.number("attempts"),
        timeout: fields.parsed("timeout"),
        parallelism: fields.word("parallelism", &STEP_ORDERS),
        max_steps: fields.number("max_steps"),
        steps: fields.list("steps", step),
    }
}

fn step(value: &Value, path: &Path<'_>, problems: &mut Problems) -> StepDoc {
    let Some(mut fields) = Fields::of(value, path, StepDoc::FIELDS, problems) else { return StepDoc::default() };
    StepDoc {
        name: fields.parsed("name"),
        tool: fields.parsed("tool"),
        input: fields.fields.get("input").cloned(),
        effect: fields.word("effect", &EFFECTS),
        repeat: fields.flag("repeat"),
        timeout: fields.parsed("timeout"),
        attempts: fields.number("attempts"),
        price: fields.credits("price"),
        depends_on: fields.all("depends_on"),
    }
}

/// The fields of one object, and where it is.
struct Fields<'a> {
    fields: &'a Map<String, Value>,
    path: &'a Path<'a>,
    problems: &'a mut Problems,
}

impl<'a> Fields<'a> {
    fn of(value: &'a Value, path: &'a Path<'a>, known: &[&str], problems: &'a mut Problems) -> Option<Self> {
        let this = Self::open(value, path, problems)?;
        for name in this.fields.keys().filter(|name| !known.contains(&name.as_str())) {
            if this.problems.is_full() {
                break;
            }
            let hint = match nearest(name, known.iter().copied()) {
                Some(near) => format!("; did you mean {near}?"),
                None => format!("; there are {}", known.join(", ")),
            };
            let shown = limits::cut(name, SHOWN_CHARS);
            this.problems.add(&path.field(name), UNKNOWN_FIELD, format_args!("{shown:?} is not a field here{hint}"));
        }
        Some(this)
    }

    /// An object whose fields may have any name.
    fn open(value: &'a Value, path: &'a Path<'a>, problems: &'a mut Problems) -> Option<Self> {
        match value {
            Value::Object(fields) => Some(Self { fields, path, problems }),
            other => {
                wrong(problems, path, "an object", other);
                None
            }
        }
    }

    fn inside<T>(&mut self, name: &str, read: fn(&Value, &Path<'_>, &mut Problems) -> T) -> Option<T> {
        self.fields.get(name).map(|value| read(value, &self.path.field(name), self.problems))
    }

    fn list<T>(&mut self, name: &str, read: fn(&Value, &Path<'_>, &mut Problems) -> T) -> Option<Vec<T>> {
        let path = self.path.field(name);
        match self.fields.get(name)? {
            Value::Array(items) => {
                let items = items.iter().enumerate();
                Some(items.map(|(n, item)| read(item, &path.place(n), self.problems)).collect())
            }
            other => {
                wrong(self.problems, &path, "a list", other);
                None
            }
        }
    }

    /// A list of texts that mean something; those that do not are left out.
    fn all<T: FromStr<Err: Display>>(&mut self, name: &str) -> Option<Vec<T>> {
        let items = self.list(name, |value, path, problems| meant(value, path, problems));
        items.map(|items| items.into_iter().flatten().collect())
    }

    fn text(&mut self, name: &str) -> Option<String> {
        text(self.fields.get(name)?, &self.path.field(name), self.problems).map(str::to_owned)
    }

    fn parsed<T: FromStr<Err: Display>>(&mut self, name: &str) -> Option<T> {
        meant(self.fields.get(name)?, &self.path.field(name), self.problems)
    }

    fn word<T: Copy>(&mut self, name: &str, words: &[(&str, T)]) -> Option<T> {
        let path = self.path.field(name);
        let said = text(self.fields.get(name)?, &path, self.problems)?;
        let found = words.iter().find(|(word, _)| *word == said).map(|(_, meaning)| *meaning);
        if found.is_none() {
            let words: Vec<&str> = words.iter().map(|(word, _)| *word).filter(|word| !word.contains('_')).collect();
            let said = limits::cut(said, SHOWN_CHARS);
            self.problems.add(&path, INVALID_VALUE, format_args!("{said:?} is not one of {}", words.join(", ")));
        }
        found
    }

    fn flag(&mut self, name: &str) -> Option<bool> {
        match self.fields.get(name)? {
            Value::Bool(flag) => Some(*flag),
            other => {
                wrong(self.problems, &self.path.field(name), "true or false", other);
                None
            }
        }
    }

    /// Whole, however it is written. What is far out of all bounds is still a number.
    fn number(&mut self, name: &str) -> Option<i64> {
        let value = self.fields.get(name)?;
        let whole = value.as_f64().filter(|number| number.fract() == 0.0);
        let number = value.as_i64().or(whole.map(|number| number as i64));
        if number.is_none() {
            wrong(self.problems, &self.path.field(name), "a whole number", value);
        }
        number
    }

    /// An amount: text, or a number whose text is one.
    fn credits(&mut self, name: &str) -> Option<Credits> {
        let path = self.path.field(name);
        match self.fields.get(name)? {
            Value::Number(number) => meant(&Value::String(number.to_string()), &path, self.problems),
            other => meant(other, &path, self.problems),
        }
    }
}

fn text<'a>(value: &'a Value, path: &Path<'_>, problems: &mut Problems) -> Option<&'a str> {
    let text = value.as_str();
    if text.is_none() {
        wrong(problems, path, "text", value);
    }
    text
}

fn meant<T: FromStr<Err: Display>>(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<T> {
    match text(value, path, problems)?.parse() {
        Ok(meant) => Some(meant),
        Err(why) => {
            problems.add(path, INVALID_VALUE, format_args!("{why}"));
            None
        }
    }
}

fn wrong(problems: &mut Problems, path: &Path<'_>, wanted: &str, value: &Value) {
    let (is, hint) = match value {
        Value::Null => ("nothing", ""),
        Value::Bool(_) => ("true or false", if wanted == "text" { "; put it in quotes" } else { "" }),
        Value::Number(_) => ("a number", if wanted == "text" { "; put it in quotes" } else { "" }),
        Value::String(_) => ("text", ""),
        Value::Array(_) => ("a list", ""),
        Value::Object(_) => ("an object", ""),
    };
    problems.add(path, WRONG_TYPE, format_args!("this must be {wanted} and is {is}{hint}"));
}
