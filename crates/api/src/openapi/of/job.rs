//! Jobs, in Baton's own words.

use super::super::example;
use super::super::operation::{Operation, Tag};
use super::super::parameter::{self, Param};
use crate::job::words;
use baton_wire::{BatchTaken, Cancel, EnqueuedJob, Job, JobList, NewBatch, NewJob};
use schemars::json_schema;
use serde_json::json;

/// What taking a job in can be refused for.
pub const INTAKE: [&str; 9] = [
    "out_of_scope",
    "unknown_job_type",
    "payload_too_large",
    "invalid_payload",
    "invalid_time",
    "invalid_message_id",
    "duplicate_message",
    "queue_full",
    "queue_disabled",
];

/// What making a failed job anew can be refused for.
pub const REQUEUE: [&str; 11] = [
    "job_not_found",
    "internal_job",
    "invalid_transition",
    "already_requeued",
    "job_conflict",
    "unknown_job_type",
    "payload_too_large",
    "invalid_payload",
    "queue_full",
    "queue_disabled",
    "batch_size",
];

/// What can be asked of a job.
const ACTS: [&str; 6] = ["getJob", "cancelJob", "wakeJob", "requeueJob", "getOrchestratorJob", "cancelOrchestratorJob"];

pub fn enqueue() -> Operation {
    Operation::new("enqueueJob", Tag::Jobs, "Take a job into the queue")
        .about(
            "`dedupe` beside the job's fields says what became of the request: a new job, or the one that stands for \
             it already.",
        )
        .body::<NewJob>("a job", example::new_job())
        .answers::<EnqueuedJob>(201, "A new job.", example::enqueued())
        .answers::<EnqueuedJob>(200, "No new job: the one that stands for the request.", example::same_message())
        .leads(&ACTS, &[("jobId", "$response.body#/id")])
        .refuses(&INTAKE)
}

pub fn batch() -> Operation {
    Operation::new("enqueueJobs", Tag::Jobs, "Take many jobs in, all of them or none")
        .about("The answers stand in the order of the request. A refusal names the first job that was the reason as `index`.")
        .body::<NewBatch>("a batch", json!({ "jobs": [example::new_job()] }))
        .answers::<BatchTaken>(201, "At least one of them is new.", example::taken("enqueued"))
        .answers::<BatchTaken>(200, "None of them is new.", example::taken("already_queued"))
        .refuses(&INTAKE)
        .refuses(&["batch_size"])
}

pub fn get() -> Operation {
    Operation::new("getJob", Tag::Jobs, "Show a job")
        .takes([parameter::job_id()])
        .answers::<Job>(200, "The job.", example::job())
        .refuses(&["job_not_found"])
}

pub fn cancel() -> Operation {
    Operation::new("cancelJob", Tag::Jobs, "End a job that nobody needs any more")
        .about(
            "Most jobs have ended at once. A running one that can be interrupted is told to end, and ended when its \
             grace is over. Cancelling a cancelled job does nothing.",
        )
        .takes([parameter::job_id()])
        .body_or_none::<Cancel>("with a reason", json!({ "reason": "no longer needed" }))
        .answers::<Job>(200, "The job as it stands now.", example::cancelled())
        .refuses(&["job_not_found", "invalid_transition", "internal_job"])
}

pub fn wake() -> Operation {
    Operation::new("wakeJob", Tag::Jobs, "Wake a job that has parked itself")
        .about("One that runs will not miss it.")
        .takes([parameter::job_id()])
        .bare()
        .answers::<Job>(200, "The job as it stands now.", example::queued())
        .refuses(&["job_not_found", "invalid_transition", "internal_job"])
}

pub fn requeue() -> Operation {
    Operation::new("requeueJob", Tag::Jobs, "Make a failed job anew")
        .about("It is another job, due at once and linked to the failed one, which can be requeued once.")
        .takes([parameter::job_id()])
        .bare()
        .answers::<EnqueuedJob>(201, "The new job.", example::requeued())
        .answers::<EnqueuedJob>(200, "Said before under the same `Idempotency-Key`.", example::requeued())
        .refuses(&REQUEUE)
}

/// Both vocabularies are understood on every route.
pub fn state() -> Param {
    let about = "Only those in one of these states; repeated, or separated by commas. Words of both kinds of routes are \
                 understood.";
    parameter::query_as("state", about, |_| {
        // One without a word is as if it were not there.
        let words: Vec<_> = words().into_iter().chain([""]).collect();
        json_schema!({ "type": "array", "items": { "type": "string", "enum": words } })
    })
}

/// Which of a project's jobs, and how many: the same on both kinds of routes.
pub fn of_project() -> [Param; 6] {
    [
        parameter::project_id(),
        state(),
        parameter::only_type(),
        parameter::order_by_time(),
        parameter::limit_jobs(),
        parameter::cursor(),
    ]
}

pub fn list() -> Operation {
    Operation::new("listJobs", Tag::Jobs, "List a project's jobs, newest first")
        .takes(of_project())
        .answers::<JobList>(200, "A page of them.", example::jobs(example::job()))
        .leads(&ACTS, &[("jobId", "$response.body#/jobs/0/id")])
        .refuses(&["out_of_scope"])
}
