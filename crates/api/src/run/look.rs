//! Runs as they are found.

use crate::app::App;
use crate::door::Caller;
use crate::limits;
use crate::problem::Fault;
use crate::wait;
use baton_core::ledger::OrgAccount;
use baton_core::limits::RUN_AGENTS;
use baton_core::plan::Plan;
use baton_core::run::{Agent, AgentState, Run, State};
use baton_core::time::Span;
use baton_core::{Credits, Micros, OrgId, RunId};
use baton_wire::Live;

/// A run that there is for this caller, deleted ones included: they are hidden from lists only.
pub async fn reached(app: &App, caller: &Caller, id: RunId) -> Result<Run, Fault> {
    let found = wait::read(app.store().run(&caller.org, id)).await?;
    let found = found.filter(|run| caller.grant.reaches_project(&run.project));
    found.ok_or_else(|| Fault::new("run_not_found", format!("run {id} does not exist")))
}

/// Before something is done to a run. What a run belongs to never changes, so this is not too early; a
/// key that reaches everything need not ask.
pub async fn reach(app: &App, caller: &Caller, id: RunId) -> Result<(), Fault> {
    if caller.grant.is_whole() {
        return Ok(());
    }
    reached(app, caller, id).await.map(|_| ())
}

pub async fn plan_of(app: &App, org: &OrgId, run: RunId) -> Result<Plan, Fault> {
    let found = wait::read(app.store().run_plan(org, run)).await?;
    let read = found.and_then(|(_, plan)| serde_json::from_str(plan.as_str()).ok());
    read.ok_or_else(|| Fault::internal(format!("the plan of {run} cannot be read")))
}

/// All agents of one attempt, in the order of the plan.
pub async fn agents_of(app: &App, run: &Run, attempt: u32) -> Result<Vec<Agent>, Fault> {
    Ok(wait::read(app.store().agents(&run.org, run.id, attempt, None, RUN_AGENTS)).await?)
}

/// Those of its attempt that have not ended.
pub async fn live(app: &App, run: &Run) -> Result<Vec<Agent>, Fault> {
    if !run.state.is_at_work() {
        return Ok(Vec::new());
    }
    let mut agents = agents_of(app, run, run.attempt).await?;
    agents.retain(|agent| !agent.is_ended());
    Ok(agents)
}

/// As one of many: what its agents told last is what was heard of it.
pub async fn listed(app: &App, run: &Run) -> Result<baton_wire::Run, Fault> {
    let live = Live::of(&live(app, run).await?);
    Ok(baton_wire::Run::of(run, &live, wait::read(app.store().now()).await?))
}

/// The same with the beats of its workers.
pub async fn shown(app: &App, run: &Run) -> Result<baton_wire::Run, Fault> {
    let agents = live(app, run).await?;
    let mut live = Live::of(&agents);
    let now = wait::read(app.store().now()).await?;
    if run.state == State::Running {
        live.heard = live.heard.max(beat(app, &agents, now).await?);
    }
    Ok(baton_wire::Run::of(run, &live, now))
}

/// When a worker last said that it works on one of these. The engine itself waits for those that are
/// parked, and says so by being asked.
async fn beat(app: &App, agents: &[Agent], now: Micros) -> Result<Option<Micros>, Fault> {
    let defs = app.store().definitions();
    let mut newest = None;
    let at_work = agents.iter().filter(|agent| agent.state == AgentState::Running);
    for (agent, job) in at_work.filter_map(|agent| Some((agent, agent.job?))).take(limits::RUN_BEATS) {
        let Some(record) = wait::read(app.store().job(&agent.org, job)).await? else { continue };
        let heard = match record.job.status.lease() {
            Some(lease) => {
                let span = defs.pinned(&record.job.org, &record.job.kind).map_or(Span::default(), |kind| kind.lease);
                Some(lease.until.plus(Span(-span.0)))
            }
            None => record.job.status.due_at().is_none_or(|due| due > now).then_some(now),
        };
        newest = newest.max(heard.map(|at| at.min(now)));
    }
    Ok(newest)
}

/// What the org has to spend, and how many entries made it.
pub async fn account(app: &App, org: &OrgId) -> Result<Option<OrgAccount>, Fault> {
    let Some(key) = OrgAccount::reads().docs.pop_first() else { return Ok(None) };
    Ok(wait::read(app.store().doc(org, &key)).await?.map(OrgAccount::from_doc))
}

pub async fn available(app: &App, org: &OrgId) -> Result<Credits, Fault> {
    Ok(account(app, org).await?.map_or(Credits::ZERO, |account| account.purse.balance))
}
