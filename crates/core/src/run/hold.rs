//! Pausing and resuming: a whole run, or one agent of it. Nothing new begins while something is paused; a
//! call in flight may still end, and what came of it is kept.

use super::state::AgentState;
use super::{Agent, Run, RunError, State, job};
use crate::changes::Changes;
use crate::command::{Command, Ctx, Decision, Reads, Unseen};
use crate::definition::Definitions;
use crate::id::{AgentId, RunId};
use crate::job::cancel::at_once;
use crate::name::OrgId;
use crate::time::{Micros, Span};
use crate::world::View;
use serde_json::json;

/// How long resuming may take until a worker goes on.
pub const RESUMING: Span = Span::secs(5 * 60);

#[derive(Clone, Debug)]
pub struct Hold {
    pub org: OrgId,
    pub run: RunId,
    /// One agent, or all.
    pub agent: Option<AgentId>,
    /// Pause, or resume.
    pub pause: bool,
}

impl Command for Hold {
    type Out = Run;
    type No = RunError;

    fn org(&self) -> &OrgId {
        &self.org
    }

    fn reads(&self, _: &Definitions) -> Reads {
        let mut reads = Reads::run(self.run);
        reads.agents.extend(self.agent);
        reads
    }

    fn decide(&self, view: &View<'_>, cx: &mut Ctx<'_>) -> Decision<Run, RunError> {
        let Some(run) = view.run(self.run).filter(|run| !run.is_deleted()) else {
            return Decision::Refused(RunError::NotFound(self.run));
        };
        let decided = match self.agent {
            Some(agent) => self.one(run, agent, view, cx),
            None if self.pause => pause_all(run, view, cx),
            None => resume_all(run, view, cx),
        };
        match decided {
            Ok((run, changes)) => Decision::Done(run, changes),
            Err(Stop::No(no)) => Decision::Refused(no),
            Err(Stop::Need(unseen)) => unseen.into(),
        }
    }
}

enum Stop {
    No(RunError),
    Need(Unseen),
}

impl From<super::IllegalMove> for Stop {
    fn from(illegal: super::IllegalMove) -> Self {
        Self::No(RunError::Illegal(illegal))
    }
}

fn see(view: &View<'_>, reads: Reads) -> Result<(), Stop> {
    view.see(reads).map_err(Stop::Need)
}

/// The agents that have not ended, and the jobs that work on them.
fn live(run: &Run, view: &View<'_>) -> Result<Vec<Agent>, Stop> {
    see(view, Reads { agents: run.agents.iter().copied().collect(), ..Reads::none() })?;
    let live: Vec<Agent> =
        run.agents.iter().filter_map(|id| view.agent(*id)).filter(|agent| !agent.is_ended()).cloned().collect();
    see(view, Reads { jobs: live.iter().filter_map(|agent| agent.job).collect(), ..Reads::none() })?;
    Ok(live)
}

impl Hold {
    fn one(&self, run: &Run, id: AgentId, view: &View<'_>, cx: &mut Ctx<'_>) -> Result<(Run, Changes), Stop> {
        let found = view.agent(id).filter(|agent| agent.run == run.id && run.agents.contains(&id));
        let Some(agent) = found else { return Err(Stop::No(RunError::NoAgent(id))) };
        if run.state != State::Running {
            let to = if self.pause { State::Paused } else { State::Running };
            // An agent moves by itself only while its run does.
            run.state.check(to)?;
            return Ok((run.clone(), Changes::none()));
        }
        if (agent.state == AgentState::Paused) == self.pause && !agent.is_ended() {
            return Ok((run.clone(), Changes::none()));
        }
        let to = if self.pause { AgentState::Paused } else { AgentState::Pending };
        agent.state.check(to)?;
        see(view, Reads { jobs: agent.job.into_iter().collect(), ..Reads::none() }.and(job::reads(run, cx.defs)))?;
        let changes = if self.pause { pause(agent.clone(), view, cx)? } else { resume(agent.clone(), run, view, cx)? };
        Ok((run.clone(), changes))
    }
}

fn pause_all(run: &Run, view: &View<'_>, cx: &mut Ctx<'_>) -> Result<(Run, Changes), Stop> {
    if run.state == State::Paused {
        return Ok((run.clone(), Changes::none()));
    }
    let mut run = run.clone();
    let mut changes = resumed(&mut run, cx.now);
    run.moved(State::Paused)?;
    for agent in live(&run, view)? {
        if agent.state != AgentState::Paused {
            changes = changes.and(pause(agent, view, cx)?);
        }
    }
    run.paused_at = Some(cx.now);
    run.paused_by = Some(cx.actor.to_string());
    let until = cx.now.plus(run.terms.paused_for);
    changes = changes.event(run.tells("run.paused", json!({ "until": until }))).timer(run.clock(Some(until)));
    Ok((run.clone(), changes.run(run)))
}

fn resume_all(run: &Run, view: &View<'_>, cx: &mut Ctx<'_>) -> Result<(Run, Changes), Stop> {
    // Said before: it is resuming, or has resumed.
    if matches!(run.state, State::Resuming | State::Running) {
        return Ok((run.clone(), Changes::none()));
    }
    let mut run = run.clone();
    run.moved(State::Resuming)?;
    run.paused_by = None;
    see(view, job::reads(&run, cx.defs))?;
    let mut changes = Changes::none();
    for agent in live(&run, view)? {
        if agent.state == AgentState::Paused {
            changes = changes.and(resume(agent, &run, view, cx)?);
        }
    }
    let until = cx.now.plus(RESUMING);
    changes = changes.event(run.tells("run.resuming", json!({ "until": until }))).timer(run.clock(Some(until)));
    Ok((run.clone(), changes.run(run)))
}

/// A run that was resuming runs again: its clock goes on where it stood.
pub(super) fn resumed(run: &mut Run, now: Micros) -> Changes {
    if run.state != State::Resuming || run.moved(State::Running).is_err() {
        return Changes::none();
    }
    if let Some((deadline, since)) = run.deadline.zip(run.paused_at.take()) {
        run.deadline = Some(deadline.plus(now.since(since)));
    }
    Changes::none().event(run.tells("run.running", json!({ "resumed": true }))).timer(run.clock(run.deadline))
}

/// A job that holds calls in flight stays until they have ended; any other goes at once.
fn pause(mut agent: Agent, view: &View<'_>, cx: &Ctx<'_>) -> Result<Changes, Stop> {
    let job = agent.job.and_then(|job| view.job(job)).filter(|job| !job.is_ended());
    let in_flight = agent.has_calls() && job.is_some_and(|job| job.status.lease().is_some());
    let mut changes = Changes::none();
    if !in_flight {
        changes = job.map_or_else(Changes::none, |job| at_once(job, cx, "agent_paused"));
        agent.job = None;
    }
    agent.moved(AgentState::Paused)?;
    agent.paused_at = Some(cx.now);
    agent.paused_by = Some(cx.actor.to_string());
    changes = changes.event(agent.tells("agent.paused", json!({ "in_flight": in_flight })));
    changes.agents.push(agent);
    Ok(changes)
}

fn resume(mut agent: Agent, run: &Run, view: &View<'_>, cx: &mut Ctx<'_>) -> Result<Changes, Stop> {
    agent.moved(AgentState::Pending)?;
    agent.paused_by = None;
    if let Some(since) = agent.paused_at.take() {
        let stood = cx.now.since(since);
        agent.deadline = agent.deadline.map(|deadline| deadline.plus(stood));
        for task in agent.tasks.values_mut() {
            task.deadline = task.deadline.plus(stood);
        }
    }
    let held = agent.job.and_then(|job| view.job(job)).is_some_and(|job| !job.is_ended());
    let mut changes = Changes::none();
    if !held {
        let (jobs, queued) = job::enqueue(run, [agent.index], view, cx);
        agent.job = jobs.first().copied();
        changes = queued;
    }
    changes = changes.event(agent.tells("agent.resumed", json!({ "job": agent.job })));
    changes.agents.push(agent);
    Ok(changes)
}
