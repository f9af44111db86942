//! Runs over HTTP, from their document to their end.

use crate::support::runs::{document, step};
use crate::support::{Ask, Database, JSON, Server};
use baton_core::run::{AgentState, State, StepState, TaskState};
use baton_wire::{AgentList, AttemptList, EventList, LedgerList, Problem, Run, RunAction, StepList, TaskList};
use serde_json::{Value, json};

on_both_databases!(crate::support::runs::working =>
    a_run_is_made_from_json_or_yaml_started_and_completes,
    what_is_wrong_with_a_document_is_told_with_its_place,
    a_run_without_credits_is_refused_and_made_once_under_one_key,
    a_run_is_paused_resumed_and_cancelled,
    agents_are_held_one_by_one,
    a_failed_run_is_retried_while_its_attempts_last,
    a_retry_that_cannot_be_paid_is_refused,
    what_a_state_does_not_allow_is_refused,
    signals_and_answers_let_a_run_go_on,
    a_deleted_run_is_hidden_and_nothing_of_it_is_lost,
    a_narrowed_key_reaches_the_runs_of_its_projects,
    jobs_of_agents_are_steered_through_their_run,
    what_happens_to_runs_is_heard_by_project,
);

async fn a_run_is_made_from_json_or_yaml_started_and_completes(server: &Server) {
    assert_eq!(server.grant("10", "first").await.status, 201);
    let steps = [step("note", json!({ "say": "a" })), step("note", json!({ "say": "${steps.step-1.say}" }))];
    let json = document("p", &steps);
    let yaml = "name: a run\nproject: p\nplan:\n  agents:\n  - name: one\n    tasks:\n    - name: only\n      steps:\n      \
                - tool: note\n        input: {say: a}\n      - tool: note\n        input: {say: \"${steps.step-1.say}\"}\n";
    let reply = server.send_yaml(yaml).await;
    assert_eq!(reply.status, 201, "{reply:?}");
    let (a, b) = (server.make_run(&json).await, reply.parse::<Run>());
    for run in [&a, &b] {
        assert_eq!((run.status, run.attempt_number, run.duration_ms), (State::Created, 0, None));
        assert_eq!(run.allowed_actions, [RunAction::Start, RunAction::Cancel, RunAction::Delete]);
        assert_eq!(run.budget.to_string(), "6", "two steps that are tried three times each");
        let source: Value = server.part(run, "document").await;
        assert_eq!(source["document"], json);
        assert_eq!(source["plan"]["agents"][0]["tasks"][0]["steps"][1]["attempts"], 3);
    }
    let started: Run = server.act(&a, "start").await.ok();
    assert_eq!(started.attempt_number, 1);
    let again: Run = server.act(&a, "start").await.ok();
    assert_eq!(again.attempt_number, 1, "starting twice is starting once");
    let done = server.run_until(&a, "completed").await;
    assert_eq!((done.agent_count, done.task_count, done.step_count), (1, 1, 2));
    let money = [done.credits_reserved, done.credits_charged, done.credits_refunded].map(|credits| credits.to_string());
    assert_eq!(money, ["6", "2", "4"]);
    assert!(done.completed_at.is_some() && done.cancelled_at.is_none() && done.duration_ms.is_some());
    // All that it left behind says the same.
    let agents: AgentList = server.part(&a, "agents").await;
    let [agent] = &agents.agents[..] else { panic!("{agents:?}") };
    assert_eq!((agent.status, agent.tasks_done, agent.tasks_total, agent.steps_done), (AgentState::Completed, 1, 1, 2));
    assert_eq!((agent.charged.to_string(), agent.balance.to_string()), ("2".to_owned(), "0".to_owned()));
    let tasks: TaskList = server.part(&a, "tasks").await;
    assert_eq!(
        tasks.tasks.iter().map(|task| (task.status, task.steps)).collect::<Vec<_>>(),
        [(TaskState::Completed, 2)]
    );
    let steps: StepList = server.part(&a, "steps?results=true").await;
    assert_eq!(steps.steps.iter().map(|step| step.n).collect::<Vec<_>>(), [Some(1), Some(2)]);
    assert!(steps.steps.iter().all(|step| step.result == Some(json!({ "say": "a" }))), "{steps:?}");
    let bare: StepList = server.part(&a, "steps").await;
    assert!(bare.steps.iter().all(|step| step.result.is_none() && step.status == StepState::Completed));
    let attempts: AttemptList = server.part(&a, "attempts").await;
    let [attempt] = &attempts.attempts[..] else { panic!("{attempts:?}") };
    assert_eq!(
        (attempt.status, attempt.step_count, attempt.credits_charged),
        (State::Completed, 2, done.credits_charged)
    );
    let events: EventList = server.part(&a, "events?limit=1000").await;
    let kinds: Vec<_> = events.events.iter().map(|event| event.kind.as_str()).collect();
    for kind in ["run.created", "run.pending", "run.running", "agent.spawned", "step.completed", "run.completed"] {
        assert!(kinds.contains(&kind), "{kind} is not among {kinds:?}");
    }
    let ledger: LedgerList = server.part(&a, "ledger").await;
    let sum = |kind: &str| {
        let entries = ledger.entries.iter().filter(|entry| entry.kind.as_str() == kind);
        entries.map(|entry| entry.amount.micros()).sum::<i64>() / 1_000_000
    };
    assert_eq!((sum("reserved"), sum("charge"), sum("release")), (6, 2, 4));
    assert_eq!(server.run_of(&b).await.status, State::Created, "the other one was not touched");
    server.is_clean().await;
}

async fn what_is_wrong_with_a_document_is_told_with_its_place(server: &Server) {
    let yaml = "name: r\nplan:\n  agents:\n  - tasks:\n    - steps:\n      - tool: slep\n        input: {for: 1s}\ncolour: red\n";
    let reply = server.send_yaml(yaml).await;
    reply.refused(422, "invalid_run");
    let problems = reply.parse::<Problem>().members.problems.unwrap();
    let at: Vec<_> = problems.iter().map(|one| (one.code.as_str(), one.path.as_str(), one.line, one.column)).collect();
    assert!(at.contains(&("unknown_tool", "/plan/agents/0/tasks/0/steps/0/tool", 6, 9)), "{at:?}");
    assert!(at.contains(&("unknown_field", "/colour", 8, 1)), "{at:?}");
    let text = "{\n  \"name\": \"\",\n  \"plan\": {}\n}";
    let ask = Ask { method: "POST", path: "/api/v1/runs", headers: &[JSON], body: text.as_bytes() };
    let reply = server.send(ask).await;
    reply.refused(422, "invalid_run");
    let problems = reply.parse::<Problem>().members.problems.unwrap();
    assert!(problems.iter().any(|one| (one.path.as_str(), one.line) == ("/name", 2)), "{problems:?}");
    for (text, media, code) in [
        ("{\"name\": ", "application/json", "invalid_json"),
        ("name: [", "application/yaml", "invalid_yaml"),
        ("a: &x 1\nb: *x", "text/yaml; charset=utf-8", "invalid_yaml"),
    ] {
        let headers = [("Content-Type", media)];
        let reply =
            server.send(Ask { method: "POST", path: "/api/v1/runs", headers: &headers, body: text.as_bytes() }).await;
        let detail = reply.refused(400, code);
        assert!(detail.starts_with("line "), "{detail}");
        assert_eq!(reply.parse::<Problem>().members.problems.unwrap().len(), 1);
    }
    for media in ["text/plain", "application/yaml; charset=latin1"] {
        let headers = [("Content-Type", media)];
        let ask = Ask { method: "POST", path: "/api/v1/runs", headers: &headers, body: b"name: x" };
        server.send(ask).await.refused(415, "unsupported_media_type");
    }
    let listed: Value = server.get("/api/v1/runs").await.ok();
    assert_eq!(listed["runs"], json!([]));
    let schema: Value =
        server.send_as("", Ask { path: "/api/v1/run-document.schema.json", ..Ask::default() }).await.ok();
    assert_eq!(schema, baton_wire::run::schema());
    server.is_clean().await;
}

async fn a_run_without_credits_is_refused_and_made_once_under_one_key(server: &Server) {
    let document = document("p", &[step("note", json!({}))]);
    let reply = server.post("/api/v1/runs", &document).await;
    reply.refused(402, "insufficient_credits");
    let members = reply.parse::<Problem>().members;
    assert_eq!(
        (members.needed.unwrap().to_string(), members.available.unwrap().to_string()),
        ("3".to_owned(), "0".to_owned())
    );
    server.grant("3", "g").await;
    let text = document.to_string();
    let first = server.post_keyed("/api/v1/runs", &text, "once").await;
    let again = server.post_keyed("/api/v1/runs", &text, "once").await;
    assert!(again.replayed() && (first.status, again.status) == (201, 200));
    assert_eq!(first.parse::<Run>(), again.parse::<Run>());
    server
        .post_keyed("/api/v1/runs", &text.replace("a run", "another"), "once")
        .await
        .refused(422, "idempotency_key_reused");
    // Both were made while there was enough; only one can be started.
    let (a, b) = (first.parse::<Run>(), server.make_run(&document).await);
    server.act(&a, "start").await.ok::<Run>();
    // Whether the first has ended or not: what it spent is gone.
    server.act(&b, "start").await.refused(402, "insufficient_credits");
    server.run_until(&a, "completed").await;
    server.is_clean().await;
}

async fn a_run_is_paused_resumed_and_cancelled(server: &Server) {
    let run = server.start_run(&document("p", &[step("wait", json!({ "signal": "never" }))])).await;
    server.until_waiting(&run, "signal").await;
    let running = server.run_of(&run).await;
    assert!(running.last_heartbeat.is_some() && running.deadline_at.is_some(), "{running:?}");
    for _ in 0..2 {
        let paused: Run = server.act(&run, "pause").await.ok();
        assert_eq!((paused.status, paused.paused_at.is_some()), (State::Paused, true));
        assert_eq!(paused.allowed_actions, [RunAction::Resume, RunAction::Cancel]);
    }
    let tasks: TaskList = server.part(&run, "tasks").await;
    assert_eq!(tasks.tasks[0].status, TaskState::Paused);
    let resumed: Run = server.act(&run, "resume").await.ok();
    assert!(matches!(resumed.status, State::Resuming | State::Running), "{resumed:?}");
    server.run_until(&run, "running").await;
    server.until_waiting(&run, "signal").await;
    let cancel = format!("/api/v1/runs/{}/cancel", run.id);
    let cancelled: Run = server.post(&cancel, &json!({ "reason": "enough" })).await.ok();
    assert_eq!((cancelled.status, cancelled.reason.as_deref()), (State::Cancelled, Some("enough")));
    assert!(cancelled.cancelled_at.is_some() && cancelled.completed_at.is_none());
    let again: Run = server.post(&cancel, &json!({})).await.ok();
    assert_eq!(again.reason.as_deref(), Some("enough"), "cancelling twice is cancelling once");
    let long = json!({ "reason": "x".repeat(201) });
    server.post(&cancel, &long).await.refused(400, "invalid_request");
    let steps: StepList = server.part(&run, "steps?status=cancelled").await;
    assert_eq!(steps.steps.len(), 1);
    server.is_clean().await;
}

async fn agents_are_held_one_by_one(server: &Server) {
    let waits = json!([{ "steps": [step("wait", json!({ "signal": "go" }))] }]);
    let agents = json!([{ "name": "a", "tasks": waits }, { "name": "b", "tasks": waits }]);
    let run = server.start_run(&json!({ "name": "two", "project": "p", "plan": { "agents": agents } })).await;
    server.run_until(&run, "running").await;
    let list: AgentList = server.part(&run, "agents").await;
    let [a, b] = &list.agents[..] else { panic!("{list:?}") };
    let act = |agent: &baton_wire::Agent, act: &str| format!("/api/v1/runs/{}/agents/{}/{act}", run.id, agent.id);
    let held: baton_wire::Agent = server.post(&act(a, "pause"), &json!({})).await.ok();
    assert_eq!((held.id, held.status), (a.id, AgentState::Paused));
    server.post(&format!("/api/v1/runs/{}/signals/go", run.id), &json!({ "v": 1 })).await.ok::<Value>();
    let second_ended = async || {
        let list: AgentList = server.part(&run, "agents").await;
        (list.agents[1].status == AgentState::Completed).then_some(())
    };
    server.until_seen("the second agent's end", second_ended).await;
    server.post(&act(b, "pause"), &json!({})).await.refused(409, "invalid_transition");
    assert_eq!(server.run_of(&run).await.status, State::Running, "one of them is held");
    let let_go: baton_wire::Agent = server.post(&act(a, "resume"), &json!({})).await.ok();
    assert_eq!(let_go.status, AgentState::Pending);
    server.run_until(&run, "completed").await;
    let nobody = format!("/api/v1/runs/{}/agents/agt_{}/pause", run.id, "0".repeat(32));
    server.post(&nobody, &json!({})).await.refused(404, "agent_not_found");
    server.is_clean().await;
}

async fn a_failed_run_is_retried_while_its_attempts_last(server: &Server) {
    server.grant("100", "g").await;
    let mut boom = document("p", &[step("boom", json!({}))]);
    boom["max_attempts"] = json!(2);
    let run = server.start_run(&boom).await;
    let failed = server.run_until(&run, "failed").await;
    assert_eq!(failed.last_error.as_ref().unwrap().code, "boom");
    assert_eq!(failed.allowed_actions, [RunAction::Retry, RunAction::Delete]);
    let retried: Run = server.act(&run, "retry").await.ok();
    assert_eq!(retried.attempt_number, 2);
    let failed = server.run_until(&run, "failed").await;
    assert_eq!((failed.attempt_number, &failed.allowed_actions[..]), (2, &[RunAction::Delete][..]));
    let reply = server.act(&run, "retry").await;
    reply.refused(409, "attempts_exhausted");
    assert_eq!(reply.parse::<Problem>().members.limit, Some(2));
    let attempts: AttemptList = server.part(&run, "attempts").await;
    assert_eq!(attempts.attempts.iter().map(|one| one.attempt_number).collect::<Vec<_>>(), [1, 2]);
    let first: AgentList = server.part(&run, "agents?attempt=1").await;
    let second: AgentList = server.part(&run, "agents").await;
    assert_eq!((first.agents[0].run_attempt, second.agents[0].run_attempt), (1, 2));
    assert_ne!(first.agents[0].id, second.agents[0].id);
    let flaky = server.start_run(&document("p", &[step("flaky", json!({}))])).await;
    server.run_until(&flaky, "failed").await;
    server.is_clean().await;
}

async fn a_retry_that_cannot_be_paid_is_refused(server: &Server) {
    server.grant("3", "g").await;
    let run = server.start_run(&document("p", &[step("boom", json!({}))])).await;
    server.run_until(&run, "failed").await;
    let reply = server.act(&run, "retry").await;
    reply.refused(402, "insufficient_credits");
    assert_eq!(reply.parse::<Problem>().members.needed.unwrap().to_string(), "10");
    assert_eq!(server.run_of(&run).await.attempt_number, 1);
    server.is_clean().await;
}

async fn what_a_state_does_not_allow_is_refused(server: &Server) {
    let run = server.make_run(&document("p", &[step("sleep", json!({ "for": "1ms" }))])).await;
    for act in ["pause", "resume", "retry"] {
        let reply = server.act(&run, act).await;
        reply.refused(409, "invalid_transition");
        let members = reply.parse::<Problem>().members;
        assert_eq!(members.from.as_deref(), Some("created"), "{act}");
        assert_eq!(members.allowed.unwrap(), ["pending", "cancelled"], "{act}");
    }
    server.act(&run, "start").await.ok::<Run>();
    server.run_until(&run, "completed").await;
    for act in ["start", "pause", "resume", "cancel", "retry", "signals/late"] {
        server.act(&run, act).await.refused(409, "invalid_transition");
    }
    for act in ["start", "pause", "resume", "cancel", "retry", "signals/x"] {
        let path = format!("/api/v1/runs/run_{}/{act}", "0".repeat(32));
        server.post(&path, &json!({})).await.refused(404, "run_not_found");
        server.post(&format!("/api/v1/runs/nonsense/{act}"), &json!({})).await.refused(404, "run_not_found");
    }
    for part in ["document", "agents", "tasks", "steps", "attempts", "events", "ledger"] {
        server.get(&format!("/api/v1/runs/run_{}/{part}", "0".repeat(32))).await.refused(404, "run_not_found");
    }
    let held = server.start_run(&document("p", &[step("wait", json!({ "signal": "x" }))])).await;
    server.delete(&format!("/api/v1/runs/{}", held.id)).await.refused(409, "invalid_transition");
    server.is_clean().await;
}

async fn signals_and_answers_let_a_run_go_on(server: &Server) {
    let ask = json!({ "prompt": "Ship?", "responsibility": "cto" });
    let steps = [step("wait", json!({ "signal": "built" })), step("ask", ask)];
    let run = server.start_run(&document("p", &steps)).await;
    let signal = format!("/api/v1/runs/{}/signals/built", run.id);
    server.until_waiting(&run, "signal").await;
    for news in [true, false] {
        let said: Value = server.post(&signal, &json!([1, "two"])).await.ok();
        assert_eq!(said, json!({ "run_id": run.id, "name": "built", "news": news }));
    }
    server.post(&format!("/api/v1/runs/{}/signals/a%20b", run.id), &json!({})).await.refused(400, "invalid_request");
    let deep = format!("{}{}", "[".repeat(100), "]".repeat(100));
    let ask = Ask { method: "POST", path: &signal, headers: &[JSON], body: deep.as_bytes() };
    server.send(ask).await.refused(400, "invalid_request");
    let big = json!("x".repeat(300_000));
    server.post(&signal, &big).await.refused(413, "payload_too_large");
    let waiting = server.until_waiting(&run, "answer").await;
    let decision = waiting["waits_for"]["decision_id"].as_str().unwrap().to_owned();
    let resolve = format!("/api/v1/decisions/{decision}/resolve");
    server.post(&resolve, &json!({ "option": "confirm", "data": { "v": 2 } })).await.ok::<Value>();
    server.run_until(&run, "completed").await;
    let steps: StepList = server.part(&run, "steps?results=true").await;
    assert_eq!(steps.steps[0].result.as_ref().unwrap()["data"], json!([1, "two"]));
    assert_eq!(steps.steps[1].result.as_ref().unwrap()["data"], json!({ "v": 2 }));
    server.is_clean().await;
}

async fn a_deleted_run_is_hidden_and_nothing_of_it_is_lost(server: &Server) {
    let run = server.make_run(&document("p", &[step("sleep", json!({ "for": "1ms" }))])).await;
    let path = format!("/api/v1/runs/{}", run.id);
    for _ in 0..2 {
        let deleted: Run = server.delete(&path).await.ok();
        assert!(deleted.deleted_at.is_some() && deleted.allowed_actions.is_empty());
    }
    assert!(server.run_of(&run).await.deleted_at.is_some());
    let listed: Value = server.get("/api/v1/runs").await.ok();
    assert_eq!(listed["runs"], json!([]));
    for act in ["start", "cancel", "signals/x"] {
        server.act(&run, act).await.refused(404, "run_not_found");
    }
    server.is_clean().await;
}

async fn a_narrowed_key_reaches_the_runs_of_its_projects(server: &Server) {
    let key = server.narrowed("p", "operator").await;
    let sleeps = [step("sleep", json!({ "for": "1h" }))];
    let (ours, theirs) =
        (server.start_run(&document("p", &sleeps)).await, server.start_run(&document("q", &sleeps)).await);
    server.until_waiting(&ours, "time").await;
    server.until_waiting(&theirs, "time").await;
    let agents: AgentList = server.part(&theirs, "agents").await;
    let agent = agents.agents[0].id;
    let none = json!({});
    server.ask_as(&key, "POST", "/api/v1/runs", &document("q", &sleeps)).await.refused(403, "out_of_scope");
    let base = format!("/api/v1/runs/{}", theirs.id);
    for part in ["", "/document", "/agents", "/tasks", "/steps", "/attempts", "/events", "/ledger"] {
        server.ask_as(&key, "GET", &format!("{base}{part}"), &none).await.refused(404, "run_not_found");
        let mine = format!("/api/v1/runs/{}{part}", ours.id);
        assert_eq!(server.ask_as(&key, "GET", &mine, &none).await.status, 200, "{part}");
    }
    for act in ["start", "pause", "resume", "cancel", "retry", "signals/x", &format!("agents/{agent}/pause")] {
        server.ask_as(&key, "POST", &format!("{base}/{act}"), &none).await.refused(404, "run_not_found");
    }
    server.ask_as(&key, "DELETE", &base, &none).await.refused(404, "run_not_found");
    server.ask_as(&key, "GET", &format!("/api/v1/why/{}", theirs.id), &none).await.refused(404, "run_not_found");
    server.ask_as(&key, "GET", &format!("/api/v1/why/{agent}.0.0"), &none).await.refused(404, "agent_not_found");
    server.ask_as(&key, "GET", &format!("/api/v1/ledger?account={agent}"), &none).await.refused(404, "agent_not_found");
    let account = format!("/api/v1/ledger?account={}/1", theirs.id);
    server.ask_as(&key, "GET", &account, &none).await.refused(404, "run_not_found");
    for path in ["/api/v1/credits/balance", "/api/v1/ledger"] {
        server.ask_as(&key, "GET", path, &none).await.refused(403, "out_of_scope");
    }
    let listed: baton_wire::RunList = server.ask_as(&key, "GET", "/api/v1/runs", &none).await.ok();
    assert_eq!(listed.runs.iter().map(|run| run.id).collect::<Vec<_>>(), [ours.id]);
    server.ask_as(&key, "GET", "/api/v1/runs?project=q", &none).await.refused(403, "out_of_scope");
    server.is_clean().await;
}

async fn jobs_of_agents_are_steered_through_their_run(server: &Server) {
    let run = server.start_run(&document("p", &[step("sleep", json!({ "for": "1h" }))])).await;
    server.until_waiting(&run, "time").await;
    let agents: AgentList = server.part(&run, "agents").await;
    let job = agents.agents[0].job_id.unwrap();
    for act in ["cancel", "wake", "requeue"] {
        let detail = server.post(&format!("/api/v1/jobs/{job}/{act}"), &json!({})).await.refused(409, "internal_job");
        assert!(detail.contains(&run.id.to_string()), "{detail}");
    }
    server.post(&format!("/api/orchestrator/jobs/{job}/cancel"), &json!({})).await.refused(409, "internal_job");
    let letters = json!({ "jobIds": [job] });
    server.post("/api/v1/dead-letters/requeue", &letters).await.refused(409, "internal_job");
    assert_eq!(server.job(job).await.kind.as_str(), "run.agent", "it may be looked at");
    assert_eq!(server.run_of(&run).await.status, State::Running);
    server.is_clean().await;
}

async fn what_happens_to_runs_is_heard_by_project(server: &Server) {
    let run = server.start_run(&document("p", &[step("sleep", json!({ "for": "1ms" }))])).await;
    server.run_until(&run, "completed").await;
    let key = server.narrowed("p", "viewer").await;
    let other = server.narrowed("q", "viewer").await;
    let heard = async |key: &str| {
        let list: EventList = server.ask_as(key, "GET", "/api/v1/events?limit=1000", &json!({})).await.ok();
        list.events.into_iter().map(|event| event.kind).collect::<Vec<_>>()
    };
    let ours = heard(&key).await;
    for kind in ["run.created", "run.completed", "agent.spawned", "step.completed"] {
        assert!(ours.iter().any(|heard| heard == kind), "{kind} is not among {ours:?}");
    }
    assert!(!heard(&other).await.iter().any(|kind| kind.starts_with("run.") || kind.starts_with("step.")));
    server.is_clean().await;
}

#[tokio::test]
async fn a_node_that_works_on_no_agents_says_so() {
    crate::support::run(Database::Sqlite, async |server: &Server| {
        let document = document("p", &[step("sleep", json!({ "for": "1ms" }))]);
        server.post("/api/v1/runs", &document).await.refused(503, "feature_disabled");
        let tools: Value = server.get("/api/v1/tools").await.ok();
        assert_eq!(tools, json!({ "tools": [] }));
    })
    .await;
}
