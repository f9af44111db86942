//! The worker protocol.

use super::super::example;
use super::super::operation::{Operation, Tag};
use baton_wire::worker::{
    AskPeople, Beaten, CompleteJob, FailJob, Heartbeat, LeaseJobs, Leases, ParkJob, ProgressHeard, ReleaseJob,
    ReportProgress, SettleJobs, SettledJobs, SettledOne,
};
use serde_json::{Value, json};

pub fn lease() -> Operation {
    Operation::new("leaseJobs", Tag::Workers, "Take jobs, settling others in the same commit")
        .about("Waits for the first one if told to. What is empty after that is asked for again.")
        .body::<LeaseJobs>("ten of a type, or wait", example::lease_jobs())
        .unkeyed()
        .answers::<Leases>(200, "What there was.", example::leases())
        .refuses(&["out_of_scope", "unknown_job_type", "local_job_type", "too_many_waiting"])
}

pub fn heartbeat() -> Operation {
    Operation::new("beat", Tag::Workers, "Extend leases")
        .body::<Heartbeat>("what is still held", json!({ "leases": [example::LEASE] }))
        .unkeyed()
        .answers::<Beaten>(200, "What is lost, and what is to end.", json!({ "lost": [], "cancelled": [] }))
}

pub fn progress() -> Operation {
    let said = json!({ "lease": example::LEASE, "percent": 40, "note": "4 of 10 pages" });
    Operation::new("reportProgress", Tag::Workers, "Say how far a job is")
        .body::<ReportProgress>("four of ten", said)
        .unkeyed()
        .answers::<ProgressHeard>(200, "It was heard.", json!({ "cancelRequested": false }))
        .refuses(&["lease_lost"])
}

fn settles(id: &'static str, summary: &'static str) -> Operation {
    Operation::new(id, Tag::Workers, summary).unkeyed().refuses(&["lease_lost", "job_not_found"])
}

/// The lease with what is said about its job.
fn with_lease(said: Value) -> Value {
    example::with(json!({ "lease": example::LEASE }), said)
}

fn settled(operation: Operation) -> Operation {
    operation.unkeyed().answers::<SettledOne>(200, "It is settled, now or before.", json!({ "settled": "now" }))
}

pub fn complete() -> Operation {
    let said = with_lease(json!({ "result": { "messageId": "m-17" } }));
    settled(settles("completeJob", "Say that a job is done").body::<CompleteJob>("with a result", said))
}

pub fn fail() -> Operation {
    let said = with_lease(json!({ "code": "smtp_refused", "message": "the server said 450", "class": "transient" }));
    settled(settles("failJob", "Say that a job went wrong").body::<FailJob>("worth trying again", said))
}

pub fn park() -> Operation {
    let said = with_lease(json!({ "forMs": 60_000, "seen": 0 }));
    settled(settles("parkJob", "Let a job wait without a worker").body::<ParkJob>("for a minute", said))
}

pub fn ask() -> Operation {
    let said = with_lease(json!({ "question": { "prompt": "Send it to 4,000 people?" } }));
    settled(settles("askPeople", "Let a job wait for a person's answer").body::<AskPeople>("yes or no", said))
}

pub fn release() -> Operation {
    let said = with_lease(json!({}));
    settled(settles("releaseJob", "Give a job back, unfinished").body::<ReleaseJob>("this worker stops", said))
}

pub fn settle() -> Operation {
    let one = example::with(json!({ "lease": example::LEASE }), json!({ "complete": { "result": {} } }));
    Operation::new("settleJobs", Tag::Workers, "Say what came of many jobs")
        .about("Each is judged for itself.")
        .body::<SettleJobs>("one is done", json!({ "outcomes": [one] }))
        .unkeyed()
        .answers::<SettledJobs>(
            200,
            "What each came to.",
            json!({ "settled": [{ "lease": example::LEASE, "settled": "now" }] }),
        )
}
