//! Lists over HTTP, on both databases: all are asked alike, and read the same in pages of any length.

use crate::support::{SIGNER, Server, Setup};
use baton_core::webhook::sign::Signer;
use baton_engine::Registry;
use baton_engine::webhook::{Deliver, Post};
use baton_tools::{Allow, Outgoing, Policy};
use baton_wire::{DeliveryList, JobList, ScheduleList, Tried, Webhook};
use serde_json::{Value, json};
use std::sync::Arc;

on_both_databases!(crate::lists::setup =>
    every_list_is_read_both_ways_page_by_page,
    deliveries_are_read_both_ways_page_by_page,
    a_cursor_is_refused_elsewhere,
    jobs_and_schedules_are_filtered_by_type,
);

/// A path, and the field of its items.
type List = (&'static str, &'static str);

const LISTS: [List; 9] = [
    ("/api/v1/projects/p/jobs", "jobs"),
    ("/api/projects/p/orchestrator/jobs", "jobs"),
    ("/api/v1/dead-letters", "jobs"),
    ("/api/v1/lanes", "lanes"),
    ("/api/v1/schedules", "schedules"),
    ("/api/v1/decisions", "decisions"),
    ("/api/v1/keys", "keys"),
    ("/api/v1/orgs", "orgs"),
    ("/api/v1/webhooks", "webhooks"),
];

/// Deliveries can be asked for, and are refused before they leave.
fn setup() -> Setup {
    let nowhere = Policy { allow: Allow::parse([]).unwrap(), ..Policy::public() };
    let mut registry = Registry::builtin();
    registry.deliver(Deliver { signer: Signer::new(SIGNER), carrier: Arc::new(Post(Outgoing::new(nowhere).unwrap())) });
    Setup { registry, ..Setup::default() }
}

async fn made(server: &Server, path: &str, body: Value) -> Value {
    let reply = server.post(path, &body).await;
    assert!([200, 201].contains(&reply.status), "{reply:?}");
    reply.parse()
}

/// One that stays where it is.
async fn later(server: &Server, kind: &str) {
    let now = server.engine.store().now().await.unwrap();
    let later = baton_wire::Time(now.plus(baton_core::time::Span::secs(3_600)));
    made(server, "/api/v1/jobs", json!({ "type": kind, "projectId": "p", "notBefore": later })).await;
}

async fn hook(server: &Server) -> Webhook {
    // Of a project in which nothing happens: only what is asked for is sent.
    let body = json!({ "label": "ours", "url": "https://127.0.0.1/", "projects": ["nowhere"] });
    serde_json::from_value(made(server, "/api/v1/webhooks", body).await).unwrap()
}

/// At least four of everything, and nothing that changes by itself.
async fn fill(server: &Server) {
    for n in 0..4 {
        let dead = made(
            server,
            "/api/v1/jobs",
            json!({ "type": "echo", "projectId": "p", "payload": { "fail": "deterministic" } }),
        );
        server.until(dead.await["id"].as_str().unwrap(), "job.failed").await;
        let asking = json!({ "type": "echo", "projectId": "p", "payload": { "ask": true, "message": "pay?" } });
        server.until(made(server, "/api/v1/jobs", asking).await["id"].as_str().unwrap(), "job.asked").await;
        later(server, "noop").await;
        made(server, &format!("/api/v1/lanes/x:{n}/pause"), json!({})).await;
        let schedule = json!({ "cron": "30 5 1 1 *", "type": "noop" });
        let path = format!("/api/v1/projects/{}/schedules/s{n}", if n % 2 == 0 { "q" } else { "p" });
        assert_eq!(server.put(&path, &schedule).await.status, 201);
        made(server, "/api/v1/keys", json!({ "label": "k", "role": "viewer" })).await;
        made(server, "/api/v1/orgs", json!({ "org": format!("o{}", 9 - n) })).await;
        hook(server).await;
    }
    // A lane in which nothing stands is forgotten after a while, unless it is paused.
    made(server, "/api/v1/lanes/project:p/pause", json!({})).await;
}

fn name(item: &Value) -> String {
    match (&item["lane"], &item["name"], &item["id"]) {
        // A job has a lane too.
        (Value::String(lane), _, Value::Null) => lane.clone(),
        (_, Value::String(name), _) => format!("{}/{name}", item["projectId"].as_str().unwrap()),
        (_, _, Value::String(id)) => id.clone(),
        _ => item.as_str().unwrap().to_owned(),
    }
}

async fn read(server: &Server, path: &str, field: &str, query: &str) -> Vec<String> {
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    for _ in 0..100 {
        let page: Value = server.get(&format!("{path}?{query}{cursor}")).await.ok();
        seen.extend(page[field].as_array().unwrap().iter().map(name));
        let Some(next) = page["nextCursor"].as_str() else {
            assert!(page["nextCursor"].is_null() && page.as_object().unwrap().len() == 2, "{page:#}");
            return seen;
        };
        cursor = format!("&cursor={next}");
    }
    panic!("{path} has no end");
}

/// The whole of it, rising.
async fn both_ways(server: &Server, path: &str, field: &str, usual: &str) -> Vec<String> {
    let rising = read(server, path, field, "limit=100&order=asc").await;
    assert!(rising.len() >= 4, "{path}: {rising:?}");
    assert!(rising.is_sorted(), "{path}: {rising:?}");
    let falling: Vec<_> = rising.iter().rev().cloned().collect();
    for limit in 1..=3 {
        assert_eq!(read(server, path, field, &format!("order=asc&limit={limit}")).await, rising, "{path} by {limit}");
        assert_eq!(read(server, path, field, &format!("limit={limit}&order=desc")).await, falling, "{path} by {limit}");
    }
    assert_eq!(&read(server, path, field, "limit=2").await, if usual == "asc" { &rising } else { &falling }, "{path}");
    for bad in ["order=up", "order=", "order=asc&order=asc", "limit=0", "limit=201", "colour=red"] {
        server.get(&format!("{path}?{bad}")).await.refused(400, "invalid_request");
    }
    rising
}

async fn every_list_is_read_both_ways_page_by_page(server: &Server) {
    fill(server).await;
    for (path, field) in LISTS {
        let usual = if ["lanes", "schedules", "orgs"].contains(&field) { "asc" } else { "desc" };
        let rising = both_ways(server, path, field, usual).await;
        if field == "orgs" {
            assert_eq!(rising, ["default", "o6", "o7", "o8", "o9"], "and not that of what is built in");
        }
    }
}

async fn deliveries_are_read_both_ways_page_by_page(server: &Server) {
    let hook = hook(server).await;
    let path = format!("/api/v1/webhooks/{}", hook.id);
    for _ in 0..4 {
        let tried: Tried = server.post(&format!("{path}/test"), &json!({})).await.parse();
        server.until(tried.job_id, "job.failed").await;
    }
    let path = format!("{path}/deliveries");
    both_ways(server, &path, "deliveries", "desc").await;
    let failed: DeliveryList = server.get(&format!("{path}?state=failed&limit=3")).await.ok();
    assert!(failed.deliveries.len() == 3 && failed.next_cursor.is_some(), "{failed:?}");
    let others: DeliveryList = server.get(&format!("{path}?state=completed,queued")).await.ok();
    assert!(others.deliveries.is_empty() && others.next_cursor.is_none(), "{others:?}");
    server.get(&format!("{path}?state=asleep")).await.refused(400, "invalid_request");
    // They are jobs, but theirs is another list.
    let jobs: JobList = server.get("/api/v1/dead-letters?limit=1").await.ok();
    for foreign in [jobs.next_cursor.unwrap(), "xyz".to_owned()] {
        server.get(&format!("{path}?cursor={foreign}")).await.refused(400, "invalid_cursor");
    }
}

async fn a_cursor_is_refused_elsewhere(server: &Server) {
    fill(server).await;
    let mut cursors = Vec::new();
    for (path, _) in LISTS {
        for order in ["asc", "desc"] {
            let page: Value = server.get(&format!("{path}?limit=1&order={order}")).await.ok();
            cursors.push((path, order, page["nextCursor"].as_str().unwrap().to_owned()));
        }
    }
    for (from, handed_out, cursor) in &cursors {
        for (path, _) in LISTS {
            for order in ["asc", "desc"] {
                let reply = server.get(&format!("{path}?order={order}&cursor={cursor}")).await;
                // A project's jobs are one list, in whichever words.
                let same = *from == path || (from.ends_with("/jobs") && path.ends_with("/jobs"));
                if same && *handed_out == order {
                    reply.ok::<Value>();
                } else {
                    reply.refused(400, "invalid_cursor");
                }
            }
        }
    }
}

async fn jobs_and_schedules_are_filtered_by_type(server: &Server) {
    for kind in ["noop", "echo", "noop", "echo", "echo"] {
        later(server, kind).await;
    }
    for (name, kind) in [("a", "noop"), ("b", "echo"), ("c", "noop")] {
        let path = format!("/api/v1/projects/p/schedules/{name}");
        assert_eq!(server.put(&path, &json!({ "cron": "30 5 1 1 *", "type": kind })).await.status, 201);
    }
    for path in ["/api/v1/projects/p/jobs", "/api/projects/p/orchestrator/jobs"] {
        for (kind, expected) in [("noop", 2), ("echo", 3), ("moon", 0)] {
            for limit in [1, 50] {
                let query = format!("type={kind}&limit={limit}&state=queued");
                assert_eq!(read(server, path, "jobs", &query).await.len(), expected, "{path}?{query}");
            }
        }
        server.get(&format!("{path}?type=UP")).await.refused(400, "invalid_request");
    }
    assert_eq!(read(server, "/api/v1/schedules", "schedules", "type=noop&limit=1").await, ["p/a", "p/c"]);
    let none: ScheduleList = server.get("/api/v1/schedules?type=echo&projectId=q").await.ok();
    assert!(none.schedules.is_empty() && none.next_cursor.is_none());
}
