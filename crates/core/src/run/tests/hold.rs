//! Pausing and resuming: a run, or one agent of it.

use crate::plan::{AgentPlan, Plan};
use crate::run::hand::Doing;
use crate::run::stage::{Stage, agent, broken, done, flaky, parallel, plan, step, task, times};
use crate::run::{AgentState, State};
use crate::time::Span;

/// Two agents at work, each in the first of two steps.
fn at_work() -> Stage {
    let two = || agent([task([times(2, step()), step()])]);
    let mut stage = Stage::new(plan([two(), two()]));
    stage.start().unwrap();
    stage.pick_all();
    assert_eq!(stage.in_flight().len(), 2);
    stage
}

#[test]
fn what_is_in_flight_when_a_run_is_paused_settles_and_nothing_new_begins() {
    let mut stage = at_work();
    stage.pause().unwrap();
    assert_eq!(stage.agent_states(), [AgentState::Paused; 2]);
    assert!(stage.agents().iter().all(|agent| agent.job.is_some()), "their calls are still held");
    let turn = stage.reply((0, 0, 0), done()).unwrap();
    assert!(turn.over && turn.calls.is_empty());
    assert_eq!((stage.steps().len(), stage.agents()[0].job), (1, None));
    stage.reply((1, 0, 0), done()).unwrap();
    stage.play();
    assert_eq!((stage.state(), stage.made.len()), (State::Paused, 2));
    stage.resume().unwrap();
    assert_eq!((stage.state(), stage.agent_states()), (State::Resuming, vec![AgentState::Pending; 2]));
    stage.pick();
    assert_eq!(stage.state(), State::Running);
    stage.play();
    assert_eq!((stage.state(), stage.made.len()), (State::Completed, 4));
}

#[test]
fn what_fails_while_paused_is_decided_on_when_it_goes_on() {
    for (outcome, ends, calls) in [(flaky(), State::Completed, 5), (broken(), State::Failed, 2)] {
        let mut stage = at_work();
        stage.pause().unwrap();
        stage.reply((0, 0, 0), outcome).unwrap();
        assert_eq!((stage.state(), stage.get().failures), (State::Paused, 0));
        let steps: Vec<_> = stage.agents()[0].steps().map(|(_, _, step)| step.doing.clone()).collect();
        assert!(matches!(steps[..], [Doing::Broken { .. }]));
        stage.reply((1, 0, 0), done()).unwrap();
        stage.resume().unwrap();
        stage.play();
        assert_eq!((stage.state(), stage.made.len()), (ends, calls));
    }
}

#[test]
fn a_run_that_is_resumed_while_its_calls_are_in_flight_goes_on_with_them() {
    let mut stage = at_work();
    stage.pause().unwrap();
    stage.resume().unwrap();
    assert!(stage.pick().is_none(), "their workers never let go");
    assert_eq!(stage.state(), State::Resuming);
    stage.reply((0, 0, 0), done()).unwrap();
    assert_eq!(stage.state(), State::Running);
    assert_eq!(stage.agent_states(), [AgentState::Running, AgentState::Pending]);
    stage.play();
    assert_eq!((stage.state(), stage.made.len()), (State::Completed, 4));
}

#[test]
fn a_run_whose_only_call_outlasts_resuming_does_not_fail_for_it() {
    let mut stage = at_work();
    stage.pause().unwrap();
    stage.resume().unwrap();
    stage.wait(Span::secs(301));
    stage.tick().unwrap();
    assert_eq!((stage.state(), stage.agent_states()), (State::Running, vec![AgentState::Pending; 2]));
    stage.play();
    assert_eq!((stage.state(), stage.made.len()), (State::Completed, 4));
}

#[test]
fn a_worker_that_dies_while_paused_leaves_its_call_to_whoever_resumes() {
    let mut stage = at_work();
    stage.pause().unwrap();
    stage.crash(0);
    stage.pick_all();
    assert_eq!((stage.state(), stage.agents()[0].job), (State::Paused, None));
    stage.resume().unwrap();
    stage.play();
    assert_eq!((stage.state(), stage.made.len()), (State::Completed, 5), "the first call was made again");
}

#[test]
fn one_agent_is_paused_while_the_other_goes_on() {
    let mut stage = at_work();
    let ids: Vec<_> = stage.agents().iter().map(|agent| agent.id).collect();
    stage.pause_agent(ids[0]).unwrap();
    let written = stage.written();
    stage.pause_agent(ids[0]).unwrap();
    assert_eq!(stage.written(), written);
    stage.play();
    assert_eq!(stage.agent_states(), [AgentState::Paused, AgentState::Completed]);
    assert_eq!((stage.state(), stage.made.len()), (State::Running, 3));
    assert_eq!(stage.pause_agent(ids[1]), Err("invalid_transition"), "it has ended");
    stage.resume_agent(ids[0]).unwrap();
    stage.resume_agent(ids[0]).unwrap();
    stage.play();
    assert_eq!((stage.state(), stage.made.len()), (State::Completed, 4));
    assert_eq!(stage.resume_agent(ids[0]), Err("invalid_transition"));
    let nobody = crate::id::AgentId(uuid::Uuid::from_u128(1));
    assert_eq!(stage.pause_agent(nobody), Err("agent_not_found"));
}

#[test]
fn an_agent_of_a_paused_run_is_not_resumed_alone() {
    let mut stage = at_work();
    let id = stage.agents()[0].id;
    stage.pause().unwrap();
    assert_eq!(stage.resume_agent(id), Err("invalid_transition"));
    assert!(stage.pause_agent(id).is_ok(), "it is");
}

#[test]
fn a_run_that_is_resumed_resumes_every_agent() {
    let mut stage = at_work();
    let id = stage.agents()[0].id;
    stage.pause_agent(id).unwrap();
    stage.pause().unwrap();
    stage.resume().unwrap();
    assert_eq!(stage.agent_states(), [AgentState::Pending; 2]);
}

#[test]
fn clocks_stand_still_while_a_run_is_paused() {
    let mut stage = at_work();
    let (run, agent) = (stage.get().deadline.unwrap(), stage.agents()[0].deadline.unwrap());
    let task = stage.agents()[0].tasks[&0].deadline;
    stage.pause().unwrap();
    stage.wait(Span::secs(6 * 24 * 3_600));
    stage.resume().unwrap();
    stage.wait(Span::secs(60));
    stage.reply((0, 0, 0), done()).unwrap();
    let days = Span::secs(6 * 24 * 3_600);
    assert_eq!(stage.get().deadline, Some(run.plus(days).plus(Span::secs(60))), "nor while it resumes");
    assert_eq!(stage.timer(), stage.get().deadline);
    assert_eq!(stage.agents()[0].deadline, Some(agent.plus(days)));
    assert_eq!(stage.agents()[0].tasks[&0].deadline, task.plus(days));
    stage.play();
    assert_eq!(stage.state(), State::Completed);
}

#[test]
fn pausing_while_it_resumes_pauses_it_again() {
    let mut stage = at_work();
    stage.pause().unwrap();
    stage.wait(Span::secs(10));
    stage.resume().unwrap();
    stage.wait(Span::secs(10));
    stage.pause().unwrap();
    assert_eq!((stage.state(), stage.agent_states()), (State::Paused, vec![AgentState::Paused; 2]));
    stage.resume().unwrap();
    stage.play();
    assert_eq!(stage.state(), State::Completed);
}

#[test]
fn a_run_that_waits_is_paused_without_a_worker() {
    let wide = parallel(2, task([times(2, step()), step()]));
    let mut stage = Stage::new(Plan { max_agents: 1, ..plan([AgentPlan { ..agent([wide]) }]) });
    stage.start().unwrap();
    stage.pick_all();
    stage.reply((0, 0, 1), done()).unwrap();
    stage.reply((0, 0, 0), flaky()).unwrap();
    assert!(stage.in_flight().is_empty(), "it waits to try again");
    stage.pause().unwrap();
    assert_eq!(stage.agents()[0].job, None);
    assert!(stage.jobs().all(crate::job::Job::is_ended));
    stage.play();
    assert_eq!(stage.made.len(), 2);
    stage.resume().unwrap();
    stage.play();
    assert_eq!((stage.state(), stage.made.len()), (State::Completed, 3));
}
