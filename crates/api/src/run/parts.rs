//! Agents, tasks and steps of a run. What has ended comes from records, what was begun from the agent's
//! hand, what is still to begin from the plan.

use super::look::{agents_of, plan_of, reached};
use super::{Id, run_id};
use crate::app::App;
use crate::cursor::{self, Asked, List};
use crate::door::Caller;
use crate::limits;
use crate::problem::Fault;
use crate::query::Params;
use crate::wait;
use axum::Json as Answer;
use axum::extract::State;
use baton_core::OrgId;
use baton_core::limits::PLAN_ATTEMPTS;
use baton_core::plan::{AgentPlan, Plan};
use baton_core::run::{Agent, Run, StepState};
use baton_wire::{AgentList, Step, StepList, Task, TaskList};

/// Where something stands in these lists: agent by agent, and in each the three sources one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Spot {
    agent: u32,
    source: u32,
    /// The number of a record, or the place of a task.
    first: u32,
    /// The place of a step.
    second: u32,
}

const ENDED: u32 = 0;
const BEGUN: u32 = 1;
const TO_BEGIN: u32 = 2;

impl Spot {
    /// Before the first of an agent.
    const fn start(agent: u32) -> Self {
        Self { agent, source: ENDED, first: 0, second: 0 }
    }

    fn text(self, attempt: u32) -> String {
        format!("{attempt}.{}.{}.{}.{}", self.agent, self.source, self.first, self.second)
    }

    fn parse(text: &str) -> Option<(u32, Self)> {
        let parts: Vec<u32> = text.split('.').map(str::parse).collect::<Result<_, _>>().ok()?;
        let [attempt, agent, source, first, second] = parts[..] else { return None };
        Some((attempt, Self { agent, source, first, second }))
    }
}

/// A list of parts of one attempt of a run.
struct Looked {
    asked: Asked,
    run: Run,
    plan: Plan,
    attempt: u32,
    after: Option<Spot>,
    agents: Vec<Agent>,
}

impl Looked {
    async fn at(
        app: &App,
        caller: &Caller,
        id: Id,
        params: &Params,
        (list, filters): (List, &[&str]),
    ) -> Result<Self, Fault> {
        let asked = list.asked_forwards(params, filters)?;
        let run = reached(app, caller, run_id(id)?).await?;
        let place = asked.after_text()?;
        let place = place.map(|text| Spot::parse(&text).ok_or_else(cursor::foreign)).transpose()?;
        let attempt = match (params.number("attempt", 1..=PLAN_ATTEMPTS, 0)?, place) {
            (0, Some((attempt, _))) => attempt,
            (0, None) => run.attempt,
            (given, _) => given,
        };
        let plan = plan_of(app, &caller.org, run.id).await?;
        let mut agents = agents_of(app, &run, attempt).await?;
        if let Some(wanted) = params.one("agent")? {
            agents.retain(|agent| agent.name.as_str() == wanted || agent.id.to_string() == wanted);
        }
        let after = place.map(|(_, spot)| spot);
        agents.retain(|agent| after.is_none_or(|spot| agent.index >= spot.agent));
        Ok(Self { asked, run, plan, attempt, after, agents })
    }

    fn plan_of(&self, agent: &Agent) -> Option<&AgentPlan> {
        self.plan.agents.get(agent.index as usize)
    }

    /// Where reading goes on in this agent.
    fn from(&self, agent: &Agent) -> Spot {
        self.after.filter(|spot| spot.agent == agent.index).unwrap_or(Spot::start(agent.index))
    }

    /// What is beyond the limit belongs to the next page; `further` is where looking ended before the end.
    fn page<T>(&self, mut found: Vec<(Spot, T)>, further: Option<Spot>) -> (Vec<T>, Option<String>) {
        let mut next = further;
        if found.len() > self.asked.limit {
            found.truncate(self.asked.limit);
            next = found.last().map(|(spot, _)| *spot);
        }
        let next = next.map(|spot| self.asked.next_text(&spot.text(self.attempt)));
        (found.into_iter().map(|(_, item)| item).collect(), next)
    }
}

pub async fn agents(
    State(app): State<App>,
    caller: Caller,
    id: Id,
    params: Params,
) -> Result<Answer<AgentList>, Fault> {
    let mut looked = Looked::at(&app, &caller, id, &params, (cursor::AGENTS, &["attempt"])).await?;
    if let Some(spot) = looked.after {
        looked.agents.retain(|agent| agent.index > spot.agent);
    }
    let shown = looked.agents.iter().take(looked.asked.limit + 1);
    let found = shown.map(|agent| (Spot::start(agent.index), baton_wire::Agent::of(agent, looked.plan_of(agent))));
    let (agents, next_cursor) = looked.page(found.collect(), None);
    Ok(Answer(AgentList { agents, next_cursor }))
}

pub async fn tasks(State(app): State<App>, caller: Caller, id: Id, params: Params) -> Result<Answer<TaskList>, Fault> {
    let looked = Looked::at(&app, &caller, id, &params, (cursor::TASKS, &["agent", "attempt"])).await?;
    let most = looked.asked.limit + 1;
    let mut found: Vec<(Spot, Task)> = Vec::new();
    for agent in &looked.agents {
        let (from, plan) = (looked.from(agent), looked.plan_of(agent));
        let mut after = if from.source == ENDED { from.first } else { u32::MAX };
        while after < u32::MAX && found.len() < most {
            let records = wait::read(app.store().task_records(&looked.run.org, agent.id, after, most)).await?;
            after = records.last().filter(|_| records.len() == most).map_or(u32::MAX, |record| record.n);
            found.extend(records.iter().map(|record| {
                (Spot { first: record.n, ..Spot::start(agent.index) }, Task::ended(agent, plan, record))
            }));
        }
        let open = open_tasks(agent, plan).filter(|spot| *spot > from);
        found.extend(open.map(|spot| (spot, Task::open(agent, plan, spot.first))));
        if found.len() >= most {
            break;
        }
    }
    let (tasks, next_cursor) = looked.page(found, None);
    Ok(Answer(TaskList { tasks, next_cursor }))
}

/// Tasks of an agent that have not ended. One that has ended begins nothing any more.
fn open_tasks<'a>(agent: &'a Agent, plan: Option<&'a AgentPlan>) -> impl Iterator<Item = Spot> + 'a {
    let spot = |source, first| Spot { agent: agent.index, source, first, second: 0 };
    let begun = agent.tasks.keys().map(move |place| spot(BEGUN, *place));
    let all = places(plan.map_or(0, |plan| plan.tasks.len()));
    let new = all.filter(|place| !agent.done.contains(*place) && !agent.tasks.contains_key(place));
    begun.chain(new.map(move |place| spot(TO_BEGIN, place))).filter(|_| !agent.is_ended())
}

fn places(length: usize) -> std::ops::Range<u32> {
    0..u32::try_from(length).unwrap_or(u32::MAX)
}

/// Which steps are wanted.
struct Wanted {
    task: Option<String>,
    status: Option<StepState>,
    results: bool,
}

impl Wanted {
    fn read(params: &Params) -> Result<Self, Fault> {
        let status = params.one("status")?.map(|text| {
            let words = || StepState::ALL.iter().map(|state| state.as_str()).collect::<Vec<_>>().join(", ");
            StepState::parse(text).ok_or_else(|| Fault::field("status", format!("must be one of {}", words())))
        });
        let results = match params.one("results")? {
            None | Some("false") => false,
            Some("true") => true,
            Some(_) => return Err(Fault::field("results", "must be true or false")),
        };
        Ok(Self { task: params.one("task")?.map(str::to_owned), status: status.transpose()?, results })
    }

    /// By the name of its task, or by its place.
    fn is(&self, step: &Step, place: u32) -> bool {
        let of_task = |wanted: &String| *wanted == step.task || *wanted == place.to_string();
        self.status.is_none_or(|status| step.status == status) && self.task.as_ref().is_none_or(of_task)
    }
}

pub async fn steps(State(app): State<App>, caller: Caller, id: Id, params: Params) -> Result<Answer<StepList>, Fault> {
    let filters = ["agent", "task", "status", "results", "attempt"];
    let looked = Looked::at(&app, &caller, id, &params, (cursor::STEPS, &filters)).await?;
    let wanted = Wanted::read(&params)?;
    let mut search = Search { app: &app, looked: &looked, wanted: &wanted, found: Vec::new(), bytes: 0, rounds: 0 };
    let mut further = None;
    for agent in &looked.agents {
        further = search.of(&looked.run.org, agent).await?;
        if further.is_some() || search.is_full() {
            break;
        }
    }
    let (steps, next_cursor) = looked.page(search.found, further);
    Ok(Answer(StepList { steps, next_cursor }))
}

/// Only which agent they are of is known to an index; the rest is looked through, a bounded number at a
/// time: a page may be short and still have a cursor.
struct Search<'a> {
    app: &'a App,
    looked: &'a Looked,
    wanted: &'a Wanted,
    found: Vec<(Spot, Step)>,
    /// Of results.
    bytes: usize,
    rounds: usize,
}

impl Search<'_> {
    const fn is_full(&self) -> bool {
        self.found.len() > self.looked.asked.limit
    }

    /// Where it had to stop before the end of this agent, if it had to.
    async fn of(&mut self, org: &OrgId, agent: &Agent) -> Result<Option<Spot>, Fault> {
        let (from, plan) = (self.looked.from(agent), self.looked.plan_of(agent));
        let mut last = from;
        let mut ended = from.source != ENDED;
        while !ended && !self.is_full() {
            if self.rounds == limits::STEP_ROUNDS {
                return Ok(Some(last));
            }
            self.rounds += 1;
            let records =
                wait::read(self.app.store().step_records(org, agent.id, last.first, limits::STEPS_READ)).await?;
            ended = records.len() < limits::STEPS_READ;
            for record in &records {
                if self.bytes > limits::PAGE_BYTES {
                    return Ok(Some(last));
                }
                last = Spot { first: record.n, ..Spot::start(agent.index) };
                let step = Step::ended(agent, plan, record, self.wanted.results);
                if self.wanted.is(&step, record.at.task) {
                    self.bytes += record.result.as_ref().filter(|_| self.wanted.results).map_or(0, |json| json.len());
                    self.found.push((last, step));
                }
            }
        }
        for spot in open_steps(agent, plan).filter(|spot| *spot > from) {
            if self.is_full() {
                break;
            }
            let step = Step::open(agent, plan, (spot.first, spot.second));
            if self.wanted.is(&step, spot.first) {
                self.found.push((spot, step));
            }
        }
        Ok(None)
    }
}

/// Steps of an agent that have not ended.
fn open_steps<'a>(agent: &'a Agent, plan: Option<&'a AgentPlan>) -> impl Iterator<Item = Spot> + 'a {
    let spot = |source, first, second| Spot { agent: agent.index, source, first, second };
    let begun = agent.steps().map(move |(task, step, _)| spot(BEGUN, task, step));
    let tasks = plan.map(|plan| plan.tasks.as_slice()).unwrap_or_default().iter().zip(0..);
    let new = tasks.filter(|(_, task)| !agent.done.contains(*task)).flat_map(move |(plan, task)| {
        let hand = agent.tasks.get(&task);
        let begun =
            move |step: u32| hand.is_some_and(|hand| hand.done.contains(step) || hand.steps.contains_key(&step));
        places(plan.steps.len()).filter(move |step| !begun(*step)).map(move |step| spot(TO_BEGIN, task, step))
    });
    begun.chain(new).filter(|_| !agent.is_ended())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spots_go_to_text_and_back_and_nothing_else_passes() {
        let spot = Spot { agent: 3, source: BEGUN, first: 4, second: 5 };
        assert_eq!(Spot::parse(&spot.text(2)), Some((2, spot)));
        for bad in ["", "1", "1.2.3.4", "1.2.3.4.5.6", "1.2.3.4.x", "1.2.3.4.-5", "1.2.3.4.99999999999"] {
            assert_eq!(Spot::parse(bad), None, "{bad}");
        }
        assert!(Spot { first: 1, ..Spot::start(3) } < spot && spot < Spot::start(4));
    }
}
