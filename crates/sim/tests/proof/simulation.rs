//! Some hundreds of seeds, and the proof that a seed is always the same story.

use baton_sim::simulation::run;

/// Seeds per test; the tests run beside each other.
const SEEDS: u64 = 100;

/// What must happen in any hundred seeds: otherwise a simulation says nothing about it.
const HAPPENS: [&str; 45] = [
    "an aged job went first",
    "decision.escalated",
    "decision.expired",
    "decision.opened",
    "decision.overdue",
    "decision.resolved",
    "decision.withdrawn: job_cancelled",
    "job.asked",
    "job.cancel_requested: user_requested",
    "job.cancelled: decision_expired",
    "job.cancelled: interrupt_timeout",
    "job.cancelled: shutdown_timeout",
    "job.cancelled: user_requested",
    "job.completed",
    "job.confirmed",
    "job.failed: asked_to",
    "job.failed: attempts_exhausted",
    "job.failed: deadline_exceeded",
    "job.failed: decision_expired",
    "job.failed: failures_exhausted",
    "job.failed: handler_panicked",
    "job.failed: recovery_attempts_exhausted",
    "job.merged",
    "job.parked",
    "job.progress",
    "job.recovered: lease_expired",
    "job.recovered: node_gone",
    "job.released: given_back",
    "job.resumed",
    "job.retry_scheduled: stumbled",
    "job.retry_scheduled: timeout",
    "job.woken",
    "key.created",
    "key.revoked",
    "key.rotated",
    "key.session_ended",
    "lane.paused",
    "lane.resumed",
    "refused: queue_full",
    "refused: queue_full, everywhere",
    "retention.pruned",
    "schedule.created",
    "schedule.deleted",
    "schedule.fired",
    "schedule.skipped: still_running",
];

fn seeds(from: u64) {
    // Handlers are asked to panic now and then; that is not news.
    std::panic::set_hook(Box::new(|_| {}));
    let ran = (from..from + SEEDS).map(|seed| run(seed, None)).collect::<Result<Vec<_>, _>>();
    let _ = std::panic::take_hook();
    let ran = ran.unwrap_or_else(|e| panic!("{e:?}"));
    let never = HAPPENS.iter().filter(|what| !ran.iter().any(|summary| summary.happened.contains_key(**what)));
    assert_eq!(never.collect::<Vec<_>>(), Vec::<&&str>::new(), "these never happened");
}

#[test]
fn the_first_hundred_seeds_hold() {
    seeds(0);
}

#[test]
fn the_second_hundred_seeds_hold() {
    seeds(100);
}

#[test]
fn the_third_hundred_seeds_hold() {
    seeds(200);
}

#[test]
fn the_same_seed_tells_the_same_history() {
    std::panic::set_hook(Box::new(|_| {}));
    let twice = (1_000..1_010)
        .map(|seed| (run(seed, None).map_err(|e| format!("{e:?}")), run(seed, None).map_err(|e| format!("{e:?}"))));
    let twice = twice.collect::<Vec<_>>();
    let _ = std::panic::take_hook();
    for (first, second) in twice {
        assert_eq!(first.unwrap(), second.unwrap());
    }
    assert_ne!(run(1_000, None).unwrap().history, run(1_001, None).unwrap().history);
}
