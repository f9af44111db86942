//! Headers of answers.

use crate::code::Code;
use baton_wire::Object;
use serde_json::{Value, json};

/// Name, what it says, what it looks like.
const ALL: [(&str, &str, &str, &str); 7] = [
    (
        "X-Request-Id",
        "Names this exchange, as the request did or by an id of ours; the server's log has the same.",
        "string",
        "req_4f1d22a900000001",
    ),
    (
        "traceparent",
        "Our place in the trace that the request belongs to, or in one of our own (W3C Trace Context).",
        "string",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    ),
    ("Idempotency-Replayed", "`true`: this was answered before, and nothing was done now.", "string", "true"),
    (
        "RateLimit",
        "How many requests this key may send at once (`r`), and after how many seconds all of them (`t`).",
        "string",
        "\"key\";r=1999;t=1",
    ),
    (
        "RateLimit-Policy",
        "How many requests may come at once (`q`), in how many seconds they come back (`w`).",
        "string",
        "\"key\";q=2000;w=2",
    ),
    ("Retry-After", "After how many seconds it is worth trying again.", "integer", "1"),
    ("WWW-Authenticate", "How to say who you are.", "string", "Bearer"),
];

fn refer(names: &[&str]) -> Object {
    names.iter().map(|name| ((*name).to_owned(), json!({ "$ref": format!("#/components/headers/{name}") }))).collect()
}

pub fn always() -> Object {
    refer(&["X-Request-Id", "traceparent"])
}

/// On what a key is answered, unless the limit is switched off.
pub fn paced() -> Object {
    refer(&["RateLimit", "RateLimit-Policy"])
}

pub fn replayed() -> Object {
    refer(&["Idempotency-Replayed"])
}

pub fn refused(status: u16, codes: &[&'static Code]) -> Object {
    let mut headers = if status == 401 { refer(&["WWW-Authenticate"]) } else { paced() };
    if codes.iter().any(|code| code.retry) {
        headers.extend(refer(&["Retry-After"]));
    }
    headers
}

/// Only what is on every answer that names it is required.
pub fn all() -> Value {
    let one = |(name, about, kind, example): (&str, &str, &str, &str)| {
        let example =
            if kind == "integer" { json!(example.parse::<u32>().unwrap_or_default()) } else { json!(example) };
        let required = matches!(name, "X-Request-Id" | "traceparent" | "WWW-Authenticate");
        let shown =
            json!({ "description": about, "required": required, "schema": { "type": kind }, "example": example });
        (name.to_owned(), shown)
    };
    ALL.into_iter().map(one).collect::<Object>().into()
}
