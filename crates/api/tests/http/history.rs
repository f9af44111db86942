//! The history, probes and metrics over HTTP, on both databases.

use crate::support::Server;
use baton_wire::{Audit, EventList, Me};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

on_both_databases!(
    events_are_read_page_by_page_in_order_and_chained,
    a_reader_at_the_end_is_woken_by_what_happens,
    a_reader_that_waited_in_vain_keeps_its_place,
    wrong_cursors_and_bounds_are_refused,
    an_audit_is_clean_and_counts_everything,
    probes_say_alive_and_ready_until_it_stops,
    metrics_show_depth_requests_and_work,
);

fn echo() -> Value {
    json!({ "type": "echo", "projectId": "p", "payload": { "message": "secret-text" } })
}

async fn events_are_read_page_by_page_in_order_and_chained(server: &Server) {
    // How the org came to be is told before.
    let begin = server.get("/api/v1/events").await.ok::<EventList>().next;
    let mut jobs = BTreeSet::new();
    for _ in 0..3 {
        let job = server.enqueue(echo()).await;
        server.until(job.id, "job.completed").await;
        jobs.insert(job.id.to_string());
    }
    let me: Me = server.get("/api/v1/me").await.ok();
    let mut events = Vec::new();
    let mut path = format!("/api/v1/events?limit=2&after={begin}");
    loop {
        let reply = server.get(&path).await;
        assert!(!reply.body.contains("secret-text"), "events carry digests, never payloads");
        let list: EventList = reply.ok();
        assert!(list.events.len() <= 2);
        if list.events.is_empty() {
            break;
        }
        assert_eq!(list.next, list.events.last().unwrap().cursor);
        path = format!("/api/v1/events?limit=2&after={}", list.next);
        events.extend(list.events);
    }
    assert_eq!(events.len(), 9);
    assert!(events.windows(2).all(|pair| pair[0].cursor < pair[1].cursor));
    assert_eq!(events.iter().map(|event| event.cursor.as_str()).collect::<BTreeSet<_>>().len(), 9);
    for job in &jobs {
        let of_job: Vec<_> = events.iter().filter(|event| event.subject == *job).collect();
        assert_eq!(of_job.iter().map(|event| event.n).collect::<Vec<_>>(), [1, 2, 3]);
        let kinds: Vec<_> = of_job.iter().map(|event| event.kind.as_str()).collect();
        assert_eq!(kinds, ["job.queued", "job.started", "job.completed"]);
        assert_eq!(of_job[0].actor, me.key.id.to_string());
        assert_eq!(of_job[0].data["project"], "p");
    }
    let whole: EventList = server.get(&format!("/api/v1/events?after={begin}")).await.ok();
    assert_eq!(whole.events, events);
}

async fn a_reader_at_the_end_is_woken_by_what_happens(server: &Server) {
    let here: EventList = server.get("/api/v1/events?after=tail").await.ok();
    assert!(here.events.is_empty());
    let path = format!("/api/v1/events?wait_ms=30000&after={}", here.next);
    let reader = server.get(&path);
    let writer = server.enqueue(echo());
    let (heard, job) = tokio::join!(reader, writer);
    let heard: EventList = heard.ok();
    assert_eq!(heard.events[0].subject, job.id.to_string());
    assert_eq!(heard.events[0].kind, "job.queued");
}

async fn a_reader_that_waited_in_vain_keeps_its_place(server: &Server) {
    let job = server.enqueue(echo()).await;
    server.until(job.id, "job.completed").await;
    let end: EventList = server.get("/api/v1/events").await.ok();
    for query in [format!("after={}", end.next), format!("after={}&wait_ms=50", end.next)] {
        let list: EventList = server.get(&format!("/api/v1/events?{query}")).await.ok();
        assert_eq!((list.events.len(), list.next), (0, end.next.clone()));
    }
}

async fn wrong_cursors_and_bounds_are_refused(server: &Server) {
    for bad in
        ["after=x", "after=", "after=c1zz", "after=c1ffffffffffffffff", "after=j101a1de58efbe7001904fc38c5fbde218"]
    {
        server.get(&format!("/api/v1/events?{bad}")).await.refused(400, "invalid_cursor");
    }
    for bad in ["limit=0", "limit=1001", "wait_ms=30001", "wait_ms=-1", "wait_ms=1&wait_ms=1", "before=1"] {
        server.get(&format!("/api/v1/events?{bad}")).await.refused(400, "invalid_request");
    }
    // So far no history has come: it would be waited for in vain.
    for far in ["c17000000000000000", "c100000000000f4240"] {
        server.get(&format!("/api/v1/events?after={far}")).await.refused(400, "invalid_cursor");
    }
}

async fn an_audit_is_clean_and_counts_everything(server: &Server) {
    let job = server.enqueue(echo()).await;
    server.until(job.id, "job.completed").await;
    let reply = server.get("/api/v1/audit").await;
    let audit: Audit = reply.ok();
    assert!(audit.clean && audit.violations.is_empty(), "{audit:?}");
    assert!(audit.events >= 3 && audit.chains >= 1, "{audit:?}");
    let keys: Vec<String> = reply.parse::<serde_json::Map<String, Value>>().keys().cloned().collect();
    let expected = ["chains", "clean", "events", "macsChecked", "seals", "violations", "violationsTotal"];
    assert_eq!(keys, expected);
    server.get("/api/v1/audit?deep=1").await.refused(400, "invalid_request");
}

async fn probes_say_alive_and_ready_until_it_stops(server: &Server) {
    let alive: Value = server.get("/healthz").await.ok();
    assert_eq!(alive["status"], "alive");
    let ready: Value = server.get("/readyz").await.ok();
    assert_eq!(ready["status"], "ready");
    server.engine.begin_stopping(Duration::from_secs(1));
    server.get("/readyz").await.refused(503, "not_ready");
    assert_eq!(server.get("/healthz").await.status, 200);
    server.engine.stop(Duration::from_secs(1)).await;
    server.post("/api/v1/jobs", &echo()).await.refused(503, "store_closed");
    let read = server.get("/api/v1/events").await;
    assert!([200, 503].contains(&read.status), "reading may go on or be refused: {read:?}");
}

async fn metrics_show_depth_requests_and_work(server: &Server) {
    let job = server.enqueue(json!({ "type": "echo", "projectId": "deep", "payload": { "wait": true } })).await;
    server.until(job.id, "job.parked").await;
    let reply = server.get("/metrics").await;
    assert_eq!(reply.status, 200);
    assert!(reply.header("content-type").unwrap().starts_with("text/plain; version=0.0.4"));
    for line in [
        "baton_store_up 1",
        "baton_queue_depth{state=\"awaiting_tool\"} 1",
        "baton_queue_depth{state=\"queued\"} 0",
        "baton_queue_depth{state=\"awaiting_user_confirmation\"} 0",
        "baton_project_queue_depth{org=\"default\",project=\"deep\",state=\"awaiting_tool\"} 1",
        "baton_http_requests_total{method=\"POST\",route=\"/api/v1/jobs\",status=\"201\"} ",
        "baton_http_request_seconds_count{route=\"/api/v1/jobs\"} ",
        "baton_jobs_enqueued_total{type=\"echo\"} ",
        "baton_job_attempts_total{type=\"echo\"} ",
        "baton_handler_seconds_count{type=\"echo\"} ",
        "# HELP baton_handler_seconds ",
        // What has not happened yet is zero, not absent.
        "baton_jobs_cancelled_total{type=\"echo\"} 0",
        "baton_dedupe_hits_total{type=\"noop\"} 0",
        "baton_jobs_recovered_total{outcome=\"requeued\"} 0",
        "baton_leases_lost_total 0",
        "baton_outcomes_discarded_total 0",
    ] {
        assert!(reply.body.lines().any(|given| given.starts_with(line)), "{line} is not in\n{}", reply.body);
    }
    // Inventing paths and methods makes no new labels.
    for path in ["/a", "/b"] {
        server.send(crate::support::Ask { method: "BREW", path, ..crate::support::Ask::default() }).await;
    }
    let reply = server.get("/metrics").await;
    assert!(reply.body.contains("{method=\"other\",route=\"none\",status=\"404\"}"), "{}", reply.body);
    assert!(!reply.body.contains("BREW"));
    server.post(&format!("/api/v1/jobs/{}/wake", job.id), &json!({})).await;
    server.until(job.id, "job.completed").await;
    let reply = server.get("/metrics").await;
    assert!(reply.body.contains("baton_job_run_seconds_count{type=\"echo\"} "), "{}", reply.body);
    server.until(job.id, "job.completed").await;
    let reply = server.get("/metrics").await;
    assert!(!reply.body.contains("project=\"deep\""), "an idle project is no longer shown");
}
