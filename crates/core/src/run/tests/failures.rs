//! How failures go up: step, task, agent, run, each by the mode of the one above.

use crate::plan::{AgentPlan, FailureMode, Plan, TaskPlan};
use crate::run::advance::Outcome;
use crate::run::stage::{Made, Stage, agent, broken, done, fatal, flaky, parallel, plan, step, task, times};
use crate::run::{AgentState, State, StepState, TaskState};
use FailureMode::{Continue, FailFast, Retry};

/// Two agents of two tasks of two steps each, one after the other, with these modes.
fn modes(of_task: FailureMode, of_agent: FailureMode, of_run: FailureMode) -> Plan {
    let task = || TaskPlan { failure_mode: of_task, ..task([step(), step()]) };
    let agent = || AgentPlan { failure_mode: of_agent, ..agent([task(), task()]) };
    Plan { failure_mode: of_run, max_agents: 1, ..plan([agent(), agent()]) }
}

fn played(plan: Plan, script: impl FnMut(&Made) -> Option<Outcome> + 'static) -> Stage {
    let mut stage = Stage::new(plan);
    stage.script(script);
    stage.start().unwrap();
    stage.play();
    stage
}

/// The first step of everything goes wrong in the same way, always.
fn first(outcome: fn() -> Outcome) -> impl FnMut(&Made) -> Option<Outcome> {
    move |made| Some(if made.place() == (0, 0, 0) { outcome() } else { done() })
}

fn all(outcome: fn() -> Outcome) -> impl FnMut(&Made) -> Option<Outcome> {
    move |_| Some(outcome())
}

#[test]
fn a_step_takes_task_agent_and_run_with_it_when_all_fail_fast() {
    let stage = played(modes(FailFast, FailFast, FailFast), first(broken));
    assert_eq!((stage.state(), stage.error()), (State::Failed, "invalid_output"));
    assert_eq!(stage.agent_states(), [AgentState::Failed, AgentState::Cancelled]);
    assert_eq!(stage.tasks().iter().map(|t| t.state).collect::<Vec<_>>(), [TaskState::Failed]);
    assert_eq!(stage.steps().iter().map(|s| s.state).collect::<Vec<_>>(), [StepState::Failed]);
    assert_eq!(stage.made.len(), 1);
}

#[test]
fn continue_stops_a_failure_at_its_level() {
    let stage = played(modes(Continue, FailFast, FailFast), first(broken));
    assert_eq!(stage.state(), State::Completed);
    assert_eq!(stage.steps()[0].state, StepState::Skipped);
    assert!(stage.tasks().iter().all(|task| task.state == TaskState::Completed));
    assert_eq!(stage.made.len(), 8);

    let stage = played(modes(FailFast, Continue, FailFast), first(broken));
    assert_eq!(stage.state(), State::Completed);
    assert_eq!((stage.steps()[0].state, stage.tasks()[0].state), (StepState::Failed, TaskState::Skipped));
    assert_eq!(stage.agent_states(), [AgentState::Completed, AgentState::Completed]);
    assert_eq!(stage.made.len(), 7);

    let stage = played(modes(FailFast, FailFast, Continue), first(broken));
    assert_eq!(stage.state(), State::Completed);
    assert_eq!(stage.agent_states(), [AgentState::Skipped, AgentState::Completed]);
    assert_eq!(stage.agents()[0].error.as_ref().unwrap().code, "invalid_output");
}

#[test]
fn where_everything_was_skipped_the_whole_is_skipped() {
    let stage = played(modes(Continue, FailFast, FailFast), all(broken));
    assert_eq!(stage.state(), State::Skipped);
    assert!(stage.tasks().iter().all(|task| task.state == TaskState::Skipped));
    assert_eq!(stage.agent_states(), [AgentState::Skipped; 2]);
    assert_eq!(stage.made.len(), 8, "everything was tried");
    for modes in [modes(FailFast, Continue, FailFast), modes(FailFast, FailFast, Continue)] {
        let stage = played(modes, all(broken));
        assert_eq!((stage.state(), stage.agent_states()), (State::Skipped, vec![AgentState::Skipped; 2]));
    }
}

#[test]
fn a_task_begins_again_as_often_as_it_may() {
    let stage = played(modes(Retry, FailFast, FailFast), |made| {
        Some(if made.place() == (0, 0, 1) { broken() } else { done() })
    });
    assert_eq!(stage.state(), State::Failed);
    let of_task = stage.made.iter().filter(|made| made.task == 0).map(|made| (made.task_attempt, made.step));
    assert_eq!(of_task.collect::<Vec<_>>(), [(1, 0), (1, 1), (2, 0), (2, 1), (3, 0), (3, 1)]);
    assert_eq!((stage.tasks()[0].attempts, stage.told("task.retrying")), (3, 2));
    assert_eq!(stage.get().failures, 2);

    let stage = played(modes(Retry, FailFast, FailFast), |made| {
        Some(if made.place() == (0, 0, 1) && made.task_attempt < 3 { broken() } else { done() })
    });
    assert_eq!(stage.state(), State::Completed, "the third goes well");
}

#[test]
fn an_agent_begins_again_as_often_as_it_may() {
    let stage = played(modes(FailFast, Retry, FailFast), |made| {
        Some(if made.place() == (0, 1, 0) { broken() } else { done() })
    });
    assert_eq!((stage.state(), stage.agent_states()[0]), (State::Failed, AgentState::Failed));
    assert_eq!(stage.agents()[0].attempt, 3);
    assert_eq!(stage.made.iter().filter(|made| made.task == 0).count(), 3 * 2);
    assert_eq!((stage.agents()[0].task_count, stage.told("agent.retrying")), (6, 2));
}

#[test]
fn a_run_is_attempted_again_as_often_as_it_may() {
    let stage = played(modes(FailFast, FailFast, Retry), first(broken));
    assert_eq!((stage.state(), stage.get().attempt, stage.get().failures), (State::Failed, 3, 2));
    assert_eq!(stage.made.len(), 3);
    assert_eq!(stage.told("run.failed"), 3);
    let stage =
        played(modes(FailFast, FailFast, Retry), |made| Some(if made.run_attempt < 2 { broken() } else { done() }));
    assert_eq!((stage.state(), stage.get().attempt), (State::Completed, 2));
    assert!(stage.get().error.is_none());
}

#[test]
fn a_step_is_tried_again_only_if_it_may_go_better() {
    for (outcome, calls) in [(flaky as fn() -> Outcome, 3), (broken, 1), (fatal, 1)] {
        let stage = played(plan([agent([task([times(3, step())])])]), all(outcome));
        assert_eq!((stage.state(), stage.made.len()), (State::Failed, calls));
        assert_eq!(stage.steps()[0].more.attempts as usize, calls);
    }
}

#[test]
fn what_is_fatal_is_tried_again_at_no_level() {
    let stage = played(modes(Retry, Retry, Retry), all(fatal));
    assert_eq!((stage.state(), stage.made.len(), stage.get().failures), (State::Failed, 1, 0));
}

#[test]
fn all_levels_share_one_patience() {
    let everything = Plan { failure_budget: 5, ..modes(Retry, Retry, Retry) };
    let stage = played(everything, all(broken));
    assert_eq!((stage.state(), stage.get().failures), (State::Failed, 5));
    assert_eq!(stage.made.len(), 6, "the first, and five more");
    let unlimited = Plan { failure_budget: 1_000, ..modes(Retry, Retry, Retry) };
    let stage = played(unlimited, all(broken));
    assert_eq!(stage.made.len(), 27, "three of each level");
    let none = Plan { failure_budget: 0, ..plan([agent([task([times(3, step())])])]) };
    assert_eq!(played(none, all(flaky)).made.len(), 1);
}

#[test]
fn a_failure_that_is_told_twice_counts_once() {
    let wide = plan([agent([parallel(2, task([times(3, step()), step()]))])]);
    let mut stage = Stage::new(wide);
    stage.start().unwrap();
    stage.pick_all();
    let (job, made) = stage.in_flight()[0];
    let first = stage.report(job, &[(made, flaky())]).unwrap();
    stage.wait(crate::time::Span::millis(50));
    let again = stage.report(job, &[(made, flaky())]).unwrap();
    assert_eq!((first.look_at, stage.get().failures), (again.look_at, 1));
    stage.report(job, &[(made, done())]).unwrap();
    assert_eq!(stage.steps().len(), 0, "what it said first stands");
    stage.play();
    assert_eq!((stage.state(), stage.made.len()), (State::Completed, 3));
}

#[test]
fn siblings_of_what_failed_are_cut() {
    let wide = plan([agent([parallel(3, task([step(), step(), step()]))])]);
    let mut stage = Stage::new(wide);
    stage.start().unwrap();
    stage.pick_all();
    assert_eq!(stage.in_flight().len(), 3);
    stage.reply((0, 0, 1), broken()).unwrap();
    assert_eq!(stage.state(), State::Failed);
    let states: Vec<_> = stage.steps().iter().map(|step| (step.at.step, step.state)).collect();
    assert_eq!(states, [(1, StepState::Failed), (0, StepState::Cancelled), (2, StepState::Cancelled)]);
}
