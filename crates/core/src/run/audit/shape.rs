//! States, counts, jobs, questions, clocks and records fit together.

use super::{Facts, must};
use crate::run::{Agent, AgentState, State};
use std::collections::BTreeSet;

pub(super) fn check(facts: &Facts<'_>, wrong: &mut Vec<String>) {
    states(facts, wrong);
    counts(facts, wrong);
    clock(facts, wrong);
    records(facts, wrong);
    questions(facts, wrong);
    let run = facts.run;
    let waits = run.state == State::Pending;
    must!(wrong, run.job.is_some() == waits, "a run that is {} and its first job", run.state);
    must!(wrong, run.job.is_none_or(|job| facts.jobs.contains(&job)), "the run's first job has ended");
    let mut jobs: Vec<_> = facts.agents.iter().filter_map(|agent| agent.job).chain(run.job).collect();
    let named = jobs.len();
    jobs.sort_unstable();
    jobs.dedup();
    must!(wrong, named == jobs.len(), "two agents share a job");
    for agent in &facts.agents {
        of_agent(agent, facts, wrong);
    }
}

fn states(facts: &Facts<'_>, wrong: &mut Vec<String>) {
    let run = facts.run;
    let all = |of: &dyn Fn(AgentState) -> bool| facts.current().all(|agent| of(agent.state));
    let ended = |state: AgentState| state.is_final();
    match run.state {
        State::Created | State::Pending | State::Retrying => {
            must!(wrong, facts.current().next().is_none(), "a run that is {} has agents", run.state);
        }
        State::Running | State::Resuming => must!(wrong, !all(&ended), "{} without a live agent", run.state),
        State::Paused => {
            must!(wrong, !all(&ended), "paused without a live agent");
            must!(wrong, all(&|s| ended(s) || s == AgentState::Paused), "paused, and an agent is not");
        }
        State::Completed => {
            let fine = all(&|s| matches!(s, AgentState::Completed | AgentState::Skipped));
            must!(wrong, fine && run.counts.completed > 0, "completed: {:?}", run.counts);
        }
        State::Skipped => must!(wrong, all(&|s| s == AgentState::Skipped), "skipped: {:?}", run.counts),
        State::Failed => {
            must!(wrong, run.error.is_some(), "failed, and nobody knows why");
            must!(wrong, all(&ended), "failed with a live agent");
        }
        State::Cancelled => {
            must!(wrong, run.reason.is_some(), "cancelled, and nobody knows why");
            must!(wrong, all(&ended), "cancelled with a live agent");
        }
    }
    let earlier = facts.agents.iter().filter(|agent| agent.run_attempt != run.attempt);
    must!(wrong, earlier.into_iter().all(|agent| agent.is_ended()), "an agent outlived its attempt");
    must!(wrong, run.ended_at.is_some() == run.state.is_ended(), "{} and when it ended", run.state);
    let stands = matches!(run.state, State::Paused | State::Resuming);
    must!(wrong, run.paused_at.is_some() == stands, "{} and since when its clock stands still", run.state);
}

fn counts(facts: &Facts<'_>, wrong: &mut Vec<String>) {
    let counts = &facts.run.counts;
    let current: Vec<&Agent> = facts.current().collect();
    let of = |state: AgentState| u32::try_from(current.iter().filter(|a| a.state == state).count()).unwrap_or(u32::MAX);
    must!(wrong, counts.agents as usize == current.len(), "{} agents counted of {}", counts.agents, current.len());
    let ids: BTreeSet<_> = current.iter().map(|agent| agent.id).collect();
    must!(wrong, facts.run.agents.iter().copied().collect::<BTreeSet<_>>() == ids, "the run names other agents");
    let ended = (counts.completed, counts.failed, counts.skipped, counts.cancelled);
    let found = (of(AgentState::Completed), of(AgentState::Failed), of(AgentState::Skipped), of(AgentState::Cancelled));
    must!(wrong, ended == found, "ended agents {ended:?} are {found:?}");
    let done = current.iter().filter(|agent| agent.is_ended());
    let (tasks, steps) = done.fold((0, 0), |(t, s), agent| (t + agent.task_count, s + agent.step_count));
    must!(wrong, (counts.tasks, counts.steps) == (tasks, steps), "tasks and steps: {counts:?}, {tasks} and {steps}");
}

/// One timer, exactly while something is to happen by itself.
fn clock(facts: &Facts<'_>, wrong: &mut Vec<String>) {
    let run = facts.run;
    let ticks = !run.state.is_ended() && run.state != State::Created;
    must!(wrong, facts.timer.is_some() == ticks, "a run that is {} and its timer", run.state);
    if matches!(run.state, State::Pending | State::Running) {
        must!(wrong, facts.timer == run.deadline, "the timer is not the deadline of a run that is {}", run.state);
    }
}

fn records(facts: &Facts<'_>, wrong: &mut Vec<String>) {
    for agent in &facts.agents {
        let tally = facts.tally.agents.get(&agent.id).copied().unwrap_or_default();
        let (found, said) = ((tally.tasks, tally.steps), (agent.task_count, agent.step_count));
        must!(wrong, found == said, "{} has {found:?} records of tasks and steps and counts {said:?}", agent.name);
    }
    let over = if facts.run.state.is_ended() { facts.run.attempt } else { facts.run.attempt.saturating_sub(1) };
    let told: Vec<u32> = facts.tally.attempts.iter().map(|record| record.attempt).collect();
    must!(wrong, told == (1..=over).collect::<Vec<_>>(), "attempts 1 to {over} are over, told of are {told:?}");
}

/// An open question is one that a step waits for. A step may wait for one that was just answered.
fn questions(facts: &Facts<'_>, wrong: &mut Vec<String>) {
    for (id, (agent, task, step)) in &facts.open {
        let found = facts.agents.iter().find(|a| a.id == *agent).and_then(|agent| agent.step(*task, *step));
        must!(wrong, found.and_then(super::super::hand::Step::decision) == Some(*id), "nobody waits for {id}");
    }
}

fn of_agent(agent: &Agent, facts: &Facts<'_>, wrong: &mut Vec<String>) {
    let (name, state) = (&agent.name, agent.state);
    let lives = agent.job.is_some_and(|job| facts.jobs.contains(&job));
    match state {
        AgentState::Pending | AgentState::Running => must!(wrong, lives, "{name} is {state} and nobody works on it"),
        AgentState::Paused => {
            must!(wrong, agent.job.is_none() || agent.has_calls(), "{name} is paused and has a job for nothing");
            must!(wrong, agent.paused_at.is_some(), "{name} is paused since nobody knows when");
        }
        AgentState::Completed | AgentState::Failed | AgentState::Skipped | AgentState::Cancelled => {
            must!(wrong, agent.job.is_none(), "{name} is {state} and has a job");
            must!(wrong, agent.tasks.is_empty(), "{name} is {state} and has work in hand");
            must!(wrong, agent.ended_at.is_some(), "{name} is {state} since nobody knows when");
        }
    }
    must!(wrong, agent.error.is_none() || agent.is_ended(), "{name} is {state} and says why it fell");
}
