//! A queue with little room, over HTTP on both databases; and one that is switched off.

use crate::support::{Database, Reply, Server, Setup};
use baton_core::rules::Rules;
use baton_wire::{LettersRequeued, Members, Problem};
use serde_json::{Value, json};

on_both_databases!(crate::full::setup =>
    a_full_project_refuses_more_and_says_when_to_come_again,
    a_full_house_refuses_more_of_any_project,
    a_batch_that_does_not_fit_is_refused_whole,
    a_repetition_is_answered_even_if_there_is_no_room,
    dead_letters_that_fit_are_requeued_and_the_others_told_of,
);

const JOBS: &str = "/api/v1/jobs";

fn setup() -> Setup {
    Setup { rules: Rules { max_per_project: 2, max_global: 3, ..Rules::default() }, ..Setup::default() }
}

fn waiting(project: &str) -> Value {
    json!({ "type": "echo", "projectId": project, "payload": { "wait": true } })
}

/// One that holds the lane, and as many behind it as there is room for.
async fn fill(server: &Server, project: &str, behind: usize) {
    let holder = server.enqueue(waiting(project)).await;
    server.until(holder.id, "job.parked").await;
    for _ in 0..behind {
        server.enqueue(waiting(project)).await;
    }
}

#[track_caller]
fn full(reply: &Reply) -> (String, Members) {
    let detail = reply.refused(429, "queue_full");
    assert_eq!(reply.header("retry-after"), Some("1"));
    (detail, reply.parse::<Problem>().members)
}

async fn a_full_project_refuses_more_and_says_when_to_come_again(server: &Server) {
    fill(server, "p", 2).await;
    let reply = server.post(JOBS, &waiting("p")).await;
    let (detail, members) = full(&reply);
    assert!(detail.contains("project:p"), "{detail}");
    let expected = Members { limit: Some(2), waiting: Some(2), retry_after_ms: Some(1_000), ..Members::default() };
    assert_eq!(members, expected);
    assert_eq!(server.post(JOBS, &waiting("q")).await.status, 201, "another project has room");
}

async fn dead_letters_that_fit_are_requeued_and_the_others_told_of(server: &Server) {
    let mut dead = Vec::new();
    for project in ["q", "p"] {
        let job = json!({ "type": "echo", "projectId": project, "payload": { "fail": "deterministic" } });
        let job = server.enqueue(job).await;
        server.until(job.id, "job.failed").await;
        dead.push(job.id);
    }
    // The newest one's lane is full; there is room for the other.
    fill(server, "p", 2).await;
    let path = "/api/v1/dead-letters/requeue";
    let reply = server.post(path, &json!({ "type": "echo" })).await;
    assert_eq!(reply.status, 201, "{reply:?}");
    let said: LettersRequeued = reply.parse();
    assert_eq!(said.jobs.iter().map(|one| one.requeued_from).collect::<Vec<_>>(), [dead[0]]);
    assert_eq!(
        said.left.iter().map(|one| (one.job_id, one.code.as_str())).collect::<Vec<_>>(),
        [(dead[1], "queue_full")]
    );
    full(&server.post(path, &json!({ "projectId": "p" })).await);
}

async fn a_full_house_refuses_more_of_any_project(server: &Server) {
    fill(server, "p", 2).await;
    fill(server, "q", 1).await;
    let reply = server.post(JOBS, &waiting("r")).await;
    assert_eq!(full(&reply).1.limit, Some(3));
}

async fn a_batch_that_does_not_fit_is_refused_whole(server: &Server) {
    let jobs = vec![waiting("p"); 3];
    let reply = server.post("/api/v1/jobs/batch", &json!({ "jobs": jobs })).await;
    let (_, members) = full(&reply);
    assert_eq!((members.index, members.limit), (Some(2), Some(2)));
    let list: Value = server.get("/api/v1/projects/p/jobs").await.ok();
    assert_eq!(list["jobs"], json!([]));
}

async fn a_repetition_is_answered_even_if_there_is_no_room(server: &Server) {
    let body = waiting("p").to_string();
    let first = server.post_keyed(JOBS, &body, "k").await;
    assert_eq!(first.status, 201);
    let id = first.parse::<Value>()["id"].as_str().unwrap().to_owned();
    server.until(id, "job.parked").await;
    server.enqueue(waiting("p")).await;
    server.enqueue(waiting("p")).await;
    full(&server.post(JOBS, &waiting("p")).await);
    let again = server.post_keyed(JOBS, &body, "k").await;
    assert_eq!((again.status, &again.body), (200, &first.body));
}

#[tokio::test]
async fn a_queue_that_is_switched_off_takes_nothing_in_and_still_answers() {
    let off = Setup { rules: Rules { enabled: false, ..Rules::default() }, ..Setup::default() };
    crate::support::run_with(Database::Sqlite, off, async |server| {
        server.post(JOBS, &waiting("p")).await.refused(503, "queue_disabled");
        let batch = json!({ "jobs": [waiting("p")] });
        server.post("/api/v1/jobs/batch", &batch).await.refused(503, "queue_disabled");
        assert_eq!(server.get("/readyz").await.status, 200);
        let list: Value = server.get("/api/v1/projects/p/jobs").await.ok();
        assert_eq!(list["jobs"], json!([]));
    })
    .await;
}
