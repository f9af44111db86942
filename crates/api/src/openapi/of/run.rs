//! Runs.

use super::super::example;
use super::super::operation::{Content, Example, Operation, Tag};
use super::super::parameter::{self, Param};
use super::super::run_example as runs;
use baton_core::ProjectId;
use baton_core::name::SignalName;
use baton_core::run::State;
use baton_wire::shape::Shape;
use baton_wire::{Cancel, Run, RunDocument, RunList, RunSource, Signalled, ToolList};
use schemars::json_schema;
use serde_json::{Value, json};

/// What can be asked of a run.
const ACTS: [&str; 14] = [
    "getRun",
    "deleteRun",
    "startRun",
    "pauseRun",
    "resumeRun",
    "cancelRun",
    "retryRun",
    "getRunDocument",
    "listAgents",
    "listTasks",
    "listSteps",
    "listAttempts",
    "listRunEvents",
    "listRunEntries",
];

/// Runs have another word for where a list goes on than jobs have.
pub fn cursor() -> Param {
    Param { about: "A `next_cursor` of this list in this order, as it was handed out.", ..parameter::cursor() }
}

pub fn limit() -> Param {
    Param {
        about: "At most so many; a page may be shorter and still have a `next_cursor`.",
        ..parameter::limit_names()
    }
}

pub fn create() -> Operation {
    Operation::new("createRun", Tag::Runs, "Make a run from a document")
        .about(
            "JSON or YAML, by its `Content-Type`. Nothing happens until it is started. A refusal names all that is wrong \
             as `problems`, each with its place in the text.",
        )
        .body::<RunDocument>("a run", baton_wire::run::example())
        .or_yaml(runs::YAML)
        .answers::<Run>(201, "The run.", runs::created())
        .answers::<Run>(200, "Said before under the same `Idempotency-Key`.", runs::created())
        .leads(&ACTS, &[("runId", "$response.body#/id")])
        .refuses(&["invalid_yaml", "invalid_run", "insufficient_credits", "out_of_scope", "feature_disabled"])
}

pub fn list() -> Operation {
    Operation::new("listRuns", Tag::Runs, "List runs, newest first")
        .about("Deleted ones are left out.")
        .takes([
            parameter::query::<ProjectId>("project", "Only those of this project.", "shop"),
            parameter::query_as("status", "Only those in this state.", |g| g.subschema_for::<Shape<State>>()),
            parameter::order_by_time(),
            limit(),
            cursor(),
        ])
        .answers::<RunList>(200, "A page of them.", json!({ "runs": [runs::run()], "next_cursor": null }))
        .leads(&ACTS, &[("runId", "$response.body#/runs/0/id")])
        .refuses(&["out_of_scope"])
}

pub fn get() -> Operation {
    Operation::new("getRun", Tag::Runs, "Show a run")
        .about("Also one that was deleted.")
        .takes([parameter::run_id()])
        .answers::<Run>(200, "The run.", runs::run())
        .refuses(&["run_not_found"])
}

pub fn delete() -> Operation {
    Operation::new("deleteRun", Tag::Runs, "Hide a run from lists")
        .about("Before it starts or after it has ended. Its rows, its money and its history stay.")
        .takes([parameter::run_id()])
        .answers::<Run>(200, "The run as it stands now.", runs::deleted())
        .refuses(&["run_not_found", "invalid_transition"])
}

fn act(id: &'static str, summary: &'static str, about: &'static str, answer: Value) -> Operation {
    Operation::new(id, Tag::Runs, summary)
        .about(about)
        .takes([parameter::run_id()])
        .bare()
        .answers::<Run>(200, "The run as it stands now.", answer)
        .refuses(&["run_not_found", "invalid_transition"])
}

pub fn start() -> Operation {
    let about = "Its budget is reserved and a worker is sent for, in one commit. Starting a started run does nothing.";
    act("startRun", "Start a run", about, runs::pending()).refuses(&["insufficient_credits", "feature_disabled"])
}

pub fn pause() -> Operation {
    let about = "Nothing new begins; a call in flight may still end, and what came of it is kept. The clocks of its \
                 agents stand still.";
    act("pauseRun", "Hold a run and all its agents", about, runs::paused())
}

pub fn resume() -> Operation {
    let about = "Its agents go on where they stood as soon as workers take them.";
    act("resumeRun", "Let a paused run go on", about, runs::resuming()).refuses(&["feature_disabled"])
}

pub fn cancel() -> Operation {
    Operation::new("cancelRun", Tag::Runs, "End a run that nobody needs any more")
        .about("With all its agents, at once; what was not spent goes back. Cancelling a cancelled run does nothing.")
        .takes([parameter::run_id()])
        .body_or_none::<Cancel>("with a reason", json!({ "reason": "no longer needed" }))
        .answers::<Run>(200, "The run as it stands now.", runs::cancelled())
        .refuses(&["run_not_found", "invalid_transition"])
}

pub fn retry() -> Operation {
    let about = "Another attempt of a run that failed, while its attempts last. Unsafe steps that completed are not done \
                 again.";
    act("retryRun", "Attempt a failed run again", about, runs::retrying())
        .refuses(&["insufficient_credits", "attempts_exhausted"])
}

pub fn signal() -> Operation {
    Operation::new("signalRun", Tag::Runs, "Tell a run something under a name")
        .about("Steps that `wait` for this signal go on with it; it does not matter which comes first. The first signal of a name stands.")
        .takes([parameter::run_id(), parameter::path::<SignalName>("name", "Which signal.", "built")])
        .body_or_none::<Value>("what it brings", json!({ "version": "1.4" }))
        .answers::<Signalled>(200, "Whether it is news.", json!({ "run_id": example::RUN_ID, "name": "built", "news": true }))
        .refuses(&["run_not_found", "invalid_transition", "payload_too_large", "too_many_signals"])
}

pub fn document() -> Operation {
    Operation::new("getRunDocument", Tag::Runs, "Show the document that a run was made from")
        .takes([parameter::run_id()])
        .answers::<RunSource>(200, "The document, and the plan that became of it.", runs::source())
        .refuses(&["run_not_found"])
}

pub fn schema() -> Operation {
    let schema =
        |_: &mut schemars::SchemaGenerator| json_schema!({ "type": "object", "required": ["$schema", "properties"] });
    let value = json!({ "$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Run", "properties": {} });
    let examples = vec![Example { name: "answer", value }];
    Operation::new("getRunSchema", Tag::Runs, "Describe run documents, for editors").answer(
        200,
        "A JSON Schema.",
        Content::Json { schema, examples },
    )
}

pub fn tools() -> Operation {
    let sleep = json!({
        "name": "sleep", "doer": "sleep", "effect": "pure", "price": "0", "timeout_ms": 0, "attempts": 1,
    });
    Operation::new("listTools", Tag::Runs, "List the tools that steps may call")
        .about("None where the node that is asked does not work on runs.")
        .answers::<ToolList>(200, "All of them.", json!({ "tools": [sleep] }))
}
