//! What takes too long.

use crate::id::AgentId;
use crate::plan::{AgentPlan, FailureMode, Plan, TaskPlan};
use crate::run::lost::Lost;
use crate::run::stage::{Stage, agent, costs, done, org, plan, step, task};
use crate::run::{AgentState, State, StepState};
use crate::time::{Micros, Span};

const HOUR: i64 = 3_600;

fn stuck(plan: Plan) -> Stage {
    let mut stage = Stage::new(plan);
    stage.script(|_| None);
    stage.start().unwrap();
    stage.pick_all();
    stage
}

#[test]
fn a_task_that_takes_too_long_fails_and_begins_again_if_it_may() {
    let slow = TaskPlan { timeout: Span::secs(10), failure_mode: FailureMode::Retry, ..task([step()]) };
    let mut stage = stuck(plan([agent([slow])]));
    stage.play();
    assert_eq!((stage.state(), stage.error(), stage.made.len()), (State::Failed, "task_timeout", 3));
    assert!(stage.steps().iter().all(|step| step.state == StepState::Cancelled));
}

#[test]
fn an_agent_that_takes_too_long_fails_and_begins_again_if_it_may() {
    let slow = AgentPlan { timeout: Span::secs(10), failure_mode: FailureMode::Retry, ..agent([task([step()])]) };
    let mut stage = stuck(plan([slow]));
    stage.play();
    assert_eq!((stage.state(), stage.error(), stage.made.len()), (State::Failed, "agent_timeout", 3));
    assert_eq!(stage.agents()[0].attempt, 3);
}

/// Nothing of it takes too long but the whole.
fn patient() -> Plan {
    let task = TaskPlan { timeout: Span::secs(100 * HOUR), ..task([costs(5, step())]) };
    plan([AgentPlan { timeout: Span::secs(100 * HOUR), ..agent([task]) }])
}

#[test]
fn a_run_that_takes_longer_than_a_day_fails_and_is_refunded() {
    let mut stage = stuck(Plan { agents: vec![patient().agents[0].clone(), patient().agents[0].clone()], ..patient() });
    stage.wait(Span::secs(24 * HOUR - 1));
    assert_eq!(stage.tick(), Err("timer_gone"));
    stage.wait(Span::secs(1));
    stage.tick().unwrap();
    assert_eq!((stage.state(), stage.error()), (State::Failed, "run_timeout"));
    assert_eq!(stage.agent_states(), [AgentState::Cancelled; 2]);
    assert_eq!(stage.tick(), Err("no timer"));
}

#[test]
fn a_run_that_nobody_takes_for_a_day_fails_and_costs_nothing() {
    let mut stage = Stage::new(patient());
    let balance = stage.balance();
    stage.start().unwrap();
    stage.wait(Span::secs(24 * HOUR));
    stage.tick().unwrap();
    assert_eq!((stage.state(), stage.error(), stage.balance()), (State::Failed, "run_timeout", balance));
    assert!(stage.jobs().all(crate::job::Job::is_ended));
}

#[test]
fn a_run_that_is_paused_for_a_week_is_cancelled() {
    let mut stage = stuck(patient());
    stage.pause().unwrap();
    stage.wait(Span::secs(7 * 24 * HOUR));
    stage.tick().unwrap();
    assert_eq!((stage.state(), stage.get().reason.as_deref()), (State::Cancelled, Some("pause_timeout")));
    assert_eq!(stage.agent_states(), [AgentState::Cancelled]);
}

/// Resumed, with nothing in flight.
fn resuming() -> Stage {
    let mut stage = stuck(patient());
    stage.pause().unwrap();
    let two = stage.in_flight()[0];
    stage.report(two.0, &[(two.1, crate::run::stage::flaky())]).unwrap();
    stage.resume().unwrap();
    stage
}

#[test]
fn a_run_with_which_nobody_goes_on_for_five_minutes_fails() {
    let mut stage = resuming();
    stage.wait(Span::secs(300));
    stage.tick().unwrap();
    assert_eq!((stage.state(), stage.error()), (State::Failed, "resume_timeout"));
}

#[test]
fn a_run_with_which_nobody_could_go_on_does_not_fail_for_it() {
    let mut stage = resuming();
    stage.wait(Span::secs(10 * HOUR));
    stage.alive_since = Micros(stage.now.0 - Span::secs(60).0);
    stage.tick().unwrap();
    assert_eq!((stage.state(), stage.timer()), (State::Resuming, Some(stage.now.plus(Span::secs(240)))));
    stage.wait(Span::secs(240));
    stage.tick().unwrap();
    assert_eq!(stage.state(), State::Failed);
}

fn lost(stage: &mut Stage, agent: AgentId) -> bool {
    stage.decide(&Lost { org: org(), agent, alive_since: stage.alive_since }).is_ok()
}

#[test]
fn an_agent_that_nobody_takes_over_for_a_minute_takes_its_run_with_it() {
    let mut stage = stuck(patient());
    let id = stage.agents()[0].id;
    stage.wait(Span::secs(HOUR));
    assert!(!lost(&mut stage, id), "its worker is there");
    stage.crash(0);
    stage.wait(Span::secs(59));
    assert!(!lost(&mut stage, id));
    stage.wait(Span::secs(1));
    assert!(lost(&mut stage, id));
    assert_eq!((stage.state(), stage.error()), (State::Failed, "worker_lost"));
    assert_eq!(stage.get().error.as_ref().unwrap().message, "worker heartbeat timeout");
    assert!(!lost(&mut stage, id), "once");
}

#[test]
fn an_outage_fails_no_run() {
    let mut stage = stuck(patient());
    let id = stage.agents()[0].id;
    stage.crash(0);
    stage.wait(Span::secs(5 * HOUR));
    stage.alive_since = stage.now;
    assert!(!lost(&mut stage, id), "nobody was there to take it over");
    stage.pick_all();
    stage.wait(Span::secs(61));
    assert!(!lost(&mut stage, id), "it was taken over");
    stage.script(|_| Some(done()));
    stage.play();
    assert_eq!(stage.state(), State::Completed);
}

#[test]
fn a_run_that_waits_is_not_lost() {
    let mut stage = stuck(patient());
    let id = stage.agents()[0].id;
    let until = stage.now.plus(Span::secs(HOUR));
    stage.reply((0, 0, 0), crate::run::advance::Outcome::Sleep(until)).unwrap();
    stage.wait(Span::secs(HOUR - 1));
    assert!(!lost(&mut stage, id));
    stage.wait(Span::secs(60));
    assert!(!lost(&mut stage, id), "due, but not for a minute");
    stage.wait(Span::secs(1));
    assert!(lost(&mut stage, id));
}

#[test]
fn a_lost_run_is_attempted_again_if_its_mode_says_so() {
    let mut stage = stuck(Plan { failure_mode: FailureMode::Retry, ..patient() });
    let id = stage.agents()[0].id;
    stage.crash(0);
    stage.wait(Span::secs(60));
    assert!(lost(&mut stage, id));
    assert_eq!((stage.state(), stage.get().attempt), (State::Retrying, 2));
    stage.script(|_| Some(done()));
    stage.play();
    assert_eq!(stage.state(), State::Completed);
}
