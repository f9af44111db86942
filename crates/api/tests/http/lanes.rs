//! Lanes over HTTP, on both databases.

use crate::support::{Server, Setup};
use baton_core::canon::Json;
use baton_core::definition::JobType;
use baton_core::lane::{Limit, Rule};
use baton_engine::{JobCx, Outcome};
use baton_wire::{JobState, Lane, LaneList};
use serde_json::{Value, json};

on_both_databases!(crate::lanes::setup =>
    a_lane_shows_who_runs_and_who_waits,
    a_paused_lane_hands_nothing_out_until_it_is_resumed,
    lanes_are_listed_by_name_page_by_page,
    a_lane_may_be_called_anything,
    what_is_no_lane_is_not_found,
    a_repeated_pause_says_the_same,
);

const LANES: &str = "/api/v1/lanes";

/// Beside the built-in types, one whose lane is named by its payload.
fn setup() -> Setup {
    let mut setup = Setup::default();
    let lane = Rule::Own { key: "{payload.lane}".parse().unwrap(), limit: Limit::At(3), depth: None };
    let kind = JobType { lane, ..JobType::new("own".parse().unwrap(), 1, "for tests") };
    setup.registry.add(kind, park);
    setup
}

async fn park(cx: JobCx, _: Json) -> Outcome {
    if cx.job.wakes == 0 { Outcome::Park { until: None, seen: 0 } } else { Outcome::Done(Json::of(&json!({}))) }
}

fn waiting(project: &str) -> Value {
    json!({ "type": "echo", "projectId": project, "payload": { "wait": true } })
}

async fn lane(server: &Server, name: &str) -> Lane {
    server.get(&format!("{LANES}/{name}")).await.ok()
}

async fn a_lane_shows_who_runs_and_who_waits(server: &Server) {
    let first = server.enqueue(waiting("p")).await;
    server.until(first.id, "job.parked").await;
    let second = server.enqueue(waiting("p")).await;
    server.enqueue(waiting("p")).await;
    let expected = json!({ "lane": "project:p", "limit": 1, "running": 1, "waiting": 2, "paused": false });
    assert_eq!(server.get(&format!("{LANES}/project:p")).await.ok::<Value>(), expected);
    server.post(&format!("/api/v1/jobs/{}/wake", first.id), &json!({})).await;
    server.until(second.id, "job.parked").await;
    let after = lane(server, "project:p").await;
    assert_eq!((after.running, after.waiting), (1, 1));
}

async fn a_paused_lane_hands_nothing_out_until_it_is_resumed(server: &Server) {
    let paused: Lane = server.post(&format!("{LANES}/project:p/pause"), &json!({})).await.ok();
    assert!(paused.paused);
    let job = server.enqueue(json!({ "type": "noop", "projectId": "p" })).await;
    // Others go on; when one that came later has ended, this one could have begun.
    let other = server.enqueue(json!({ "type": "noop", "projectId": "q" })).await;
    server.until(other.id, "job.completed").await;
    assert_eq!(server.job(job.id).await.state, JobState::Queued);
    let now = lane(server, "project:p").await;
    assert_eq!((now.paused, now.waiting), (true, 1));
    let resumed: Lane = server.post(&format!("{LANES}/project:p/resume"), &json!({})).await.ok();
    assert!(!resumed.paused);
    server.until(job.id, "job.completed").await;
}

async fn lanes_are_listed_by_name_page_by_page(server: &Server) {
    for project in ["c", "a", "b"] {
        server.enqueue(waiting(project)).await;
    }
    server.post(&format!("{LANES}/project:z/pause"), &json!({})).await.ok::<Lane>();
    let mut seen = Vec::new();
    let mut path = format!("{LANES}?limit=2");
    loop {
        let page: LaneList = server.get(&path).await.ok();
        assert!(page.lanes.len() <= 2);
        seen.extend(page.lanes.into_iter().map(|lane| lane.lane));
        let Some(cursor) = page.next_cursor else { break };
        path = format!("{LANES}?limit=2&cursor={cursor}");
    }
    assert_eq!(seen, ["project:a", "project:b", "project:c", "project:z"]);
    for bad in ["limit=0", "limit=201", "colour=red"] {
        server.get(&format!("{LANES}?{bad}")).await.refused(400, "invalid_request");
    }
    for bad in ["x", "l1", "l1zz", "l100"] {
        server.get(&format!("{LANES}?cursor={bad}")).await.refused(400, "invalid_cursor");
    }
}

async fn a_lane_may_be_called_anything(server: &Server) {
    let name = "a/b ü? #%";
    let job = server.enqueue(json!({ "type": "own", "projectId": "p", "payload": { "lane": name } })).await;
    assert_eq!(job.lane, name);
    server.until(job.id, "job.parked").await;
    let encoded = "a%2Fb%20%C3%BC%3F%20%23%25";
    let found = lane(server, encoded).await;
    assert_eq!((found.lane.as_str(), found.limit, found.running), (name, Some(3), 1));
    let paused: Lane = server.post(&format!("{LANES}/{encoded}/pause"), &json!({})).await.ok();
    assert_eq!((paused.lane.as_str(), paused.paused, paused.running), (name, true, 1));
}

async fn what_is_no_lane_is_not_found(server: &Server) {
    server.get(&format!("{LANES}/project:nobody")).await.refused(404, "lane_not_found");
    for bad in ["%00", "%0a", "%ff", &"x".repeat(201)] {
        server.get(&format!("{LANES}/{bad}")).await.refused(400, "invalid_request");
        server.post(&format!("{LANES}/{bad}/pause"), &json!({})).await.refused(400, "invalid_request");
    }
    let pause = format!("{LANES}/project:p/pause");
    server.post(&pause, &json!({ "for": "1h" })).await.refused(400, "invalid_request");
    server.post(&format!("{pause}?for=1h"), &json!({})).await.refused(400, "invalid_request");
}

async fn a_repeated_pause_says_the_same(server: &Server) {
    let path = format!("{LANES}/project:p/pause");
    let first = server.post_keyed(&path, "", "k").await;
    assert_eq!((first.status, first.replayed()), (200, false));
    server.enqueue(waiting("p")).await;
    let again = server.post_keyed(&path, "{}", "k").await;
    assert_eq!((again.replayed(), &again.body), (true, &first.body));
    // Without a key it is a new look at the same thing.
    let now: Lane = server.post(&path, &json!({})).await.ok();
    assert_eq!((now.paused, now.waiting), (true, 1));
}
