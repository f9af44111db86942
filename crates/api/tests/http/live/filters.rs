//! Each filter lets through what it says, and nothing reaches whom it does not concern.

use crate::live::ears::{BOTH, By, Call, Ear, found_org, listed, make_key};
use crate::support::{Ask, Server, Setup};
use baton_api::Listening;
use baton_wire::{DecisionList, Event, EventList, Job};
use serde_json::{Value, json};
use std::time::Duration;

/// Whoever passes over everything is told so soon.
pub fn quick() -> Setup {
    let listening = Listening { beat: Duration::from_millis(50), silent: u32::MAX, ..Listening::default() };
    Setup { listening, ..Setup::default() }
}

on_both_databases!(crate::live::filters::quick =>
    a_project_is_heard_alone_or_with_others,
    a_thread_is_heard_with_its_decisions_and_without_other_threads,
    a_subject_is_heard_alone,
    types_are_heard_by_either_name,
    filters_are_combined,
    a_key_hears_what_it_reaches,
    an_org_hears_nothing_of_another,
);

const START: &str = "after=c10000000000000000";

async fn run(server: &Server, project: &str, thread: Option<&str>, payload: Value, until: &str) -> Job {
    let order = json!({ "type": "echo", "projectId": project, "sourceSessionId": thread, "payload": payload });
    let job = server.enqueue(order).await;
    server.until(job.id, until).await
}

/// What is heard, both live and by coming back, must be what the list has for which `wanted` holds.
async fn check(server: &Server, query: &str, ears: Vec<(By, Ear)>, wanted: impl Fn(&Event) -> bool) {
    let all = listed(server, None).await;
    let last = &all.last().unwrap().cursor;
    let expected: Vec<_> = all.iter().filter(|event| wanted(event)).map(|event| event.cursor.clone()).collect();
    assert!(!expected.is_empty() && expected.len() < all.len(), "{query} is no test: {}", expected.len());
    for (by, mut ear) in ears {
        let heard: Vec<_> = ear.through(last).await.into_iter().map(|(position, ..)| position).collect();
        assert_eq!(heard, expected, "{by:?} {query}");
    }
}

/// Listeners that begin before anything has happened that they could want.
async fn ears(server: &Server, query: &str) -> Vec<(By, Ear)> {
    let mut ears = Vec::new();
    for by in BOTH {
        ears.push((by, Ear::listen(by, server, &format!("{query}&{START}")).await));
    }
    ears
}

fn project(event: &Event) -> Option<&str> {
    event.data["project"].as_str()
}

async fn a_project_is_heard_alone_or_with_others(server: &Server) {
    let (one, two) = (ears(server, "projectId=a").await, ears(server, "projectId=a,b").await);
    for name in ["a", "b", "c", "a"] {
        run(server, name, None, json!({}), "job.completed").await;
    }
    check(server, "projectId=a", one, |event| project(event) == Some("a")).await;
    let or = |event: &Event| matches!(project(event), Some("a" | "b"));
    check(server, "projectId=a,b", two, or).await;
    let late = ears(server, "projectId=a&projectId=b").await;
    check(server, "projectId=a&projectId=b", late, or).await;
}

async fn a_thread_is_heard_with_its_decisions_and_without_other_threads(server: &Server) {
    let live = ears(server, "threadId=s1").await;
    let mine = run(server, "p", Some("s1"), json!({ "ask": true }), "job.asked").await;
    let theirs = run(server, "q", Some("s2"), json!({ "ask": true }), "job.asked").await;
    run(server, "r", None, json!({}), "job.completed").await;
    let decisions: DecisionList = server.get("/api/v1/decisions?state=open").await.ok();
    assert_eq!(decisions.decisions.len(), 2);
    for decision in decisions.decisions {
        let path = format!("/api/v1/decisions/{}/resolve", decision.id);
        let reply = server.post(&path, &json!({ "option": "confirm" })).await;
        assert_eq!(reply.status, 200, "{reply:?}");
    }
    server.until(mine.id, "job.completed").await;
    server.until(theirs.id, "job.completed").await;
    let mine = mine.id.to_string();
    let of_mine = |event: &Event| event.subject == mine || event.data["subject"]["job"] == mine;
    check(server, "threadId=s1", live, of_mine).await;
    check(server, "threadId=s1", ears(server, "threadId=s1,s9").await, of_mine).await;
    // Every envelope says whose it is, the decisions' too.
    let mut ear = Ear::listen(By::Socket, server, &format!("threadId=s1&{START}")).await;
    let heard = ear.through(&listed(server, None).await.pop().unwrap().cursor).await;
    assert!(heard.iter().all(|(_, _, said)| said["threadId"] == "s1"), "{heard:?}");
    assert!(heard.iter().any(|(_, kind, _)| kind == "decision.opened"), "{heard:?}");
}

async fn a_subject_is_heard_alone(server: &Server) {
    let job = run(server, "p", None, json!({ "ask": true }), "job.asked").await;
    let other = run(server, "q", None, json!({}), "job.completed").await;
    let decisions: DecisionList = server.get("/api/v1/decisions?state=open").await.ok();
    let decision = decisions.decisions[0].id;
    let query = format!("subject={}", job.id);
    check(server, &query, ears(server, &query).await, |event| event.subject == job.id.to_string()).await;
    // A decision goes by its own name here as everywhere else.
    let hex = decision.0.simple().to_string();
    let query = format!("subject={decision}");
    check(server, &query, ears(server, &query).await, |event| event.subject.ends_with(&hex)).await;
    let query = format!("subject={decision},{}", other.id);
    let either = |event: &Event| event.subject.ends_with(&hex) || event.subject == other.id.to_string();
    check(server, &query, ears(server, &query).await, either).await;
}

async fn types_are_heard_by_either_name(server: &Server) {
    let live = ears(server, "type=orchestrator_job_completed").await;
    run(server, "p", None, json!({ "progress": true }), "job.completed").await;
    run(server, "p", None, json!({ "fail": "deterministic" }), "job.failed").await;
    run(server, "q", None, json!({ "ask": true }), "job.asked").await;
    check(server, "completed", live, |event| event.kind == "job.completed").await;
    for (query, kinds) in [
        ("type=job.failed", &["job.failed"][..]),
        ("type=job.failed&type=job.started", &["job.failed", "job.started"]),
        ("type=orchestrator_job_started,decision.opened", &["job.started", "decision.opened"]),
        ("type=orchestrator_job_queued", &["job.queued", "job.asked"]),
        ("type=orchestrator_job_progress", &["job.progress"]),
    ] {
        check(server, query, ears(server, query).await, |event| kinds.contains(&event.kind.as_str())).await;
    }
    for word in ["job.", "decision."] {
        let query = format!("type={word}");
        check(server, &query, ears(server, &query).await, |event| event.kind.starts_with(word)).await;
    }
}

async fn filters_are_combined(server: &Server) {
    let query = "projectId=a&threadId=s1&type=job.completed,job.started";
    let live = ears(server, query).await;
    let wanted = run(server, "a", Some("s1"), json!({}), "job.completed").await.id.to_string();
    run(server, "a", Some("s2"), json!({}), "job.completed").await;
    run(server, "b", Some("s1"), json!({}), "job.completed").await;
    check(server, query, live, |event| event.subject == wanted && event.kind != "job.queued").await;
}

async fn a_key_hears_what_it_reaches(server: &Server) {
    let scope = json!({ "label": "part", "role": "viewer", "projects": ["a"], "types": ["echo"] });
    let key = make_key(server, &server.admin, scope).await.secret.unwrap();
    let mut live = Vec::new();
    for by in BOTH {
        live.push((by, Ear::open(by, server, Call::new(&key, START)).await.unwrap_or_else(|no| panic!("{no:?}"))));
    }
    run(server, "a", None, json!({}), "job.completed").await;
    run(server, "b", None, json!({}), "job.completed").await;
    let noop = server.enqueue(json!({ "type": "noop", "projectId": "a" })).await;
    server.until(noop.id, "job.completed").await;
    assert_eq!(server.post("/api/v1/lanes/project:a/pause", &json!({})).await.status, 200);
    make_key(server, &server.admin, json!({ "label": "x", "role": "viewer" })).await;
    // A lane that is paused is paused for all types, so for its own too.
    let reached = |event: &Event| {
        let kind = &event.data["type"];
        project(event) == Some("a") && (kind.is_null() || kind == "echo")
    };
    check(server, "a scoped key", live, reached).await;
    for by in BOTH {
        let no = Ear::open(by, server, Call::new(&key, "projectId=a,b")).await.err().unwrap();
        no.refused(403, "out_of_scope");
    }
}

async fn an_org_hears_nothing_of_another(server: &Server) {
    let acme = found_org(server, "acme").await;
    let job = run(server, "p", Some("s1"), json!({}), "job.completed").await;
    let filters = ["", "&projectId=p", "&threadId=s1", &format!("&subject={}", job.id), "&type=job."];
    for by in BOTH {
        for filter in filters {
            let query = format!("{START}{filter}");
            let mut ear = Ear::open(by, server, Call::new(&acme, &query)).await.unwrap_or_else(|no| panic!("{no:?}"));
            run(server, "p", Some("s1"), json!({}), "job.completed").await;
            // Something of its own, so that it is known to have come so far.
            make_key(server, &acme, json!({ "label": "x", "role": "viewer" })).await;
            let own: EventList = server.send_as(&acme, Ask { path: "/api/v1/events", ..Ask::default() }).await.ok();
            let own: Vec<_> = own.events.into_iter().map(|event| event.cursor).collect();
            let heard = ear.through(own.last().unwrap()).await;
            let heard: Vec<_> = heard.into_iter().map(|(position, ..)| position).collect();
            assert_eq!(heard, if filter.is_empty() { own } else { Vec::new() }, "{by:?} {query}");
        }
    }
}
