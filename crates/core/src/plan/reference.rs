//! What an input names: where the value comes from, and the way to it inside of that.

use super::problem;
use crate::limits;
use crate::name::PlanName;
use serde_json::Value;
use std::fmt;
use std::str::FromStr;

/// `${source.path.to.0.field}`, without its braces.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reference {
    pub source: Source,
    /// Fields and places to go through; only results of steps have some.
    pub path: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// The result of a step of the same task.
    Step(PlanName),
    /// The result of a step of another task of the same agent.
    Task(PlanName, PlanName),
    RunName,
    RunTask,
    RunId,
    AgentName,
    AgentSubtask,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadReference {
    #[error(
        "{text:?} is no reference: {why}; there are ${{steps.NAME.path}}, ${{tasks.TASK.STEP.path}}, ${{run.name}}, \
         ${{run.task}}, ${{run.id}}, ${{agent.name}} and ${{agent.subtask}}, and $${{ for a literal ${{"
    )]
    Invalid { text: String, why: &'static str },
    #[error("{text:?} names another agent; an agent knows its own tasks only")]
    Foreign { text: String },
}

/// How much of a text is repeated where it is wrong.
const SHOWN_CHARS: usize = 80;

impl BadReference {
    pub(super) fn unclosed(text: &str) -> Self {
        Self::Invalid { text: limits::cut(text, SHOWN_CHARS), why: "the closing brace is missing" }
    }

    pub const fn code(&self) -> &'static str {
        match self {
            Self::Invalid { .. } => problem::INVALID_REFERENCE,
            Self::Foreign { .. } => problem::FOREIGN_REFERENCE,
        }
    }
}

impl Reference {
    /// The value at the end of the path.
    pub fn walk<'a>(&self, whole: &'a Value) -> Option<&'a Value> {
        self.path.iter().try_fold(whole, |value, token| match value {
            Value::Object(fields) => fields.get(token),
            Value::Array(items) => place(token).and_then(|n| items.get(n)),
            _ => None,
        })
    }
}

/// A place in a list has one way to be written.
fn place(token: &str) -> Option<usize> {
    let digits = token.bytes().all(|byte| byte.is_ascii_digit()) && (token == "0" || !token.starts_with('0'));
    if digits { token.parse().ok() } else { None }
}

impl FromStr for Reference {
    type Err = BadReference;

    fn from_str(inside: &str) -> Result<Self, BadReference> {
        let shown = || limits::cut(&format!("${{{inside}}}"), SHOWN_CHARS);
        let bad = |why| BadReference::Invalid { text: shown(), why };
        let mut tokens = inside.split('.');
        let word = tokens.next().unwrap_or_default();
        let mut name = || {
            let token = tokens.next().ok_or_else(|| bad("a name is missing"))?;
            PlanName::new(token).map_err(|_| bad("a name has 1 to 64 letters, digits, _ and -"))
        };
        let source = match word {
            "steps" => Source::Step(name()?),
            "tasks" => Source::Task(name()?, name()?),
            "agents" => return Err(BadReference::Foreign { text: shown() }),
            "run" => match tokens.next() {
                Some("name") => Source::RunName,
                Some("task") => Source::RunTask,
                Some("id") => Source::RunId,
                _ => return Err(bad("a run has a name, a task and an id")),
            },
            "agent" => match tokens.next() {
                Some("name") => Source::AgentName,
                Some("subtask") => Source::AgentSubtask,
                _ => return Err(bad("an agent has a name and a subtask")),
            },
            _ => return Err(bad("nothing is called so")),
        };
        let path: Vec<String> = tokens.take(limits::INPUT_DEPTH + 1).map(str::to_owned).collect();
        if path.len() > limits::INPUT_DEPTH {
            return Err(bad("its path is too long"));
        }
        if path.iter().any(String::is_empty) {
            return Err(bad("a part of its path is empty"));
        }
        if !path.is_empty() && !matches!(source, Source::Step(_) | Source::Task(..)) {
            return Err(bad("a text has no fields"));
        }
        Ok(Self { source, path })
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Step(step) => write!(f, "steps.{step}"),
            Self::Task(task, step) => write!(f, "tasks.{task}.{step}"),
            Self::RunName => f.write_str("run.name"),
            Self::RunTask => f.write_str("run.task"),
            Self::RunId => f.write_str("run.id"),
            Self::AgentName => f.write_str("agent.name"),
            Self::AgentSubtask => f.write_str("agent.subtask"),
        }
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "${{{}", self.source)?;
        self.path.iter().try_for_each(|token| write!(f, ".{token}"))?;
        f.write_str("}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_go_there_and_back() {
        for text in [
            "steps.a",
            "steps.a-b_1.path.to.0.field",
            "tasks.t.s",
            "tasks.t.s.x y.ü",
            "run.name",
            "run.task",
            "run.id",
            "agent.name",
            "agent.subtask",
        ] {
            assert_eq!(text.parse::<Reference>().unwrap().to_string(), format!("${{{text}}}"));
        }
    }

    #[test]
    fn what_is_none_is_refused() {
        let long = format!("steps.a{}", ".x".repeat(limits::INPUT_DEPTH + 1));
        for text in [
            "",
            " ",
            "steps",
            "steps.",
            "steps.a b",
            "steps.a.",
            "steps.a..b",
            "tasks.t",
            "tasks.t.",
            "run",
            "run.ids",
            "run.name.x",
            "agent",
            "agent.tasks",
            "step.a",
            " run.id",
            "env.HOME",
            &long,
        ] {
            assert_eq!(text.parse::<Reference>().unwrap_err().code(), "invalid_reference", "{text:?}");
        }
        assert!(long[..long.len() - 2].parse::<Reference>().is_ok());
        for text in ["agents.other.tasks.t.s", "agents"] {
            assert_eq!(text.parse::<Reference>().unwrap_err().code(), "foreign_reference", "{text:?}");
        }
    }
}
