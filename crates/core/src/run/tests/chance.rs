//! Any plan, any luck, anybody's commands at any time: all invariants hold after each, and once nothing fails
//! any more, everything ends.

use crate::canon::Json;
use crate::credits::Credits;
use crate::id::JobId;
use crate::plan::{Effect, FailureMode, Plan, StepPlan, TaskPlan};
use crate::rng::Rng;
use crate::run::advance::Outcome;
use crate::run::lost::Lost;
use crate::run::signal::Signal;
use crate::run::stage::{Hands, Made, Stage, agent, broken, done, doubtful, fatal, flaky, org, plan, step, task};
use crate::time::Span;
use proptest::prelude::{any, proptest};
use proptest::test_runner::Config;
use serde_json::json;

const SIGNALS: [&str; 3] = ["one", "two", "three"];
/// What was wrong when they did is named in the tests beside this one.
const SEEDS: [u64; 2] = [2_617_822_191_571_690_768, 6_483_224_385_626_186_929];
const DAY: Span = Span::secs(24 * 3_600);

fn below(rng: &mut Rng, bound: u32) -> u32 {
    u32::try_from(rng.below(u64::from(bound))).unwrap()
}

fn mode(rng: &mut Rng) -> FailureMode {
    [FailureMode::FailFast, FailureMode::Continue, FailureMode::Retry][rng.below(3) as usize]
}

/// Earlier siblings, in an order of which places know nothing.
fn after(rng: &mut Rng, ranks: &[u64], place: usize) -> Vec<u32> {
    let earlier = (0..ranks.len()).filter(|other| ranks[*other] < ranks[place]);
    earlier.filter(|_| rng.chance(1, 3)).map(|other| u32::try_from(other).unwrap()).collect()
}

fn any_step(rng: &mut Rng) -> StepPlan {
    StepPlan {
        effect: [Effect::Pure, Effect::Idempotent, Effect::Unsafe][rng.below(3) as usize],
        repeat: rng.chance(1, 4),
        attempts: 1 + below(rng, 3),
        price: Credits::whole(below(rng, 3)),
        ..step()
    }
}

fn any_task(rng: &mut Rng) -> TaskPlan {
    let ranks: Vec<u64> = (0..1 + rng.below(4)).map(|_| rng.next_u64()).collect();
    let steps: Vec<StepPlan> =
        (0..ranks.len()).map(|n| StepPlan { after: after(rng, &ranks, n), ..any_step(rng) }).collect();
    let timeout = Span::secs(if rng.chance(1, 3) { 5 } else { 3_600 });
    TaskPlan { failure_mode: mode(rng), attempts: 1 + below(rng, 3), timeout, width: 1 + below(rng, 3), ..task(steps) }
}

fn any_plan(rng: &mut Rng) -> Plan {
    let agents: Vec<_> = (0..1 + rng.below(3))
        .map(|_| {
            let ranks: Vec<u64> = (0..1 + rng.below(4)).map(|_| rng.next_u64()).collect();
            let tasks: Vec<TaskPlan> =
                (0..ranks.len()).map(|n| TaskPlan { after: after(rng, &ranks, n), ..any_task(rng) }).collect();
            let mut agent = agent(tasks);
            agent.failure_mode = mode(rng);
            agent.attempts = 1 + below(rng, 3);
            agent.width = 1 + below(rng, 3);
            agent.timeout = Span::secs(if rng.chance(1, 4) { 20 } else { 6 * 3_600 });
            agent
        })
        .collect();
    Plan {
        failure_mode: mode(rng),
        max_attempts: 1 + below(rng, 3),
        failure_budget: below(rng, 12),
        max_agents: 1 + below(rng, 3),
        ..plan(agents)
    }
}

/// Only steps that do nothing outside wait or ask.
fn outcome(stage: &Stage, made: &Made, rng: &mut Rng) -> Outcome {
    let waits = stage.plan.step(made.agent, made.task, made.step).unwrap().effect != Effect::Unsafe;
    let soon = stage.now.plus(Span::millis(rng.below(3_000).cast_signed()));
    match rng.below(14) {
        0 | 1 => flaky(),
        2 => broken(),
        3 if rng.chance(1, 3) => fatal(),
        4 => doubtful(),
        5 if waits => Outcome::Sleep(soon),
        6 if waits => {
            let until = rng.chance(1, 2).then_some(soon);
            Outcome::Wait { signal: SIGNALS[rng.below(3) as usize].to_owned(), until }
        }
        7 if waits => Outcome::Ask(Json::of(&json!({ "prompt": "sure?", "withinMs": 2_000, "onBreach": "fail" }))),
        8 if waits => Outcome::Ask(Json::of(&json!({ "prompt": "sure?" }))),
        _ => done(),
    }
}

fn say(stage: &mut Stage, rng: &mut Rng) {
    let open = stage.open();
    let Some(id) = rng.below(open.len() as u64).try_into().ok().and_then(|n: usize| open.get(n)) else { return };
    let options = stage.case(*id).options;
    let option = options[rng.below(options.len() as u64) as usize].name.clone();
    stage.answer(*id, option.as_str()).unwrap();
}

/// A worker that was given up comes back, after another one took its job.
fn late(stage: &mut Stage, job: JobId, dead: Hands, rng: &mut Rng) {
    let (written, calls) = (stage.written(), dead.calls.clone());
    let Some(held) = stage.hands.get(&job).cloned() else { return };
    stage.hands.insert(job, dead);
    let outcomes: Vec<_> = calls.iter().map(|(_, made)| (*made, outcome(stage, made, rng))).collect();
    assert!(stage.report_unseen(job, &outcomes).is_err(), "it is fenced");
    assert_eq!(stage.written(), written);
    stage.hands.insert(job, held);
}

/// Something happens.
fn happen(stage: &mut Stage, rng: &mut Rng) {
    match rng.below(40) {
        0..=9 => {
            let _ = stage.pick_nth(rng.below(7) as usize);
        }
        10..=21 => {
            let calls = stage.in_flight();
            let Some((job, _)) = calls.get(rng.below(calls.len().max(1) as u64) as usize) else { return };
            let at_once = 1 + rng.below(2) as usize;
            let ended: Vec<Made> =
                calls.iter().filter(|(of, _)| of == job).map(|(_, made)| *made).take(at_once).collect();
            let outcomes: Vec<_> = ended.into_iter().map(|made| (made, outcome(stage, &made, rng))).collect();
            let _ = stage.report(*job, &outcomes);
            // Some say everything twice.
            if rng.chance(1, 4) && stage.hands.contains_key(job) {
                let _ = stage.report(*job, &outcomes);
            }
        }
        22 | 23 => {
            let held: Vec<_> = stage.hands.keys().copied().collect();
            let Some(job) = held.get(rng.below(held.len().max(1) as u64) as usize) else { return };
            let dead = stage.hands[job].clone();
            stage.crash_job(*job);
            // Some are not as dead as they seem, and find that somebody else has taken over.
            if rng.chance(1, 2) {
                stage.pick_all();
                late(stage, *job, dead, rng);
            }
        }
        24 => drop(stage.pause()),
        25 | 26 => drop(stage.resume()),
        27 | 28 => {
            let agents: Vec<_> = stage.agents().iter().map(|agent| agent.id).collect();
            let Some(agent) = agents.get(rng.below(agents.len().max(1) as u64) as usize) else { return };
            let _ = if rng.chance(1, 3) { stage.pause_agent(*agent) } else { stage.resume_agent(*agent) };
        }
        29 => drop(stage.retry()),
        30 if rng.chance(1, 10) => drop(stage.cancel()),
        31 => drop(stage.start()),
        32 => {
            let name = SIGNALS[rng.below(3) as usize].parse().unwrap();
            let _ = stage.decide(&Signal { org: org(), run: stage.run, name, data: Json::of(&json!(1)) });
        }
        33 => {
            let agents: Vec<_> = stage.agents().iter().map(|agent| agent.id).collect();
            for agent in agents {
                let _ = stage.decide(&Lost { org: org(), agent, alive_since: stage.alive_since });
            }
        }
        34 | 35 => say(stage, rng),
        36 => stage.wait(Span::millis(rng.below(20_000).cast_signed())),
        37 if rng.chance(1, 20) => stage.wait(DAY),
        _ => {
            if let Some(at) = stage.next_due().filter(|at| *at < stage.now.plus(DAY)) {
                stage.now = at;
            }
            stage.fire();
            stage.look();
        }
    }
}

fn live(seed: u64) {
    let rng = &mut Rng::new(seed);
    let plan = any_plan(rng);
    let estimate = plan.estimate().unwrap();
    let budget = Credits::from_micros(estimate.micros() * rng.below(5).cast_signed() / 3).unwrap();
    let mut stage = Stage::seeded(plan, Credits::whole(200), budget, seed >> 1);
    stage.start().unwrap();
    for _ in 0..rng.below(200) {
        happen(&mut stage, rng);
    }
    ends(&mut stage);
}

/// Nothing fails any more, and people answer.
fn ends(stage: &mut Stage) {
    stage.script(|_| Some(done()));
    for _ in 0..30 {
        let _ = stage.resume();
        for agent in stage.agents().iter().map(|agent| agent.id).collect::<Vec<_>>() {
            let _ = stage.resume_agent(agent);
        }
        for id in stage.open() {
            let option = stage.case(id).options[0].name.clone();
            stage.answer(id, option.as_str()).unwrap();
        }
        for name in SIGNALS {
            let name = name.parse().unwrap();
            let _ = stage.decide(&Signal { org: org(), run: stage.run, name, data: Json::of(&json!(1)) });
        }
        stage.play();
        if stage.state().is_ended() {
            return;
        }
    }
    panic!("it is {} and does not end: {:#?}", stage.state(), stage.agents());
}

#[test]
fn seeds_that_once_found_something_find_nothing_any_more() {
    for seed in SEEDS {
        live(seed);
    }
}

proptest! {
    #![proptest_config(Config { cases: Config::default().cases.max(300), failure_persistence: None, ..Config::default() })]

    #[test]
    fn whatever_happens_all_invariants_hold_and_everything_ends(seed in any::<u64>()) {
        live(seed);
    }
}
