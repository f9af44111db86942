//! Dead letters.

use super::super::example;
use super::super::operation::{Operation, Tag};
use super::super::parameter;
use super::job::REQUEUE;
use baton_wire::{JobList, LettersRequeued, RequeueLetters};
use serde_json::json;

pub fn list() -> Operation {
    Operation::new("listDeadLetters", Tag::DeadLetters, "List dead letters, newest first")
        .takes([
            parameter::only_project(),
            parameter::only_type(),
            parameter::order_by_time(),
            parameter::limit_jobs(),
            parameter::cursor(),
        ])
        .answers::<JobList>(200, "A page of them.", example::jobs(example::failed()))
        .leads(&["requeueJob"], &[("jobId", "$response.body#/jobs/0/id")])
}

pub fn requeue() -> Operation {
    Operation::new("requeueDeadLetters", Tag::DeadLetters, "Make many failed jobs anew")
        .about(
            "Those that are named by `jobIds`, all of them or none; or as many as can be of those that `projectId` and \
             `type` find, newest first. Without either it takes `\"all\": true`. What stays is told in `left`.",
        )
        .body::<RequeueLetters>("those of a project", json!({ "projectId": "demo", "type": "echo", "limit": 100 }))
        .answers::<LettersRequeued>(201, "There are new jobs.", example::letters_requeued())
        .answers::<LettersRequeued>(200, "Nothing new was made.", example::letters_left())
        .refuses(&REQUEUE)
        .refuses(&["out_of_scope"])
}
