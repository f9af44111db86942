//! The page that every problem's `type` points to.

use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;

pub(crate) const ERRORS: &str = include_str!("../../../docs/errors.md");

pub async fn errors() -> impl IntoResponse {
    ([(CONTENT_TYPE, "text/markdown; charset=utf-8")], ERRORS)
}
