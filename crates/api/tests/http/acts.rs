//! Acting on jobs over HTTP, on both databases: cancel, answer, requeue, dead letters.

use crate::support::{Server, Setup};
use baton_core::JobId;
use baton_core::canon::Json;
use baton_core::definition::JobType;
use baton_core::job::cancel::{Rule, Strategy};
use baton_core::time::Span;
use baton_engine::{JobCx, Outcome};
use baton_wire::{
    Decision, DecisionList, DecisionState, EnqueuedJob, Job, JobList, JobState, LettersRequeued, WaitingFor,
};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const DECISIONS: &str = "/api/v1/decisions";

on_both_databases!(crate::acts::setup =>
    a_job_that_waits_is_cancelled_at_once,
    a_job_that_is_parked_is_cancelled_and_its_lane_is_free,
    a_job_that_has_ended_cannot_be_cancelled_under_either_name,
    a_repeated_cancellation_says_the_same,
    a_job_that_listens_is_interrupted_and_ends,
    a_job_that_does_not_listen_is_ended_after_its_grace,
    a_job_asks_and_goes_on_with_the_answer,
    what_may_go_better_next_time_is_tried_again,
    a_dead_letter_is_requeued_once_and_linked,
    dead_letters_are_listed_newest_first_and_filtered,
    dead_letters_are_requeued_by_name_or_by_filter,
);

const JOBS: &str = "/api/v1/jobs";
const LETTERS: &str = "/api/v1/dead-letters";

/// Beside the built-in types, two that are interrupted: one that listens, one that does not.
fn setup() -> Setup {
    let mut setup = Setup::default();
    let kind = |name: &str, grace| JobType {
        cancel: Rule { strategy: Strategy::InterruptTurn, grace },
        ..JobType::new(name.parse().unwrap(), 1, "for tests")
    };
    setup.registry.add(kind("polite", Span::secs(60)), polite);
    setup.registry.add(kind("deaf", Span::millis(50)), deaf);
    setup
}

async fn polite(cx: JobCx, _: Json) -> Outcome {
    let _ = cx.running_context(Some("thread-1"), Some("turn-1")).await;
    let _ = cx.progress(Some(10), Some("listening")).await;
    cx.cancelled().await;
    Outcome::Done(Json::of(&json!({ "too": "late" })))
}

async fn deaf(cx: JobCx, _: Json) -> Outcome {
    let _ = cx.progress(Some(10), None).await;
    std::future::pending().await
}

fn echo(project: &str, payload: Value) -> Value {
    json!({ "type": "echo", "projectId": project, "payload": payload })
}

fn cancel(id: JobId) -> String {
    format!("{JOBS}/{id}/cancel")
}

/// Holds the lane of its project until it is woken.
async fn holder(server: &Server, project: &str) -> Job {
    let job = server.enqueue(echo(project, json!({ "wait": true }))).await;
    server.until(job.id, "job.parked").await
}

async fn a_job_that_waits_is_cancelled_at_once(server: &Server) {
    holder(server, "p").await;
    let waiting = server.enqueue(echo("p", json!({}))).await;
    let reply = server.post(&cancel(waiting.id), &json!({ "reason": "not needed" })).await;
    let job: Job = reply.ok();
    assert_eq!((job.id, job.state), (waiting.id, JobState::Cancelled));
    assert_eq!((job.cancel_reason.as_deref(), job.error, job.started_at), (Some("not needed"), None, None));
    assert!(job.completed_at.is_some());
    assert_eq!(server.job(waiting.id).await, reply.parse(), "what was answered is what was committed");
    for state in ["canceled", "cancelled"] {
        let list: JobList = server.get(&format!("/api/v1/projects/p/jobs?state={state}")).await.ok();
        assert_eq!(list.jobs.iter().map(|job| job.id).collect::<Vec<_>>(), [waiting.id]);
    }
}

async fn a_job_that_is_parked_is_cancelled_and_its_lane_is_free(server: &Server) {
    let held = holder(server, "p").await;
    let next = server.enqueue(echo("p", json!({ "message": 1 }))).await;
    let job: Job = server.post(&cancel(held.id), &json!({})).await.ok();
    assert_eq!((job.state, job.cancel_reason.as_deref()), (JobState::Cancelled, Some("user_requested")));
    server.until(next.id, "job.completed").await;
}

async fn a_job_that_has_ended_cannot_be_cancelled_under_either_name(server: &Server) {
    let done = server.enqueue(echo("p", json!({}))).await;
    server.until(done.id, "job.completed").await;
    let failed = server.enqueue(echo("p", json!({ "fail": "deterministic" }))).await;
    server.until(failed.id, "job.failed").await;
    for id in [done.id, failed.id] {
        server.post(&cancel(id), &json!({})).await.refused(409, "invalid_transition");
        let orchestrator = format!("/api/orchestrator/jobs/{id}/cancel");
        let reply = server.post(&orchestrator, &json!({})).await;
        let said: Value = reply.parse();
        assert_eq!((&said["to"], &said["allowed"]), (&json!("canceled"), &json!([])), "{said}");
        reply.refused(409, "job_conflict");
    }
    let held = holder(server, "p").await;
    let first: Job = server.post(&cancel(held.id), &json!({ "reason": "one" })).await.ok();
    let again: Job = server.post(&cancel(held.id), &json!({ "reason": "two" })).await.ok();
    assert_eq!(again, first, "cancelling what is cancelled does nothing");
    let long = json!({ "reason": "r".repeat(201) });
    server.post(&cancel(held.id), &long).await.refused(400, "invalid_request");
    server.post(&cancel(held.id), &json!({ "why": "x" })).await.refused(400, "invalid_request");
    server.post(&format!("{}?now=1", cancel(held.id)), &json!({})).await.refused(400, "invalid_request");
}

async fn a_repeated_cancellation_says_the_same(server: &Server) {
    let held = holder(server, "p").await;
    let first = server.post_keyed(&cancel(held.id), "", "k").await;
    assert_eq!((first.status, first.replayed()), (200, false), "{first:?}");
    let again = server.post_keyed(&cancel(held.id), "{}", "k").await;
    assert_eq!((again.replayed(), &again.body), (true, &first.body));
    let other = server.post_keyed(&cancel(held.id), r#"{"reason":"x"}"#, "k").await;
    other.refused(422, "idempotency_key_reused");
}

async fn a_job_that_listens_is_interrupted_and_ends(server: &Server) {
    let job = server.enqueue(json!({ "type": "polite", "projectId": "p" })).await;
    let running = server.until(job.id, "job.progress").await;
    assert_eq!(running.running_context.thread_id.as_deref(), Some("thread-1"));
    assert_eq!(running.running_context.turn_id.as_deref(), Some("turn-1"));
    assert_eq!(serde_json::to_value(&running.progress).unwrap(), json!({ "percent": 10, "note": "listening" }));
    let told: Job = server.post(&cancel(job.id), &json!({})).await.ok();
    assert_eq!((told.state, told.cancel_requested_at.is_some()), (JobState::Executing, true));
    let ended = server.until(job.id, "job.cancelled").await;
    assert_eq!((ended.state, ended.result, ended.error), (JobState::Cancelled, None, None));
    assert_eq!(ended.cancel_reason.as_deref(), Some("user_requested"));
    assert_eq!(ended.cancel_requested_at, told.cancel_requested_at);
}

async fn a_job_that_does_not_listen_is_ended_after_its_grace(server: &Server) {
    let job = server.enqueue(json!({ "type": "deaf", "projectId": "p" })).await;
    server.until(job.id, "job.progress").await;
    server.post(&cancel(job.id), &json!({})).await.ok::<Job>();
    let ended = server.until(job.id, "job.cancelled").await;
    assert_eq!((ended.state, ended.error.as_deref()), (JobState::Cancelled, Some("interrupt_timeout")));
    assert_eq!(ended.cancel_reason.as_deref(), Some("interrupt_timeout"));
}

async fn a_job_asks_and_goes_on_with_the_answer(server: &Server) {
    let job = server.enqueue(echo("p", json!({ "ask": true, "message": "pay?" }))).await;
    let asking = server.until(job.id, "job.asked").await;
    assert_eq!((asking.state, asking.waiting_for), (JobState::AwaitingUserConfirmation, Some(WaitingFor::Person)));
    assert!(asking.question.is_some());
    // Its lane is free meanwhile.
    let other = server.enqueue(echo("p", json!({}))).await;
    server.until(other.id, "job.completed").await;
    let open: DecisionList = server.get(DECISIONS).await.ok();
    assert_eq!(open.decisions.len(), 1);
    let resolve = format!("{DECISIONS}/{}/resolve", open.decisions[0].id);
    for wrong in [json!({}), json!({ "option": true }), json!({ "option": "confirm", "by": "me" })] {
        server.post(&resolve, &wrong).await.refused(400, "invalid_request");
    }
    server.post(&resolve, &json!({ "option": "perhaps" })).await.refused(422, "unknown_option");
    let long = json!({ "option": "confirm", "comment": "n".repeat(20_000) });
    server.post(&resolve, &long).await.refused(413, "answer_too_large");
    let answer = json!({ "option": "confirm", "comment": "go on", "data": { "by": "post" } });
    let first = server.post_keyed(&resolve, &answer.to_string(), "k").await;
    let decided: Decision = first.ok();
    assert_eq!(decided.state, DecisionState::Resolved, "{first:?}");
    let ended = server.until(job.id, "job.completed").await;
    let heard = ended.result.unwrap()["answer"].clone();
    assert_eq!(
        (&heard["option"], &heard["comment"], &heard["data"]),
        (&answer["option"], &answer["comment"], &answer["data"])
    );
    assert_eq!(ended.attempts, 1, "going on is not a new attempt");
    assert_eq!(server.post_keyed(&resolve, &answer.to_string(), "k").await.body, first.body);
    server.post(&resolve, &answer).await.refused(409, "decision_closed");
    let open: DecisionList = server.get(&format!("{DECISIONS}?state=open")).await.ok();
    assert!(open.decisions.is_empty(), "{open:?}");
}

async fn what_may_go_better_next_time_is_tried_again(server: &Server) {
    let job = server.enqueue(echo("p", json!({ "fail": "transient" }))).await;
    let waiting = server.until(job.id, "job.retry_scheduled").await;
    assert_eq!((waiting.state, waiting.waiting_for), (JobState::AwaitingTool, Some(WaitingFor::Retry)));
    assert_eq!((waiting.attempts, waiting.failures), (1, 1));
    assert!(waiting.due_at > waiting.started_at);
    let ended = server.until(job.id, "job.failed").await;
    assert_eq!((ended.attempts, ended.failures, ended.max_attempts), (2, 2, 2));
    let error = ended.error.unwrap();
    assert!(error.starts_with("attempts_exhausted: ") && error.contains("asked_to_fail"), "{error}");
    let wrong = server.enqueue(echo("p", json!({ "fail": "deterministic" }))).await;
    let ended = server.until(wrong.id, "job.failed").await;
    assert_eq!((ended.attempts, ended.error.as_deref()), (1, Some("asked_to_fail: the payload said so")));
}

/// A job that has failed for good.
async fn failed(server: &Server, project: &str) -> Job {
    let job = server.enqueue(echo(project, json!({ "fail": "deterministic" }))).await;
    server.until(job.id, "job.failed").await
}

async fn a_dead_letter_is_requeued_once_and_linked(server: &Server) {
    let dead = failed(server, "p").await;
    let path = format!("{JOBS}/{}/requeue", dead.id);
    let reply = server.post_keyed(&path, "", "k").await;
    assert_eq!(reply.status, 201, "{reply:?}");
    let made: EnqueuedJob = reply.parse();
    assert_eq!((made.job.requeued_from, made.job.attempts), (Some(dead.id), 0));
    assert_eq!(made.job.payload, dead.payload);
    assert_eq!(server.job(dead.id).await.requeued_as, Some(made.job.id));
    let again = server.post_keyed(&path, "{}", "k").await;
    assert_eq!((again.status, &again.body), (200, &reply.body));
    let detail = server.post(&path, &json!({})).await.refused(409, "already_requeued");
    assert!(detail.contains(&made.job.id.to_string()), "{detail}");
    let made = server.until(made.job.id, "job.failed").await;
    assert_eq!(made.requeued_from, Some(dead.id));
    let done = server.enqueue(echo("p", json!({}))).await;
    server.until(done.id, "job.completed").await;
    server.post(&format!("{JOBS}/{}/requeue", done.id), &json!({})).await.refused(409, "invalid_transition");
}

async fn letters(server: &Server, query: &str) -> Vec<JobId> {
    let list: JobList = server.get(&format!("{LETTERS}?{query}")).await.ok();
    list.jobs.iter().map(|job| job.id).collect()
}

async fn dead_letters_are_listed_newest_first_and_filtered(server: &Server) {
    let mut dead = Vec::new();
    for project in ["p", "q", "p"] {
        dead.insert(0, failed(server, project).await.id);
    }
    server.enqueue(echo("p", json!({}))).await;
    assert_eq!(letters(server, "").await, dead);
    assert_eq!(letters(server, "projectId=p").await, [dead[0], dead[2]]);
    assert_eq!(letters(server, "projectId=q&type=echo").await, [dead[1]]);
    assert_eq!(letters(server, "type=noop").await, []);
    let first: JobList = server.get(&format!("{LETTERS}?limit=2")).await.ok();
    assert_eq!(first.jobs.iter().map(|job| job.id).collect::<Vec<_>>(), dead[..2]);
    let cursor = first.next_cursor.unwrap();
    assert_eq!(letters(server, &format!("limit=2&cursor={cursor}")).await, dead[2..]);
    for bad in ["limit=0", "projectId=a/b", "type=UP", "state=failed", "limit=1&limit=1"] {
        server.get(&format!("{LETTERS}?{bad}")).await.refused(400, "invalid_request");
    }
    let list: JobList = server.get("/api/v1/projects/p/jobs?limit=1").await.ok();
    let foreign = list.next_cursor.unwrap();
    server.get(&format!("{LETTERS}?cursor={foreign}")).await.refused(400, "invalid_cursor");
}

async fn dead_letters_are_requeued_by_name_or_by_filter(server: &Server) {
    let requeue = format!("{LETTERS}/requeue");
    let mut dead = Vec::new();
    for project in ["p", "p", "p", "q"] {
        dead.push(failed(server, project).await.id);
    }
    let reply = server.post(&requeue, &json!({ "jobIds": [dead[0], dead[1]] })).await;
    assert_eq!(reply.status, 201, "{reply:?}");
    let made: LettersRequeued = reply.parse();
    assert_eq!(made.requeued, 2);
    assert_eq!(made.jobs.iter().map(|one| one.requeued_from).collect::<Vec<_>>(), dead[..2]);
    let made: BTreeSet<_> = made.jobs.iter().map(|one| one.taken.job_id).collect();
    assert!(made.len() == 2 && dead.iter().all(|id| !made.contains(id)));
    // One that was requeued before spoils all that are named with it.
    let both = json!({ "jobIds": [dead[2], dead[0]] });
    server.post(&requeue, &both).await.refused(409, "already_requeued");
    for id in &made {
        server.until(id, "job.failed").await;
    }
    let body = json!({ "projectId": "q", "type": "echo", "limit": 10 }).to_string();
    let first = server.post_keyed(&requeue, &body, "k").await;
    assert_eq!(first.parse::<LettersRequeued>().jobs[0].requeued_from, dead[3]);
    let again = server.post_keyed(&requeue, &body, "k").await;
    assert_eq!((again.status, again.replayed(), &again.body), (200, true, &first.body));
    let nobody = server.post(&requeue, &json!({ "projectId": "nobody" })).await;
    assert_eq!(nobody.ok::<Value>(), json!({ "jobs": [], "requeued": 0 }));
    let one: LettersRequeued = server.post(&requeue, &json!({ "projectId": "p", "limit": 1 })).await.parse();
    assert_eq!((one.requeued, made.contains(&one.jobs[0].requeued_from)), (1, true), "the newest");
    let flying = failed(server, "p").await.id;
    let left = server.post(&requeue, &json!({ "projectId": "p" })).await;
    assert_eq!(left.status, 201, "{left:?}");
    assert!(left.parse::<LettersRequeued>().jobs.iter().any(|one| one.requeued_from == flying));
    server.post(&requeue, &json!({ "jobIds": [] })).await.refused(422, "batch_size");
    for wrong in [
        json!({ "limit": 0 }),
        json!({ "limit": 1001 }),
        json!({ "jobIds": [dead[0]], "limit": 1 }),
        json!({ "all": 1 }),
        json!({}),
        json!({ "limit": 5 }),
    ] {
        server.post(&requeue, &wrong).await.refused(400, "invalid_request");
    }
}
