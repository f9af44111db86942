//! Why something does not go on: what it waits for, until when, what happens then, and who can change that.
//!
//! Pure functions of rows. Whoever asks gathers the rows; the words are here.

mod job;
mod parts;
#[cfg(test)]
mod tests;

pub use job::of_job;
pub use parts::{of_agent, of_run, of_step, of_task};

use super::{Agent, Run};
use crate::credits::Credits;
use crate::decision::{Breach, Case};
use crate::id::{DecisionId, JobId};
use crate::job::Job;
use crate::plan::Plan;
use crate::span::SpanText;
use crate::time::{Micros, Span};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Waits of one thing that are told; a run of a thousand agents has more than anybody reads.
pub const WAITS_MAX: usize = 50;

/// What a question was about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Run,
    Agent,
    Task,
    Step,
    Job,
}

impl Kind {
    pub const ALL: [Self; 5] = [Self::Run, Self::Agent, Self::Task, Self::Step, Self::Job];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Agent => "agent",
            Self::Task => "task",
            Self::Step => "step",
            Self::Job => "job",
        }
    }
}

/// What something waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    Worker,
    Call,
    Time,
    Signal,
    Answer,
    Outcome,
    Retry,
    Lane,
    Pause,
    Start,
    Credits,
    Dependency,
    Nothing,
}

impl What {
    pub const ALL: [Self; 13] = [
        Self::Worker,
        Self::Call,
        Self::Time,
        Self::Signal,
        Self::Answer,
        Self::Outcome,
        Self::Retry,
        Self::Lane,
        Self::Pause,
        Self::Start,
        Self::Credits,
        Self::Dependency,
        Self::Nothing,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Worker => "worker",
            Self::Call => "call",
            Self::Time => "time",
            Self::Signal => "signal",
            Self::Answer => "answer",
            Self::Outcome => "outcome",
            Self::Retry => "retry",
            Self::Lane => "lane",
            Self::Pause => "pause",
            Self::Start => "start",
            Self::Credits => "credits",
            Self::Dependency => "dependency",
            Self::Nothing => "nothing",
        }
    }

    /// As part of a sentence: it waits for …
    const fn words(self) -> &'static str {
        match self {
            Self::Worker => "a worker",
            Self::Call => "the end of a call",
            Self::Time => "its time",
            Self::Signal => "a signal",
            Self::Answer => "an answer",
            Self::Outcome => "somebody to say what came of a call",
            Self::Retry => "its next try",
            Self::Lane => "a free place",
            Self::Pause => "being resumed",
            Self::Start => "being started",
            Self::Credits => "credits",
            Self::Dependency => "what must come before it",
            Self::Nothing => "nothing",
        }
    }
}

/// One thing that is waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    pub what: What,
    pub detail: String,
    pub since: Option<Micros>,
    pub until: Option<Micros>,
    /// What happens when it comes, or at `until` without it.
    pub next: Option<String>,
    /// Who can change it.
    pub who: Option<String>,
    /// The decision, the lane, the job or the signal.
    pub id: Option<String>,
}

impl Wait {
    fn new(what: What, detail: impl Into<String>) -> Self {
        Self { what, detail: detail.into(), since: None, until: None, next: None, who: None, id: None }
    }

    fn since(self, since: impl Into<Option<Micros>>) -> Self {
        Self { since: since.into(), ..self }
    }

    fn until(self, until: impl Into<Option<Micros>>) -> Self {
        Self { until: until.into(), ..self }
    }

    fn next(self, next: impl Into<String>) -> Self {
        Self { next: Some(next.into()), ..self }
    }

    fn who(self, who: impl Into<String>) -> Self {
        Self { who: Some(who.into()), ..self }
    }

    fn id(self, id: impl ToString) -> Self {
        Self { id: Some(id.to_string()), ..self }
    }

    /// The same as part of something larger.
    fn of(mut self, part: &str) -> Self {
        self.detail = format!("{part}: {}", self.detail);
        self
    }
}

/// The whole answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Why {
    pub id: String,
    pub kind: Kind,
    pub status: String,
    pub since: Option<Micros>,
    /// One sentence.
    pub summary: String,
    pub waits_for: Vec<Wait>,
}

/// What is known of a run when somebody asks.
#[derive(Clone, Copy)]
pub struct Facts<'a> {
    pub now: Micros,
    pub run: &'a Run,
    pub plan: &'a Plan,
    /// Agents of its attempt that have not ended.
    pub live: &'a [Agent],
    /// The jobs that work on them, as far as they were looked at.
    pub jobs: &'a BTreeMap<JobId, Job>,
    /// The questions that they wait for, likewise.
    pub cases: &'a BTreeMap<DecisionId, Case>,
    /// Of the run's lane, if it has one that counts.
    pub lane: Option<&'a Queue>,
    /// What the org has to spend.
    pub available: Credits,
}

/// How full a lane is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Queue {
    pub max: Option<u32>,
    pub running: u32,
    pub waiting: u32,
    pub paused: bool,
}

/// Whoever may steer work.
const OPERATORS: &str = "anybody with the right to operate";

/// A length of time in few words.
fn long(span: Span) -> String {
    const SECOND: i64 = 1_000_000;
    let seconds = span.0 / SECOND;
    // What is far away is not told to the second.
    let rough = match seconds {
        i64::MIN..0 => return "less than a second".to_owned(),
        0..3_600 => seconds,
        3_600..86_400 => seconds / 60 * 60,
        _ => seconds / 3_600 * 3_600,
    };
    match SpanText::new(Span::secs(rough)) {
        Some(text) => text.to_string(),
        None if rough == 0 => "less than a second".to_owned(),
        None => "more than a year".to_owned(),
    }
}

/// What somebody waits for in a decision.
fn asked(what: What, id: DecisionId, case: Option<&Case>) -> Wait {
    let Some(case) = case else {
        return Wait::new(what, format!("decision {id} is open")).id(id);
    };
    let prompt = if case.prompt.is_empty() { "a question without words" } else { &case.prompt };
    let options = case.options.iter().map(|choice| choice.name.as_str()).collect::<Vec<_>>().join(", ");
    let overdue = if case.overdue { "; its deadline has passed" } else { "" };
    let whose = match &case.responsibility {
        Some(name) => format!("whoever is responsible as {name}, or an admin"),
        None => "anybody with the rights to decide and to operate".to_owned(),
    };
    let wait = Wait::new(what, format!("{prompt} ({options}){overdue}"))
        .since(case.opened_at)
        .until(case.deadline_at)
        .who(format!("{whose}: POST /api/v1/decisions/{id}/resolve"))
        .id(id);
    match case.deadline_at {
        Some(_) => wait.next(breach(&case.on_breach)),
        None => wait.next("it waits for ever; the answer decides how it goes on"),
    }
}

/// What happens at a deadline.
fn breach(breach: &Breach) -> String {
    match breach {
        Breach::Wait => "at the deadline it is overdue, and waits on".to_owned(),
        Breach::Cancel => "at the deadline it is cancelled".to_owned(),
        Breach::Fail => "at the deadline it fails".to_owned(),
        Breach::Choose(option) => format!("at the deadline {option} is chosen"),
        Breach::Escalate(further) => format!("at the deadline {} is asked", further.to),
    }
}

/// Waits for what, in one sentence about the one that waits.
fn sentence(subject: &str, waits: &[Wait], now: Micros) -> String {
    let Some(first) = waits.first() else { return format!("{subject} goes on by itself.") };
    let mut text = format!("{subject} waits for {}", first.what.words());
    if let Some(since) = first.since {
        text.push_str(&format!(", since {} ago", long(now.since(since))));
    }
    if let Some(until) = first.until {
        text.push_str(&format!(", for at most {} more", long(until.since(now))));
    }
    let mut others: Vec<&str> = Vec::new();
    for wait in &waits[1..] {
        if wait.what != first.what && !others.contains(&wait.what.words()) {
            others.push(wait.what.words());
        }
    }
    if !others.is_empty() {
        text.push_str(&format!("; also for {}", others.join(", ")));
    }
    text.push('.');
    text
}

fn ended(subject: &str, state: &str, why: Option<String>) -> (String, Vec<Wait>) {
    let why = why.map(|why| format!(": {why}")).unwrap_or_default();
    (format!("{subject} has ended as {state}{why}."), vec![Wait::new(What::Nothing, format!("it is {state}"))])
}
