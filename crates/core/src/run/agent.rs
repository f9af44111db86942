//! An agent: one line of work of a run, with its own money, tasks and steps.

use super::hand::{Done, Step, Task};
use super::state::{AgentState, IllegalMove};
use super::{Fault, Head};
use crate::credits::Credits;
use crate::event::{Event, Subject};
use crate::id::{AgentId, DecisionId, JobId, RunId};
use crate::ledger::{Account, Entry, Kind, Posting, Purse, Short};
use crate::name::{OrgId, PlanName, ProjectId};
use crate::time::Micros;
use crate::told::Told;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agent {
    #[serde(skip, default = "super::nobody")]
    pub org: OrgId,
    #[serde(skip, default = "super::record::no_agent")]
    pub id: AgentId,
    #[serde(skip, default = "super::no_run")]
    pub run: RunId,
    pub project: ProjectId,
    /// Its place in the plan.
    pub index: u32,
    pub name: PlanName,
    /// The attempt of the run that it belongs to.
    pub run_attempt: u32,
    pub state: AgentState,
    /// How often its tasks were begun from the first.
    pub attempt: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Fault>,
    pub created_at: Micros,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Micros>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Micros>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_at: Option<Micros>,
    /// Who paused it, while it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_by: Option<String>,
    /// When it has taken too long; counted from when it first ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Micros>,
    /// It begins again then, after a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Micros>,
    /// The job that works on it, and the token under which it was last taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobId>,
    #[serde(default)]
    pub token: i64,
    pub purse: Purse,
    pub charged: Credits,
    /// Tasks that are done in this attempt, and how many of them were skipped.
    #[serde(default, skip_serializing_if = "Done::is_empty")]
    pub done: Done,
    #[serde(default)]
    pub skipped: u32,
    pub tasks: BTreeMap<u32, Task>,
    /// Records so far, in all its attempts.
    pub task_count: u32,
    pub step_count: u32,
    /// Unsafe steps that completed, by task: they are not done again, their results stand.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub kept: BTreeMap<u32, Done>,
    /// Unsafe steps (task, step) whose call was cut off: people are asked before it is made again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<(u32, u32)>,
    /// The same agent in the attempt before, where results that stand may be found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<AgentId>,
    #[serde(skip, default = "super::no_head")]
    pub head: Head,
}

impl Agent {
    pub const fn account(&self) -> Account {
        Account::Agent(self.id)
    }

    pub fn is_ended(&self) -> bool {
        self.state.is_final()
    }

    /// What is set aside for calls at hand.
    pub fn held(&self) -> Credits {
        let held = self.steps().fold(0, |sum, (_, _, step)| sum + step.held.micros());
        Credits::from_micros(held).unwrap_or_default()
    }

    pub fn steps(&self) -> impl Iterator<Item = (u32, u32, &Step)> {
        self.tasks.iter().flat_map(|(task, t)| t.steps.iter().map(|(step, s)| (*task, *step, s)))
    }

    pub fn step(&self, task: u32, step: u32) -> Option<&Step> {
        self.tasks.get(&task)?.steps.get(&step)
    }

    /// Questions that people were asked for it and that it waits for.
    pub fn decisions(&self) -> impl Iterator<Item = DecisionId> {
        self.steps().filter_map(|(_, _, step)| step.decision())
    }

    pub fn has_calls(&self) -> bool {
        self.steps().any(|(_, _, step)| step.is_call())
    }

    pub(super) fn moved(&mut self, to: AgentState) -> Result<(), IllegalMove> {
        self.state.check(to)?;
        self.state = to;
        Ok(())
    }

    pub(super) fn post(
        &mut self,
        kind: Kind,
        amount: Credits,
        key: String,
        at: Micros,
    ) -> Result<Option<Posting>, Short> {
        let entry = Entry { account: self.account(), kind, key, run: Some(self.run), at };
        self.purse.post(amount, entry)
    }

    /// An event of this agent's with the facts that every reader wants, and `more`.
    pub(super) fn tells(&self, kind: &'static str, more: impl Into<Told>) -> Event {
        let facts = Told::none().and("agent", &self.name).and("project", &self.project).and("run", &self.run);
        Event::new(Subject::Agent(self.id), kind, facts.with(more.into()))
    }
}
