//! Results of earlier steps that inputs name. The journal has them all; a few are kept in memory.

use baton_core::plan::AgentPlan;
use baton_core::plan::input::Input;
use baton_core::plan::reference::Source;
use baton_core::run::record::StepRecord;
use baton_core::run::{Agent, StepState};
use baton_core::{AgentId, OrgId};
use baton_store::{Store, StoreError};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Results of one agent that are kept in memory, in bytes of text; beyond that they are read again.
const KEPT_BYTES: usize = 4 * 1024 * 1024;
/// Records read at once.
const PAGE: usize = 50;
/// Earlier attempts that are looked through for a result that stands.
const BEFORE_MAX: usize = 16;

type At = (u32, u32);

/// The results that a step's input may name.
pub(super) struct Results {
    /// Steps that anybody names.
    named: BTreeSet<At>,
    kept: BTreeMap<At, Value>,
    bytes: usize,
}

/// Where the step is that a source of an input names.
pub(super) fn place(plan: &AgentPlan, task: u32, source: &Source) -> Option<At> {
    let (task, step) = match source {
        Source::Step(step) => (task, step),
        Source::Task(task, step) => {
            let at = plan.tasks.iter().position(|known| known.name == *task)?;
            (u32::try_from(at).ok()?, step)
        }
        _ => return None,
    };
    let steps = &plan.tasks.get(task as usize)?.steps;
    let step = steps.iter().position(|known| known.name == *step)?;
    Some((task, u32::try_from(step).ok()?))
}

impl Results {
    pub fn new(plan: &AgentPlan) -> Self {
        let mut named = BTreeSet::new();
        for (task, of_task) in plan.tasks.iter().enumerate() {
            for step in &of_task.steps {
                let Ok(input) = Input::parse(&step.input) else { continue };
                let task = u32::try_from(task).unwrap_or(u32::MAX);
                named.extend(input.names().iter().filter_map(|name| place(plan, task, &name.source)));
            }
        }
        Self { named, kept: BTreeMap::new(), bytes: 0 }
    }

    /// A step has completed, and its result was committed.
    pub fn add(&mut self, at: At, result: &Value) {
        if !self.named.contains(&at) {
            return;
        }
        let bytes = result.to_string().len();
        if self.bytes + bytes > KEPT_BYTES {
            self.kept.clear();
            self.bytes = 0;
        }
        self.bytes += bytes;
        self.kept.insert(at, result.clone());
    }

    /// Something was begun anew: what was known of it may not be so any more.
    pub fn forget(&mut self) {
        self.kept.clear();
        self.bytes = 0;
    }

    /// The results of these steps, from memory or from the journal.
    pub async fn of(
        &mut self,
        store: &Store,
        org: &OrgId,
        agent: &Agent,
        wanted: &BTreeSet<At>,
    ) -> Result<BTreeMap<At, Value>, StoreError> {
        let mut found: BTreeMap<At, Value> =
            wanted.iter().filter_map(|at| Some((*at, self.kept.get(at)?.clone()))).collect();
        let missing = |found: &BTreeMap<At, Value>| -> BTreeSet<At> {
            wanted.iter().filter(|at| !found.contains_key(at)).copied().collect()
        };
        let lacking = missing(&found);
        if !lacking.is_empty() {
            found.extend(journal(store, org, agent.id, &lacking, Some(agent.attempt)).await?);
        }
        // Only what is carried over may come from before.
        let carried = |at: &At| agent.kept.get(&at.0).is_some_and(|kept| kept.contains(at.1));
        let mut from = Some(agent.id);
        for _ in 0..BEFORE_MAX {
            let lacking: BTreeSet<At> = missing(&found).into_iter().filter(|at| carried(at)).collect();
            let Some(id) = from.filter(|_| !lacking.is_empty()) else { break };
            found.extend(journal(store, org, id, &lacking, None).await?);
            from = if id == agent.id { agent.before } else { store.agent(org, id).await?.and_then(|a| a.before) };
        }
        for (at, result) in &found {
            if !self.kept.contains_key(at) {
                self.add(*at, result);
            }
        }
        Ok(found)
    }
}

/// The last word of an agent's journal about these steps, of one of its attempts or of all. What an earlier
/// attempt of a task came to does not count; a step that was carried over keeps the result it had.
async fn journal(
    store: &Store,
    org: &OrgId,
    agent: AgentId,
    wanted: &BTreeSet<At>,
    attempt: Option<u32>,
) -> Result<BTreeMap<At, Value>, StoreError> {
    let mut found: BTreeMap<At, Value> = BTreeMap::new();
    let mut latest: BTreeMap<u32, u32> = BTreeMap::new();
    let mut after = 0;
    loop {
        let page = store.step_records(org, agent, after, PAGE).await?;
        for StepRecord { at, state, result, n, more, .. } in &page {
            after = *n;
            if more.carried || attempt.is_some_and(|attempt| attempt != at.agent_attempt) {
                continue;
            }
            if attempt.is_some() && latest.insert(at.task, at.task_attempt) < Some(at.task_attempt) {
                found.retain(|(task, _), _| *task != at.task);
            }
            let at = (at.task, at.step);
            if !wanted.contains(&at) {
                continue;
            }
            match (state, result) {
                (StepState::Completed, Some(result)) => drop(found.insert(at, result.value())),
                // Of a step that is carried over the result stands, whatever came of later ones.
                _ if attempt.is_none() => {}
                _ => drop(found.remove(&at)),
            }
        }
        if page.len() < PAGE {
            return Ok(found);
        }
    }
}
