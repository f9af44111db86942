//! Why something does not go on. The words are core's ([`baton_core::run::why`]); here the rows are
//! gathered that it needs.

use crate::app::App;
use crate::door::Caller;
use crate::limits;
use crate::problem::Fault;
use crate::query::Params;
use crate::run::{self, Id};
use crate::wait;
use axum::Json as Answer;
use axum::extract::{Path, State};
use baton_core::decision::Case;
use baton_core::id::DecisionId;
use baton_core::job::Job;
use baton_core::lane::LaneKey;
use baton_core::plan::{AgentPlan, Plan};
use baton_core::run::record::{StepRecord, TaskRecord};
use baton_core::run::why::{self, Facts, Queue};
use baton_core::run::{Agent, Run};
use baton_core::{AgentId, Credits, JobId, Micros, OrgId, RunId};
use baton_wire::Why;
use std::collections::BTreeMap;

pub async fn why(State(app): State<App>, caller: Caller, id: Id, params: Params) -> Result<Answer<Why>, Fault> {
    params.allow(&[])?;
    let text = id.map(|Path(text)| text).unwrap_or_default();
    if let Ok(id) = text.parse::<JobId>() {
        return Ok(Answer(of_job(&app, &caller, id).await?.into()));
    }
    if let Ok(id) = text.parse::<RunId>() {
        let run = run::reached(&app, &caller, id).await?;
        let gathered = Gathered::of(&app, run, None).await?;
        return Ok(Answer(why::of_run(&gathered.facts()).into()));
    }
    let mut parts = text.split('.');
    let agent = parts.next().unwrap_or_default();
    let Ok(id) = agent.parse::<AgentId>() else {
        let detail = "give the id of a run, an agent or a job; agt_….TASK and agt_….TASK.STEP for its parts";
        return Err(Fault::new("part_not_found", detail));
    };
    let part = Part { task: parts.next(), step: parts.next() };
    if parts.next().is_some() {
        return Err(Fault::new("part_not_found", format!("{text} names more than a step")));
    }
    Ok(Answer(of_agent(&app, &caller, id, part).await?.into()))
}

/// A task or a step, as it is asked for.
#[derive(Clone, Copy)]
struct Part<'a> {
    task: Option<&'a str>,
    step: Option<&'a str>,
}

async fn of_agent(app: &App, caller: &Caller, id: AgentId, part: Part<'_>) -> Result<why::Why, Fault> {
    let missing = || Fault::new("agent_not_found", format!("agent {id} does not exist"));
    let agent = wait::read(app.store().agent(&caller.org, id)).await?;
    let agent = agent.filter(|agent| caller.grant.reaches_project(&agent.project)).ok_or_else(missing)?;
    let run = wait::read(app.store().run(&caller.org, agent.run)).await?.ok_or_else(missing)?;
    let gathered = Gathered::of(app, run, Some(agent)).await?;
    let Some(agent) = gathered.agents.iter().find(|agent| agent.id == id) else { return Err(missing()) };
    let facts = gathered.facts();
    let Some(task) = part.task else { return Ok(why::of_agent(&facts, agent)) };
    let nothing = || Fault::new("part_not_found", format!("agent {} has no such task or step", agent.name));
    let plan = gathered.plan.agents.get(agent.index as usize).ok_or_else(nothing)?;
    let place = task_place(plan, task).ok_or_else(nothing)?;
    let Some(step) = part.step else {
        let record = ended_task(app, agent, place).await?;
        return Ok(why::of_task(&facts, agent, place, record.as_ref()));
    };
    let at = (place, step_place(plan, place, step).ok_or_else(nothing)?);
    let record = ended_step(app, agent, at).await?;
    Ok(why::of_step(&facts, agent, at, record.as_ref()))
}

/// By its name, or else by its place.
fn place<'a>(names: impl Iterator<Item = &'a str> + Clone, text: &str) -> Option<u32> {
    let named = names.clone().position(|name| name == text);
    let counted = || text.parse::<usize>().ok().filter(|place| *place < names.count());
    named.or_else(counted).and_then(|place| u32::try_from(place).ok())
}

fn task_place(plan: &AgentPlan, text: &str) -> Option<u32> {
    place(plan.tasks.iter().map(|task| task.name.as_str()), text)
}

fn step_place(plan: &AgentPlan, task: u32, text: &str) -> Option<u32> {
    place(plan.tasks.get(task as usize)?.steps.iter().map(|step| step.name.as_str()), text)
}

/// The last that became of a task, if it is not at hand.
async fn ended_task(app: &App, agent: &Agent, task: u32) -> Result<Option<TaskRecord>, Fault> {
    let mut found = None;
    if agent.tasks.contains_key(&task) || !(agent.done.contains(task) || agent.is_ended()) {
        return Ok(found);
    }
    let mut after = 0;
    for _ in 0..limits::WHY_ROUNDS {
        let page = wait::read(app.store().task_records(&agent.org, agent.id, after, limits::WHY_READ)).await?;
        let whole = page.len() == limits::WHY_READ;
        after = page.last().map_or(after, |record| record.n);
        found = page.into_iter().rev().find(|record| record.task == task).or(found);
        if !whole {
            break;
        }
    }
    Ok(found)
}

/// The same of a step.
async fn ended_step(app: &App, agent: &Agent, at: (u32, u32)) -> Result<Option<StepRecord>, Fault> {
    let mut found = None;
    let done = agent.tasks.get(&at.0).is_some_and(|task| task.done.contains(at.1));
    if agent.step(at.0, at.1).is_some() || !(done || agent.done.contains(at.0) || agent.is_ended()) {
        return Ok(found);
    }
    let mut after = 0;
    for _ in 0..limits::WHY_ROUNDS {
        let page = wait::read(app.store().step_records(&agent.org, agent.id, after, limits::WHY_READ)).await?;
        let whole = page.len() == limits::WHY_READ;
        after = page.last().map_or(after, |record| record.n);
        found = page.into_iter().rev().find(|record| (record.at.task, record.at.step) == at).or(found);
        if !whole {
            break;
        }
    }
    Ok(found)
}

/// All rows that a question about a run needs.
struct Gathered {
    now: Micros,
    run: Run,
    plan: Plan,
    agents: Vec<Agent>,
    jobs: BTreeMap<JobId, Job>,
    cases: BTreeMap<DecisionId, Case>,
    lane: Option<Queue>,
    available: Credits,
}

impl Gathered {
    /// About the whole run, or about one agent of it.
    async fn of(app: &App, run: Run, only: Option<Agent>) -> Result<Self, Fault> {
        let plan = run::plan_of(app, &run.org, run.id).await?;
        let agents = match only {
            Some(agent) => vec![agent],
            None => run::live(app, &run).await?,
        };
        let mut jobs = BTreeMap::new();
        let mut cases = BTreeMap::new();
        let ids = run.job.into_iter().chain(agents.iter().filter_map(|agent| agent.job));
        for id in ids.take(limits::WHY_ROWS) {
            if let Some(record) = wait::read(app.store().job(&run.org, id)).await? {
                jobs.insert(id, record.job);
            }
        }
        for id in agents.iter().flat_map(Agent::decisions).take(limits::WHY_ROWS) {
            cases.extend(case(app, &run.org, id).await?.map(|case| (id, case)));
        }
        let lane = lane(app, &run.org, &LaneKey::of_run(run.id)).await?;
        let available = run::available(app, &run.org).await?;
        let now = wait::read(app.store().now()).await?;
        Ok(Self { now, run, plan, agents, jobs, cases, lane, available })
    }

    fn facts(&self) -> Facts<'_> {
        Facts {
            now: self.now,
            run: &self.run,
            plan: &self.plan,
            live: &self.agents,
            jobs: &self.jobs,
            cases: &self.cases,
            lane: self.lane.as_ref(),
            available: self.available,
        }
    }
}

async fn lane(app: &App, org: &OrgId, key: &LaneKey) -> Result<Option<Queue>, Fault> {
    let found = wait::read(app.store().lane(org, key)).await?;
    Ok(found.map(|lane| Queue { max: lane.max, running: lane.running, waiting: lane.waiting, paused: lane.paused }))
}

async fn case(app: &App, org: &OrgId, id: DecisionId) -> Result<Option<Case>, Fault> {
    Ok(wait::read(app.store().doc(org, &Case::at(id))).await?.as_ref().and_then(Case::of))
}

async fn of_job(app: &App, caller: &Caller, id: JobId) -> Result<why::Why, Fault> {
    let record = crate::job::reached(app, caller, id).await?;
    let asked = match record.job.decision() {
        Some(id) => case(app, &caller.org, id).await?,
        None => None,
    };
    let lane = lane(app, &caller.org, &record.job.lane.key).await?;
    let ending = record.error.as_ref().map(|error| match error.message.as_str() {
        "" => error.code.clone(),
        message => format!("{message} ({})", error.code),
    });
    let now = wait::read(app.store().now()).await?;
    Ok(why::of_job(&record.job, asked.as_ref(), lane.as_ref(), ending.as_deref(), now))
}
