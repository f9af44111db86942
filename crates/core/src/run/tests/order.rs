//! What goes after what, and how much at once.

use crate::plan::{AgentPlan, StepPlan, TaskPlan};
use crate::rng::Rng;
use crate::run::stage::{Stage, agent, done, flaky, parallel, plan, step, task, times};
use crate::run::{Run, State, backoff};
use crate::time::Span;
use proptest::prelude::{any, prop_assert_eq, proptest};
use proptest::test_runner::Config;

#[test]
fn delays_double_from_a_tenth_of_a_second_to_half_a_minute_and_are_spread_by_a_tenth() {
    for (failures, plain) in
        [(1, 100), (2, 200), (3, 400), (4, 800), (8, 12_800), (9, 25_600), (10, 30_000), (99, 30_000)]
    {
        let drawn: Vec<i64> = (0..200).map(|seed| backoff(failures, &mut Rng::new(seed)).0 / 1_000).collect();
        let (least, most) = (*drawn.iter().min().unwrap(), *drawn.iter().max().unwrap());
        assert!(least >= plain * 9 / 10 && most <= (plain * 11 / 10).min(30_000), "{failures}: {least} to {most}");
        assert!(most - least > plain / 20, "{failures}: {least} to {most} is hardly a spread");
        assert_eq!(backoff(failures, &mut Rng::new(7)), backoff(failures, &mut Rng::new(7)), "seeded");
    }
}

#[test]
fn a_step_waits_longer_after_each_failure() {
    let mut stage = Stage::new(plan([agent([task([times(5, step())])])]));
    stage.start().unwrap();
    stage.pick_all();
    for plain in [100, 200, 400, 800] {
        let failed_at = stage.now;
        let turn = stage.reply((0, 0, 0), flaky()).unwrap();
        let delay = turn.look_at.unwrap().since(failed_at).0 / 1_000;
        assert!((plain * 9 / 10..=plain * 11 / 10).contains(&delay), "{delay} for {plain}");
        assert!(stage.pick().is_none(), "not yet");
        stage.now = turn.look_at.unwrap();
        stage.pick_all();
    }
}

#[test]
fn whoever_is_told_to_come_back_later_does() {
    let mut stage = Stage::new(plan([agent([task([times(2, step())])])]));
    stage.start().unwrap();
    stage.pick_all();
    let crate::run::advance::Outcome::Failed(mut failed) = flaky() else { panic!() };
    failed.retry_after = Some(Span::secs(20));
    let turn = stage.reply((0, 0, 0), crate::run::advance::Outcome::Failed(failed)).unwrap();
    assert_eq!(turn.look_at, Some(stage.now.plus(Span::secs(20))));
}

#[test]
fn no_more_tasks_and_steps_at_once_than_may() {
    let tasks = (0..5).map(|_| parallel(3, task((0..7).map(|_| step()))));
    let mut stage = Stage::new(plan([AgentPlan { width: 2, ..agent(tasks) }]));
    stage.start().unwrap();
    stage.pick_all();
    assert_eq!(stage.in_flight().len(), 6, "two tasks of three steps");
    stage.reply((0, 0, 0), done()).unwrap();
    assert_eq!(stage.in_flight().len(), 6);
    stage.play();
    assert_eq!((stage.state(), stage.made.len()), (State::Completed, 35));
}

#[test]
fn no_more_agents_at_once_than_may() {
    let few = crate::plan::Plan { max_agents: 2, ..plan((0..5).map(|_| agent([task([step()])]))) };
    let mut stage = Stage::new(few);
    stage.start().unwrap();
    stage.pick_all();
    assert_eq!(stage.in_flight().len(), 2);
    let (job, made) = stage.in_flight()[0];
    stage.report(job, &[(made, done())]).unwrap();
    stage.pick_all();
    assert_eq!(stage.in_flight().len(), 2);
    stage.play();
    assert_eq!((stage.state(), stage.get().counts.completed), (State::Completed, 5));
}

#[test]
fn one_after_the_other_means_in_the_order_of_the_plan() {
    let mut stage = Stage::new(plan([agent([task([step(), step()]), task([step(), step()])])]));
    stage.start().unwrap();
    stage.play();
    let order: Vec<_> = stage.made.iter().map(|made| (made.task, made.step)).collect();
    assert_eq!(order, [(0, 0), (0, 1), (1, 0), (1, 1)]);
}

/// Places that come after others in an order that has no cycle, whatever their numbers are.
fn random_after(rng: &mut Rng, n: usize) -> Vec<Vec<u32>> {
    let ranks: Vec<u64> = (0..n).map(|_| rng.next_u64()).collect();
    let before = |rng: &mut Rng, place: usize| -> Vec<u32> {
        let earlier = (0..n).filter(|other| ranks[*other] < ranks[place]);
        earlier.filter(|_| rng.chance(1, 3)).map(|other| u32::try_from(other).unwrap()).collect()
    };
    (0..n).map(|place| before(rng, place)).collect()
}

/// What was made before what, against what the plan says.
fn in_order(stage: &Stage, run: &Run) -> bool {
    let made_at = |place: (u32, u32)| stage.made.iter().position(|made| (made.task, made.step) == place).unwrap();
    let tasks = &stage.plan.agents[0].tasks;
    run.state == State::Completed
        && tasks.iter().zip(0u32..).all(|(task, t)| {
            let last_of = |t: u32| (0u32..).zip(&tasks[t as usize].steps).map(|(s, _)| made_at((t, s))).max().unwrap();
            let first = (0u32..).zip(&task.steps).map(|(s, _)| made_at((t, s))).min().unwrap();
            task.after.iter().all(|before| last_of(*before) < first)
                && task
                    .steps
                    .iter()
                    .zip(0u32..)
                    .all(|(step, s)| step.after.iter().all(|b| made_at((t, *b)) < made_at((t, s))))
        })
}

proptest! {
    #![proptest_config(Config { cases: 150, failure_persistence: None, ..Config::default() })]

    #[test]
    fn whatever_comes_after_what_everything_ends_and_nothing_begins_too_early(seed in any::<u64>()) {
        let rng = &mut Rng::new(seed);
        let n = 1 + rng.below(8) as usize;
        let tasks: Vec<TaskPlan> = random_after(rng, n).into_iter().map(|after| {
            let n = 1 + rng.below(5) as usize;
            let steps: Vec<StepPlan> = random_after(rng, n).into_iter().map(|after| StepPlan { after, ..step() }).collect();
            TaskPlan { after, width: 1 + u32::try_from(rng.below(3)).unwrap(), ..task(steps) }
        }).collect();
        let width = 1 + u32::try_from(rng.below(4)).unwrap();
        let mut stage = Stage::new(plan([AgentPlan { width, ..agent(tasks) }]));
        stage.start().unwrap();
        stage.pick_all();
        while !stage.in_flight().is_empty() {
            let calls = stage.in_flight();
            let (job, made) = calls[rng.below(calls.len() as u64) as usize];
            stage.report(job, &[(made, done())]).unwrap();
        }
        prop_assert_eq!(in_order(&stage, stage.get()), true);
    }
}
