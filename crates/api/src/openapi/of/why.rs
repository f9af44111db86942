//! Why something waits.

use super::super::example;
use super::super::operation::{Operation, Tag};
use super::super::parameter::{Param, Place};
use super::super::run_example as runs;
use baton_wire::Why;
use schemars::json_schema;
use serde_json::json;

pub fn why() -> Operation {
    let id = Param {
        name: "id",
        place: Place::Path,
        about: "A run, an agent or a job by its id; `agt_….TASK` and `agt_….TASK.STEP` for parts of an agent, by their \
                names or their places.",
        schema: |_| json_schema!({ "type": "string", "minLength": 1 }),
        example: Some(json!(format!("{}.approve.sure", example::AGENT_ID))),
    };
    Operation::new("explain", Tag::Runs, "Say why something does not go on")
        .about("What it waits for, since when, until when, what happens then, and who can change it.")
        .takes([id])
        .answers::<Why>(200, "The reasons.", runs::why())
        .refuses(&["job_not_found", "run_not_found", "agent_not_found", "part_not_found"])
}
