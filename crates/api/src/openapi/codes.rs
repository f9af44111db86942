//! Which codes an operation can answer with: its own, and those that follow from what it is.

use super::operation::Operation;
use super::parameter::Place;
use crate::code::{CODES, Code};
use crate::door::Ask;
use crate::router::Route;
use axum::http::Method;
use std::collections::BTreeMap;

/// Whatever asks the database can find it missing.
const STORE: [&str; 3] = ["store_unavailable", "store_closed", "overloaded"];

/// By status, each in the order of the table.
pub fn of(route: &Route, operation: &Operation) -> BTreeMap<u16, Vec<&'static Code>> {
    let mut all: Vec<&str> = vec!["forbidden_host", "forbidden_origin", "internal"];
    all.extend(&operation.codes);
    match route.ask {
        Ask::Nobody => {}
        Ask::Anybody => all.extend(["unauthenticated", "rate_limited"].iter().chain(&STORE)),
        Ask::Right(_) | Ask::Installation(_) => {
            all.extend(["unauthenticated", "forbidden", "rate_limited"].iter().chain(&STORE));
        }
    }
    // Parameters that are not known are refused, also where there are none.
    if route.path.starts_with("/api/") {
        all.push("invalid_request");
    }
    if route.method != Method::GET {
        all.push("outcome_unknown");
    }
    if operation.params.iter().any(|param| param.place == Place::Query && param.name == "cursor") {
        all.push("invalid_cursor");
    }
    if operation.body.is_some() {
        all.extend(["invalid_json", "unsupported_media_type", "body_too_large", "request_timeout"]);
    }
    if operation.keyed {
        all.push("idempotency_key_reused");
    }
    let mut by_status: BTreeMap<u16, Vec<&'static Code>> = BTreeMap::new();
    for code in CODES.iter().filter(|code| all.contains(&code.code)) {
        by_status.entry(code.status).or_default().push(code);
    }
    by_status
}
