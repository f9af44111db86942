//! Lists of runs and of their parts, page by page.

use crate::support::Server;
use crate::support::runs::{document, step};
use baton_core::run::{StepState, TaskState};
use baton_wire::{RunList, StepList, TaskList};
use serde_json::{Value, json};

on_both_databases!(crate::support::runs::working =>
    runs_are_listed_both_ways_page_by_page,
    parts_are_read_page_by_page_from_all_their_sources,
    steps_are_filtered,
    cursors_belong_to_their_list,
);

/// All items of a list, in pages of this length.
async fn paged(server: &Server, path: &str, field: &str, limit: usize) -> Vec<Value> {
    let mut items = Vec::new();
    let mut more = String::new();
    loop {
        let joint = if path.contains('?') { '&' } else { '?' };
        let page: Value = server.get(&format!("{path}{joint}limit={limit}{more}")).await.ok();
        let found = page[field].as_array().unwrap();
        assert!(found.len() <= limit);
        items.extend(found.clone());
        match page["next_cursor"].as_str() {
            Some(cursor) => more = format!("&cursor={cursor}"),
            None => return items,
        }
    }
}

async fn runs_are_listed_both_ways_page_by_page(server: &Server) {
    let mut ids = Vec::new();
    for n in 0..5 {
        let run = server
            .make_run(&document(if n % 2 == 0 { "p" } else { "q" }, &[step("sleep", json!({ "for": "1s" }))]))
            .await;
        ids.push(json!(run.id));
    }
    let rising = paged(server, "/api/v1/runs?order=asc", "runs", 2).await;
    assert_eq!(rising.iter().map(|run| run["id"].clone()).collect::<Vec<_>>(), ids);
    let mut falling = paged(server, "/api/v1/runs", "runs", 3).await;
    falling.reverse();
    assert_eq!(falling, rising);
    let ours = paged(server, "/api/v1/runs?project=q", "runs", 1).await;
    assert_eq!(ours.len(), 2);
    assert_eq!(paged(server, "/api/v1/runs?status=created", "runs", 5).await.len(), 5);
    assert!(paged(server, "/api/v1/runs?status=failed", "runs", 5).await.is_empty());
    let key = server.narrowed("q", "viewer").await;
    let mut path = "/api/v1/runs?limit=1".to_owned();
    let mut seen = 0;
    loop {
        let page: RunList = server.ask_as(&key, "GET", &path, &json!({})).await.ok();
        assert!(page.runs.iter().all(|run| run.project_id.as_str() == "q"));
        seen += page.runs.len();
        let Some(cursor) = page.next_cursor else { break };
        path = format!("/api/v1/runs?limit=1&cursor={cursor}");
    }
    assert_eq!(seen, 2);
    for bad in ["status=odd", "limit=0", "limit=201", "order=up", "colour=red"] {
        server.get(&format!("/api/v1/runs?{bad}")).await.refused(400, "invalid_request");
    }
}

/// Two agents: each has a task that ends, one that waits, and one that is still to begin.
async fn half_way(server: &Server) -> baton_wire::Run {
    server.grant("100", "g").await;
    let tasks = json!([
        { "name": "first", "steps": [step("note", json!({ "n": 1 })), step("note", json!({ "n": 2 }))] },
        { "name": "second", "steps": [step("wait", json!({ "signal": "go" })), step("note", json!({ "n": 3 }))] },
        { "name": "third", "steps": [step("note", json!({ "n": 4 }))] },
    ]);
    let agents = json!([{ "name": "a", "tasks": tasks }, { "name": "b", "tasks": tasks }]);
    let run = server.start_run(&json!({ "name": "half", "project": "p", "plan": { "agents": agents } })).await;
    let both_wait = async || {
        let list: StepList = server.part(&run, "steps").await;
        let waits = |step: &&baton_wire::Step| step.waits_for.as_ref().is_some_and(|on| on.signal.is_some());
        (list.steps.iter().filter(waits).count() == 2).then_some(())
    };
    server.until_seen("both agents half way", both_wait).await;
    run
}

async fn parts_are_read_page_by_page_from_all_their_sources(server: &Server) {
    let run = half_way(server).await;
    let tasks: TaskList = server.part(&run, "tasks").await;
    let states = [TaskState::Completed, TaskState::Running, TaskState::Pending];
    assert_eq!(tasks.tasks.iter().map(|task| task.status).collect::<Vec<_>>(), [states, states].concat());
    let names: Vec<_> = tasks.tasks.iter().map(|task| format!("{}.{}", task.agent_name, task.name)).collect();
    assert_eq!(names, ["a.first", "a.second", "a.third", "b.first", "b.second", "b.third"]);
    let steps: StepList = server.part(&run, "steps").await;
    let of_one =
        [StepState::Completed, StepState::Completed, StepState::Running, StepState::Pending, StepState::Pending];
    assert_eq!(steps.steps.iter().map(|step| step.status).collect::<Vec<_>>(), [of_one, of_one].concat());
    for (part, field, length) in
        [("agents", "agents", 2), ("tasks", "tasks", 6), ("steps", "steps", 10), ("ledger", "entries", 0)]
    {
        let path = format!("/api/v1/runs/{}/{part}", run.id);
        let whole = paged(server, &path, field, 200).await;
        assert!(length == 0 || whole.len() == length, "{part} {}", whole.len());
        for limit in 1..5 {
            assert_eq!(paged(server, &path, field, limit).await, whole, "{part} by {limit}");
        }
    }
    let events: Value = server.part(&run, "events?limit=2").await;
    let rest: Value = server.part(&run, &format!("events?limit=1000&after={}", events["next"].as_str().unwrap())).await;
    let all: Value = server.part(&run, "events?limit=1000").await;
    let joined = [events["events"].as_array().unwrap().clone(), rest["events"].as_array().unwrap().clone()].concat();
    assert_eq!(json!(joined), all["events"]);
    server.is_clean().await;
}

async fn steps_are_filtered(server: &Server) {
    let run = half_way(server).await;
    for (filter, count) in [
        ("agent=a", 5),
        ("agent=nobody", 0),
        ("task=second", 4),
        ("task=1", 4),
        ("status=running", 2),
        ("agent=b&status=completed", 2),
        ("agent=b&task=third&status=pending", 1),
    ] {
        let list: StepList = server.part(&run, &format!("steps?{filter}")).await;
        assert_eq!(list.steps.len(), count, "{filter}");
    }
    let list: TaskList = server.part(&run, "tasks?agent=b").await;
    let by_id: TaskList = server.part(&run, &format!("tasks?agent={}", list.tasks[0].agent_id)).await;
    assert_eq!(list, by_id);
    for bad in ["status=odd", "results=maybe", "attempt=0", "attempt=11"] {
        server.get(&format!("/api/v1/runs/{}/steps?{bad}", run.id)).await.refused(400, "invalid_request");
    }
    let other: StepList = server.part(&run, "steps?attempt=2").await;
    assert!(other.steps.is_empty());
}

async fn cursors_belong_to_their_list(server: &Server) {
    let run = half_way(server).await;
    let tasks: TaskList = server.part(&run, "tasks?limit=1").await;
    let cursor = tasks.next_cursor.unwrap();
    for part in ["agents", "steps", "ledger"] {
        let path = format!("/api/v1/runs/{}/{part}?cursor={cursor}", run.id);
        server.get(&path).await.refused(400, "invalid_cursor");
    }
    for path in ["/api/v1/runs", "/api/v1/ledger"] {
        server.get(&format!("{path}?cursor={cursor}")).await.refused(400, "invalid_cursor");
    }
}
