//! The history, and listening to it.

use super::super::example;
use super::super::operation::{Content, Operation, Tag};
use super::super::parameter::{self, Param};
use baton_core::name::SessionId;
use baton_wire::{EventList, TAIL, limit};
use schemars::json_schema;
use serde_json::json;

fn after(about: &'static str) -> Param {
    let place = parameter::query_as("after", about, |_| json_schema!({ "type": "string", "minLength": 1 }));
    Param { example: Some(json!(TAIL)), ..place }
}

pub fn list() -> Operation {
    let page = json!({ "events": [example::event()], "next": example::CURSOR });
    Operation::new("listEvents", Tag::Events, "Read what happened, in the order of commits")
        .about("Never skips and never repeats. Read on with `after` set to `next`, which is always present.")
        .takes([
            after("A cursor; left out, from the first event; `tail`, only what happens from now on."),
            parameter::query_as("limit", "At most so many.", |_| {
                json_schema!({
                    "type": "integer", "minimum": 1, "maximum": limit::EVENTS, "default": limit::EVENTS_DEFAULT,
                })
            }),
            parameter::query_as(
                "wait_ms",
                "If there is nothing yet, wait so long for it.",
                |_| json_schema!({ "type": "integer", "minimum": 0, "maximum": limit::WAIT_MS, "default": 0 }),
            ),
        ])
        .answers::<EventList>(200, "A page of them.", page)
        .refuses(&["invalid_cursor"])
}

/// What a listener can be refused for.
const LISTENING: [&str; 4] = ["invalid_cursor", "out_of_scope", "too_many_listeners", "listeners_full"];

/// What a listener may ask for.
fn wanted() -> [Param; 4] {
    [
        parameter::only_project(),
        parameter::query::<SessionId>("threadId", "Only what belongs to this chat session.", "chat-1"),
        parameter::query_as(
            "subject",
            "Only what happens to this, such as a job's id.",
            |_| json_schema!({ "type": "string" }),
        ),
        parameter::query_as(
            "type",
            "Only these kinds, or all that begin so, such as `job.`; repeated, or with commas.",
            |_| json_schema!({ "type": "array", "items": { "type": "string" }, "maxItems": 50 }),
        ),
    ]
}

pub fn stream() -> Operation {
    let example = "id: c1000000000000004d\nevent: job.completed\ndata: {\"cursor\":\"c1000000000000004d\",…}\n\n\
                   : nothing new\n\n\
                   event: reconnect\ndata: {\"reason\":\"stopping\"}\n\n";
    let about = "Server-sent events without end. Each has the cursor as `id`, the kind as `event` and an Event as \
                 `data`. The last one, `reconnect` or `closed`, gives the reason.";
    Operation::new("streamEvents", Tag::Events, "Listen to what happens, as server-sent events")
        .about("What was missed since `after` comes first, then what happens, without a gap and without a repetition.")
        .takes(wanted())
        .takes([
            after("Where to begin: a cursor; left out, from the first event; `tail`, from now on."),
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
            "Every message of the server is an Envelope as JSON text; what a client says is ignored. It is closed with \
             1012 when Baton restarts, 1013 when its database does not answer, 4401 when the key no longer opens, and \
             4408 when the client does not read: come again with `after` set to the last `position`.",
        )
        .takes(wanted())
        .takes([after("Where to begin: a cursor; left out, or `tail`, from now on.")])
        .answer(101, "The connection is a WebSocket now.", Content::Nothing)
        .refuses(&LISTENING)
        .refuses(&["upgrade_required"])
}
