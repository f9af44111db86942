//! Job types.

use super::super::example;
use super::super::operation::{Operation, Tag};
use super::super::parameter;
use baton_core::TypeName;
use baton_core::limits::JOB_TYPE_VERSIONS;
use baton_wire::{JobType, JobTypeList, NewJobType};
use schemars::json_schema;
use serde_json::json;

pub fn list() -> Operation {
    let page = json!({ "jobTypes": [example::job_type()], "nextCursor": null });
    Operation::new("listJobTypes", Tag::JobTypes, "List job types by name")
        .about("The newest version of each that jobs can be asked for.")
        .takes([parameter::order_by_name(), parameter::limit_names(), parameter::cursor()])
        .answers::<JobTypeList>(200, "A page of them.", page)
        .leads(&["getJobType"], &[("type", "$response.body#/jobTypes/0/type")])
}

pub fn get() -> Operation {
    let version = parameter::query_as(
        "version",
        "Which version; the newest, unless given.",
        |_| json_schema!({ "type": "integer", "minimum": 1, "maximum": JOB_TYPE_VERSIONS }),
    );
    Operation::new("getJobType", Tag::JobTypes, "Show a job type")
        .takes([name(), version])
        .answers::<JobType>(200, "One version of it.", example::job_type())
        .refuses(&["job_type_not_found"])
}

pub fn put() -> Operation {
    Operation::new("putJobType", Tag::JobTypes, "Register a job type, or change it")
        .about(
            "Saying it again changes nothing; saying something else makes the next version. Jobs keep the version that \
             they were enqueued with. Workers serve it.",
        )
        .takes([name()])
        .body::<NewJobType>("mail, two at a time to one address", example::new_job_type())
        .unkeyed()
        .answers::<JobType>(201, "A new type.", example::job_type())
        .answers::<JobType>(200, "The type was there, and is so now.", example::job_type())
        .leads(&["getJobType"], &[("type", "$response.body#/type")])
        .refuses(&["out_of_scope", "job_type_reserved", "too_many_job_types", "invalid_job_type"])
}

fn name() -> parameter::Param {
    parameter::path::<TypeName>("type", "Which type.", "mail.send")
}
