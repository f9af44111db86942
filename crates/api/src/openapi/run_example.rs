//! What runs and money look like. Tests hold each of them against its schema.

use super::example::{AGENT_ID, CURSOR, DECISION_ID, JOB_ID, RUN_ID, with};
use serde_json::{Value, json};

/// A short document as people write it.
pub const YAML: &str = "name: Release 1.4\nproject: shop\nplan:\n  agents:\n    - name: release\n      tasks:\n        \
                        - steps:\n            - tool: sleep\n              input: { for: 1s }\n";

/// A run that has completed.
pub fn run() -> Value {
    json!({
        "id": RUN_ID,
        "name": "Release 1.4",
        "project_id": "shop",
        "priority": "normal",
        "status": "completed",
        "labels": { "team": "search" },
        "failure_mode": "fail-fast",
        "attempt_number": 1,
        "max_attempts": 3,
        "failures": 0,
        "failure_budget": 30,
        "budget": "12.5",
        "credits_reserved": "12.5",
        "credits_charged": "4",
        "credits_refunded": "8.5",
        "agent_count": 1,
        "task_count": 2,
        "step_count": 4,
        "last_error": null,
        "reason": null,
        "created_at": "2026-01-31T09:30:00.000000Z",
        "queued_at": "2026-01-31T09:30:01.000000Z",
        "started_at": "2026-01-31T09:30:01.004211Z",
        "completed_at": "2026-01-31T09:31:01.004211Z",
        "cancelled_at": null,
        "paused_at": null,
        "deadline_at": null,
        "duration_ms": 60_000,
        "last_heartbeat": null,
        "allowed_actions": ["delete"],
        "deleted_at": null,
    })
}

/// The same before anything happened.
pub fn created() -> Value {
    let new = json!({
        "status": "created", "attempt_number": 0, "credits_reserved": "0", "credits_charged": "0",
        "credits_refunded": "0", "agent_count": 0, "task_count": 0, "step_count": 0, "queued_at": null,
        "started_at": null, "completed_at": null, "duration_ms": null,
        "allowed_actions": ["start", "cancel", "delete"],
    });
    with(run(), new)
}

pub fn pending() -> Value {
    let queued = json!({
        "status": "pending", "attempt_number": 1, "credits_reserved": "12.5", "queued_at": "2026-01-31T09:30:01.000000Z",
        "deadline_at": "2026-02-01T09:30:01.000000Z", "allowed_actions": ["cancel"],
    });
    with(created(), queued)
}

fn at_work(status: &str, actions: Value) -> Value {
    let running = json!({
        "status": status, "agent_count": 1, "started_at": "2026-01-31T09:30:01.004211Z", "duration_ms": 5_000,
        "allowed_actions": actions,
    });
    with(pending(), running)
}

pub fn paused() -> Value {
    with(at_work("paused", json!(["resume", "cancel"])), json!({ "paused_at": "2026-01-31T09:30:06.000000Z" }))
}

pub fn resuming() -> Value {
    with(at_work("resuming", json!(["pause", "cancel"])), json!({ "paused_at": "2026-01-31T09:30:06.000000Z" }))
}

pub fn cancelled() -> Value {
    let ended = json!({
        "status": "cancelled", "reason": "user_requested", "completed_at": null,
        "cancelled_at": "2026-01-31T09:31:00.000000Z",
    });
    with(run(), ended)
}

pub fn retrying() -> Value {
    with(pending(), json!({ "status": "retrying", "attempt_number": 2, "queued_at": null, "deadline_at": null }))
}

pub fn deleted() -> Value {
    with(run(), json!({ "allowed_actions": [], "deleted_at": "2026-02-28T09:30:00.000000Z" }))
}

pub fn source() -> Value {
    json!({
        "run_id": RUN_ID,
        "document": baton_wire::run::example(),
        "plan": { "failure_mode": "fail-fast", "max_attempts": 3, "agents": [] },
    })
}

pub fn agent(status: &str) -> Value {
    let paused = (status == "paused").then_some("2026-01-31T09:30:06.000000Z");
    json!({
        "id": AGENT_ID,
        "run_id": RUN_ID,
        "run_attempt": 1,
        "index": 0,
        "name": "release",
        "subtask": "Ask, wait for the build, then let it settle.",
        "status": status,
        "attempt": 1,
        "attempts": 2,
        "charged": "4",
        "balance": "8.5",
        "tasks_total": 2,
        "tasks_done": 0,
        "steps_done": 0,
        "last_error": null,
        "created_at": "2026-01-31T09:30:01.004211Z",
        "started_at": "2026-01-31T09:30:01.004211Z",
        "ended_at": null,
        "paused_at": paused,
        "deadline_at": "2026-01-31T17:30:01.004211Z",
        "job_id": JOB_ID,
        "doing": [{
            "task": "approve", "step": "sure", "attempt": 1, "status": "running",
            "since": "2026-01-31T09:30:01.004211Z", "waits_for": waits_for(),
        }],
    })
}

fn waits_for() -> Value {
    json!({ "for": "answer", "until": null, "signal": null, "decision_id": DECISION_ID })
}

pub fn task() -> Value {
    json!({
        "agent_id": AGENT_ID,
        "agent_name": "release",
        "n": null,
        "name": "approve",
        "status": "running",
        "agent_attempt": 1,
        "attempts": 1,
        "charged": "0",
        "steps": 0,
        "started_at": "2026-01-31T09:30:01.004211Z",
        "ended_at": null,
        "last_error": null,
    })
}

pub fn step() -> Value {
    json!({
        "agent_id": AGENT_ID,
        "agent_name": "release",
        "n": null,
        "task": "approve",
        "name": "sure",
        "tool": "ask",
        "effect": "pure",
        "status": "running",
        "agent_attempt": 1,
        "task_attempt": 1,
        "attempts": 1,
        "price": "0",
        "charged": "0",
        "estimated": false,
        "carried": false,
        "started_at": "2026-01-31T09:30:01.004211Z",
        "ended_at": null,
        "last_error": null,
        "waits_for": waits_for(),
    })
}

pub fn attempt() -> Value {
    json!({
        "attempt_number": 1,
        "status": "completed",
        "queued_at": "2026-01-31T09:30:01.000000Z",
        "started_at": "2026-01-31T09:30:01.004211Z",
        "ended_at": "2026-01-31T09:31:01.004211Z",
        "credits_reserved": "12.5",
        "credits_charged": "4",
        "credits_refunded": "8.5",
        "agent_count": 1,
        "task_count": 2,
        "step_count": 4,
        "last_error": null,
    })
}

pub fn event() -> Value {
    json!({
        "cursor": CURSOR,
        "subject": RUN_ID,
        "n": 4,
        "at": "2026-01-31T09:31:01.004211Z",
        "kind": "run.completed",
        "actor": "worker:node_4f1d",
        "data": { "attempt": 1, "project": "shop", "state": "completed" },
        "hash": "9c56cc51b374c3ba189210d5b6d4bf57790d351c96c47c02190ecf1e430635ab",
    })
}

pub fn reserve() -> Value {
    json!({
        "account": "org",
        "n": 2,
        "kind": "reserve",
        "direction": "out",
        "amount": "12.5",
        "balance_after": "87.5",
        "key": format!("{RUN_ID}/1"),
        "run_id": RUN_ID,
        "at": "2026-01-31T09:30:01.000000Z",
    })
}

pub fn grant() -> Value {
    let given = json!({
        "n": 1, "kind": "grant", "direction": "in", "amount": "100", "balance_after": "100", "key": "january",
        "run_id": null,
    });
    with(reserve(), given)
}

pub fn why() -> Value {
    json!({
        "id": format!("{AGENT_ID}.0.0"),
        "kind": "step",
        "status": "running",
        "since": "2026-01-31T09:30:01.004211Z",
        "summary": "Step approve.sure waits for an answer, since 5m ago, for at most 3h55m more.",
        "waits_for": [{
            "what": "answer",
            "detail": "Release 1.4? (confirm, decline)",
            "since": "2026-01-31T09:30:01.004211Z",
            "until": "2026-01-31T13:30:01.004211Z",
            "next": "at the deadline it fails",
            "who": format!("whoever is responsible as release_manager, or an admin: POST /api/v1/decisions/{DECISION_ID}/resolve"),
            "id": DECISION_ID,
        }],
    })
}
