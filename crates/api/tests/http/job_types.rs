//! Job types as data, on both databases.

use crate::support::{Database, Server, Setup};
use baton_wire::{Job, JobType, JobTypeList};
use serde_json::{Value, json};

on_both_databases!(
    a_type_is_registered_changed_and_shown_and_jobs_keep_their_version,
    what_cannot_be_a_type_is_refused,
    types_are_an_orgs_own,
    a_type_says_where_its_jobs_wait_what_fits_and_what_is_the_same,
    registering_takes_an_operator_who_reaches_everything,
    types_are_listed_by_name,
);

async fn a_type_is_registered_changed_and_shown_and_jobs_keep_their_version(server: &Server) {
    let path = "/api/v1/job-types/mail.send";
    let first = server.put(path, &json!({ "summary": "Sends mail." })).await;
    assert_eq!(first.status, 201, "{first:?}");
    let first: JobType = first.parse();
    assert_eq!((first.name.as_str(), first.version), ("mail.send", 1));
    let again: JobType = server.put(path, &json!({ "summary": "Sends mail." })).await.ok();
    assert_eq!(again, first, "saying it again changes nothing");
    let old = server.enqueue(json!({ "type": "mail.send", "projectId": "p" })).await;
    let changed: JobType = server.put(path, &json!({ "summary": "Sends mail.", "maxAttempts": 7 })).await.ok();
    assert_eq!((changed.version, changed.max_attempts), (2, Some(7)));
    let new = server.enqueue(json!({ "type": "mail.send", "projectId": "p" })).await;
    assert_eq!((old.version, old.max_attempts), (1, 2));
    assert_eq!((new.version, new.max_attempts), (2, 7));
    assert_eq!(server.job(old.id).await.version, 1);
    assert_eq!(server.get(path).await.ok::<JobType>(), changed);
    assert_eq!(server.get(&format!("{path}?version=1")).await.ok::<JobType>(), first);
    server.get(&format!("{path}?version=3")).await.refused(404, "job_type_not_found");
    server.get("/api/v1/job-types/nobody").await.refused(404, "job_type_not_found");
    let events = server.events_until(|event| event.kind == "job.queued" && event.subject == new.id.to_string()).await;
    assert_eq!(events.iter().filter(|event| event.kind == "definition.registered").count(), 2, "both are told of");
}

async fn what_cannot_be_a_type_is_refused(server: &Server) {
    for (name, body, status, code) in [
        ("echo", json!({}), 409, "job_type_reserved"),
        ("tool.search", json!({}), 409, "job_type_reserved"),
        ("Loud", json!({}), 400, "invalid_request"),
        ("a", json!({ "colour": 1 }), 422, "invalid_job_type"),
        ("a", json!({ "lane": { "key": "{moon}" } }), 422, "invalid_job_type"),
        ("a", json!({ "lease": "soon" }), 422, "invalid_job_type"),
        ("a", json!({ "lease": "1ms" }), 422, "invalid_job_type"),
        ("a", json!({ "maxAttempts": 0 }), 422, "invalid_job_type"),
        ("a", json!({ "lane": { "key": "x", "limit": 0 } }), 422, "invalid_job_type"),
        ("a", json!({ "retry": { "base": "2m", "max": "1m" } }), 422, "invalid_job_type"),
        ("a", json!({ "payloadSchema": { "type": "moon" } }), 422, "invalid_job_type"),
        ("a", json!({ "resultSchema": { "$ref": "https://example.com/x.json" } }), 422, "invalid_job_type"),
        ("a", json!({ "payloadSchema": { "title": "x".repeat(70_000) } }), 422, "invalid_job_type"),
    ] {
        server.put(&format!("/api/v1/job-types/{name}"), &body).await.refused(status, code);
    }
    server.get("/api/v1/job-types/a").await.refused(404, "job_type_not_found");
}

async fn types_are_an_orgs_own(server: &Server) {
    server.put_type("mail", json!({ "summary": "ours" })).await;
    let founded: Value = server.post("/api/v1/orgs", &json!({ "org": "acme" })).await.parse();
    let acme = founded["key"]["secret"].as_str().or(founded["secret"].as_str()).unwrap().to_owned();
    server.ask_as(&acme, "GET", "/api/v1/job-types/mail", &json!({})).await.refused(404, "job_type_not_found");
    let job = json!({ "type": "mail", "projectId": "p" });
    server.ask_as(&acme, "POST", "/api/v1/jobs", &job).await.refused(422, "unknown_job_type");
    let theirs = crate::support::Ask {
        method: "PUT",
        path: "/api/v1/job-types/mail",
        headers: &[crate::support::JSON],
        body: br#"{"summary":"theirs"}"#,
    };
    assert_eq!(server.send_as(&acme, theirs).await.status, 201);
    let ours: JobType = server.get("/api/v1/job-types/mail").await.ok();
    assert_eq!((ours.summary.as_str(), ours.version), ("ours", 1));
}

async fn a_type_says_where_its_jobs_wait_what_fits_and_what_is_the_same(server: &Server) {
    server
        .put_type(
            "mail",
            json!({
                "lane": { "key": "mail:{payload.to}", "limit": 1, "depth": 2 },
                "dedupe": { "mode": "single_flight", "key": "{payload.id}" },
                "payloadSchema": { "type": "object", "required": ["to"], "properties": { "to": { "type": "string" } } },
                "priority": "interactive",
            }),
        )
        .await;
    let job = |to: &str, id: &str| json!({ "type": "mail", "projectId": "p", "payload": { "to": to, "id": id } });
    let first = server.enqueue(job("ada", "1")).await;
    assert_eq!((first.lane.as_str(), first.priority_number), ("mail:ada", 100));
    let same = server.post("/api/v1/jobs", &job("ada", "1")).await;
    assert_eq!((same.status, same.parse::<Job>().id), (200, first.id));
    let bad = json!({ "type": "mail", "projectId": "p", "payload": { "to": 5 } });
    server.post("/api/v1/jobs", &bad).await.refused(422, "invalid_payload");
    server.enqueue(job("ada", "2")).await;
    server.post("/api/v1/jobs", &job("ada", "3")).await.refused(429, "queue_full");
    server.enqueue(job("eve", "3")).await;
    let schedule = json!({ "cron": "30 5 1 1 *", "type": "mail", "payload": { "to": "x", "id": "y" } });
    assert_eq!(server.put("/api/v1/projects/p/schedules/yearly", &schedule).await.status, 201);
}

async fn registering_takes_an_operator_who_reaches_everything(server: &Server) {
    for (scope, code) in [
        (json!({ "role": "viewer" }), "forbidden"),
        (json!({ "role": "worker" }), "forbidden"),
        (json!({ "role": "operator", "projects": ["p"] }), "out_of_scope"),
    ] {
        let mut body = json!({ "label": "x" });
        body.as_object_mut().unwrap().extend(scope.as_object().unwrap().clone());
        let made: Value = server.post("/api/v1/keys", &body).await.parse();
        let ask = crate::support::Ask {
            method: "PUT",
            path: "/api/v1/job-types/mail",
            headers: &[crate::support::JSON],
            body: b"{}",
        };
        server.send_as(made["secret"].as_str().unwrap(), ask).await.refused(403, code);
    }
}

async fn types_are_listed_by_name(server: &Server) {
    for name in ["b", "a", "z"] {
        server.put_type(name, json!({})).await;
    }
    let all: JobTypeList = server.get("/api/v1/job-types").await.ok();
    let names: Vec<&str> = all.job_types.iter().map(|kind| kind.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "echo", "noop", "z"]);
    let page: JobTypeList = server.get("/api/v1/job-types?limit=2&order=desc").await.ok();
    let cursor = page.next_cursor.unwrap();
    let rest: JobTypeList = server.get(&format!("/api/v1/job-types?limit=9&order=desc&cursor={cursor}")).await.ok();
    let names = |list: &JobTypeList| list.job_types.iter().map(|kind| kind.name.to_string()).collect::<Vec<_>>();
    assert_eq!(names(&rest), ["echo", "b", "a"]);
    assert_eq!(rest.next_cursor, None);
}

#[tokio::test]
async fn what_one_node_registers_another_understands_at_once() {
    let Some(first) = Server::start(Database::Postgres).await else { return };
    let second = first.join(Setup::default()).await;
    first.put_type("mail", json!({ "maxAttempts": 5 })).await;
    // It has not heard of it, or has: either way it is understood.
    let job = second.enqueue(json!({ "type": "mail", "projectId": "p" })).await;
    assert_eq!((job.version, job.max_attempts), (1, 5));
    let hand = first.hand().await;
    second.put_type("later", json!({})).await;
    let leases = hand.lease(json!({ "types": ["later"] })).await;
    assert!(leases.is_empty(), "known, and nothing to do");
    assert_eq!(first.get("/api/v1/job-types/later").await.ok::<JobType>().version, 1);
    second.stop().await;
    first.stop().await;
}

#[tokio::test]
async fn types_of_the_configuration_are_everybodys_and_counted_in_versions() {
    for database in [Database::Sqlite, Database::Postgres] {
        let declared = |summary: &str| {
            let mut setup = Setup::default();
            let kind = baton_core::definition::JobType::new("pdf".parse().unwrap(), 1, summary);
            setup.registry.declare(kind.clone()).unwrap();
            assert!(setup.registry.declare(kind).is_err(), "twice");
            setup
        };
        let Some(server) = Server::start_with(database, declared("one")).await else { return };
        let kind: JobType = server.get("/api/v1/job-types/pdf").await.ok();
        assert_eq!((kind.version, kind.summary.as_str()), (1, "one"));
        server.put("/api/v1/job-types/pdf", &json!({})).await.refused(409, "job_type_reserved");
        if matches!(database, Database::Postgres) {
            let other = server.join(declared("two")).await;
            let kind: JobType = other.get("/api/v1/job-types/pdf").await.ok();
            assert_eq!((kind.version, kind.summary.as_str()), (2, "two"));
            let plain = server.join(Setup::default()).await;
            let job = json!({ "type": "pdf", "projectId": "p" });
            plain.post("/api/v1/jobs", &job).await.refused(422, "unknown_job_type");
            plain.stop().await;
            other.stop().await;
        }
        server.stop().await;
    }
}
