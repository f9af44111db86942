//! Who may come in, and what they may do: every route, every role, two orgs.

use crate::support::{Ask, JSON, Server, Setup};
use baton_api::door::{Ask as Need, Rate};
use baton_api::routes;
use baton_core::OrgId;
use baton_core::access::{Right, Role};
use baton_wire::{DecisionList, FoundedOrg, Job, KeyList, MadeKey, MadeWebhook, Me, Webhook};
use serde_json::{Value, json};

on_both_databases!(crate::support::runs::working =>
    every_route_asks_every_role,
    without_a_key_only_the_public_is_there,
    keys_are_made_listed_rotated_and_revoked,
    a_scoped_key_sees_its_part_only,
    a_scoped_key_decides_its_part_only,
    of_two_admins_who_revoke_each_other_one_is_left,
    orgs_do_not_see_each_other,
    a_secret_is_nowhere_in_what_is_kept,
);

async fn call(server: &Server, key: &str, method: &str, path: &str, body: &Value) -> crate::support::Reply {
    let text = body.to_string();
    let body = if method == "GET" || method == "DELETE" { &b""[..] } else { text.as_bytes() };
    server.send_as(key, Ask { method, path, headers: &[JSON], body }).await
}

async fn make(server: &Server, as_key: &str, body: Value) -> MadeKey {
    let reply = call(server, as_key, "POST", "/api/v1/keys", &body).await;
    assert_eq!(reply.status, 201, "{reply:?}");
    reply.parse()
}

async fn key_of(server: &Server, role: Role) -> String {
    make(server, &server.admin, json!({ "label": role.as_str(), "role": role })).await.secret.unwrap()
}

async fn org(server: &Server, name: &str) -> String {
    let reply = call(server, &server.admin, "POST", "/api/v1/orgs", &json!({ "org": name })).await;
    assert_eq!(reply.status, 201, "{reply:?}");
    reply.parse::<FoundedOrg>().key.secret.unwrap()
}

/// A path of a route with ids that nobody was given.
fn filled(path: &str) -> String {
    let none = "0193a1b2c3d47001800000000000002a";
    path.replace("{jobId}", &format!("job_{none}"))
        .replace("{keyId}", &format!("key_{none}"))
        .replace("{decisionId}", &format!("dec_{none}"))
        .replace("{webhookId}", &format!("whk_{none}"))
        .replace("{runId}", &format!("run_{none}"))
        .replace("{agentId}", &format!("agt_{none}"))
        .replace("{id}", &format!("run_{none}"))
        .replace("{projectId}", "p")
        .replace("{name}", "s")
        .replace("{lane}", "project:p")
        .replace("{type}", "mail")
        // It would never end.
        .replace("/stream", "/stream?after=nowhere")
}

async fn every_route_asks_every_role(server: &Server) {
    let acme = org(server, "acme").await;
    for role in Role::ALL {
        let key = key_of(server, role).await;
        for route in routes() {
            let reply = call(server, &key, route.method.as_str(), &filled(route.path), &json!({})).await;
            let may = match route.ask {
                Need::Nobody | Need::Anybody => true,
                Need::Right(right) | Need::Installation(right) => role.may(right),
            };
            let what = format!("{role} {} {}: {reply:?}", route.method, route.path);
            if may {
                assert!(reply.status != 401 && reply.status != 403, "{what}");
            } else {
                assert_eq!(reply.refused(403, "forbidden").split(' ').nth(2), Some(role.as_str()), "{what}");
            }
        }
    }
    // What is about everybody is for whoever governs the first org.
    for route in routes() {
        let reply = call(server, &acme, route.method.as_str(), &filled(route.path), &json!({})).await;
        match route.ask {
            Need::Installation(_) => drop(reply.refused(403, "forbidden")),
            _ => assert!(reply.status != 401 && reply.status != 403, "{} {reply:?}", route.path),
        }
    }
}

async fn without_a_key_only_the_public_is_there(server: &Server) {
    let unknown = format!("bk_{}_{}", "1".repeat(32), "2".repeat(64));
    let wrong = format!("{}{}", &server.admin[..99], if server.admin.ends_with('0') { '1' } else { '0' });
    for route in routes() {
        let public = route.ask == Need::Nobody;
        for key in ["", &unknown, &wrong] {
            let reply = call(server, key, route.method.as_str(), &filled(route.path), &json!({})).await;
            if public {
                // A ticket is shown instead of a key, and here is none.
                let expected = match (route.method.as_str(), route.path) {
                    ("POST", "/api/v1/session") => 400,
                    ("DELETE", _) => 204,
                    _ => 200,
                };
                assert_eq!(reply.status, expected, "{} {reply:?}", route.path);
            } else {
                reply.refused(401, "unauthenticated");
                assert_eq!(reply.header("www-authenticate"), Some("Bearer"), "{reply:?}");
            }
        }
    }
}

async fn keys_are_made_listed_rotated_and_revoked(server: &Server) {
    let made = make(server, &server.admin, json!({ "label": "ci", "role": "operator" })).await;
    let (id, first) = (made.key.id, made.secret.unwrap());
    let me: Me = call(server, &first, "GET", "/api/v1/me", &json!({})).await.ok();
    assert_eq!((me.org, me.key.id), (OrgId::default(), id));
    assert!(me.rights.contains(&Right::Enqueue.to_string()) && !me.rights.contains(&Right::Keys.to_string()));
    let list: KeyList = call(server, &server.admin, "GET", "/api/v1/keys", &json!({})).await.ok();
    assert_eq!(list.keys.iter().map(|key| key.label.as_str()).collect::<Vec<_>>(), ["ci", "first admin key"]);
    let rotate = format!("/api/v1/keys/{id}/rotate");
    let second: MadeKey = call(server, &server.admin, "POST", &rotate, &json!({ "graceMs": 600_000 })).await.ok();
    let second = second.secret.unwrap();
    for key in [&first, &second] {
        assert_eq!(call(server, key, "GET", "/api/v1/me", &json!({})).await.status, 200);
    }
    let third: MadeKey = call(server, &server.admin, "POST", &rotate, &json!({})).await.ok();
    let third = third.secret.unwrap();
    for key in [&first, &second] {
        call(server, key, "GET", "/api/v1/me", &json!({})).await.refused(401, "unauthenticated");
    }
    let revoke = format!("/api/v1/keys/{id}/revoke");
    assert_eq!(call(server, &server.admin, "POST", &revoke, &json!({})).await.status, 200);
    call(server, &third, "GET", "/api/v1/me", &json!({})).await.refused(401, "unauthenticated");
    call(server, &server.admin, "POST", &rotate, &json!({})).await.refused(409, "key_dead");
    let me: Me = call(server, &server.admin, "GET", "/api/v1/me", &json!({})).await.ok();
    let own = format!("/api/v1/keys/{}/revoke", me.key.id);
    call(server, &server.admin, "POST", &own, &json!({})).await.refused(409, "own_key");
    for (bad, code) in [
        (json!({ "label": "x", "role": "root" }), "invalid_request"),
        (json!({ "label": "x" }), "invalid_request"),
        (json!({ "label": "", "role": "viewer" }), "invalid_key"),
        (json!({ "label": "x", "role": "viewer", "projects": [] }), "invalid_key"),
        (json!({ "label": "x", "role": "admin", "projects": ["p"] }), "invalid_key"),
        (json!({ "label": "x", "role": "viewer", "expiresAt": "2001-01-01T00:00:00Z" }), "invalid_key"),
    ] {
        let reply = call(server, &server.admin, "POST", "/api/v1/keys", &bad).await;
        let status = if code == "invalid_request" { 400 } else { 422 };
        reply.refused(status, code);
    }
    // The secret of a repeated request is not said again: it is known to nobody any more.
    let body = json!({ "label": "twice", "role": "viewer" }).to_string();
    let once = server.post_keyed("/api/v1/keys", &body, "k-1").await.parse::<MadeKey>();
    let again = server.post_keyed("/api/v1/keys", &body, "k-1").await;
    assert!(again.replayed() && once.secret.is_some());
    let again = again.parse::<MadeKey>();
    assert_eq!((again.key, again.secret), (once.key, None));
}

async fn a_scoped_key_sees_its_part_only(server: &Server) {
    let scoped = json!({ "label": "p only", "role": "operator", "projects": ["p"], "types": ["echo"] });
    let key = make(server, &server.admin, scoped).await.secret.unwrap();
    let job = |project: &str, kind: &str| json!({ "type": kind, "projectId": project });
    let mine: Job = call(server, &key, "POST", "/api/v1/jobs", &job("p", "echo")).await.parse();
    for (project, kind) in [("q", "echo"), ("p", "noop")] {
        call(server, &key, "POST", "/api/v1/jobs", &job(project, kind)).await.refused(403, "out_of_scope");
        let batch = json!({ "jobs": [job("p", "echo"), job(project, kind)] });
        call(server, &key, "POST", "/api/v1/jobs/batch", &batch).await.refused(403, "out_of_scope");
    }
    assert_eq!(call(server, &key, "GET", &format!("/api/v1/jobs/{}", mine.id), &json!({})).await.status, 200);
    let theirs = server.enqueue(job("q", "echo")).await;
    let noop = server.enqueue(job("p", "noop")).await;
    for id in [theirs.id, noop.id] {
        for (method, path) in [
            ("GET", format!("/api/v1/jobs/{id}")),
            ("GET", format!("/api/orchestrator/jobs/{id}")),
            ("POST", format!("/api/v1/jobs/{id}/cancel")),
            ("POST", format!("/api/orchestrator/jobs/{id}/cancel")),
            ("POST", format!("/api/v1/jobs/{id}/wake")),
            ("POST", format!("/api/v1/jobs/{id}/requeue")),
        ] {
            call(server, &key, method, &path, &json!({})).await.refused(404, "job_not_found");
        }
    }
    call(server, &key, "GET", "/api/v1/projects/q/jobs", &json!({})).await.refused(403, "out_of_scope");
    let list: baton_wire::JobList = call(server, &key, "GET", "/api/v1/projects/p/jobs", &json!({})).await.ok();
    assert_eq!(list.jobs.iter().map(|job| job.id).collect::<Vec<_>>(), [mine.id]);
    // A schedule of another type in its own project is not there either, and a lane is for all types.
    let spec = json!({ "cron": "0 0 1 1 *", "type": "noop" });
    assert_eq!(server.put("/api/v1/projects/p/schedules/s", &spec).await.status, 201);
    let ours = json!({ "cron": "0 0 1 1 *", "type": "echo" });
    for (method, path, body) in [
        ("GET", "/api/v1/projects/p/schedules/s", json!({})),
        ("DELETE", "/api/v1/projects/p/schedules/s", json!({})),
        ("POST", "/api/v1/projects/p/schedules/s/pause", json!({})),
        ("PUT", "/api/v1/projects/p/schedules/s", ours),
    ] {
        call(server, &key, method, path, &body).await.refused(404, "schedule_not_found");
    }
    call(server, &key, "POST", "/api/v1/lanes/project:p/pause", &json!({})).await.refused(403, "out_of_scope");
    // Nor is it told what an admin's request came to, by saying the same under the same key.
    let letters = "/api/v1/dead-letters/requeue";
    for (body, status) in [
        (json!({ "all": true }), 403),
        (json!({ "projectId": "p" }), 403),
        (json!({ "type": "echo" }), 403),
        (json!({ "projectId": "q", "type": "echo" }), 403),
        (json!({ "projectId": "p", "type": "echo" }), 200),
    ] {
        let text = body.to_string();
        assert_eq!(server.post_keyed(letters, &text, &text).await.status, 200);
        let headers = [JSON, ("Idempotency-Key", text.as_str())];
        let ask = Ask { method: "POST", path: letters, headers: &headers, body: text.as_bytes() };
        assert_eq!(server.send_as(&key, ask).await.status, status, "{body}");
    }
}

async fn of_two_admins_who_revoke_each_other_one_is_left(server: &Server) {
    for round in 0..10 {
        let label = format!("{round}");
        let [a, b] = [
            make(server, &server.admin, json!({ "label": label, "role": "admin" })).await,
            make(server, &server.admin, json!({ "label": label, "role": "admin" })).await,
        ];
        let revoke = async |who: &MadeKey, whom: &MadeKey| {
            let path = format!("/api/v1/keys/{}/revoke", whom.key.id);
            call(server, who.secret.as_ref().unwrap(), "POST", &path, &json!({})).await.status
        };
        let (first, second) = tokio::join!(revoke(&a, &b), revoke(&b, &a));
        assert!([(200, 401), (401, 200)].contains(&(first, second)), "{first} {second}");
    }
}

async fn a_scoped_key_decides_its_part_only(server: &Server) {
    let asking = json!({ "type": "echo", "projectId": "p", "payload": { "ask": { "responsibility": "ops" } } });
    let job = server.enqueue(asking).await;
    server.until(job.id, "job.asked").await;
    let decision = server.get("/api/v1/decisions").await.ok::<DecisionList>().decisions[0].id;
    let resolve = format!("/api/v1/decisions/{decision}/resolve");
    let grant = |more: Value| {
        let mut grant = json!({ "label": "x", "role": "operator", "responsibilities": ["ops"] });
        grant.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        grant
    };
    let yes = json!({ "option": "confirm" });
    for scope in [json!({ "types": ["noop"] }), json!({ "projects": ["q"] })] {
        let key = make(server, &server.admin, grant(scope)).await.secret.unwrap();
        let list: DecisionList = call(server, &key, "GET", "/api/v1/decisions", &json!({})).await.ok();
        assert!(list.decisions.is_empty());
        let path = format!("/api/v1/decisions/{decision}");
        call(server, &key, "GET", &path, &json!({})).await.refused(404, "decision_not_found");
        call(server, &key, "POST", &resolve, &yes).await.refused(404, "decision_not_found");
    }
    let other = json!({ "label": "y", "role": "operator", "responsibilities": ["sales"] });
    let other = make(server, &server.admin, other).await.secret.unwrap();
    call(server, &other, "POST", &resolve, &yes).await.refused(403, "not_responsible");
    let right = make(server, &server.admin, grant(json!({ "types": ["echo"] }))).await.secret.unwrap();
    let headers = [JSON, ("Idempotency-Key", "once")];
    let text = yes.to_string();
    let said = || Ask { method: "POST", path: &resolve, headers: &headers, body: text.as_bytes() };
    assert_eq!(server.send_as(&right, said()).await.status, 200);
    assert!(server.send_as(&right, said()).await.replayed());
    // What was answered is not said again to somebody who could not have answered.
    server.send_as(&other, said()).await.refused(403, "not_responsible");
}

/// A name that only the first org has for anything.
const OURS: &str = "tell-nobody";

async fn orgs_do_not_see_each_other(server: &Server) {
    let acme = org(server, "acme").await;
    call(server, &server.admin, "POST", "/api/v1/orgs", &json!({ "org": "acme" })).await.refused(409, "org_exists");
    // Everything there can be, in the first org.
    let asking = json!({ "type": "echo", "projectId": OURS, "payload": { "ask": { "prompt": "sure?" } } });
    let job = server.enqueue(asking).await;
    server.until(job.id, "job.asked").await;
    let open: DecisionList = server.get("/api/v1/decisions").await.ok();
    let decision = open.decisions[0].id;
    let spec = json!({ "cron": "0 0 1 1 *", "type": "echo" });
    let schedule = format!("/api/v1/projects/{OURS}/schedules/{OURS}");
    assert_eq!(server.put(&schedule, &spec).await.status, 201);
    assert_eq!(server.post(&format!("/api/v1/lanes/project:{OURS}/pause"), &json!({})).await.status, 200);
    let hook = json!({ "label": OURS, "url": "https://hooks.example.com/" });
    let hook: MadeWebhook = server.post("/api/v1/webhooks", &hook).await.parse();
    let hook = hook.webhook.id;
    server.put_type(OURS, json!({ "summary": "sure?" })).await;
    let run = server.make_run(&json!({
        "name": OURS, "project": OURS, "plan": { "agents": [{ "tasks": [{ "steps": [{ "tool": "ask", "input": { "prompt": "sure?" } }] }] }] },
    })).await.id;
    let me: Me = server.get("/api/v1/me").await.ok();
    // No list has any of it.
    let known = [job.id.0, decision.0, hook.0, run.0].map(|id| id.simple().to_string());
    for route in routes() {
        let open = matches!(route.ask, Need::Nobody | Need::Installation(_));
        if route.method != "GET" || route.path.contains('{') || open {
            continue;
        }
        let theirs = call(server, &acme, "GET", &filled(route.path), &json!({})).await;
        let leak = known.iter().map(String::as_str).chain([OURS, "sure?"]).find(|word| theirs.body.contains(*word));
        assert_eq!(leak, None, "{} {theirs:?}", route.path);
    }
    // What is asked for by name is found exactly as it would be if there were nothing.
    let nothing = "0193a1b2c3d47001800000000000002a";
    for route in routes() {
        if matches!(route.ask, Need::Nobody | Need::Anybody | Need::Installation(_)) {
            continue;
        }
        let real = route.path.replace("{jobId}", &job.id.to_string()).replace("{runId}", &run.to_string());
        let real = real.replace("{id}", &run.to_string());
        let real = real.replace("{keyId}", &me.key.id.to_string()).replace("{decisionId}", &decision.to_string());
        let real = real.replace("{webhookId}", &hook.to_string()).replace("{projectId}", OURS).replace("{name}", OURS);
        let real = filled(&real.replace("{lane}", &format!("project:{OURS}")).replace("{type}", OURS));
        let made_up = filled(route.path);
        let body = json!({ "option": "confirm" });
        let body = match route.path {
            "/api/v1/webhooks/{webhookId}" => json!({ "label": "x", "url": "https://hooks.example.com/" }),
            path if path.ends_with("/resolve") => body,
            _ => json!({}),
        };
        let theirs = call(server, &acme, route.method.as_str(), &real, &body).await;
        let nobodys = call(server, &acme, route.method.as_str(), &made_up, &body).await;
        assert_eq!(theirs.status, nobodys.status, "{} {}", route.method, route.path);
        let same = |text: &str| {
            let mut text = text.to_owned();
            for id in [job.id.0, me.key.id.0, decision.0, hook.0, run.0] {
                text = text.replace(&id.simple().to_string(), nothing);
            }
            // What was asked for is said again; `filled` asks for these.
            let text = text.replace(&format!("schedule called {OURS}"), "schedule called s");
            let text = text.replace(&format!("job type {OURS}"), "job type mail");
            let text = text.replace(&format!("\"type\":\"{OURS}\""), "\"type\":\"mail\"").replace(OURS, "p");
            let mut value: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
            if let Some(map) = value.as_object_mut() {
                map.remove("requestId");
            }
            value
        };
        assert_eq!(same(&theirs.body), same(&nobodys.body), "{} {}", route.method, route.path);
        assert!(!theirs.body.contains("sure?"), "{theirs:?}");
    }
    // Nor by naming it in a query or a body.
    let ids = [job.id.to_string(), decision.to_string(), hook.to_string(), me.key.id.to_string()];
    for path in
        ids.iter().flat_map(|id| [format!("/api/v1/decisions?subject={id}"), format!("/api/v1/events?after={id}")])
    {
        let reply = call(server, &acme, "GET", &path, &json!({})).await;
        assert!(!reply.body.contains("sure?") && !reply.body.contains(OURS), "{path} {reply:?}");
    }
    let listed: DecisionList =
        call(server, &acme, "GET", &format!("/api/v1/decisions?subject={}", job.id), &json!({})).await.ok();
    assert!(listed.decisions.is_empty());
    let named = json!({ "jobIds": [job.id] });
    call(server, &acme, "POST", "/api/v1/dead-letters/requeue", &named).await.refused(404, "job_not_found");
    // Nothing was done to it either.
    assert_eq!(server.job(job.id).await.state, job_state_asking());
    let lanes: Value = server.get(&format!("/api/v1/lanes/project:{OURS}")).await.ok();
    assert_eq!(lanes["paused"], true);
    let kept: Value = server.get(&schedule).await.ok();
    assert_eq!(kept["paused"], false);
    let kept: Webhook = server.get(&format!("/api/v1/webhooks/{hook}")).await.ok();
    assert!(kept.enabled);
}

fn job_state_asking() -> baton_wire::JobState {
    baton_wire::JobState::AwaitingUserConfirmation
}

async fn a_secret_is_nowhere_in_what_is_kept(server: &Server) {
    let made = make(server, &server.admin, json!({ "label": "ci", "role": "operator" })).await;
    let secret = made.secret.unwrap();
    let bare = secret.rsplit('_').next().unwrap();
    let events: Value = server.get("/api/v1/events?limit=1000").await.ok();
    let keys = server.get("/api/v1/keys").await;
    for text in [events.to_string(), keys.body] {
        assert!(!text.contains(bare) && !text.contains("proof"), "{text}");
    }
}

mod paced {
    use super::*;

    fn slow() -> Setup {
        Setup { rate: Some(Rate { per_second: 1, burst: 3 }), ..Setup::default() }
    }

    on_both_databases!(super::slow => a_key_that_asks_too_fast_is_told_when_to_come_again);

    async fn a_key_that_asks_too_fast_is_told_when_to_come_again(server: &Server) {
        let mut refused = None;
        for _ in 0..10 {
            let reply = server.get("/api/v1/me").await;
            assert!(reply.header("ratelimit").is_some() && reply.header("ratelimit-policy").is_some(), "{reply:?}");
            if reply.status == 429 {
                refused = Some(reply);
                break;
            }
        }
        refused.expect("it was never told to slow down").refused(429, "rate_limited");
        assert_eq!(server.get("/healthz").await.status, 200, "probes are nobody's");
    }
}
