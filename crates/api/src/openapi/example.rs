//! What requests and answers look like. Tests hold each of them against its schema.

use serde_json::{Value, json};

pub const JOB_ID: &str = "job_0193a1b2c3d47001800000000000002a";
pub const SECOND_JOB_ID: &str = "job_0193a1b2c3d47001800000000000002b";
pub const SCHEDULE_ID: &str = "doc_0193a1b2c3d47001800000000000002c";
pub const DECISION_ID: &str = "dec_0193a1b2c3d47001800000000000002d";
pub const KEY_ID: &str = "key_0193a1b2c3d47001800000000000002e";
pub const WEBHOOK_ID: &str = "whk_0193a1b2c3d47001800000000000002f";
pub const RUN_ID: &str = "run_0193a1b2c3d470018000000000000030";
pub const AGENT_ID: &str = "agt_0193a1b2c3d470018000000000000031";
pub const CURSOR: &str = "c1000000000000004d";
const SECRET: &str = "bk_0193a1b2c3d47001800000000000002e_\
                      2f0c1b7e5a9d4c3f8e6b0a1d2c4f6e8091a3b5c7d9e0f1a2b3c4d5e6f7081920";

pub fn new_job() -> Value {
    json!({ "type": "echo", "projectId": "demo", "payload": { "message": "hello" } })
}

/// A job that has completed.
pub fn job() -> Value {
    json!({
        "id": JOB_ID,
        "type": "echo",
        "version": 2,
        "projectId": "demo",
        "sourceSessionId": null,
        "priority": "background",
        "state": "completed",
        "dedupeKey": null,
        "payload": { "message": "hello" },
        "result": { "message": "hello" },
        "error": null,
        "attempts": 1,
        "maxAttempts": 2,
        "createdAt": "2026-01-31T09:30:00.000000Z",
        "startedAt": "2026-01-31T09:30:00.004211Z",
        "completedAt": "2026-01-31T09:30:00.004902Z",
        "cancelRequestedAt": null,
        "runningContext": { "threadId": null, "turnId": null },
        "priorityNumber": 200,
        "failures": 0,
        "maxFailures": 2,
        "lane": "project:demo",
        "waitingFor": null,
        "dueAt": null,
        "progress": null,
        "question": null,
        "cancelReason": null,
        "lastError": null,
        "requeuedFrom": null,
        "requeuedAs": null,
        "scheduleId": null,
    })
}

pub const LEASE: &str = "0193a1b2c3d47001800000000000002a.1.6489a1b2c3d4e.mailer-1";

pub fn new_job_type() -> Value {
    json!({
        "summary": "Sends one mail.",
        "maxAttempts": 3,
        "lane": { "key": "mail:{payload.to}", "limit": 2, "depth": 100 },
        "dedupe": { "mode": "single_flight", "key": "{payload.id}" },
        "timeout": "1m",
        "payloadSchema": { "type": "object", "required": ["to"] },
    })
}

pub fn job_type() -> Value {
    json!({
        "type": "mail.send",
        "version": 1,
        "servedBy": "workers",
        "summary": "Sends one mail.",
        "priority": "background",
        "maxAttempts": 3,
        "lease": "30s",
        "timeout": "1m",
        "lane": { "key": "mail:{payload.to}", "limit": 2, "depth": 100 },
        "dedupe": { "mode": "single_flight", "key": "{payload.id}" },
        "retry": { "base": "1s", "max": "1m", "jitter": true },
        "cancel": { "strategy": "mark_canceled", "grace": "5s" },
        "payloadSchema": { "type": "object", "required": ["to"] },
        "resultSchema": null,
    })
}

pub fn lease_jobs() -> Value {
    json!({ "types": ["mail.send"], "max": 10, "waitMs": 20_000, "worker": "mailer-1" })
}

pub fn leases() -> Value {
    json!({
        "leases": [{
            "lease": LEASE,
            "leaseMs": 30_000,
            "leaseUntil": "2026-01-31T09:30:30.000000Z",
            "timeoutMs": 60_000,
            "job": {
                "id": JOB_ID, "type": "mail.send", "version": 1, "projectId": "demo", "lane": "mail:ada@example.com",
                "priority": 200, "attempt": 1, "maxAttempts": 3, "failures": 0,
                "createdAt": "2026-01-31T09:30:00.000000Z", "wakes": 0, "answer": null,
            },
            "payload": { "to": "ada@example.com" },
        }],
        "settled": [],
    })
}

pub fn with(mut value: Value, fields: Value) -> Value {
    if let (Value::Object(all), Value::Object(fields)) = (&mut value, fields) {
        all.extend(fields);
    }
    value
}

/// The same job, as it was taken in.
pub fn queued() -> Value {
    let new = json!({
        "state": "queued", "result": null, "attempts": 0, "startedAt": null, "completedAt": null,
        "dueAt": "2026-01-31T09:30:00.000000Z",
    });
    with(job(), new)
}

pub fn enqueued() -> Value {
    with(queued(), json!({ "dedupe": "enqueued" }))
}

pub fn same_message() -> Value {
    with(job(), json!({ "dedupe": "same_message" }))
}

pub fn requeued() -> Value {
    with(enqueued(), json!({ "id": SECOND_JOB_ID, "requeuedFrom": JOB_ID }))
}

pub fn cancelled() -> Value {
    let ended = json!({
        "state": "cancelled", "cancelReason": "user_requested", "dueAt": null,
        "completedAt": "2026-01-31T09:31:00.000000Z",
    });
    with(queued(), ended)
}

pub fn orchestrated(job: Value) -> Value {
    let phase = job["state"].clone();
    let state = if phase == "cancelled" { json!("canceled") } else { phase.clone() };
    with(job, json!({ "state": state, "phase": phase }))
}

pub fn failed() -> Value {
    with(job(), json!({ "state": "failed", "result": null, "error": "invalid_output: not a number" }))
}

pub fn jobs(job: Value) -> Value {
    json!({ "jobs": [job], "nextCursor": null })
}

pub fn taken(status: &str) -> Value {
    let enqueued = usize::from(status == "enqueued");
    json!({ "jobs": [{ "jobId": JOB_ID, "dedupe": status, "state": "queued" }], "enqueued": enqueued })
}

pub fn letters_requeued() -> Value {
    let one = json!({ "requeuedFrom": JOB_ID, "jobId": SECOND_JOB_ID, "dedupe": "enqueued", "state": "queued" });
    json!({ "jobs": [one], "requeued": 1 })
}

pub fn letters_left() -> Value {
    let why = json!({ "jobId": JOB_ID, "code": "invalid_payload", "detail": "the payload no longer fits its type" });
    json!({ "jobs": [], "requeued": 0, "left": [why] })
}

pub fn lane(paused: bool) -> Value {
    json!({ "lane": "project:demo", "limit": 1, "running": 1, "waiting": 3, "paused": paused })
}

pub fn new_schedule() -> Value {
    json!({
        "cron": "0 9 * * 1-5", "timeZone": "Europe/Berlin", "type": "echo",
        "payload": { "message": "good morning" },
    })
}

pub fn schedule(paused: bool) -> Value {
    json!({
        "id": SCHEDULE_ID,
        "projectId": "demo",
        "name": "morning",
        "cron": "0 9 * * 1-5",
        "timeZone": "Europe/Berlin",
        "description": "At 09:00, on Monday, Tuesday, Wednesday, Thursday, and Friday.",
        "type": "echo",
        "payload": { "message": "good morning" },
        "priority": null,
        "sourceSessionId": null,
        "catchUp": "one",
        "singleFlight": false,
        "paused": paused,
        "nextAt": if paused { Value::Null } else { json!("2026-02-02T08:00:00.000000Z") },
        "lastAt": "2026-01-30T08:00:00.000000Z",
        "lastJobId": JOB_ID,
        "jobsMade": 21,
        "createdAt": "2026-01-02T10:11:12.000000Z",
    })
}

pub fn decision() -> Value {
    json!({
        "id": DECISION_ID,
        "state": "open",
        "kind": "job.confirmation",
        "subject": JOB_ID,
        "projectId": "demo",
        "prompt": "Deploy to production?",
        "responsibility": "development_manager",
        "options": [
            { "name": "confirm", "label": "Deploy", "effect": "go_on" },
            { "name": "reject", "effect": "cancel" },
        ],
        "evidence": { "prompt": "Deploy to production?" },
        "openedAt": "2026-01-31T09:30:00.000000Z",
        "deadlineAt": "2026-01-31T13:30:00.000000Z",
        "onBreach": { "escalate": { "to": "cto", "withinMs": 14_400_000, "then": "fail" } },
        "overdue": false,
        "resolution": null,
        "history": [opened()],
    })
}

fn opened() -> Value {
    json!({
        "at": "2026-01-31T09:30:00.000000Z", "what": "opened", "by": null, "responsibility": "development_manager",
    })
}

pub fn resolved() -> Value {
    let resolution = json!({
        "at": "2026-01-31T10:00:00.000000Z", "by": KEY_ID, "option": "confirm", "comment": "go ahead",
        "data": null, "reason": null,
    });
    let turn = json!({
        "at": "2026-01-31T10:00:00.000000Z", "what": "resolved", "by": KEY_ID, "responsibility": "development_manager",
    });
    with(decision(), json!({ "state": "resolved", "resolution": resolution, "history": [opened(), turn] }))
}

pub fn event() -> Value {
    json!({
        "cursor": CURSOR,
        "subject": JOB_ID,
        "n": 3,
        "at": "2026-01-31T09:30:00.004902Z",
        "kind": "job.completed",
        "actor": "worker:node_4f1d",
        "data": { "attempt": 1, "project": "demo", "state": "completed", "type": "echo" },
        "hash": "9c56cc51b374c3ba189210d5b6d4bf57790d351c96c47c02190ecf1e430635ab",
    })
}

pub fn key() -> Value {
    json!({
        "id": KEY_ID,
        "label": "deploy bot",
        "role": "operator",
        "responsibilities": ["development_manager"],
        "projects": ["demo"],
        "types": null,
        "createdAt": "2026-01-31T09:30:00.000000Z",
        "expiresAt": "2027-01-31T00:00:00.000000Z",
        "rotatedAt": null,
        "revokedAt": null,
    })
}

pub fn new_key() -> Value {
    json!({
        "label": "deploy bot", "role": "operator", "responsibilities": ["development_manager"],
        "projects": ["demo"], "expiresAt": "2027-01-31T00:00:00Z",
    })
}

pub fn made_key() -> Value {
    with(key(), json!({ "secret": SECRET }))
}

/// What a repetition is answered with.
pub fn made_key_again() -> Value {
    with(key(), json!({ "secret": null }))
}

pub fn rotated_key() -> Value {
    with(made_key(), json!({ "rotatedAt": "2026-02-28T09:30:00.000000Z" }))
}

pub fn revoked_key() -> Value {
    with(key(), json!({ "revokedAt": "2026-02-28T09:30:00.000000Z" }))
}

pub fn org(key: Value) -> Value {
    let admin = json!({
        "label": "first admin key", "role": "admin", "responsibilities": [], "projects": null, "expiresAt": null,
    });
    json!({ "org": "acme", "key": with(key, admin) })
}

pub fn audit() -> Value {
    json!({
        "clean": true, "chains": 2, "events": 6, "seals": 1, "macsChecked": 1, "violationsTotal": 0,
        "violations": [],
    })
}

pub fn new_webhook() -> Value {
    json!({
        "label": "on call", "url": "https://hooks.example/baton", "types": ["job.failed"], "projects": ["demo"],
    })
}

pub fn webhook() -> Value {
    with(
        new_webhook(),
        json!({
            "id": WEBHOOK_ID,
            "enabled": true,
            "disabledAt": null,
            "disabledWhy": null,
            "failures": 0,
            "failingSince": null,
            "cursor": CURSOR,
            "createdAt": "2026-01-31T09:00:00.000000Z",
        }),
    )
}

pub fn made_webhook(shown: bool) -> Value {
    let secret = shown.then_some("whsec_LwwbflqdTD+OawodLE9ugJGjtcfZ4PGis8TV5vcIGSA=");
    with(webhook(), json!({ "secret": secret }))
}

pub fn delivery() -> Value {
    json!({
        "id": JOB_ID,
        "message": "msg_0193a1b2c3d47001800000000000002f_c1000000000000004d",
        "event": "job.failed",
        "state": "completed",
        "attempts": 1,
        "maxAttempts": 12,
        "status": 204,
        "error": null,
        "createdAt": "2026-01-31T09:30:00.000000Z",
        "dueAt": null,
        "completedAt": "2026-01-31T09:30:00.104902Z",
    })
}
