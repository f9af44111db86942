//! Unsafe calls: never made twice without a person's word.

use crate::canon::Json;
use crate::limits;
use crate::plan::{AgentPlan, FailureMode, Plan, StepPlan, TaskPlan};
use crate::run::advance::Outcome;
use crate::run::stage::{
    OUTCOME, Stage, agent, broken, costs, done, doubtful, flaky, parallel, plan, step, task, times, unsafe_step,
};
use crate::run::{State, StepState};
use crate::time::Span;
use serde_json::json;

/// An unsafe call that costs 5 and whose worker was lost in the middle of it.
fn in_doubt() -> Stage {
    let mut stage = Stage::new(plan([agent([task([times(2, costs(5, unsafe_step())), step()])])]));
    stage.start().unwrap();
    stage.pick_all();
    stage.crash(0);
    stage.pick_all();
    assert!(stage.in_flight().is_empty(), "it is not made again");
    stage
}

#[test]
fn people_are_asked_what_came_of_a_call_whose_worker_was_lost() {
    let mut stage = in_doubt();
    let case = stage.case(stage.open()[0]);
    assert_eq!((case.kind.as_str(), case.deadline_at), (OUTCOME, None));
    let options: Vec<_> = case.options.iter().map(|option| option.name.as_str()).collect();
    assert_eq!(options, ["done", "not_done", "abort"]);
    stage.play();
    assert_eq!((stage.made.len(), stage.state()), (1, State::Running), "it waits");
}

#[test]
fn if_it_was_done_it_is_charged_and_the_answer_is_its_result() {
    let mut stage = in_doubt();
    stage.answer(stage.open()[0], "done").unwrap();
    stage.play();
    assert_eq!((stage.state(), stage.made.len(), stage.charges().len()), (State::Completed, 2, 1));
    assert_eq!(stage.steps()[0].result.as_ref().unwrap().value(), json!({ "said": "so" }));
}

#[test]
fn if_it_was_not_done_it_is_done_now_and_charged_once() {
    let mut stage = in_doubt();
    stage.answer(stage.open()[0], "not_done").unwrap();
    stage.play();
    assert_eq!((stage.state(), stage.made.len(), stage.charges().len()), (State::Completed, 3, 1));
    assert_eq!(stage.steps()[0].more.attempts, 2);
}

#[test]
fn if_it_is_given_up_the_run_fails_and_another_attempt_asks_again() {
    let mut stage = in_doubt();
    stage.answer(stage.open()[0], "abort").unwrap();
    stage.play();
    assert_eq!((stage.state(), stage.error(), stage.charges().len()), (State::Failed, "outcome_unknown", 1));
    stage.retry().unwrap();
    stage.play();
    assert_eq!((stage.made.len(), stage.open().len()), (1, 1), "still nobody knows");
    stage.answer(stage.open()[0], "not_done").unwrap();
    stage.play();
    assert_eq!((stage.state(), stage.made.len()), (State::Completed, 3));
}

#[test]
fn a_call_that_says_itself_that_it_may_have_happened_is_asked_about() {
    let mut stage = Stage::new(plan([agent([task([times(3, unsafe_step()), times(3, step())])])]));
    stage.start().unwrap();
    stage.pick_all();
    stage.reply((0, 0, 0), doubtful()).unwrap();
    assert_eq!(stage.open().len(), 1);
    stage.answer(stage.open()[0], "done").unwrap();
    stage.script(|made| Some(if made.attempt < 3 { doubtful() } else { done() }));
    stage.play();
    assert_eq!((stage.state(), stage.made.len()), (State::Completed, 4), "a pure step is simply tried again");
}

#[test]
fn a_call_that_is_known_to_have_failed_is_tried_again() {
    let mut stage = Stage::new(plan([agent([task([times(3, unsafe_step())])])]));
    stage.script(|made| Some(if made.attempt < 3 { flaky() } else { done() }));
    stage.start().unwrap();
    stage.play();
    assert_eq!((stage.state(), stage.made.len()), (State::Completed, 3));
}

/// An unsafe step and one that fails, at the levels that begin again.
fn again(of: [FailureMode; 3], first: StepPlan) -> Plan {
    let task = TaskPlan { failure_mode: of[0], ..task([first, step()]) };
    Plan { failure_mode: of[2], ..plan([AgentPlan { failure_mode: of[1], ..agent([task]) }]) }
}

#[test]
fn what_was_done_is_not_done_again_at_any_level_unless_the_plan_says_so() {
    use FailureMode::{FailFast, Retry};
    for modes in [[Retry, FailFast, FailFast], [FailFast, Retry, FailFast], [FailFast, FailFast, Retry]] {
        for (repeat, calls) in [(false, 1), (true, 3)] {
            let mut stage = Stage::new(again(modes, StepPlan { repeat, ..unsafe_step() }));
            stage.script(|made| Some(if made.step == 1 { broken() } else { done() }));
            stage.start().unwrap();
            stage.play();
            assert_eq!(stage.state(), State::Failed);
            let unsafe_calls = stage.made.iter().filter(|made| made.step == 0).count();
            assert_eq!(unsafe_calls, calls, "{modes:?}, repeat: {repeat}");
            let carried: Vec<bool> =
                stage.steps().iter().filter(|step| step.at.step == 0).map(|step| step.more.carried).collect();
            assert_eq!(carried, if repeat { [false; 3] } else { [false, true, true] });
            assert!(stage.steps().iter().filter(|s| s.at.step == 0).all(|s| s.state == StepState::Completed));
        }
    }
}

#[test]
fn what_was_done_stands_although_an_attempt_in_between_was_never_taken() {
    let mut stage = Stage::new(again([FailureMode::FailFast; 3], unsafe_step()));
    stage.script(|made| Some(if made.step == 1 { broken() } else { done() }));
    stage.start().unwrap();
    stage.play();
    stage.retry().unwrap();
    stage.tick().unwrap();
    stage.wait(Span::secs(24 * 3_600));
    stage.tick().unwrap();
    assert_eq!((stage.state(), stage.error(), stage.get().attempt), (State::Failed, "run_timeout", 2));
    stage.retry().unwrap();
    stage.play();
    assert_eq!(stage.made.iter().filter(|made| made.step == 0).count(), 1);
}

#[test]
fn a_call_that_was_cut_off_by_a_sibling_is_asked_about_in_the_next_attempt() {
    let wide = parallel(2, task([unsafe_step(), step()]));
    let mut stage = Stage::new(plan([agent([wide])]));
    stage.start().unwrap();
    stage.pick_all();
    stage.reply((0, 0, 1), broken()).unwrap();
    assert_eq!((stage.state(), stage.open().len()), (State::Failed, 0));
    stage.retry().unwrap();
    stage.play();
    assert_eq!((stage.state(), stage.open().len(), stage.made.len()), (State::Running, 1, 3));
    stage.answer(stage.open()[0], "not_done").unwrap();
    stage.play();
    assert_eq!((stage.state(), stage.made.len()), (State::Completed, 4));
}

#[test]
fn a_question_that_is_asked_and_in_vain_in_one_commit_is_withdrawn() {
    let wide = parallel(2, task([unsafe_step(), step()]));
    let mut stage = Stage::new(plan([agent([wide])]));
    stage.start().unwrap();
    stage.pick_all();
    let calls = stage.in_flight();
    stage.report(calls[0].0, &[(calls[0].1, doubtful()), (calls[1].1, broken())]).unwrap();
    assert_eq!((stage.state(), stage.open().len()), (State::Failed, 0));
    assert_eq!((stage.told("decision.opened"), stage.told("decision.withdrawn")), (1, 1));
    stage.retry().unwrap();
    stage.play();
    assert_eq!(stage.open().len(), 1, "it is asked again");
}

#[test]
fn cancelling_withdraws_what_was_asked() {
    let mut stage = in_doubt();
    let id = stage.open()[0];
    stage.cancel().unwrap();
    assert!(stage.open().is_empty());
    assert_eq!(stage.told("decision.withdrawn"), 1);
    assert_eq!(stage.answer(id, "done"), Err("decision_closed"));
    assert_eq!(stage.charges().len(), 1, "it may have happened, so it is paid for");
}

#[test]
fn what_was_done_but_cannot_be_kept_is_not_done_again_without_asking() {
    let begins_again = TaskPlan { failure_mode: FailureMode::Retry, ..task([unsafe_step()]) };
    let mut stage = Stage::new(plan([agent([begins_again])]));
    stage.script(|_| Some(Outcome::Done(Json::of(&json!("x".repeat(limits::RESULT_BYTES))))));
    stage.start().unwrap();
    stage.play();
    assert_eq!((stage.made.len(), stage.open().len()), (1, 1));
    stage.answer(stage.open()[0], "done").unwrap();
    stage.play();
    assert_eq!((stage.state(), stage.made.len()), (State::Completed, 1));
}

#[test]
fn people_who_answer_while_it_is_paused_are_heard_when_it_goes_on() {
    let mut stage = in_doubt();
    stage.pause().unwrap();
    stage.answer(stage.open()[0], "done").unwrap();
    stage.play();
    assert_eq!((stage.state(), stage.made.len()), (State::Paused, 1));
    stage.resume().unwrap();
    stage.play();
    assert_eq!((stage.state(), stage.made.len()), (State::Completed, 2));
}
