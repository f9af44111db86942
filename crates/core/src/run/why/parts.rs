//! Runs, agents, tasks and steps.

use super::job::turn;
use super::{Facts, Kind, OPERATORS, WAITS_MAX, Wait, What, Why, asked, ended, long, sentence};
use crate::job::{Pause, Status};
use crate::plan::AgentPlan;
use crate::run::hand::{Doing, Step};
use crate::run::record::{StepRecord, TaskRecord};
use crate::run::state::{AgentState, State, StepState, TaskState};
use crate::run::{Agent, Fault, Run};
use crate::time::{Micros, Span};

fn told(fault: &Fault) -> String {
    format!("{} ({})", fault.message, fault.code)
}

pub fn of_run(facts: &Facts<'_>) -> Why {
    let Facts { run, now, .. } = *facts;
    let (summary, waits_for) = if run.state.is_ended() {
        let why = run.error.as_ref().map(told).or_else(|| run.reason.clone());
        let (mut summary, mut waits) = ended("The run", run.state.as_str(), why);
        if run.state == State::Failed {
            waits = retry_by_hand(facts, waits);
            if run.attempt < run.terms.max_attempts && !run.is_deleted() {
                summary.push_str(" It can be retried.");
            }
        }
        (summary, waits)
    } else {
        let waits = run_waits(facts);
        let subject = match run.state {
            State::Running => format!(
                "The run is at work with {} of {} agents and",
                facts.live.len(),
                run.counts.agents.max(run.terms.agents)
            ),
            _ => format!("The run is {} and", run.state),
        };
        (sentence(&subject, &waits, now), waits)
    };
    let since = run.ended_at.or(match run.state {
        State::Created => Some(run.created_at),
        State::Pending => run.queued_at,
        State::Running => run.started_at,
        State::Paused => run.paused_at,
        _ => Some(run.head.at),
    });
    let status = run.state.as_str().to_owned();
    Why { id: run.id.to_string(), kind: Kind::Run, status, since, summary, waits_for }
}

fn retry_by_hand(facts: &Facts<'_>, mut waits: Vec<Wait>) -> Vec<Wait> {
    let run = facts.run;
    let detail = match run.attempt < run.terms.max_attempts {
        true => format!("attempt {} of {} failed", run.attempt, run.terms.max_attempts),
        false => return waits,
    };
    let retry = Wait::new(What::Nothing, detail)
        .since(run.ended_at)
        .next("nothing happens by itself")
        .who(format!("{OPERATORS}: POST /api/v1/runs/{}/retry", run.id));
    waits = vec![retry];
    waits.extend(lacking(facts));
    waits
}

/// A budget that the org cannot pay.
fn lacking(facts: &Facts<'_>) -> Option<Wait> {
    let Facts { run, available, .. } = *facts;
    if run.budget <= available {
        return None;
    }
    let detail = format!("its budget is {}, and the org has {available} to spend", run.budget);
    Some(Wait::new(What::Credits, detail).who("an admin: POST /api/v1/credits/grants"))
}

fn run_waits(facts: &Facts<'_>) -> Vec<Wait> {
    let Facts { run, now, .. } = *facts;
    match run.state {
        State::Created => {
            let start = Wait::new(What::Start, "nobody has started it")
                .since(run.created_at)
                .next("its credits are reserved and a worker is sent for")
                .who(format!("{OPERATORS}: POST /api/v1/runs/{}/start", run.id));
            [start].into_iter().chain(lacking(facts)).collect()
        }
        State::Pending => {
            let job = run.job.and_then(|id| facts.jobs.get(&id));
            let wait = match job {
                Some(job) if !job.is_ended() => turn(job, facts.lane, now),
                _ => Wait::new(What::Worker, "no worker has taken it yet").who("a node that works on agents"),
            };
            vec![wait.since(run.queued_at).until(run.deadline).next("without a worker by then it fails (run_timeout)")]
        }
        State::Paused => vec![paused(run)],
        State::Resuming => vec![
            Wait::new(What::Worker, "it was resumed, and no worker has gone on with it yet")
                .since(run.head.at)
                .until(run.head.at.plus(crate::run::hold::RESUMING))
                .next("without a worker by then it fails (resume_timeout)")
                .who("a node that works on agents"),
        ],
        State::Retrying => vec![
            Wait::new(What::Retry, format!("attempt {} of {} is about to begin", run.attempt, run.terms.max_attempts))
                .since(run.head.at)
                .next("it waits for a worker again"),
        ],
        _ => {
            let mut waits: Vec<Wait> = Vec::new();
            for agent in facts.live {
                let name = format!("agent {}", agent.name);
                waits.extend(agent_waits(facts, agent).into_iter().map(|wait| wait.of(&name)));
                if waits.len() >= WAITS_MAX {
                    break;
                }
            }
            // Those for which somebody has to do something come first.
            waits.sort_by_key(|wait| wait.who.is_none() || wait.what == What::Call);
            waits.truncate(WAITS_MAX);
            waits
        }
    }
}

fn paused(run: &Run) -> Wait {
    let by = run.paused_by.as_deref().unwrap_or("somebody");
    Wait::new(What::Pause, format!("{by} paused the run"))
        .since(run.paused_at)
        .until(run.paused_at.map(|at| at.plus(run.terms.paused_for)))
        .next("if nobody resumes it by then it is cancelled (pause_timeout)")
        .who(format!("{OPERATORS}: POST /api/v1/runs/{}/resume", run.id))
        .id(run.id)
}

pub fn of_agent(facts: &Facts<'_>, agent: &Agent) -> Why {
    let subject = format!("Agent {}", agent.name);
    let (summary, waits_for) = if agent.is_ended() {
        ended(&subject, agent.state.as_str(), agent.error.as_ref().map(told))
    } else {
        let waits = agent_waits(facts, agent);
        (sentence(&format!("{subject} is {} and", agent.state), &waits, facts.now), waits)
    };
    let since = agent.ended_at.or(agent.paused_at).or(agent.started_at).or(Some(agent.created_at));
    Why {
        id: agent.id.to_string(),
        kind: Kind::Agent,
        status: agent.state.as_str().to_owned(),
        since,
        summary,
        waits_for,
    }
}

fn plan_of<'a>(facts: &Facts<'a>, agent: &Agent) -> Option<&'a AgentPlan> {
    facts.plan.agents.get(agent.index as usize)
}

fn agent_waits(facts: &Facts<'_>, agent: &Agent) -> Vec<Wait> {
    if let Some(wait) = agent_stands(facts, agent) {
        return vec![wait];
    }
    let mut waits = Vec::new();
    for (place, task) in &agent.tasks {
        if let Some(at) = task.not_before.filter(|at| *at > facts.now) {
            waits.push(task_again(facts, agent, *place, at));
        }
        for (step, held) in &task.steps {
            let part = name(facts, agent, *place, Some(*step));
            waits.push(step_wait(facts, agent, (*place, *step), held).of(&part));
        }
    }
    waits.truncate(WAITS_MAX);
    waits
}

/// What keeps an agent from doing anything at all.
fn agent_stands(facts: &Facts<'_>, agent: &Agent) -> Option<Wait> {
    let Facts { run, now, .. } = *facts;
    if agent.state == AgentState::Paused {
        if run.state == State::Paused {
            return Some(paused(run));
        }
        let by = agent.paused_by.as_deref().unwrap_or("somebody");
        let wait = Wait::new(What::Pause, format!("{by} paused the agent"))
            .since(agent.paused_at)
            .until(run.deadline)
            .next("the run fails if it has not ended by then (run_timeout)")
            .who(format!("{OPERATORS}: POST /api/v1/runs/{}/agents/{}/resume", run.id, agent.id))
            .id(agent.id);
        return Some(wait);
    }
    if let Some(at) = agent.not_before.filter(|at| *at > now) {
        let attempts = plan_of(facts, agent).map_or(1, |plan| plan.attempts);
        let detail = format!("attempt {} of {attempts} of the agent is about to begin", agent.attempt);
        return Some(Wait::new(What::Retry, detail).until(at).next("its tasks begin from the first"));
    }
    let job = agent.job.and_then(|id| facts.jobs.get(&id))?;
    // Parked: whatever its steps wait for wakes it. Held: it is at work.
    let waits = match &job.status {
        Status::Executing { .. } | Status::Ended { .. } => false,
        Status::AwaitingTool { pause: Pause::Tool, due_at } => due_at.is_some_and(|due| due <= now),
        _ => true,
    };
    waits.then(|| {
        let wait = turn(job, facts.lane, now);
        match agent.state {
            AgentState::Running => Wait { next: Some("a worker goes on where it stood".to_owned()), ..wait },
            _ => wait,
        }
    })
}

fn task_again(facts: &Facts<'_>, agent: &Agent, place: u32, at: Micros) -> Wait {
    let attempts = plan_of(facts, agent).and_then(|plan| plan.tasks.get(place as usize)).map_or(1, |t| t.attempts);
    let attempt = agent.tasks.get(&place).map_or(1, |task| task.attempt);
    let detail = format!("{}: attempt {attempt} of {attempts} is about to begin", name(facts, agent, place, None));
    Wait::new(What::Retry, detail).until(at).next("its steps begin from the first")
}

/// How a task or a step is called.
fn name(facts: &Facts<'_>, agent: &Agent, task: u32, step: Option<u32>) -> String {
    let plan = plan_of(facts, agent).and_then(|plan| plan.tasks.get(task as usize));
    let of_task = plan.map_or_else(|| task.to_string(), |plan| plan.name.to_string());
    match step {
        None => format!("task {of_task}"),
        Some(step) => {
            let plan = plan.and_then(|plan| plan.steps.get(step as usize));
            let of_step = plan.map_or_else(|| step.to_string(), |plan| plan.name.to_string());
            format!("step {of_task}.{of_step}")
        }
    }
}

fn step_wait(facts: &Facts<'_>, agent: &Agent, at: (u32, u32), step: &Step) -> Wait {
    let plan = facts.plan.step(agent.index, at.0, at.1);
    let attempts = plan.map_or(1, |plan| plan.attempts);
    let tool = plan.map_or("?", |plan| plan.tool.as_str());
    let since = step.started_at;
    match &step.doing {
        Doing::Call => {
            let wait =
                Wait::new(What::Call, format!("call {} of {attempts} of {tool} is made", step.attempt)).since(since);
            let wait = wait.who("the tool; it ends by itself");
            match plan.map(|plan| plan.timeout).filter(|timeout| *timeout > Span::default()) {
                Some(timeout) => {
                    let until = (step.attempt <= 1 && step.lost == 0).then(|| since.plus(timeout));
                    wait.until(until).next(format!("a call that takes longer than {} fails", long(timeout)))
                }
                None => wait.next("the step goes on with its result"),
            }
        }
        Doing::Backoff(at) => Wait::new(What::Retry, format!("call {} of {attempts} of {tool} failed", step.attempt))
            .since(since)
            .until(*at)
            .next("it is called again"),
        Doing::Sleep(at) => Wait::new(What::Time, "it sleeps").since(since).until(*at).next("the step completes"),
        Doing::Signal { name, until } => {
            let wait = Wait::new(What::Signal, format!("nobody has given the signal {name}"))
                .since(since)
                .until(*until)
                .who(format!("{OPERATORS}: POST /api/v1/runs/{}/signals/{name}", agent.run))
                .id(name);
            match until {
                Some(_) => wait.next("it goes on then, with or without the signal"),
                None => wait.next("the step completes with what the signal brings"),
            }
        }
        Doing::Answer(id) => asked(What::Answer, *id, facts.cases.get(id)),
        Doing::Unknown(id) => asked(What::Outcome, *id, facts.cases.get(id)),
        Doing::Broken { fault, .. } => {
            let detail = format!("it failed while its agent was paused: {}", told(fault));
            Wait::new(What::Pause, detail).since(since).next("what follows is decided when the agent goes on")
        }
    }
}

/// `record` is what was left of it, if it has ended.
pub fn of_task(facts: &Facts<'_>, agent: &Agent, place: u32, record: Option<&TaskRecord>) -> Why {
    let subject = capital(&name(facts, agent, place, None));
    let id = format!("{}.{place}", agent.id);
    let open = agent.tasks.get(&place);
    let (status, since, summary, waits_for) = match (open, record) {
        (Some(task), _) => {
            let again = task.not_before.filter(|at| *at > facts.now);
            let stands =
                agent_stands(facts, agent).filter(|_| task.steps.is_empty() || agent.state == AgentState::Paused);
            let waits: Vec<Wait> = match (stands, again) {
                (Some(stands), _) => vec![stands],
                (None, Some(at)) => vec![task_again(facts, agent, place, at)],
                (None, None) => {
                    let steps = task.steps.iter();
                    let wait = |(step, held): (&u32, &Step)| {
                        step_wait(facts, agent, (place, *step), held).of(&name(facts, agent, place, Some(*step)))
                    };
                    steps.map(wait).take(WAITS_MAX).collect()
                }
            };
            let state = match agent.state {
                AgentState::Paused => TaskState::Paused,
                _ if again.is_some() => TaskState::Pending,
                _ => TaskState::Running,
            };
            (state.as_str(), Some(task.started_at), sentence(&subject, &waits, facts.now), waits)
        }
        (None, Some(record)) => {
            let (summary, waits) = ended(&subject, record.state.as_str(), record.error.as_ref().map(told));
            (record.state.as_str(), Some(record.ended_at), summary, waits)
        }
        (None, None) => {
            let (summary, waits) = not_begun(facts, agent, &subject, before_task(facts, agent, place));
            (TaskState::Pending.as_str(), None, summary, waits)
        }
    };
    Why { id, kind: Kind::Task, status: status.to_owned(), since, summary, waits_for }
}

/// `record` is what was left of it, if it has ended.
pub fn of_step(facts: &Facts<'_>, agent: &Agent, at: (u32, u32), record: Option<&StepRecord>) -> Why {
    let subject = capital(&name(facts, agent, at.0, Some(at.1)));
    let id = format!("{}.{}.{}", agent.id, at.0, at.1);
    let (status, since, summary, waits_for) = match (agent.step(at.0, at.1), record) {
        (Some(step), _) => {
            let mut waits = vec![step_wait(facts, agent, at, step)];
            // A call needs somebody to make it; whatever else it waits for does not.
            let stands = agent_stands(facts, agent);
            if let Some(stands) = stands.filter(|stands| stands.what == What::Pause || step.is_call()) {
                waits.insert(0, stands);
            }
            let state = match step.doing {
                Doing::Backoff(_) | Doing::Broken { .. } => StepState::Pending,
                _ => StepState::Running,
            };
            (state.as_str(), Some(step.started_at), sentence(&subject, &waits, facts.now), waits)
        }
        (None, Some(record)) => {
            let (summary, waits) = ended(&subject, record.state.as_str(), record.more.error.as_ref().map(told));
            (record.state.as_str(), Some(record.ended_at), summary, waits)
        }
        (None, None) => {
            let (summary, waits) = not_begun(facts, agent, &subject, before_step(facts, agent, at));
            (StepState::Pending.as_str(), None, summary, waits)
        }
    };
    Why { id, kind: Kind::Step, status: status.to_owned(), since, summary, waits_for }
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

fn not_begun(facts: &Facts<'_>, agent: &Agent, subject: &str, before: Vec<Wait>) -> (String, Vec<Wait>) {
    if agent.is_ended() {
        let detail = format!("its agent is {}", agent.state);
        return (format!("{subject} was never begun: {detail}."), vec![Wait::new(What::Nothing, detail)]);
    }
    let waits: Vec<Wait> = agent_stands(facts, agent).into_iter().chain(before).take(WAITS_MAX).collect();
    (sentence(subject, &waits, facts.now), waits)
}

/// What must have ended before a task begins.
fn before_task(facts: &Facts<'_>, agent: &Agent, place: u32) -> Vec<Wait> {
    let Some((plan, task)) = plan_of(facts, agent).and_then(|plan| Some((plan, plan.tasks.get(place as usize)?)))
    else {
        return Vec::new();
    };
    let missing = task.after.iter().filter(|before| !agent.done.contains(**before));
    let mut waits: Vec<Wait> = missing
        .map(|before| {
            Wait::new(What::Dependency, format!("{} has not ended", name(facts, agent, *before, None)))
                .next("it begins when all that it depends on have ended")
                .id(format!("{}.{before}", agent.id))
        })
        .collect();
    if waits.is_empty() && agent.tasks.len() >= plan.width as usize {
        let detail = format!("its agent is at {} tasks of at most {} at once", agent.tasks.len(), plan.width);
        waits.push(Wait::new(What::Dependency, detail).next("it begins when one of them has ended"));
    }
    waits
}

/// What must have ended before a step begins.
fn before_step(facts: &Facts<'_>, agent: &Agent, at: (u32, u32)) -> Vec<Wait> {
    let Some(task) = agent.tasks.get(&at.0) else {
        let part = name(facts, agent, at.0, None);
        let waits = before_task(facts, agent, at.0);
        return waits.into_iter().map(|wait| wait.of(&part)).collect();
    };
    let Some(plan) = plan_of(facts, agent).and_then(|plan| plan.tasks.get(at.0 as usize)) else { return Vec::new() };
    if let Some(again) = task.not_before.filter(|again| *again > facts.now) {
        return vec![task_again(facts, agent, at.0, again)];
    }
    let after = plan.steps.get(at.1 as usize).map(|step| step.after.as_slice()).unwrap_or_default();
    let missing = after.iter().filter(|before| !task.done.contains(**before));
    let mut waits: Vec<Wait> = missing
        .map(|before| {
            Wait::new(What::Dependency, format!("{} has not ended", name(facts, agent, at.0, Some(*before))))
                .next("it begins when all that it depends on have ended")
                .id(format!("{}.{}.{before}", agent.id, at.0))
        })
        .collect();
    if waits.is_empty() && task.steps.len() >= plan.width as usize {
        let detail = format!("its task is at {} steps of at most {} at once", task.steps.len(), plan.width);
        waits.push(Wait::new(What::Dependency, detail).next("it begins when one of them has ended"));
    }
    waits
}
