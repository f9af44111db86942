//! Asking for jobs over HTTP, on both databases: duplicates, messages, batches, payloads.

use crate::support::{Server, Setup};
use baton_core::canon::Json;
use baton_core::dedupe::{Mode, Rule};
use baton_core::definition::JobType;
use baton_engine::{JobCx, Outcome};
use baton_wire::{BatchTaken, EnqueuedJob, JobList, JobState, Problem};
use serde_json::{Value, json};

on_both_databases!(crate::intake::setup =>
    a_duplicate_of_a_job_that_has_not_ended_is_that_job,
    a_duplicate_is_merged_into_a_job_that_waits,
    the_same_message_is_the_same_job,
    a_payload_that_does_not_fit_its_type_is_refused,
    a_priority_is_a_word_or_a_number,
    a_batch_is_taken_whole_and_in_order,
    a_batch_with_one_bad_job_is_refused_whole_and_says_which,
    a_batch_has_a_size,
    a_repeated_batch_does_nothing_and_says_the_same,
    duplicates_inside_a_batch_are_one_job,
);

const JOBS: &str = "/api/v1/jobs";
const BATCH: &str = "/api/v1/jobs/batch";

/// Beside the built-in types, two that tell duplicates by a field of their payload.
fn setup() -> Setup {
    let mut setup = Setup::default();
    for (name, mode) in [("single", Mode::SingleFlight), ("merge", Mode::MergeDuplicate)] {
        let key = Some("{project}:{payload.key}".parse().unwrap());
        let kind = JobType { dedupe: Rule { mode, key }, ..JobType::new(name.parse().unwrap(), 1, "for tests") };
        setup.registry.add(kind, wait_then_echo);
    }
    setup
}

async fn wait_then_echo(cx: JobCx, payload: Json) -> Outcome {
    if cx.job.wakes == 0 { Outcome::Park { until: None, seen: 0 } } else { Outcome::Done(payload) }
}

fn job(kind: &str, payload: Value) -> Value {
    json!({ "type": kind, "projectId": "p", "payload": payload })
}

async fn ask(server: &Server, body: &Value) -> (u16, EnqueuedJob) {
    let reply = server.post(JOBS, body).await;
    (reply.status, reply.parse())
}

async fn count(server: &Server, project: &str) -> usize {
    server.get(&format!("/api/v1/projects/{project}/jobs")).await.ok::<JobList>().jobs.len()
}

async fn a_duplicate_of_a_job_that_has_not_ended_is_that_job(server: &Server) {
    let (status, first) = ask(server, &job("single", json!({ "key": "a", "n": 1 }))).await;
    assert_eq!((status, first.dedupe.as_str()), (201, "enqueued"));
    assert_eq!(first.job.dedupe_key.as_deref(), Some("p:a"));
    server.until(first.job.id, "job.parked").await;
    let (status, again) = ask(server, &job("single", json!({ "key": "a", "n": 2 }))).await;
    assert_eq!((status, again.dedupe.as_str(), again.job.id), (200, "already_queued", first.job.id));
    assert_eq!((again.job.state, &again.job.payload["n"]), (JobState::AwaitingTool, &json!(1)), "as it stands");
    let (status, other) = ask(server, &job("single", json!({ "key": "b" }))).await;
    assert_eq!((status, other.job.id == first.job.id), (201, false));
    server.post(&format!("{JOBS}/{}/wake", first.job.id), &json!({})).await;
    server.until(first.job.id, "job.completed").await;
    let (status, next) = ask(server, &job("single", json!({ "key": "a" }))).await;
    assert_eq!((status, next.dedupe.as_str()), (201, "enqueued"), "the first has ended");
}

async fn a_duplicate_is_merged_into_a_job_that_waits(server: &Server) {
    // The lane is held, so what comes next waits.
    let (_, holder) = ask(server, &job("single", json!({ "key": "a" }))).await;
    server.until(holder.job.id, "job.parked").await;
    let (_, first) = ask(server, &job("merge", json!({ "key": "m", "a": 1, "b": 1 }))).await;
    let (status, merged) = ask(server, &job("merge", json!({ "key": "m", "b": 2, "c": null }))).await;
    assert_eq!((status, merged.dedupe.as_str(), merged.job.id), (200, "merged", first.job.id));
    let expected = json!({ "key": "m", "a": 1, "b": 2 });
    assert_eq!(Value::Object(merged.job.payload), expected);
    assert_eq!(Value::Object(server.job(first.job.id).await.payload), expected);
}

async fn the_same_message_is_the_same_job(server: &Server) {
    let with = |id: &str| json!({ "type": "noop", "projectId": "p", "messageId": id });
    let (status, first) = ask(server, &with("mail-42")).await;
    assert_eq!(status, 201);
    server.until(first.job.id, "job.completed").await;
    // Whatever else it says: a message is sent once.
    let louder = json!({ "type": "noop", "projectId": "p", "messageId": "mail-42", "priority": 1 });
    let (status, again) = ask(server, &louder).await;
    assert_eq!((status, again.dedupe.as_str(), again.job.id), (200, "same_message", first.job.id));
    assert_eq!((again.job.state, again.job.result.is_some()), (JobState::Completed, true));
    let other = json!({ "type": "echo", "projectId": "p", "messageId": "mail-42" });
    let detail = server.post(JOBS, &other).await.refused(409, "duplicate_message");
    assert!(!detail.contains("job_") && !detail.contains("noop"), "{detail}");
    let elsewhere = json!({ "type": "noop", "projectId": "q", "messageId": "mail-42" });
    assert_eq!(ask(server, &elsewhere).await.0, 201, "another project has messages of its own");
    assert_eq!(ask(server, &with("mail-43")).await.0, 201);
    for bad in ["", "\u{0}", &"m".repeat(256)] {
        let detail = server.post(JOBS, &with(bad)).await.refused(422, "invalid_message_id");
        assert!(detail.contains("NUL"), "{detail}");
    }
    assert_eq!(ask(server, &with(&"ü".repeat(255))).await.0, 201);
}

async fn a_payload_that_does_not_fit_its_type_is_refused(server: &Server) {
    let detail = server.post(JOBS, &job("echo", json!({ "delay_ms": "soon" }))).await.refused(422, "invalid_payload");
    assert!(detail.contains("delay_ms") && !detail.contains("soon"), "{detail}");
    assert_eq!(count(server, "p").await, 0);
}

async fn a_priority_is_a_word_or_a_number(server: &Server) {
    for (asked, number, word) in [
        (json!("interactive"), 100, "interactive"),
        (json!("background"), 200, "background"),
        (json!(0), 0, "interactive"),
        (json!(150), 150, "interactive"),
        (json!(999), 999, "background"),
    ] {
        let (_, taken) = ask(server, &json!({ "type": "noop", "projectId": "p", "priority": asked })).await;
        assert_eq!((taken.job.priority_number, taken.job.priority.as_str()), (number, word));
    }
}

async fn a_batch_is_taken_whole_and_in_order(server: &Server) {
    let messages: Vec<_> = (0..5).map(|n| json!({ "message": n })).collect();
    let jobs: Vec<_> = messages.iter().map(|payload| job("echo", payload.clone())).collect();
    let reply = server.post(BATCH, &json!({ "jobs": jobs })).await;
    assert_eq!(reply.status, 201, "{reply:?}");
    let taken: BatchTaken = reply.parse();
    assert_eq!((taken.jobs.len(), taken.enqueued), (5, 5));
    for (one, payload) in taken.jobs.iter().zip(&messages) {
        assert_eq!((one.dedupe.as_str(), one.state), ("enqueued", JobState::Queued));
        let ended = server.until(one.job_id, "job.completed").await;
        assert_eq!(ended.result.unwrap()["message"], payload["message"]);
    }
    let keys: Vec<String> = reply.parse::<Value>()["jobs"][0].as_object().unwrap().keys().cloned().collect();
    assert_eq!(keys, ["dedupe", "jobId", "state"]);
}

async fn a_batch_with_one_bad_job_is_refused_whole_and_says_which(server: &Server) {
    let good = job("noop", json!({}));
    let mut deep = json!(1);
    for _ in 0..64 {
        deep = json!([deep]);
    }
    let cases = [
        (json!({ "type": "moon", "projectId": "p" }), 422, "unknown_job_type"),
        (job("echo", json!({ "wait": 1 })), 422, "invalid_payload"),
        (json!({ "type": "noop" }), 400, "invalid_request"),
        (job("noop", json!({ "x": deep })), 400, "invalid_request"),
    ];
    for (bad, status, code) in cases {
        let reply = server.post(BATCH, &json!({ "jobs": [good, good, bad, good] })).await;
        let detail = reply.refused(status, code);
        assert!(detail.starts_with("jobs[2]"), "{detail}");
        assert_eq!(reply.parse::<Problem>().members.index, Some(2), "{reply:?}");
    }
    assert_eq!(count(server, "p").await, 0);
}

async fn a_batch_has_a_size(server: &Server) {
    server.post(BATCH, &json!({ "jobs": [] })).await.refused(422, "batch_size");
    server.post(BATCH, &json!({ "jobs": vec![job("noop", json!({})); 1_001] })).await.refused(422, "batch_size");
    for wrong in [json!({}), json!({ "jobs": {} }), json!([]), json!({ "jobs": [], "more": 1 })] {
        server.post(BATCH, &wrong).await.refused(400, "invalid_request");
    }
    server.post(&format!("{BATCH}?x=1"), &json!({ "jobs": [] })).await.refused(400, "invalid_request");
    // More than a single job may have, less than too much.
    let large = job("noop", json!({ "x": "y".repeat(200_000) }));
    let reply = server.post(BATCH, &json!({ "jobs": vec![large; 10] })).await;
    assert_eq!(reply.status, 201, "{reply:?}");
    let too_large = "y".repeat(baton_api::limits::BATCH_BYTES);
    let reply = server.post(BATCH, &json!({ "jobs": [job("noop", json!({ "x": too_large }))] })).await;
    reply.refused(413, "body_too_large");
}

async fn a_repeated_batch_does_nothing_and_says_the_same(server: &Server) {
    let body = json!({ "jobs": [job("noop", json!({})), job("echo", json!({ "message": 1 }))] }).to_string();
    let first = server.post_keyed(BATCH, &body, "k").await;
    assert_eq!(first.status, 201);
    let again = server.post_keyed(BATCH, &body, "k").await;
    assert_eq!((again.status, again.replayed(), &again.body), (200, true, &first.body));
    let other = json!({ "jobs": [job("noop", json!({}))] }).to_string();
    server.post_keyed(BATCH, &other, "k").await.refused(422, "idempotency_key_reused");
    assert_eq!(count(server, "p").await, 2);
}

async fn duplicates_inside_a_batch_are_one_job(server: &Server) {
    let jobs = [("a", 1), ("b", 1), ("a", 2)].map(|(key, n)| job("single", json!({ "key": key, "n": n })));
    let taken: BatchTaken = server.post(BATCH, &json!({ "jobs": jobs })).await.parse();
    assert_eq!(taken.enqueued, 2);
    assert_eq!(taken.jobs[2].job_id, taken.jobs[0].job_id);
    assert_eq!(taken.jobs[2].dedupe, "already_queued");
    let again = server.post(BATCH, &json!({ "jobs": jobs })).await;
    assert_eq!((again.status, again.parse::<BatchTaken>().enqueued), (200, 0), "none is new");
}
