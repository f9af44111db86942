//! Health, numbers, and the verification of the history.

use super::super::example;
use super::super::operation::{Content, Operation, Tag};
use crate::health::Status;
use baton_wire::Audit;
use serde_json::json;

pub fn audit() -> Operation {
    Operation::new("verifyHistory", Tag::Installation, "Verify the whole history")
        .about("Reads every chain and every seal; one at a time.")
        .answers::<Audit>(200, "What was found.", example::audit())
}

pub fn metrics() -> Operation {
    let content = Content::Text {
        media: "text/plain",
        about: "The text format of Prometheus.",
        example: "# HELP baton_queue_depth Jobs that have not ended, by state\n\
                  # TYPE baton_queue_depth gauge\n\
                  baton_queue_depth{state=\"queued\"} 3\n",
    };
    Operation::new("scrapeMetrics", Tag::Installation, "Scrape metrics").answer(200, "Metrics.", content)
}

pub fn alive() -> Operation {
    let alive = json!({ "status": "alive", "version": env!("CARGO_PKG_VERSION") });
    Operation::new("isAlive", Tag::Installation, "Ask whether the process lives")
        .answers::<Status>(200, "It does.", alive)
}

pub fn ready() -> Operation {
    let ready = json!({ "status": "ready", "version": env!("CARGO_PKG_VERSION") });
    Operation::new("isReady", Tag::Installation, "Ask whether work may be sent here")
        .answers::<Status>(200, "It may.", ready)
        .refuses(&["not_ready"])
}
