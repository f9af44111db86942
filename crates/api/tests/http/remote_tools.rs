//! Tools that workers serve: calls of steps as jobs, on both databases.

use crate::support::runs::{document, step};
use crate::support::workers::Hand;
use crate::support::{Server, Setup};
use baton_core::credits::Credits;
use baton_core::plan::{self, Doer, Effect};
use baton_core::time::Span;
use baton_engine::run::Toolbox;
use baton_wire::worker::LeasedJob;
use baton_wire::{JobState, StepList};
use serde_json::{Value, json};

on_both_databases!(crate::remote_tools::setup =>
    a_step_calls_a_worker_and_goes_on_with_its_result,
    a_failed_call_is_tried_again_under_the_same_key,
    a_call_that_nobody_takes_in_time_costs_nothing,
    what_a_cancelled_run_called_is_taken_from_its_worker,
    of_an_unsafe_call_that_failed_people_are_asked_unless_it_did_nothing,
    an_unsafe_call_that_is_given_back_is_begun_by_nobody_else,
    a_step_that_is_feared_more_than_its_tool_is_begun_once,
    fatal_is_fatal_for_the_whole_run,
    agents_that_wait_for_workers_take_no_slot,
    calls_wait_for_a_free_slot_of_their_tool,
);

/// Each call costs a credit.
fn setup() -> Setup {
    let mut setup = Setup::default();
    let mut toolbox = Toolbox::default();
    let about = |effect, timeout| plan::Tool {
        doer: Doer::Remote,
        effect,
        price: Credits::whole(1),
        timeout,
        attempts: Some(2),
    };
    for (name, about, limit) in [
        ("lookup", about(Effect::Idempotent, None), None),
        ("brief", about(Effect::Pure, Some(Span::millis(50))), None),
        ("charge", about(Effect::Unsafe, None), None),
        ("narrow", about(Effect::Pure, None), Some(1)),
    ] {
        toolbox.add_remote(name.parse().unwrap(), about, limit).unwrap();
    }
    setup.registry.work(toolbox);
    setup
}

async fn call(hand: &Hand<'_>, tool: &str) -> LeasedJob {
    hand.one(&format!("tool.{tool}")).await
}

async fn a_step_calls_a_worker_and_goes_on_with_its_result(server: &Server) {
    server.grant("100", "a").await;
    let hand = server.hand().await;
    let steps = [step("lookup", json!({ "city": "Turin" })), step("lookup", json!({ "of": "${steps.step-1.id}" }))];
    let run = server.start_run(&document("p", &steps)).await;
    let first = call(&hand, "lookup").await;
    assert_eq!(first.job.project_id.as_str(), "p");
    let told = &first.payload;
    assert_eq!(
        (&told["input"], &told["step"], &told["attempt"]),
        (&json!({ "city": "Turin" }), &json!("only.step-1"), &json!(1))
    );
    assert_eq!((&told["run"], told["key"].as_str().unwrap().is_empty()), (&json!(run.id), false));
    let done = json!({ "lease": first.lease, "result": { "output": { "id": 7 } } });
    assert_eq!(hand.settled("complete", done).await, "now");
    let second = call(&hand, "lookup").await;
    assert_eq!(second.payload["input"], json!({ "of": 7 }));
    assert_ne!(second.payload["key"], first.payload["key"]);
    let whole = json!({ "lease": second.lease, "result": { "a": 1, "b": 2 } });
    assert_eq!(hand.settled("complete", whole).await, "now");
    let ended = server.run_until(&run, "completed").await;
    assert_eq!(ended.credits_charged.to_string(), "2");
    let steps: StepList = server.part(&run, "steps?results=true").await;
    let results: Vec<_> = steps.steps.iter().map(|step| step.result.clone().unwrap()).collect();
    assert_eq!(results, [json!({ "id": 7 }), json!({ "a": 1, "b": 2 })]);
    server.is_clean().await;
    // Such jobs cannot be asked for by anybody else.
    let job = json!({ "type": "tool.lookup", "projectId": "p" });
    server.post("/api/v1/jobs", &job).await.refused(422, "unknown_job_type");
}

async fn a_failed_call_is_tried_again_under_the_same_key(server: &Server) {
    server.grant("100", "a").await;
    let hand = server.hand().await;
    let run = server.start_run(&document("p", &[step("lookup", json!({}))])).await;
    let first = call(&hand, "lookup").await;
    let failed = json!({ "lease": first.lease, "code": "odd", "message": "not now", "class": "transient" });
    assert_eq!(hand.settled("fail", failed).await, "now");
    let second = call(&hand, "lookup").await;
    assert_eq!((&second.payload["key"], &second.payload["attempt"]), (&first.payload["key"], &json!(2)));
    assert_ne!(second.job.id, first.job.id);
    let fatal = json!({ "lease": second.lease, "code": "no_such_city", "class": "fatal" });
    assert_eq!(hand.settled("fail", fatal).await, "now");
    let ended = server.run_until(&run, "failed").await;
    assert_eq!(
        (ended.credits_charged.to_string(), ended.last_error.unwrap().code.as_str()),
        ("2".to_owned(), "no_such_city")
    );
}

async fn a_call_that_nobody_takes_in_time_costs_nothing(server: &Server) {
    server.grant("100", "a").await;
    let run = server.start_run(&document("p", &[step("brief", json!({}))])).await;
    let ended = server.run_until(&run, "failed").await;
    assert_eq!(
        (ended.credits_charged.to_string(), ended.last_error.unwrap().code.as_str()),
        ("0".to_owned(), "timeout")
    );
    let hand = server.hand().await;
    assert!(hand.lease(json!({ "types": ["tool.brief"] })).await.is_empty(), "nobody makes it any more");
    server.is_clean().await;
}

async fn what_a_cancelled_run_called_is_taken_from_its_worker(server: &Server) {
    server.grant("100", "a").await;
    let hand = server.hand().await;
    let run = server.start_run(&document("p", &[step("charge", json!({}))])).await;
    let got = call(&hand, "charge").await;
    assert!(hand.beat(&[&got.lease]).await.lost.is_empty());
    server.act(&run, "cancel").await.ok::<Value>();
    let job = server.until(got.job.id, "job.cancelled").await;
    assert_eq!((job.state, job.cancel_reason.as_deref()), (JobState::Cancelled, Some("call_withdrawn")));
    assert_eq!(hand.beat(&[&got.lease]).await.lost, std::slice::from_ref(&got.lease));
    hand.say("complete", json!({ "lease": got.lease })).await.refused(409, "lease_lost");
    server.is_clean().await;
}

async fn of_an_unsafe_call_that_failed_people_are_asked_unless_it_did_nothing(server: &Server) {
    server.grant("100", "a").await;
    let hand = server.hand().await;
    let run = server.start_run(&document("p", &[step("charge", json!({}))])).await;
    let first = call(&hand, "charge").await;
    let idle = json!({ "lease": first.lease, "code": "unavailable", "acted": false });
    assert_eq!(hand.settled("fail", idle).await, "now");
    let second = call(&hand, "charge").await;
    assert_eq!(second.payload["attempt"], 2, "it did nothing, so nobody is asked");
    let failed = json!({ "lease": second.lease, "code": "unavailable" });
    assert_eq!(hand.settled("fail", failed).await, "now");
    let waiting = server.until_waiting(&run, "outcome").await;
    let id = waiting["waits_for"]["decision"].as_str().or(waiting["waits_for"]["decision_id"].as_str());
    let open: Value = server.get("/api/v1/decisions?state=open").await.ok();
    let id = id.or(open["decisions"][0]["id"].as_str()).unwrap();
    let done = json!({ "option": "done", "data": { "id": 1 } });
    assert_eq!(server.post(&format!("/api/v1/decisions/{id}/resolve"), &done).await.status, 200);
    server.run_until(&run, "completed").await;
    server.is_clean().await;
}

async fn an_unsafe_call_that_is_given_back_is_begun_by_nobody_else(server: &Server) {
    server.grant("100", "a").await;
    let hand = server.hand().await;
    let run = server.start_run(&document("p", &[step("charge", json!({}))])).await;
    let got = call(&hand, "charge").await;
    assert_eq!(hand.settled("release", json!({ "lease": got.lease })).await, "now");
    server.until_waiting(&run, "outcome").await;
    assert!(hand.lease(json!({ "types": ["tool.charge"] })).await.is_empty());
    assert_eq!(server.job(got.job.id).await.state, JobState::Failed);
    server.act(&run, "cancel").await.ok::<Value>();
    server.is_clean().await;
}

async fn a_step_that_is_feared_more_than_its_tool_is_begun_once(server: &Server) {
    server.grant("100", "a").await;
    let hand = server.hand().await;
    let feared = json!({ "tool": "lookup", "input": {}, "effect": "unsafe" });
    let run = server.start_run(&document("p", &[feared])).await;
    let got = call(&hand, "lookup").await;
    assert_eq!(got.job.max_attempts, 1);
    assert_eq!(hand.settled("release", json!({ "lease": got.lease })).await, "now");
    server.until_waiting(&run, "outcome").await;
}

async fn fatal_is_fatal_for_the_whole_run(server: &Server) {
    server.grant("100", "a").await;
    let hand = server.hand().await;
    let mut document = document("p", &[step("lookup", json!({}))]);
    document["failure_mode"] = json!("retry");
    let run = server.start_run(&document).await;
    let got = call(&hand, "lookup").await;
    let fatal = json!({ "lease": got.lease, "code": "odd", "class": "fatal" });
    assert_eq!(hand.settled("fail", fatal).await, "now");
    assert_eq!(server.run_until(&run, "failed").await.attempt_number, 1, "it is not attempted again");
}

async fn agents_that_wait_for_workers_take_no_slot(server: &Server) {
    server.grant("10000", "a").await;
    // More agents than a node works on at once.
    let agents: Vec<Value> = (0..70)
        .map(|n| json!({ "name": format!("a{n}"), "tasks": [{ "steps": [step("lookup", json!({}))] }] }))
        .collect();
    let waiting =
        json!({ "name": "many", "project": "p", "limits": { "max_agents": 70 }, "plan": { "agents": agents } });
    let many = server.start_run(&waiting).await;
    let hand = server.hand().await;
    let mut calls = 0;
    while calls < 70 {
        calls += hand.lease(json!({ "types": ["tool.lookup"], "max": 70, "waitMs": 30_000 })).await.len();
    }
    let one = server.start_run(&document("q", &[step("sleep", json!({ "for": "1ms" }))])).await;
    server.run_until(&one, "completed").await;
    server.act(&many, "cancel").await.ok::<Value>();
}

async fn calls_wait_for_a_free_slot_of_their_tool(server: &Server) {
    server.grant("100", "a").await;
    let hand = server.hand().await;
    let runs = [
        server.start_run(&document("p", &[step("narrow", json!({ "n": 1 }))])).await,
        server.start_run(&document("q", &[step("narrow", json!({ "n": 2 }))])).await,
    ];
    for _ in 0..2 {
        let got = call(&hand, "narrow").await;
        let more = hand.lease(json!({ "types": ["tool.narrow"], "max": 9 })).await;
        assert!(more.is_empty(), "one at a time");
        assert_eq!(hand.settled("complete", json!({ "lease": got.lease })).await, "now");
    }
    for run in &runs {
        server.run_until(run, "completed").await;
    }
}
