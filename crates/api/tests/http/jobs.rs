//! Jobs over HTTP, on both databases: in, shown, listed, woken, repeated.

use crate::support::Server;
use baton_core::limits::PAYLOAD_BYTES;
use baton_wire::{Job, JobList, JobState, Priority};
use serde_json::{Value, json};
use std::collections::BTreeSet;

on_both_databases!(
    a_job_goes_all_the_way_and_shows_every_field,
    a_refused_job_says_which_field_is_wrong,
    a_payload_may_be_large_but_not_too_large,
    times_are_kept_and_impossible_ones_refused,
    a_list_pages_from_newest_to_oldest_without_gap_or_repeat,
    a_page_of_large_jobs_is_cut_and_goes_on,
    a_repeated_request_gets_the_same_bytes_and_does_nothing,
    many_repetitions_at_once_make_one_job,
    a_key_belongs_to_one_request_at_one_endpoint,
    a_refusal_is_not_remembered,
    a_parked_job_goes_on_when_it_is_woken,
    waking_an_ended_job_is_refused_unless_it_is_a_repetition,
    ids_that_name_no_job_are_not_found,
);

const JOBS: &str = "/api/v1/jobs";

fn echo(message: &str) -> Value {
    json!({ "type": "echo", "projectId": "p", "payload": { "message": message } })
}

async fn a_job_goes_all_the_way_and_shows_every_field(server: &Server) {
    let reply = server
        .post(
            JOBS,
            &json!({
                "type": "echo", "projectId": "Shop.eu:1", "payload": { "message": "grüße", "z": [1, 2.5, null] },
                "priority": "interactive", "sourceSessionId": "s-1",
            }),
        )
        .await;
    assert_eq!(reply.status, 201, "{reply:?}");
    assert_eq!(reply.header("content-type"), Some("application/json"));
    let accepted: Value = reply.parse();
    let id = accepted["id"].as_str().unwrap().to_owned();
    let created = accepted["createdAt"].as_str().unwrap();
    assert_eq!((created.len(), created.ends_with('Z')), ("2026-01-31T09:30:00.000000Z".len(), true), "{created}");
    let expected = json!({
        "id": id, "type": "echo", "version": 3, "projectId": "Shop.eu:1", "sourceSessionId": "s-1",
        "priority": "interactive", "state": "queued", "dedupeKey": null,
        "payload": { "message": "grüße", "z": [1, 2.5, null] }, "result": null, "error": null,
        "attempts": 0, "maxAttempts": 2, "createdAt": created, "startedAt": null, "completedAt": null,
        "cancelRequestedAt": null, "runningContext": { "threadId": null, "turnId": null },
        "priorityNumber": 100, "failures": 0, "maxFailures": 2, "lane": "project:Shop.eu:1",
        "waitingFor": null, "dueAt": created, "progress": null, "question": null, "cancelReason": null, "lastError": null,
        "requeuedFrom": null, "requeuedAs": null, "scheduleId": null, "dedupe": "enqueued",
    });
    assert_eq!(accepted, expected);

    server.until(&id, "job.completed").await;
    let ended: Value = server.get(&format!("{JOBS}/{id}")).await.ok();
    let mut expected = expected;
    expected.as_object_mut().unwrap().remove("dedupe");
    expected["dueAt"] = json!(null);
    expected["state"] = json!("completed");
    expected["attempts"] = json!(1);
    expected["result"] = json!({ "message": "grüße" });
    expected["startedAt"] = ended["startedAt"].clone();
    expected["completedAt"] = ended["completedAt"].clone();
    assert_eq!(ended, expected);
    assert!(ended["createdAt"].as_str() <= ended["startedAt"].as_str());
    assert!(ended["startedAt"].as_str() <= ended["completedAt"].as_str());
}

async fn a_refused_job_says_which_field_is_wrong(server: &Server) {
    let cases = [
        (json!({ "projectId": "p" }), "type"),
        (json!({ "type": "echo" }), "projectId"),
        (json!({ "type": 5, "projectId": "p" }), "type"),
        (json!({ "type": "Echo", "projectId": "p" }), "type"),
        (json!({ "type": "echo", "projectId": "" }), "projectId"),
        (json!({ "type": "echo", "projectId": "a b" }), "projectId"),
        (json!({ "type": "echo", "projectId": "p", "payload": [1] }), "payload"),
        (json!({ "type": "echo", "projectId": "p", "priority": 1000 }), "priority"),
        (json!({ "type": "echo", "projectId": "p", "priority": -1 }), "priority"),
        (json!({ "type": "echo", "projectId": "p", "priority": 1.5 }), "priority"),
        (json!({ "type": "echo", "projectId": "p", "messageId": 7 }), "messageId"),
        (json!({ "type": "echo", "projectId": "p", "priority": "urgent" }), "priority"),
        (json!({ "type": "echo", "projectId": "p", "notBefore": "tomorrow" }), "notBefore"),
        (json!({ "type": "echo", "projectId": "p", "deadline": 1_700_000_000 }), "deadline"),
        (json!({ "type": "echo", "projectId": "p", "sourceSessionId": "a/b" }), "sourceSessionId"),
        (json!({ "type": "echo", "projectId": "p", "project_id": "p" }), "project_id"),
        (json!(["echo", "p"]), "object"),
        (json!("echo"), "object"),
        (nested(65), "payload"),
    ];
    for (body, field) in cases {
        let detail = server.post(JOBS, &body).await.refused(400, "invalid_request");
        assert!(detail.contains(field), "{body}: {detail}");
    }
    assert_eq!(server.post(JOBS, &nested(64)).await.status, 201);
    let detail = server.post(JOBS, &json!({ "type": "moon", "projectId": "p" })).await.refused(422, "unknown_job_type");
    assert!(detail.contains("moon") && detail.contains("echo"), "{detail}");
}

/// A payload that is itself one object, with lists inside, `depth` deep in all.
fn nested(depth: usize) -> Value {
    let mut value = json!(1);
    for _ in 1..depth {
        value = json!([value]);
    }
    json!({ "type": "noop", "projectId": "p", "payload": { "x": value } })
}

async fn a_payload_may_be_large_but_not_too_large(server: &Server) {
    let around = json!({ "message": "" }).to_string().len();
    let largest = "x".repeat(PAYLOAD_BYTES - around);
    let job = server.enqueue(echo(&largest)).await;
    let job = server.until(job.id, "job.completed").await;
    assert_eq!(job.result.unwrap()["message"], largest.as_str());
    server.post(JOBS, &echo(&format!("{largest}x"))).await.refused(413, "payload_too_large");
}

async fn times_are_kept_and_impossible_ones_refused(server: &Server) {
    let with = |field: &str, time: &str| json!({ "type": "noop", "projectId": "p", field: time });
    server.post(JOBS, &with("deadline", "2001-01-01T00:00:00Z")).await.refused(422, "invalid_time");
    server.post(JOBS, &with("deadline", "9999-01-01T00:00:00Z")).await.refused(422, "invalid_time");
    server.post(JOBS, &with("notBefore", "9999-01-01T00:00:00+02:00")).await.refused(422, "invalid_time");
    // What is past means now.
    let job = server.enqueue(with("notBefore", "2001-01-01T00:00:00Z")).await;
    server.until(job.id, "job.completed").await;
    let now = server.engine.store().now().await.unwrap();
    let soon = baton_wire::Time(now.plus(baton_core::time::Span::millis(300)));
    let job = server.enqueue(with("notBefore", &soon.to_string())).await;
    assert_eq!(job.state, JobState::Queued);
    let job = server.until(job.id, "job.completed").await;
    assert!(job.started_at.unwrap() >= soon, "{job:?}");
    let job = server
        .enqueue(json!({
            "type": "echo", "projectId": "p", "payload": { "wait": true }, "deadline": soon_after(server).await,
        }))
        .await;
    let job = server.until(job.id, "job.failed").await;
    assert_eq!(job.state, JobState::Failed);
    assert!(job.error.unwrap().starts_with("deadline_exceeded: "));
}

/// Late enough to be accepted on a busy machine.
async fn soon_after(server: &Server) -> String {
    let now = server.engine.store().now().await.unwrap();
    baton_wire::Time(now.plus(baton_core::time::Span::millis(1_500))).to_string()
}

/// Jobs that stay where they are: due in an hour.
async fn later(server: &Server, project: &str) -> Job {
    let now = server.engine.store().now().await.unwrap();
    let later = baton_wire::Time(now.plus(baton_core::time::Span::secs(3_600)));
    server.enqueue(json!({ "type": "noop", "projectId": project, "notBefore": later })).await
}

async fn a_list_pages_from_newest_to_oldest_without_gap_or_repeat(server: &Server) {
    let mut enqueued = Vec::new();
    for _ in 0..7 {
        enqueued.push(later(server, "p").await.id);
        later(server, "other").await;
    }
    enqueued.sort();
    enqueued.reverse();
    let mut seen = Vec::new();
    let mut path = "/api/v1/projects/p/jobs?limit=3".to_owned();
    loop {
        let page: JobList = server.get(&path).await.ok();
        assert!(page.jobs.len() <= 3);
        seen.extend(page.jobs.iter().map(|job| job.id));
        let Some(cursor) = page.next_cursor else { break };
        path = format!("/api/v1/projects/p/jobs?limit=3&cursor={cursor}");
    }
    assert_eq!(seen, enqueued);
    let empty: Value = server.get("/api/v1/projects/nobody/jobs").await.ok();
    assert_eq!(empty, json!({ "jobs": [], "nextCursor": null }));
    let list = |query: &str| format!("/api/v1/projects/p/jobs?{query}");
    for bad in ["limit=0", "limit=201", "limit=x", "limit=1&limit=2", "colour=red", "state=asleep"] {
        server.get(&list(bad)).await.refused(400, "invalid_request");
    }
    server.get(&list("cursor=xyz")).await.refused(400, "invalid_cursor");
    server.get("/api/v1/projects/a%2Fb/jobs").await.refused(400, "invalid_request");
    server.get("/api/v1/projects/%ff/jobs").await.refused(400, "invalid_request");
}

async fn a_page_of_large_jobs_is_cut_and_goes_on(server: &Server) {
    let large = "x".repeat(PAYLOAD_BYTES - 100);
    let many = baton_api::limits::PAGE_BYTES / PAYLOAD_BYTES + 2;
    for _ in 0..many {
        let body = json!({ "type": "noop", "projectId": "p", "payload": { "x": large } });
        server.enqueue(body).await;
    }
    let first: JobList = server.get("/api/v1/projects/p/jobs").await.ok();
    assert!(first.jobs.len() < many, "{} of {many} in one answer", first.jobs.len());
    let cursor = first.next_cursor.unwrap();
    let rest: JobList = server.get(&format!("/api/v1/projects/p/jobs?cursor={cursor}")).await.ok();
    assert_eq!(first.jobs.len() + rest.jobs.len(), many);
    assert_eq!(rest.next_cursor, None);
}

async fn a_repeated_request_gets_the_same_bytes_and_does_nothing(server: &Server) {
    let first = server.post_keyed(JOBS, &echo("once").to_string(), "k1").await;
    assert_eq!((first.status, first.replayed()), (201, false));
    let job: Job = first.parse();
    server.until(job.id, "job.completed").await;
    // Said differently, but the same.
    for body in [
        echo("once").to_string(),
        r#" { "payload" : {"message":"on\u0063e"},   "projectId":"p", "type":"echo" } "#.to_owned(),
    ] {
        let again = server.post_keyed(JOBS, &body, "k1").await;
        assert_eq!((again.status, again.replayed()), (200, true), "{again:?}");
        assert_eq!(again.body, first.body, "as it stood then, byte for byte");
        assert_eq!(again.header("content-type"), first.header("content-type"));
    }
    let list: JobList = server.get("/api/v1/projects/p/jobs").await.ok();
    assert_eq!(list.jobs.len(), 1);
}

async fn many_repetitions_at_once_make_one_job(server: &Server) {
    let body = echo("storm").to_string();
    let asks = (0..16).map(|_| server.post_keyed(JOBS, &body, "storm"));
    let mut replies = Vec::new();
    for reply in all(asks).await {
        assert!([200, 201].contains(&reply.status), "{reply:?}");
        replies.push((reply.status == 201, reply.replayed(), reply.body));
    }
    assert_eq!(replies.iter().filter(|(created, ..)| *created).count(), 1);
    assert!(replies.iter().all(|(created, replayed, _)| created != replayed));
    assert_eq!(replies.into_iter().map(|(.., body)| body).collect::<BTreeSet<_>>().len(), 1);
    let list: JobList = server.get("/api/v1/projects/p/jobs").await.ok();
    assert_eq!(list.jobs.len(), 1);
}

/// Drives all of them at once on this task.
async fn all<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut running: Vec<_> = futures.map(|future| (Box::pin(future), None)).collect();
    std::future::poll_fn(move |cx| {
        for (future, output) in &mut running {
            if output.is_none()
                && let std::task::Poll::Ready(done) = future.as_mut().poll(cx)
            {
                *output = Some(done);
            }
        }
        if running.iter().any(|(_, output)| output.is_none()) {
            return std::task::Poll::Pending;
        }
        std::task::Poll::Ready(running.drain(..).filter_map(|(_, output)| output).collect())
    })
    .await
}

async fn a_key_belongs_to_one_request_at_one_endpoint(server: &Server) {
    let first = server.post_keyed(JOBS, &echo("a").to_string(), "k").await;
    let job: Job = first.parse();
    server.post_keyed(JOBS, &echo("b").to_string(), "k").await.refused(422, "idempotency_key_reused");
    // Another endpoint, another key, though it reads the same.
    let waiting = later(server, "p").await;
    let woken = server.post_keyed(&format!("{JOBS}/{}/wake", waiting.id), "", "k").await;
    assert_eq!((woken.status, woken.replayed()), (200, false), "{woken:?}");
    // The path is part of the request.
    let other = server.post_keyed(&format!("{JOBS}/{}/wake", job.id), "", "k").await;
    other.refused(422, "idempotency_key_reused");
    for bad in ["", &"k".repeat(256), "k\u{fc}"] {
        let detail = server.post_keyed(JOBS, &echo("a").to_string(), bad).await.refused(400, "invalid_request");
        assert!(detail.contains("Idempotency-Key"), "{detail}");
    }
    let longest = server.post_keyed(JOBS, &echo("a").to_string(), &"k".repeat(255)).await;
    assert_eq!(longest.status, 201);
}

async fn a_refusal_is_not_remembered(server: &Server) {
    let wrong = json!({ "type": "moon", "projectId": "p" }).to_string();
    for _ in 0..2 {
        let reply = server.post_keyed(JOBS, &wrong, "k").await;
        assert!(!reply.replayed());
        reply.refused(422, "unknown_job_type");
    }
    assert_eq!(server.post_keyed(JOBS, &echo("right").to_string(), "k").await.status, 201);
}

async fn a_parked_job_goes_on_when_it_is_woken(server: &Server) {
    let body = json!({ "type": "echo", "projectId": "p", "payload": { "wait": true, "message": "late" } });
    let job = server.enqueue(body).await;
    assert_eq!(job.priority, Priority::Background);
    let parked = server.until(job.id, "job.parked").await;
    assert_eq!(parked.state, JobState::AwaitingTool);
    let path = format!("{JOBS}/{}/wake", job.id);
    let woken = server.post_keyed(&path, "{}", "w").await;
    assert_eq!(woken.status, 200, "{woken:?}");
    assert_eq!(woken.parse::<Job>().id, job.id);
    let ended = server.until(job.id, "job.completed").await;
    assert_eq!(ended.result.unwrap()["message"], "late");
    assert_eq!(ended.attempts, 1, "going on is not a new attempt");
}

async fn waking_an_ended_job_is_refused_unless_it_is_a_repetition(server: &Server) {
    let job = server.enqueue(json!({ "type": "echo", "projectId": "p", "payload": { "wait": true } })).await;
    server.until(job.id, "job.parked").await;
    let path = format!("{JOBS}/{}/wake", job.id);
    let woken = server.post_keyed(&path, "", "w").await;
    server.until(job.id, "job.completed").await;
    let detail = server.post_keyed(&path, "", "other").await.refused(409, "invalid_transition");
    assert!(detail.contains("completed"), "{detail}");
    server.post(&path, &json!({})).await.refused(409, "invalid_transition");
    let again = server.post_keyed(&path, "{ }", "w").await;
    assert_eq!((again.status, again.replayed()), (200, true), "{again:?}");
    assert_eq!(again.body, woken.body);
    server.post(&path, &json!({ "why": "x" })).await.refused(400, "invalid_request");
    server.post(&path, &json!([])).await.refused(400, "invalid_request");
}

async fn ids_that_name_no_job_are_not_found(server: &Server) {
    let unknown = "job_018bcfe568007001800000000000002a";
    for id in
        [unknown, "job_x", "018bcfe568007001800000000000002a", "run_018bcfe568007001800000000000002a", "%ff", "%00"]
    {
        server.get(&format!("/api/orchestrator/jobs/{id}")).await.refused(404, "job_not_found");
        server.get(&format!("{JOBS}/{id}")).await.refused(404, "job_not_found");
        for verb in ["wake", "cancel", "requeue"] {
            server.post(&format!("{JOBS}/{id}/{verb}"), &json!({})).await.refused(404, "job_not_found");
        }
        let orchestrator = format!("/api/orchestrator/jobs/{id}/cancel");
        server.post(&orchestrator, &json!({})).await.refused(404, "job_not_found");
    }
}
