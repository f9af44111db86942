//! Schedules.

use super::super::example;
use super::super::operation::{Content, Operation, Tag};
use super::super::parameter;
use baton_wire::{NewSchedule, Schedule, ScheduleList};
use serde_json::json;

/// What can be asked of a schedule.
const ACTS: [&str; 4] = ["getSchedule", "pauseSchedule", "resumeSchedule", "deleteSchedule"];

pub fn list() -> Operation {
    let page = json!({ "schedules": [example::schedule(false)], "nextCursor": null });
    Operation::new("listSchedules", Tag::Schedules, "List schedules by project and name")
        .takes([
            parameter::only_project(),
            parameter::only_type(),
            parameter::order_by_name(),
            parameter::limit_names(),
            parameter::cursor(),
        ])
        .answers::<ScheduleList>(200, "A page of them.", page)
        .leads(
            &ACTS,
            &[("projectId", "$response.body#/schedules/0/projectId"), ("name", "$response.body#/schedules/0/name")],
        )
}

pub fn get() -> Operation {
    Operation::new("getSchedule", Tag::Schedules, "Show a schedule")
        .takes(parameter::schedule())
        .answers::<Schedule>(200, "The schedule.", example::schedule(false))
        .refuses(&["schedule_not_found"])
}

pub fn put() -> Operation {
    Operation::new("putSchedule", Tag::Schedules, "Make a schedule, or change it")
        .about("Changing a schedule leaves it paused if it was.")
        .takes(parameter::schedule())
        .body::<NewSchedule>("each working day", example::new_schedule())
        .unkeyed()
        .answers::<Schedule>(201, "A new schedule.", example::schedule(false))
        .answers::<Schedule>(200, "The schedule was there, and is so now.", example::schedule(false))
        .leads(&ACTS, &[("projectId", "$response.body#/projectId"), ("name", "$response.body#/name")])
        .refuses(&[
            "out_of_scope",
            "schedule_not_found",
            "invalid_schedule",
            "unknown_job_type",
            "invalid_payload",
            "payload_too_large",
        ])
}

pub fn delete() -> Operation {
    Operation::new("deleteSchedule", Tag::Schedules, "Delete a schedule")
        .about("Jobs that it made stay.")
        .takes(parameter::schedule())
        .answer(204, "It is gone.", Content::Nothing)
        .refuses(&["out_of_scope", "schedule_not_found"])
}

pub fn pause() -> Operation {
    Operation::new("pauseSchedule", Tag::Schedules, "Pause a schedule")
        .about("Moments that pass meanwhile are not caught up with.")
        .takes(parameter::schedule())
        .bare()
        .answers::<Schedule>(200, "The schedule.", example::schedule(true))
        .refuses(&["out_of_scope", "schedule_not_found"])
}

pub fn resume() -> Operation {
    Operation::new("resumeSchedule", Tag::Schedules, "Go on with a schedule")
        .takes(parameter::schedule())
        .bare()
        .answers::<Schedule>(200, "The schedule.", example::schedule(false))
        .refuses(&["out_of_scope", "schedule_not_found"])
}
