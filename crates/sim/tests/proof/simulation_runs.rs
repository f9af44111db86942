//! Simulations of runs, and the proof that a seed is always the same story.

use baton_sim::simulation::runs::run;

/// Enough that everything happens that must.
const SEEDS: u64 = 60;

fn quietly<T>(f: impl FnOnce() -> T) -> T {
    // Tools are asked to panic now and then; that is not news.
    std::panic::set_hook(Box::new(|_| {}));
    let done = f();
    let _ = std::panic::take_hook();
    done
}

#[test]
fn the_first_seeds_of_runs_hold() {
    let ran = quietly(|| (0..SEEDS).map(|seed| run(seed, None)).collect::<Result<Vec<_>, _>>());
    let ran = ran.unwrap_or_else(|e| panic!("{e:?}"));
    let never = HAPPENS.iter().filter(|what| !ran.iter().any(|summary| summary.happened.contains_key(**what)));
    assert_eq!(never.collect::<Vec<_>>(), Vec::<&&str>::new(), "these never happened");
}

#[test]
fn the_same_seed_of_runs_tells_the_same_history() {
    let twice = || (1_000..1_006).map(|seed| run(seed, None).map_err(|e| format!("{e:?}"))).collect::<Vec<_>>();
    let (first, second) = quietly(|| (twice(), twice()));
    for (first, second) in first.into_iter().zip(second) {
        assert_eq!(first.unwrap(), second.unwrap());
    }
}

/// What must happen in any so many seeds: otherwise a simulation says nothing about it.
const HAPPENS: [&str; 38] = [
    "agent.cancelled: pause_timeout",
    "agent.cancelled: run_over",
    "agent.cancelled: user_requested",
    "agent.completed",
    "agent.failed: task_timeout",
    "agent.paused",
    "agent.resumed",
    "agent.retrying: task_timeout",
    "agent.running",
    "agent.skipped",
    "agent.taken_over",
    "decision.opened",
    "decision.resolved",
    "job.cancelled: agent_paused",
    "job.parked",
    "job.recovered: lease_expired",
    "job.recovered: node_gone",
    "job.released: given_back",
    "job.woken",
    "run.cancelled: pause_timeout",
    "run.cancelled: user_requested",
    "run.completed",
    "run.deleted",
    "run.paused",
    "run.resuming",
    "run.retrying",
    "run.skipped",
    "signal.given",
    "step.cancelled",
    "step.completed",
    "step.failed: insufficient_credits",
    "step.failed: missing_result",
    "step.retrying: not_started",
    "step.retrying: timeout",
    "step.retrying: transient",
    "step.skipped: missing_result",
    "task.retrying: timeout",
    "task.skipped: task_timeout",
];
