//! Steps that wait: for time, for a signal, for people.

use crate::canon::Json;
use crate::run::State;
use crate::run::advance::Outcome;
use crate::run::signal::{Signal, Signalled};
use crate::run::stage::{Stage, agent, org, plan, step, task};
use crate::time::Span;
use serde_json::{Value, json};

/// One step that has just said that it waits.
fn waiting(outcome: Outcome) -> Stage {
    let mut stage = Stage::new(plan([agent([task([step()])])]));
    stage.start().unwrap();
    stage.pick_all();
    stage.reply((0, 0, 0), outcome).unwrap();
    stage
}

fn signal(stage: &Stage, name: &str, data: &Value) -> Signal {
    Signal { org: org(), run: stage.run, name: name.parse().unwrap(), data: Json::of(data) }
}

fn result(stage: &Stage) -> Value {
    stage.steps()[0].result.as_ref().unwrap().value()
}

fn wait_for(name: &str, stage_now: crate::Micros, within: Option<Span>) -> Outcome {
    Outcome::Wait { signal: name.to_owned(), until: within.map(|span| stage_now.plus(span)) }
}

const NOW: crate::Micros = crate::run::stage::NOW;

#[test]
fn a_sleep_holds_no_worker_and_ends_in_time() {
    let until = NOW.plus(Span::secs(90));
    let mut stage = waiting(Outcome::Sleep(until));
    assert!(stage.in_flight().is_empty() && stage.hands.is_empty());
    stage.wait(Span::secs(89));
    assert!(stage.pick().is_none());
    stage.play();
    assert_eq!((stage.state(), stage.get().ended_at), (State::Completed, Some(until)));
}

#[test]
fn a_signal_wakes_whoever_waits_for_it_and_the_first_one_stands() {
    let mut stage = waiting(wait_for("go", NOW, None));
    stage.play();
    assert_eq!(stage.state(), State::Running);
    let other = signal(&stage, "other", &json!(0));
    stage.decide(&other).unwrap();
    assert!(stage.pick().is_none(), "that was for somebody else");
    let go = signal(&stage, "go", &json!({ "n": 1 }));
    assert_eq!(stage.decide(&go).unwrap().1, Signalled::Now);
    let again = signal(&stage, "go", &json!({ "n": 2 }));
    assert_eq!(stage.decide(&again).unwrap().1, Signalled::Already);
    stage.pick_all();
    assert_eq!((stage.state(), &result(&stage)["data"]), (State::Completed, &json!({ "n": 1 })));
    let late = signal(&stage, "late", &json!(0));
    assert!(stage.decide(&late).is_err(), "nobody is there to hear it");
}

#[test]
fn a_signal_that_comes_first_is_heard_all_the_same() {
    let mut stage = Stage::new(plan([agent([task([step()])])]));
    let go = signal(&stage, "go", &json!(7));
    stage.decide(&go).unwrap();
    stage.script(|_| Some(wait_for("go", NOW, None)));
    stage.start().unwrap();
    stage.play();
    assert_eq!((stage.state(), &result(&stage)["data"]), (State::Completed, &json!(7)));
}

#[test]
fn a_wait_ends_without_a_signal_when_its_time_is_over() {
    let mut stage = waiting(wait_for("go", NOW, Some(Span::secs(60))));
    stage.play();
    assert_eq!((stage.state(), &result(&stage)["signal"]), (State::Completed, &json!(null)));
    assert_eq!(stage.get().ended_at, Some(NOW.plus(Span::secs(60))));
}

fn asking(question: &Value) -> Stage {
    waiting(Outcome::Ask(Json::of(question)))
}

#[test]
fn an_answer_is_the_result_of_a_step_that_asks() {
    let mut stage = asking(&json!({ "prompt": "which?", "options": [{ "name": "left" }, { "name": "right" }] }));
    stage.answer(stage.open()[0], "right").unwrap();
    stage.pick_all();
    assert_eq!(stage.state(), State::Completed);
    assert_eq!((&result(&stage)["option"], &result(&stage)["data"]), (&json!("right"), &json!({ "said": "so" })));
}

#[test]
fn a_step_whose_question_is_declined_fails_for_good() {
    let mut stage = asking(&json!({ "prompt": "sure?", "options": [{ "name": "no", "effect": "fail" }] }));
    stage.answer(stage.open()[0], "no").unwrap();
    stage.play();
    assert_eq!((stage.state(), stage.error(), stage.made.len()), (State::Failed, "declined", 1));
}

#[test]
fn a_question_that_nobody_answers_in_time_does_what_it_says() {
    for (breach, state, error) in
        [(json!("fail"), State::Failed, "decision_expired"), (json!({ "choose": "go" }), State::Completed, "")]
    {
        let question =
            json!({ "prompt": "sure?", "withinMs": 5_000, "onBreach": breach, "options": [{ "name": "go" }] });
        let mut stage = asking(&question);
        stage.play();
        assert_eq!((stage.state(), stage.error()), (state, error));
        assert!(stage.open().is_empty());
    }
}

#[test]
fn what_nobody_could_answer_is_not_asked() {
    for question in [json!({ "options": [] }), json!({ "prompt": "x".repeat(crate::limits::QUESTION_BYTES) })] {
        let stage = asking(&question);
        assert_eq!((stage.state(), stage.open().len()), (State::Failed, 0));
    }
}
