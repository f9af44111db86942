//! Schedules over HTTP, on both databases.

use crate::support::Server;
use baton_wire::{JobState, Schedule, ScheduleList};
use serde_json::{Value, json};

on_both_databases!(
    a_schedule_is_made_changed_and_shown,
    a_schedule_makes_jobs_that_name_it,
    a_paused_schedule_has_no_next_moment,
    schedules_are_listed_by_project_and_name,
    a_deleted_schedule_is_gone_and_can_be_made_again,
    a_schedule_that_cannot_be_used_is_refused,
);

fn path(project: &str, name: &str) -> String {
    format!("/api/v1/projects/{project}/schedules/{name}")
}

/// Once a year: it does not come while the test runs.
fn rarely() -> Value {
    json!({ "cron": "30 5 1 1 *", "type": "noop" })
}

async fn a_schedule_is_made_changed_and_shown(server: &Server) {
    let asked = json!({
        "cron": "30 5 1 1 *", "timeZone": "Europe/Berlin", "type": "echo", "payload": { "message": "a year" },
        "priority": "interactive", "catchUp": "skip", "singleFlight": true,
    });
    let reply = server.put(&path("shop", "yearly"), &asked).await;
    assert_eq!(reply.status, 201, "{reply:?}");
    let made: Value = reply.parse();
    for (name, value) in asked.as_object().unwrap() {
        assert_eq!(&made[name], value, "{name}");
    }
    let keys: Vec<&String> = made.as_object().unwrap().keys().collect();
    let expected = [
        "catchUp",
        "createdAt",
        "cron",
        "description",
        "id",
        "jobsMade",
        "lastAt",
        "lastJobId",
        "name",
        "nextAt",
        "paused",
        "payload",
        "priority",
        "projectId",
        "singleFlight",
        "sourceSessionId",
        "timeZone",
        "type",
    ];
    assert_eq!(keys, expected.iter().collect::<Vec<_>>());
    assert_eq!((&made["projectId"], &made["name"], &made["paused"]), (&json!("shop"), &json!("yearly"), &json!(false)));
    assert!(made["nextAt"].as_str().unwrap().ends_with("-01-01T04:30:00.000000Z"), "{made}");
    assert!(!made["description"].as_str().unwrap().is_empty());
    assert_eq!((&made["lastAt"], &made["lastJobId"], &made["jobsMade"]), (&json!(null), &json!(null), &json!(0)));
    assert_eq!(server.get(&path("shop", "yearly")).await.ok::<Value>(), made);

    let changed = server.put(&path("shop", "yearly"), &rarely()).await;
    assert_eq!(changed.status, 200, "{changed:?}");
    let changed: Schedule = changed.parse();
    assert_eq!((changed.id.to_string().as_str(), changed.time_zone.as_str()), (made["id"].as_str().unwrap(), "UTC"));
    assert_eq!((changed.priority, changed.payload.len(), changed.single_flight), (None, 0, false));
}

async fn a_schedule_makes_jobs_that_name_it(server: &Server) {
    let every_second = json!({ "cron": "* * * * * *", "type": "echo", "payload": { "message": "tick" } });
    let made: Schedule = server.put(&path("p", "pulse"), &every_second).await.parse();
    let events = server.events_until(|event| event.kind == "schedule.fired").await;
    assert_eq!(events.last().unwrap().subject, made.id.to_string());
    let now: Schedule = server.get(&path("p", "pulse")).await.ok();
    assert!(now.jobs_made >= 1 && now.last_at.is_some(), "{now:?}");
    let job = server.until(now.last_job_id.unwrap(), "job.completed").await;
    assert_eq!((job.schedule_id, &job.payload["message"]), (Some(made.id), &json!("tick")));
    assert_eq!((job.project_id.as_str(), job.state), ("p", JobState::Completed));
}

async fn a_paused_schedule_has_no_next_moment(server: &Server) {
    server.put(&path("p", "s"), &rarely()).await;
    let pause = format!("{}/pause", path("p", "s"));
    let first = server.post_keyed(&pause, "", "k").await;
    let paused: Schedule = first.ok();
    assert_eq!((paused.paused, paused.next_at), (true, None));
    // What is paused stays so when it is changed.
    let changed: Schedule = server.put(&path("p", "s"), &rarely()).await.ok();
    assert!(changed.paused);
    let resumed: Schedule = server.post(&format!("{}/resume", path("p", "s")), &json!({})).await.ok();
    assert_eq!((resumed.paused, resumed.next_at.is_some()), (false, true));
    let again = server.post_keyed(&pause, "{}", "k").await;
    assert_eq!((again.replayed(), &again.body), (true, &first.body));
    assert!(!server.get(&path("p", "s")).await.ok::<Schedule>().paused, "a repetition does nothing");
    for verb in ["pause", "resume"] {
        let nobody = format!("{}/{verb}", path("p", "nobody"));
        server.post(&nobody, &json!({})).await.refused(404, "schedule_not_found");
    }
}

async fn schedules_are_listed_by_project_and_name(server: &Server) {
    for (project, name) in [("b", "x"), ("a", "y"), ("a", "x"), ("a.b", "z"), ("a", "gone")] {
        assert_eq!(server.put(&path(project, name), &rarely()).await.status, 201);
    }
    assert_eq!(server.delete(&path("a", "gone")).await.status, 204);
    let list = async |query: &str| {
        let mut seen = Vec::new();
        let mut path = format!("/api/v1/schedules?{query}");
        loop {
            let page: ScheduleList = server.get(&path).await.ok();
            seen.extend(page.schedules.iter().map(|one| format!("{}/{}", one.project_id, one.name)));
            let Some(cursor) = page.next_cursor else { break };
            path = format!("/api/v1/schedules?{query}&cursor={cursor}");
        }
        seen
    };
    assert_eq!(list("projectId=a").await, ["a/x", "a/y"]);
    assert_eq!(list("limit=1").await.len(), 4);
    let mut all = list("").await;
    all.sort();
    assert_eq!(all, ["a.b/z", "a/x", "a/y", "b/x"]);
    assert_eq!(list("projectId=nobody").await, Vec::<String>::new());
    for bad in ["limit=0", "projectId=a/b", "name=x"] {
        server.get(&format!("/api/v1/schedules?{bad}")).await.refused(400, "invalid_request");
    }
    server.get("/api/v1/schedules?cursor=j1").await.refused(400, "invalid_cursor");
}

async fn a_deleted_schedule_is_gone_and_can_be_made_again(server: &Server) {
    let first: Schedule = server.put(&path("p", "s"), &rarely()).await.parse();
    let reply = server.delete(&path("p", "s")).await;
    assert_eq!((reply.status, reply.body.as_str()), (204, ""));
    server.get(&path("p", "s")).await.refused(404, "schedule_not_found");
    server.delete(&path("p", "s")).await.refused(404, "schedule_not_found");
    let reply = server.put(&path("p", "s"), &rarely()).await;
    assert_eq!(reply.status, 201, "{reply:?}");
    let second: Schedule = reply.parse();
    assert_eq!((second.jobs_made, second.last_at), (0, None));
    assert_eq!(second.id, first.id, "its history goes on");
}

async fn a_schedule_that_cannot_be_used_is_refused(server: &Server) {
    let with = |field: &str, value: Value| {
        let mut body = rarely();
        body[field] = value;
        body
    };
    for (body, part) in [
        (with("cron", json!("every day")), "every day"),
        (with("cron", json!("61 * * * *")), "61"),
        (with("cron", json!("")), "cron"),
        (with("timeZone", json!("Moon/Crater")), "Moon/Crater"),
        (with("cron", json!("*/70 * * * *")), "*/70 cannot step by 70 among 60 minutes"),
    ] {
        let detail = server.put(&path("p", "s"), &body).await.refused(422, "invalid_schedule");
        assert!(detail.contains(part), "{detail}");
    }
    let detail = server.put(&path("p", "s"), &with("type", json!("moon"))).await.refused(422, "unknown_job_type");
    assert!(detail.contains("known types: echo, noop"), "{detail}");
    let misfit = json!({ "cron": "@daily", "type": "echo", "payload": { "wait": 1 } });
    server.put(&path("p", "s"), &misfit).await.refused(422, "invalid_payload");
    let large = with("payload", json!({ "x": "y".repeat(300_000) }));
    server.put(&path("p", "s"), &large).await.refused(413, "payload_too_large");
    for wrong in [
        json!({ "cron": "@daily" }),
        with("catchUp", json!("some")),
        with("every", json!("day")),
        with("priority", json!(1000)),
        json!([]),
    ] {
        server.put(&path("p", "s"), &wrong).await.refused(400, "invalid_request");
    }
    for (project, name) in [("a%2Fb", "s"), ("p", "a%2Fb"), ("p", "a%20b"), ("p", &"n".repeat(65))] {
        server.put(&path(project, name), &rarely()).await.refused(400, "invalid_request");
        server.get(&path(project, name)).await.refused(400, "invalid_request");
    }
    server.get(&path("p", "s")).await.refused(404, "schedule_not_found");
}
