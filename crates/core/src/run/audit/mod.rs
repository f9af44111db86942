//! What must be true of a run's rows, whatever happened to it.
//!
//! Nothing here decides anything: the tests look after every command, and whoever doubts a store may look
//! at any time. Each finding is a sentence; none is a whole run.

mod money;
mod shape;

use super::record::{AttemptRecord, Record};
use super::{Agent, Run};
use crate::credits::Credits;
use crate::id::{AgentId, DecisionId, JobId};
use crate::ledger::Posting;
use crate::time::Micros;
use std::collections::{BTreeMap, BTreeSet};

/// All that is known of one run.
#[derive(Clone, Debug)]
pub struct Facts<'a> {
    pub run: &'a Run,
    /// Of all its attempts.
    pub agents: Vec<&'a Agent>,
    /// Those of its jobs that have not ended.
    pub jobs: BTreeSet<JobId>,
    pub timer: Option<Micros>,
    /// Open questions, each with the agent, task and step that it is about.
    pub open: BTreeMap<DecisionId, (AgentId, u32, u32)>,
    /// Of its attempts' accounts and its agents', in the order of writing.
    pub postings: Vec<&'a Posting>,
    pub tally: Tally,
}

/// What a run's records come to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub agents: BTreeMap<AgentId, AgentTally>,
    pub attempts: Vec<AttemptRecord>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AgentTally {
    pub tasks: u32,
    pub steps: u32,
    /// By steps, and once more by tasks.
    pub charged: Credits,
    pub charged_by_tasks: Credits,
}

impl Tally {
    pub fn add(&mut self, record: &Record) {
        let sum = |a: Credits, b: Credits| a.plus(b).unwrap_or(Credits::MAX);
        match record {
            Record::Step(step) => {
                let tally = self.agents.entry(step.agent).or_default();
                tally.steps += 1;
                tally.charged = sum(tally.charged, step.more.charged);
            }
            Record::Task(task) => {
                let tally = self.agents.entry(task.agent).or_default();
                tally.tasks += 1;
                tally.charged_by_tasks = sum(tally.charged_by_tasks, task.charged);
            }
            Record::Attempt(attempt) => self.attempts.push(attempt.clone()),
        }
    }
}

impl Facts<'_> {
    /// The agents of the attempt at hand.
    fn current(&self) -> impl Iterator<Item = &Agent> {
        self.agents.iter().copied().filter(|agent| agent.run_attempt == self.run.attempt)
    }
}

/// Everything that is wrong, in words; nothing if all is well.
pub fn check(facts: &Facts<'_>) -> Vec<String> {
    let mut wrong = Vec::new();
    money::check(facts, &mut wrong);
    shape::check(facts, &mut wrong);
    wrong
}

/// Adds a sentence if something does not hold.
macro_rules! must {
    ($wrong:expr, $holds:expr, $($say:tt)+) => {
        if !$holds {
            $wrong.push(format!($($say)+));
        }
    };
}
use must;
