//! The document and the server say the same. That no answer is undescribed is checked by the support of
//! all tests; here every operation is asked at least once, and what only the server knows is compared.

use crate::support::{Ask, Database, JSON, Reply, SIGNER, Server, Setup};
use baton_api::{document, routes};
use baton_core::webhook::sign::Signer;
use baton_engine::webhook::{Carried, Carrier, Deliver, Parcel, Undelivered};
use baton_wire::worker::Leases;
use baton_wire::{DecisionList, LoginLink, MadeKey, MadeWebhook};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

on_both_databases!(crate::openapi::delivering => every_operation_succeeds_as_described);

/// What is sent to webhooks gets lost.
struct Lost;

impl Carrier for Lost {
    fn carry(&self, _: Parcel) -> Carried {
        let why = Undelivered { code: "lost".to_owned(), detail: String::new(), transient: false };
        Box::pin(async { Err(why) })
    }
}

fn delivering() -> Setup {
    let mut setup = crate::support::runs::working();
    setup.registry.deliver(Deliver { signer: Signer::new(SIGNER), carrier: Arc::new(Lost) });
    setup
}

async fn on_sqlite(test: impl AsyncFnOnce(&Server)) {
    crate::support::run(Database::Sqlite, test).await;
}

#[derive(Default)]
struct Seen(BTreeSet<(String, u16)>);

impl Seen {
    /// Asks, and remembers what was answered under the name of the route.
    async fn ask(&mut self, server: &Server, method: &str, route: &str, fill: &[(&str, &str)], body: &Value) -> Reply {
        let mut path = route.to_owned();
        for (name, value) in fill {
            path = path.replace(&format!("{{{name}}}"), value);
        }
        let text = body.to_string();
        let body = if ["POST", "PUT"].contains(&method) { text.as_bytes() } else { b"" };
        let headers = [JSON, ("Idempotency-Key", &format!("{method} {path} {text}"))];
        let reply = server.send(Ask { method, path: &path, headers: &headers, body }).await;
        self.0.insert((format!("{method} {route}"), reply.status));
        reply
    }
}

/// What a worker can say, each about a job of its own.
async fn work(seen: &mut Seen, server: &Server) {
    const TYPE: &str = "/api/v1/job-types/{type}";
    let (name, none) = (&[("type", "mail")][..], json!({}));
    for summary in ["one", "two"] {
        let body = json!({ "summary": summary, "lane": { "key": "mail" } });
        seen.ask(server, "PUT", TYPE, name, &body).await;
    }
    for route in [TYPE, "/api/v1/job-types"] {
        seen.ask(server, "GET", route, name, &none).await;
    }
    for _ in 0..6 {
        server.enqueue(json!({ "type": "mail", "projectId": "p" })).await;
    }
    let lease = "/api/v1/worker/lease";
    let got: Leases = seen.ask(server, "POST", lease, &[], &json!({ "types": ["mail"], "max": 6 })).await.ok();
    let leases: Vec<&str> = got.leases.iter().map(|got| got.lease.as_str()).collect();
    let [a, b, c, d, e, f] = leases[..] else { panic!("{leases:?}") };
    for (act, body) in [
        ("heartbeat", json!({ "leases": [a] })),
        ("progress", json!({ "lease": a, "percent": 5 })),
        ("complete", json!({ "lease": a })),
        ("fail", json!({ "lease": b, "code": "broken" })),
        ("park", json!({ "lease": c, "seen": 0 })),
        ("ask", json!({ "lease": d, "question": { "prompt": "sure?" } })),
        ("release", json!({ "lease": e })),
        ("settle", json!({ "outcomes": [{ "lease": f, "complete": {} }] })),
    ] {
        seen.ask(server, "POST", &format!("/api/v1/worker/{act}"), &[], &body).await;
    }
}

async fn every_operation_succeeds_as_described(server: &Server) {
    let mut seen = Seen::default();
    let none = json!({});
    let echo = |payload: Value| json!({ "type": "echo", "projectId": "p", "payload": payload, "messageId": null });

    // Jobs that have failed, wait for somebody, and wait to be woken.
    let failed = server.enqueue(echo(json!({ "fail": "deterministic" }))).await;
    server.until(failed.id, "job.failed").await;
    let second = server.enqueue(echo(json!({ "fail": "deterministic" }))).await;
    server.until(second.id, "job.failed").await;
    let asking = server.enqueue(echo(json!({ "ask": true }))).await;
    server.until(asking.id, "job.asked").await;
    let parked = server.enqueue(echo(json!({ "wait": true }))).await;
    server.until(parked.id, "job.parked").await;

    let one = json!({ "type": "noop", "projectId": "q", "messageId": "m-1" });
    seen.ask(server, "POST", "/api/v1/jobs", &[], &one).await;
    let again = json!({ "type": "noop", "projectId": "q", "messageId": "m-1", "priority": 5 });
    seen.ask(server, "POST", "/api/v1/jobs", &[], &again).await;
    for _ in 0..2 {
        let batch = json!({ "jobs": [one, { "type": "echo", "projectId": "q", "priority": "interactive" }] });
        seen.ask(server, "POST", "/api/v1/jobs/batch", &[], &batch).await;
    }

    let failed_id = failed.id.to_string();
    let parked_id = parked.id.to_string();
    let (dead, waits) = (&[("jobId", failed_id.as_str())][..], &[("jobId", parked_id.as_str())][..]);
    for _ in 0..2 {
        seen.ask(server, "POST", "/api/v1/jobs/{jobId}/requeue", dead, &none).await;
    }
    for requeue in [json!({ "jobIds": [second.id] }), json!({ "projectId": "nowhere" })] {
        seen.ask(server, "POST", "/api/v1/dead-letters/requeue", &[], &requeue).await;
    }
    seen.ask(server, "GET", "/api/v1/dead-letters", &[], &none).await;
    seen.ask(server, "POST", "/api/v1/jobs/{jobId}/wake", waits, &none).await;
    for route in ["/api/v1/jobs/{jobId}", "/api/orchestrator/jobs/{jobId}"] {
        seen.ask(server, "GET", route, dead, &none).await;
    }
    let cancelled = server.enqueue(echo(json!({ "delay_ms": 3_600_000 }))).await.id.to_string();
    for route in ["/api/v1/jobs/{jobId}/cancel", "/api/orchestrator/jobs/{jobId}/cancel"] {
        seen.ask(server, "POST", route, &[("jobId", &cancelled)], &json!({ "reason": "enough" })).await;
    }
    for route in ["/api/v1/projects/{projectId}/jobs", "/api/projects/{projectId}/orchestrator/jobs"] {
        seen.ask(server, "GET", route, &[("projectId", "p")], &none).await;
    }

    let lane = &[("lane", "project:p")][..];
    for (method, route) in [
        ("POST", "/api/v1/lanes/{lane}/pause"),
        ("GET", "/api/v1/lanes/{lane}"),
        ("GET", "/api/v1/lanes"),
        ("POST", "/api/v1/lanes/{lane}/resume"),
    ] {
        seen.ask(server, method, route, lane, &none).await;
    }

    let name = &[("projectId", "p"), ("name", "s")][..];
    const SCHEDULE: &str = "/api/v1/projects/{projectId}/schedules/{name}";
    for hour in [1, 2] {
        let spec = json!({ "cron": format!("0 {hour} * * *"), "type": "noop", "priority": 7, "timeZone": null });
        seen.ask(server, "PUT", SCHEDULE, name, &spec).await;
    }
    for act in ["pause", "resume"] {
        seen.ask(server, "POST", &format!("{SCHEDULE}/{act}"), name, &none).await;
    }
    for (method, route) in [("GET", SCHEDULE), ("GET", "/api/v1/schedules"), ("DELETE", SCHEDULE)] {
        seen.ask(server, method, route, name, &none).await;
    }

    let open: DecisionList = seen.ask(server, "GET", "/api/v1/decisions", &[], &none).await.ok();
    let id = open.decisions[0].id.to_string();
    let decision = &[("decisionId", id.as_str())][..];
    seen.ask(server, "GET", "/api/v1/decisions/{decisionId}", decision, &none).await;
    let answer = json!({ "option": "confirm", "comment": "yes", "data": [1] });
    seen.ask(server, "POST", "/api/v1/decisions/{decisionId}/resolve", decision, &answer).await;
    server.until(asking.id, "job.completed").await;
    work(&mut seen, server).await;

    runs(server, &mut seen).await;

    let new =
        json!({ "label": "x", "role": "viewer", "responsibilities": ["cto"], "projects": ["p"], "types": ["echo"] });
    let made: MadeKey = seen.ask(server, "POST", "/api/v1/keys", &[], &new).await.parse();
    seen.ask(server, "POST", "/api/v1/keys", &[], &new).await;
    let id = made.key.id.to_string();
    let key = &[("keyId", id.as_str())][..];
    for (method, route) in [
        ("GET", "/api/v1/keys"),
        ("GET", "/api/v1/keys/{keyId}"),
        ("POST", "/api/v1/keys/{keyId}/rotate"),
        ("POST", "/api/v1/keys/{keyId}/revoke"),
        ("GET", "/api/v1/me"),
        ("GET", "/api/v1/orgs"),
    ] {
        seen.ask(server, method, route, key, &none).await;
    }

    let link: LoginLink = seen.ask(server, "POST", "/api/v1/login-links", &[], &none).await.parse();
    let ticket = json!({ "ticket": link.path.split('#').nth(1).unwrap() });
    seen.ask(server, "POST", "/api/v1/session", &[], &ticket).await;
    seen.ask(server, "DELETE", "/api/v1/session", &[], &none).await;

    let new = json!({ "label": "x", "url": "https://hooks.invalid/x", "types": ["decision.*"], "projects": null });
    let made: MadeWebhook = seen.ask(server, "POST", "/api/v1/webhooks", &[], &new).await.parse();
    seen.ask(server, "POST", "/api/v1/webhooks", &[], &new).await;
    let id = made.webhook.id.to_string();
    let webhook = &[("webhookId", id.as_str())][..];
    const WEBHOOK: &str = "/api/v1/webhooks/{webhookId}";
    for act in ["disable", "enable", "rotate", "test", "test"] {
        seen.ask(server, "POST", &format!("{WEBHOOK}/{act}"), webhook, &none).await;
    }
    for (method, route) in
        [("PUT", WEBHOOK), ("GET", WEBHOOK), ("GET", &format!("{WEBHOOK}/deliveries")), ("DELETE", WEBHOOK)]
    {
        seen.ask(server, method, route, webhook, &new).await;
    }

    for _ in 0..2 {
        seen.ask(server, "POST", "/api/v1/orgs", &[], &json!({ "org": "acme" })).await;
    }
    for route in routes().iter().filter(|route| route.method == "GET" && !route.path.contains('{')) {
        if !LISTENING.contains(&route.path) {
            seen.ask(server, "GET", route.path, &[], &none).await;
        }
    }
    for path in LISTENING {
        let status = listen(server, path).await;
        seen.0.insert((format!("GET {path}"), status));
    }

    // Every success that the document promises was seen, and it promises no other.
    let mut promised = BTreeSet::new();
    for route in routes() {
        let operation = &document()["paths"][route.path][route.method.as_str().to_lowercase()];
        for status in
            operation["responses"].as_object().unwrap().keys().filter(|status| !status.starts_with(['4', '5']))
        {
            promised.insert((format!("{} {}", route.method, route.path), status.parse().unwrap()));
        }
    }
    let missing: Vec<_> = promised.difference(&seen.0).collect();
    let others: Vec<_> = seen.0.difference(&promised).collect();
    assert!(missing.is_empty() && others.is_empty(), "not seen: {missing:?}; seen instead: {others:?}");
}

/// One run through all that can be asked of it, and one that fails.
async fn runs(server: &Server, seen: &mut Seen) {
    let none = json!({});
    for _ in 0..2 {
        seen.ask(server, "POST", "/api/v1/credits/grants", &[], &json!({ "amount": "100" })).await;
    }
    let step = |tool: &str, input: Value| json!({ "tool": tool, "input": input });
    let waits = crate::support::runs::document("p", &[step("wait", json!({ "signal": "never" }))]);
    let run: baton_wire::Run = seen.ask(server, "POST", "/api/v1/runs", &[], &waits).await.parse();
    seen.ask(server, "POST", "/api/v1/runs", &[], &waits).await;
    let id = run.id.to_string();
    let of = &[("runId", id.as_str())][..];
    const RUN: &str = "/api/v1/runs/{runId}";
    seen.ask(server, "POST", &format!("{RUN}/start"), of, &none).await;
    server.until_waiting(&run, "signal").await;
    let agents: baton_wire::AgentList = server.part(&run, "agents").await;
    let agent = agents.agents[0].id.to_string();
    let with = &[("runId", id.as_str()), ("agentId", agent.as_str()), ("name", "x"), ("id", id.as_str())][..];
    for act in ["agents/{agentId}/pause", "agents/{agentId}/resume", "signals/{name}", "pause", "resume", "cancel"] {
        assert_eq!(seen.ask(server, "POST", &format!("{RUN}/{act}"), with, &none).await.status, 200, "{act}");
    }
    for part in ["", "/document", "/agents", "/tasks", "/steps", "/attempts", "/events", "/ledger"] {
        seen.ask(server, "GET", &format!("{RUN}{part}"), of, &none).await;
    }
    seen.ask(server, "GET", "/api/v1/why/{id}", with, &none).await;
    seen.ask(server, "DELETE", RUN, of, &none).await;
    let fails = server.start_run(&crate::support::runs::document("p", &[step("boom", json!({}))])).await;
    server.run_until(&fails, "failed").await;
    let failed = fails.id.to_string();
    seen.ask(server, "POST", &format!("{RUN}/retry"), &[("runId", &failed)], &none).await;
}

/// Answered without end.
const LISTENING: [&str; 2] = ["/api/v1/events/stream", "/api/ws"];

/// The status that listening begins with, and what it promises to speak.
async fn listen(server: &Server, path: &str) -> u16 {
    let mut stream = server.connect().await;
    let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                   Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    let upgrade = if path.ends_with("/ws") { upgrade } else { "" };
    let head =
        format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n{upgrade}\r\n", server.admin);
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut read = Vec::new();
    while !read.windows(4).any(|bytes| bytes == b"\r\n\r\n") {
        read.push(tokio::time::timeout(crate::support::PATIENCE, stream.read_u8()).await.unwrap().unwrap());
    }
    let head = String::from_utf8(read).unwrap();
    let status = head.split(' ').nth(1).unwrap().to_owned();
    let contents = &document()["paths"][path]["get"]["responses"][status.as_str()]["content"];
    for media in contents.as_object().into_iter().flat_map(|all| all.keys()) {
        assert!(head.to_lowercase().contains(&format!("\r\ncontent-type: {media}")), "{head}");
    }
    status.parse().unwrap()
}

#[tokio::test]
async fn the_document_is_served_and_so_are_its_pages() {
    on_sqlite(async |server| {
        // Nobody needs a key to read what needs one.
        let get = async |path| server.send_as("", Ask { path, ..Ask::default() }).await;
        let served = get("/openapi.json").await;
        assert_eq!(served.ok::<Value>(), *document());
        for path in ["/docs", "/docs/errors", "/docs/api"] {
            let page = get(path).await;
            assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
            let policy = page.header("content-security-policy").unwrap();
            assert!(policy.starts_with("default-src 'none'; style-src 'self'; "), "{policy}");
            assert!(page.body.contains("href=\"/docs/style.css\""));
        }
        assert_eq!(get("/docs/style.css").await.header("content-type"), Some("text/css; charset=utf-8"));
    })
    .await;
}

fn filled(path: &str) -> String {
    let none = "0193a1b2c3d47001800000000000002a";
    let path = path.replace("{jobId}", &format!("job_{none}")).replace("{keyId}", &format!("key_{none}"));
    let path = path.replace("{decisionId}", &format!("dec_{none}")).replace("{projectId}", "p");
    let path = path.replace("{webhookId}", &format!("whk_{none}"));
    let path = path.replace("{runId}", &format!("run_{none}")).replace("{agentId}", &format!("agt_{none}"));
    let path = path.replace("{id}", &format!("run_{none}"));
    path.replace("{name}", "s").replace("{lane}", "project:p").replace("{type}", "mail")
}

#[tokio::test]
async fn parameters_are_those_that_handlers_read_and_no_others() {
    on_sqlite(async |server| {
        for route in routes().into_iter().filter(|route| route.path.starts_with("/api/")) {
            let operation = &document()["paths"][route.path][route.method.as_str().to_lowercase()];
            let params = operation["parameters"].as_array().unwrap().iter().filter(|param| param["in"] == "query");
            let told: BTreeSet<&str> = params.map(|param| param["name"].as_str().unwrap()).collect();
            let ask = Ask {
                method: route.method.as_str(),
                path: &format!("{}?nonsense=1", filled(route.path)),
                headers: &[JSON],
                body: b"{}",
            };
            let body = if ["GET", "DELETE"].contains(&ask.method) { b"" } else { ask.body };
            let detail = server.send(Ask { body, ..ask }).await.refused(400, "invalid_request");
            let read = detail.split_once("this route takes ").unwrap().1;
            let read: BTreeSet<&str> =
                if read == "no parameters" { BTreeSet::new() } else { read.split(", ").collect() };
            assert_eq!(told, read, "{} {}", route.method, route.path);
        }
    })
    .await;
}

#[tokio::test]
async fn numbers_are_accepted_within_their_bounds_and_not_beyond() {
    crate::support::run_with(Database::Sqlite, crate::support::runs::working(), async |server: &Server| {
        let run = server.make_run(&baton_wire::run::example()).await.id.to_string();
        let new = json!({ "label": "x", "url": "https://hooks.invalid/x" });
        let webhook = server.post("/api/v1/webhooks", &new).await.parse::<MadeWebhook>().webhook.id.to_string();
        server.put_type("mail", json!({})).await;
        for route in routes().into_iter().filter(|route| route.method == "GET") {
            let path = filled(&route.path.replace("{webhookId}", &webhook).replace("{runId}", &run));
            let operation = &document()["paths"][route.path]["get"];
            for param in
                operation["parameters"].as_array().unwrap().iter().filter(|param| param["schema"]["type"] == "integer")
            {
                let name = param["name"].as_str().unwrap();
                let (min, max) =
                    (param["schema"]["minimum"].as_i64().unwrap(), param["schema"]["maximum"].as_i64().unwrap());
                // There may be so many versions, but there are not.
                let last = if name == "version" { 404 } else { 200 };
                for (number, status) in [(min, 200), (max, last), (min - 1, 400), (max + 1, 400)] {
                    let reply = server.get(&format!("{path}?{name}={number}")).await;
                    assert_eq!(reply.status, status, "{} {name}={number} {reply:?}", route.path);
                }
            }
        }
    })
    .await;
}
