//! The API described for programs: OpenAPI at `/openapi.json`.
//!
//! Every entry of the route table brings its [`Operation`]; schemas are made from the types on the
//! wire, codes from the one table, rights from the role table. So what is written by hand is what only
//! a person can say: summaries, examples, and which refusals belong to which operation.
//!
//! Elsewhere: the same for people ([`crate::docs`]).

mod codes;
mod document;
mod example;
mod header;
pub mod of;
mod operation;
mod parameter;
mod run_example;
#[cfg(test)]
mod tests;

pub use operation::Operation;

use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use serde_json::Value;
use std::sync::OnceLock;

/// Of the specification.
const VERSION: &str = "3.1.0";

/// The document, made once.
pub fn document() -> &'static Value {
    static DOCUMENT: OnceLock<Value> = OnceLock::new();
    DOCUMENT.get_or_init(|| document::document(&crate::router::described()))
}

pub async fn serve() -> impl IntoResponse {
    static TEXT: OnceLock<String> = OnceLock::new();
    let text = TEXT.get_or_init(|| document().to_string());
    ([(CONTENT_TYPE, "application/json")], text.as_str())
}
