//! The page that every problem's `type` points to, and the one it refers to.

use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;

pub(crate) const ERRORS: &str = include_str!("../../../docs/errors.md");

const API: &str = include_str!("../../../docs/api.md");

pub async fn errors() -> impl IntoResponse {
    page(ERRORS)
}

pub async fn api() -> impl IntoResponse {
    page(API)
}

fn page(text: &'static str) -> impl IntoResponse {
    ([(CONTENT_TYPE, "text/markdown; charset=utf-8")], text)
}
