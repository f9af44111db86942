//! The history, and listening to it.

use super::super::example;
use super::super::operation::{Content, Make, Operation, Tag};
use super::super::parameter::{self, Param};
use crate::limits::LISTENER_NAMES;
use baton_core::ProjectId;
use baton_core::name::SessionId;
use baton_wire::shape::{Shape, Shaped};
use baton_wire::{EventList, TAIL, limit};
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::json;

fn after(about: &'static str) -> Param {
    let place = parameter::query_as("after", about, |_| json_schema!({ "type": "string", "minLength": 1 }));
    Param { example: Some(json!(TAIL)), ..place }
}

/// From where, and how many.
pub fn read_on() -> [Param; 2] {
    let limit = parameter::query_as(
        "limit",
        "At most so many.",
        |_| json_schema!({ "type": "integer", "minimum": 1, "maximum": limit::EVENTS, "default": limit::EVENTS_DEFAULT }),
    );
    [after("A cursor; left out, from the first event; `tail`, only what happens from now on."), limit]
}

pub fn list() -> Operation {
    let page = json!({ "events": [example::event()], "next": example::CURSOR });
    Operation::new("listEvents", Tag::Events, "Read what happened, in the order of commits")
        .about("Never skips and never repeats. Read on with `after` set to `next`, which is always present. The first word of a \
             `kind` says what it is about: `job`, `run`, `agent` (also of its `task` and `step`), `decision`, `signal`, \
             `grant`, `lane`, `schedule`, `key`, `webhook`.")
        .takes(read_on())
        .takes([
            parameter::query_as(
                "wait_ms",
                "If there is nothing yet, wait so long for it.",
                |_| json_schema!({ "type": "integer", "minimum": 0, "maximum": limit::WAIT_MS, "default": 0 }),
            ),
        ])
        .answers::<EventList>(200, "A page of them.", page)
        .refuses(&["invalid_cursor"])
}

/// Any of several names: repeated, or separated by commas.
fn any_of(name: &'static str, about: &'static str, schema: Make, example: &str) -> Param {
    Param { example: Some(json!([example])), ..parameter::query_as(name, about, schema) }
}

fn names<T: Shaped>(g: &mut SchemaGenerator) -> Schema {
    let name = g.subschema_for::<Shape<T>>();
    json_schema!({ "type": "array", "items": name, "minItems": 1, "maxItems": LISTENER_NAMES })
}

fn texts(pattern: &str) -> Schema {
    let text = json!({ "type": "string", "pattern": pattern });
    json_schema!({ "type": "array", "items": text, "minItems": 1, "maxItems": LISTENER_NAMES })
}

/// What a listener can be refused for.
const LISTENING: [&str; 4] = ["invalid_cursor", "out_of_scope", "too_many_listeners", "listeners_full"];

/// What a listener may ask for.
fn wanted() -> [Param; 4] {
    [
        any_of("projectId", "Only what belongs to these projects.", names::<ProjectId>, "demo"),
        any_of("threadId", "Only what belongs to these chat sessions.", names::<SessionId>, "chat-1"),
        any_of(
            "subject",
            "Only what happens to these: ids of jobs, runs, agents, decisions, keys and all that events are about.",
            |_| texts("^[a-z]+_[0-9a-f]{32}$"),
            example::JOB_ID,
        ),
        any_of(
            "type",
            "Only these kinds of events, all that begin so (`job.`), or what the orchestrator calls them.",
            |_| texts("^([a-z]+\\.[a-z_]*|orchestrator_job_[a-z]+)$"),
            "job.completed",
        ),
    ]
}

pub fn stream() -> Operation {
    let example = "retry: 1000\n: listening\nid: c1000000000000004c\n\n\
                   id: c1000000000000004d\nevent: job.completed\ndata: {\"cursor\":\"c1000000000000004d\",…}\n\n\
                   : listening\n\n\
                   event: reconnect\nretry: 1000\ndata: {\"code\":\"service_restart\"}\n\n";
    let about = "Server-sent events without end. Each has the cursor as `id`, the kind as `event` and an Event as \
                 `data`. The last one, `reconnect` or `closed`, says why it ends.";
    Operation::new("streamEvents", Tag::Events, "Listen to what happens, as server-sent events")
        .about("What was missed since `after` comes first, then what happens, without a gap and without a repetition.")
        .takes(wanted())
        .takes([
            after("Where to begin: a cursor; left out, or `tail`, from now on."),
            parameter::header(
                "Last-Event-ID",
                "What a browser sends when it comes back; goes before `after`.",
                |_| json_schema!({ "type": "string" }),
            ),
        ])
        .answer(200, "The stream.", Content::Text { media: "text/event-stream", about, example })
        .refuses(&LISTENING)
}

pub fn socket() -> Operation {
    Operation::new("openSocket", Tag::Events, "Listen to what happens, over a WebSocket")
        .about(
            "Every message of the server is an Envelope as JSON text; what a client says is ignored. The payload of the \
             types `orchestrator_job_…` is a JobPayload, that of `listening` is empty, that of all others is an Event. \
             It is closed with 1012 when Baton restarts, 1013 when its database does not answer, 4401 when the key no \
             longer opens, and 4408 when the client does not read: come again with `after` set to the last `position`.",
        )
        .takes(wanted())
        .takes([after("Where to begin: a cursor; left out, or `tail`, from now on.")])
        .answer(101, "The connection is a WebSocket now.", Content::Nothing)
        .refuses(&LISTENING)
        .refuses(&["upgrade_required"])
}
