//! What is wrong with a run document: where, which kind, and what to do about it.

use crate::limits;
use serde::Serialize;
use std::fmt;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// A JSON pointer, such as `/plan/agents/0/tasks/1/steps/0/tool`.
    pub path: String,
    /// Stable; explained in `docs/errors.md`.
    pub code: &'static str,
    pub message: String,
}

/// Every code that a problem can have.
pub const CODES: [&str; 22] = [
    WRONG_TYPE,
    UNKNOWN_FIELD,
    MISSING_FIELD,
    INVALID_VALUE,
    OVER_LIMIT,
    EMPTY,
    DUPLICATE_NAME,
    UNKNOWN_TOOL,
    UNKNOWN_TASK,
    UNKNOWN_STEP,
    DEPENDS_ON_REFUSED,
    INVALID_REFERENCE,
    FOREIGN_REFERENCE,
    DANGLING_REFERENCE,
    CYCLE,
    EFFECT_TOO_SOFT,
    PRICE_TOO_LOW,
    INVALID_INPUT,
    INPUT_TOO_LARGE,
    INPUT_TOO_DEEP,
    BUDGET_TOO_SMALL,
    COST_OVERFLOW,
];

pub const WRONG_TYPE: &str = "wrong_type";
pub const UNKNOWN_FIELD: &str = "unknown_field";
pub const MISSING_FIELD: &str = "missing_field";
pub const INVALID_VALUE: &str = "invalid_value";
pub const OVER_LIMIT: &str = "over_limit";
pub const EMPTY: &str = "empty";
pub const DUPLICATE_NAME: &str = "duplicate_name";
pub const UNKNOWN_TOOL: &str = "unknown_tool";
pub const UNKNOWN_TASK: &str = "unknown_task";
pub const UNKNOWN_STEP: &str = "unknown_step";
pub const DEPENDS_ON_REFUSED: &str = "depends_on_refused";
pub const INVALID_REFERENCE: &str = "invalid_reference";
pub const FOREIGN_REFERENCE: &str = "foreign_reference";
pub const DANGLING_REFERENCE: &str = "dangling_reference";
pub const CYCLE: &str = "cycle";
pub const EFFECT_TOO_SOFT: &str = "effect_too_soft";
pub const PRICE_TOO_LOW: &str = "price_too_low";
pub const INVALID_INPUT: &str = "invalid_input";
pub const INPUT_TOO_LARGE: &str = "input_too_large";
pub const INPUT_TOO_DEEP: &str = "input_too_deep";
pub const BUDGET_TOO_SMALL: &str = "budget_too_small";
pub const COST_OVERFLOW: &str = "cost_overflow";
/// Not of a document, but of a step that begins: what its input names is not there.
pub const MISSING_RESULT: &str = "missing_result";

/// A place in a document, as a way up from it: it is written out only where something is wrong.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path<'a>(Option<(&'a Path<'a>, Token<'a>)>);

#[derive(Clone, Copy, Debug)]
enum Token<'a> {
    Field(&'a str),
    Place(usize),
}

impl<'a> Path<'a> {
    pub const ROOT: Path<'static> = Path(None);

    pub const fn field(&'a self, name: &'a str) -> Self {
        Self(Some((self, Token::Field(name))))
    }

    pub const fn place(&'a self, n: usize) -> Self {
        Self(Some((self, Token::Place(n))))
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => Ok(()),
            Some((parent, Token::Place(n))) => write!(f, "{parent}/{n}"),
            Some((parent, Token::Field(name))) => {
                write!(f, "{parent}/{}", name.replace('~', "~0").replace('/', "~1"))
            }
        }
    }
}

/// What was found so far, up to [`limits::PROBLEMS`].
#[derive(Debug, Default)]
pub(super) struct Problems(Vec<Problem>);

impl Problems {
    pub fn add(&mut self, path: &Path<'_>, code: &'static str, message: fmt::Arguments<'_>) {
        if !self.is_full() {
            self.0.push(Problem { path: path.to_string(), code, message: message.to_string() });
        }
    }

    pub fn is_full(&self) -> bool {
        self.0.len() >= limits::PROBLEMS
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds what another pass found, but not what merely follows from a place that is known to be wrong.
    pub fn follow(&mut self, later: Vec<Problem>) {
        let known = self.0.len();
        for problem in later {
            let follows = self.0[..known].iter().any(|earlier| lies_in(&problem.path, &earlier.path));
            if !follows && !self.is_full() {
                self.0.push(problem);
            }
        }
    }

    pub fn into_vec(self) -> Vec<Problem> {
        self.0
    }
}

/// Whether a pointer is another one or leads further.
fn lies_in(path: &str, parent: &str) -> bool {
    path.strip_prefix(parent).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_json_pointer() {
        let plan = Path::ROOT.field("plan");
        let agents = plan.field("agents");
        let third = agents.place(2);
        assert_eq!(third.field("a/b~c").to_string(), "/plan/agents/2/a~1b~0c");
        assert_eq!(Path::ROOT.to_string(), "");
    }

    #[test]
    fn no_more_than_some_are_told() {
        let mut problems = Problems::default();
        for n in 0..limits::PROBLEMS + 9 {
            problems.add(&Path::ROOT, EMPTY, format_args!("{n}"));
        }
        assert_eq!(problems.into_vec().len(), limits::PROBLEMS);
    }

    #[test]
    fn what_follows_from_a_wrong_place_is_not_told_again() {
        let at = |path: &str| Problem { path: path.to_owned(), code: EMPTY, message: String::new() };
        let mut problems = Problems(vec![at("/plan/agents/1")]);
        problems.follow(vec![at("/plan/agents/1"), at("/plan/agents/1/name"), at("/plan/agents/10"), at("/plan")]);
        let paths: Vec<_> = problems.into_vec().into_iter().map(|problem| problem.path).collect();
        assert_eq!(paths, ["/plan/agents/1", "/plan/agents/10", "/plan"]);
    }

    #[test]
    fn every_code_is_explained_and_nothing_else_is() {
        let page = include_str!("../../../../docs/errors.md");
        let (_, section) = page.split_once("\n## Problems of a run document\n").unwrap();
        let section = section.split("\n## ").next().unwrap();
        let mut told: Vec<&str> = section.lines().filter_map(|line| line.strip_prefix("### ")).collect();
        let mut codes = [CODES.as_slice(), &[MISSING_RESULT]].concat();
        told.sort_unstable();
        codes.sort_unstable();
        assert_eq!(told, codes);
    }
}
