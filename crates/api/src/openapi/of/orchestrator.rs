//! Jobs, in the orchestrator's words.

use super::super::example;
use super::super::operation::{Operation, Tag};
use super::super::parameter;
use super::job::of_project;
use baton_wire::{Cancel, JobList, OrchestratorJob};
use serde_json::json;

pub fn get() -> Operation {
    Operation::new("getOrchestratorJob", Tag::Orchestrator, "Show a job")
        .takes([parameter::job_id()])
        .answers::<OrchestratorJob>(200, "The job.", example::orchestrated(example::job()))
        .refuses(&["job_not_found"])
}

pub fn cancel() -> Operation {
    Operation::new("cancelOrchestratorJob", Tag::Orchestrator, "End a job that nobody needs any more")
        .takes([parameter::job_id()])
        .body_or_none::<Cancel>("with a reason", json!({ "reason": "no longer needed" }))
        .answers::<OrchestratorJob>(200, "The job as it stands now.", example::orchestrated(example::cancelled()))
        .refuses(&["job_not_found", "job_conflict", "internal_job"])
}

pub fn list() -> Operation {
    let jobs = example::jobs(example::orchestrated(example::job()));
    Operation::new("listOrchestratorJobs", Tag::Orchestrator, "List a project's jobs, newest first")
        .takes(of_project())
        .answers::<JobList<OrchestratorJob>>(200, "A page of them.", jobs)
        .refuses(&["out_of_scope"])
}
