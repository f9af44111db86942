//! What a socket says of jobs: the orchestrator's six types, their payload and their address.

use crate::live::ears::{By, Ear, listed};
use crate::support::Server;
use baton_wire::{DecisionList, Job};
use serde_json::{Value, json};

on_both_databases!(crate::live::filters::quick =>
    a_job_that_completes_is_heard_from_its_queue_to_its_result,
    what_fails_says_why,
    what_is_cancelled_says_so_in_the_orchestrators_spelling,
    a_job_that_asks_is_queued_until_it_is_answered,
    a_job_that_is_tried_again_is_queued_again,
    waiting_for_a_tool_is_running_all_along,
    a_large_result_is_heard_whole_by_everybody,
    what_is_no_job_keeps_its_own_name,
);

async fn enqueue(server: &Server, thread: Option<&str>, payload: Value) -> Job {
    let order = json!({ "type": "echo", "projectId": "p", "sourceSessionId": thread, "payload": payload });
    server.enqueue(order).await
}

/// Everything that a socket has said of a job, once something has happened to it.
async fn heard_of(server: &Server, job: &Job, until: &str) -> Vec<Value> {
    server.until(job.id, until).await;
    let query = format!("after=c10000000000000000&subject={}", job.id);
    let mut ear = Ear::listen(By::Socket, server, &query).await;
    let last = listed(server, None).await.pop().unwrap().cursor;
    let heard = ear.through(&last).await;
    for (_, _, said) in &heard {
        let payload = &said["payload"];
        assert_eq!(said["projectId"], "p", "{said}");
        assert_eq!(said["threadId"], json!(job.source_session_id), "{said}");
        if said["type"].as_str().unwrap().starts_with("orchestrator_") {
            assert_eq!((&payload["jobId"], &payload["projectId"]), (&json!(job.id), &json!("p")), "{said}");
            assert_eq!(payload["jobType"], "echo", "{said}");
            assert_eq!(payload.get("sourceSessionId"), job.source_session_id.as_ref().map(|id| json!(id)).as_ref());
        }
    }
    // The last word on its state is what the orchestrator's own route says.
    let shown: Value = server.get(&format!("/api/orchestrator/jobs/{}", job.id)).await.ok();
    let states: Vec<_> =
        heard.iter().filter_map(|(_, _, said)| said["payload"]["jobId"].as_str().map(|_| said)).collect();
    assert_eq!(states.last().unwrap()["payload"]["state"], shown["state"], "{heard:?}");
    heard.into_iter().map(|(_, _, said)| said).collect()
}

fn types(heard: &[Value]) -> Vec<String> {
    heard.iter().map(|said| said["type"].as_str().unwrap().replace("orchestrator_job_", "")).collect()
}

async fn a_job_that_completes_is_heard_from_its_queue_to_its_result(server: &Server) {
    for thread in [Some("chat-1"), None] {
        let job = enqueue(server, thread, json!({ "message": "hi", "progress": true })).await;
        let heard = heard_of(server, &job, "job.completed").await;
        let named = types(&heard);
        assert_eq!((named[0].as_str(), named[1].as_str()), ("queued", "started"), "{named:?}");
        assert_eq!(named.last().unwrap(), "completed");
        let progress = heard.iter().find(|said| said["type"] == "orchestrator_job_progress").unwrap();
        assert!(progress["payload"]["progress"]["percent"].is_u64(), "{progress}");
        let done = &heard.last().unwrap()["payload"];
        assert_eq!((&done["state"], &done["result"]), (&json!("completed"), &json!({ "message": "hi" })));
        assert_eq!((done.get("error"), &done["event"]), (None, &json!("job.completed")));
        for said in &heard {
            let mut fields: Vec<_> = said.as_object().unwrap().keys().map(String::as_str).collect();
            fields.sort_unstable();
            assert_eq!(fields, ["payload", "position", "projectId", "threadId", "type"]);
        }
    }
}

async fn what_fails_says_why(server: &Server) {
    let job = enqueue(server, Some("chat-1"), json!({ "fail": "deterministic" })).await;
    let heard = heard_of(server, &job, "job.failed").await;
    assert_eq!(types(&heard), ["queued", "started", "failed"]);
    let failed = &heard[2]["payload"];
    let shown = server.job(job.id).await;
    assert_eq!((&failed["state"], &failed["error"]), (&json!("failed"), &json!(shown.error.unwrap())));
    assert_eq!(failed.get("result"), None);
}

async fn what_is_cancelled_says_so_in_the_orchestrators_spelling(server: &Server) {
    let job = enqueue(server, Some("chat-1"), json!({ "wait": true })).await;
    server.until(job.id, "job.parked").await;
    let path = format!("/api/orchestrator/jobs/{}/cancel", job.id);
    assert_eq!(server.post(&path, &json!({ "reason": "changed my mind" })).await.status, 200);
    let heard = heard_of(server, &job, "job.cancelled").await;
    assert_eq!(types(&heard), ["queued", "started", "job.parked", "canceled"]);
    let canceled = &heard[3]["payload"];
    assert_eq!((&canceled["state"], &canceled["cancelReason"]), (&json!("canceled"), &json!("changed my mind")));
    assert_eq!((canceled.get("error"), canceled.get("result")), (None, None));
}

async fn a_job_that_asks_is_queued_until_it_is_answered(server: &Server) {
    let job = enqueue(server, Some("chat-1"), json!({ "ask": true })).await;
    let heard = heard_of(server, &job, "job.asked").await;
    assert_eq!(types(&heard), ["queued", "started", "queued"]);
    assert_eq!(heard[2]["payload"]["event"], "job.asked");
    let open: DecisionList = server.get("/api/v1/decisions?state=open").await.ok();
    let path = format!("/api/v1/decisions/{}/resolve", open.decisions[0].id);
    assert_eq!(server.post(&path, &json!({ "option": "confirm" })).await.status, 200);
    let heard = heard_of(server, &job, "job.completed").await;
    assert_eq!(types(&heard), ["queued", "started", "queued", "job.confirmed", "started", "completed"]);
}

async fn a_job_that_is_tried_again_is_queued_again(server: &Server) {
    let job = enqueue(server, None, json!({ "fail": "transient" })).await;
    let heard = heard_of(server, &job, "job.failed").await;
    assert_eq!(types(&heard), ["queued", "started", "queued", "started", "failed"]);
    assert_eq!(heard[2]["payload"]["event"], "job.retry_scheduled");
    let attempts: Vec<_> = heard.iter().map(|said| said["payload"]["attempt"].as_u64().unwrap()).collect();
    assert_eq!(attempts, [0, 1, 1, 2, 2]);
}

async fn waiting_for_a_tool_is_running_all_along(server: &Server) {
    let job = enqueue(server, None, json!({ "wait": true })).await;
    server.until(job.id, "job.parked").await;
    assert_eq!(server.post(&format!("/api/v1/jobs/{}/wake", job.id), &json!({})).await.status, 200);
    let heard = heard_of(server, &job, "job.completed").await;
    assert_eq!(types(&heard), ["queued", "started", "job.parked", "job.woken", "job.resumed", "completed"]);
    // What is not the orchestrator's is said as the history has it.
    assert_eq!((&heard[2]["payload"]["kind"], &heard[2]["payload"]["n"]), (&json!("job.parked"), &json!(3)));
}

async fn a_large_result_is_heard_whole_by_everybody(server: &Server) {
    let mut ears = Vec::new();
    for _ in 0..5 {
        ears.push(Ear::listen(By::Socket, server, "type=orchestrator_job_completed").await);
    }
    for size in [10, 4_000, 5_000, 60_000] {
        let message = "x".repeat(size);
        let job = enqueue(server, None, json!({ "message": message })).await;
        for ear in &mut ears {
            let (_, _, said) = ear.news().await;
            assert_eq!(said["payload"]["jobId"], json!(job.id));
            assert_eq!(said["payload"]["result"]["message"], json!(message), "{size}");
        }
    }
}

async fn what_is_no_job_keeps_its_own_name(server: &Server) {
    let mut ear = Ear::listen(By::Socket, server, "type=lane.").await;
    assert_eq!(server.post("/api/v1/lanes/project:p/pause", &json!({})).await.status, 200);
    let (position, kind, said) = ear.news().await;
    assert_eq!(kind, "lane.paused");
    assert_eq!((&said["threadId"], &said["projectId"]), (&Value::Null, &json!("p")));
    let payload = &said["payload"];
    assert_eq!((&payload["cursor"], &payload["kind"]), (&json!(position), &json!("lane.paused")));
    assert_eq!(payload["data"]["lane"], "project:p");
}
