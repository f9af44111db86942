//! Money.

use super::super::operation::{Operation, Tag};
use super::super::parameter;
use super::super::run_example as runs;
use super::run::{cursor, limit};
use baton_wire::{Balance, Granted, LedgerList, NewGrant};
use schemars::json_schema;
use serde_json::json;

pub fn balance() -> Operation {
    Operation::new("getBalance", Tag::Credits, "Show what the org has to spend")
        .answers::<Balance>(200, "The balance.", json!({ "available": "87.5", "reserved": "8.5", "entries": 2 }))
        .refuses(&["out_of_scope"])
}

pub fn grant() -> Operation {
    let given = json!({ "amount": "100", "balance": "100", "entry": runs::grant() });
    Operation::new("grantCredits", Tag::Credits, "Give the org credits")
        .about("The `Idempotency-Key` must be there, and is remembered for ever: under one key credits are given once.")
        .body::<NewGrant>("a grant", json!({ "amount": "100", "note": "January" }))
        .answers::<Granted>(201, "What was given.", given.clone())
        .answers::<Granted>(200, "Given before under the same `Idempotency-Key`.", given)
        .refuses(&["idempotency_key_required", "invalid_amount", "invalid_key", "balance_too_large"])
}

pub fn ledger() -> Operation {
    Operation::new("listEntries", Tag::Credits, "List the entries of an account, newest first")
        .takes([
            parameter::query_as(
                "account",
                "`org`, an attempt of a run such as `run_…/1`, or the id of an agent; the org's, unless given.",
                |_| json_schema!({ "type": "string", "default": "org" }),
            ),
            parameter::order_by_time(),
            limit(),
            cursor(),
        ])
        .answers::<LedgerList>(200, "A page of them.", json!({ "entries": [runs::reserve()], "next_cursor": null }))
        .refuses(&["out_of_scope", "run_not_found", "agent_not_found"])
}

pub fn of_run() -> Operation {
    Operation::new("listRunEntries", Tag::Credits, "List all entries of a run's accounts")
        .about("Of all its attempts and all their agents, account by account.")
        .takes([parameter::run_id(), parameter::order_by_name(), limit(), cursor()])
        .answers::<LedgerList>(200, "A page of them.", json!({ "entries": [runs::reserve()], "next_cursor": null }))
        .refuses(&["run_not_found"])
}
