//! The API described for people: what it offers, how it is used, what its codes mean.
//!
//! Pages are made here and need nothing from elsewhere: no script, one style sheet, no font, no image.
//! The reference is made from the OpenAPI document, the others from the texts in `docs/`.
//!
//! Elsewhere: the document itself ([`crate::openapi`]).

mod curl;
mod html;
mod markdown;
mod reference;
mod shape;

use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::response::IntoResponse;
use std::sync::OnceLock;

pub(crate) const ERRORS: &str = include_str!("../../../../docs/errors.md");
const API: &str = include_str!("../../../../docs/api.md");
const STYLE: &str = include_str!("style.css");

/// Our own style sheet, and nothing else.
const POLICY: &str =
    "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

pub async fn reference() -> impl IntoResponse {
    static PAGE: OnceLock<String> = OnceLock::new();
    page(PAGE.get_or_init(|| reference::page(crate::openapi::document(), &crate::router::routes())))
}

pub async fn errors() -> impl IntoResponse {
    static PAGE: OnceLock<String> = OnceLock::new();
    page(PAGE.get_or_init(|| html::page("Errors", &html::contents(ERRORS), &markdown::render(ERRORS))))
}

pub async fn guide() -> impl IntoResponse {
    static PAGE: OnceLock<String> = OnceLock::new();
    page(PAGE.get_or_init(|| html::page("Guide", &html::contents(API), &markdown::render(API))))
}

pub async fn errors_text() -> impl IntoResponse {
    text(ERRORS)
}

pub async fn guide_text() -> impl IntoResponse {
    text(API)
}

pub async fn style() -> impl IntoResponse {
    ([(CONTENT_TYPE, "text/css; charset=utf-8")], STYLE)
}

fn page(html: &'static str) -> impl IntoResponse {
    ([(CONTENT_TYPE, "text/html; charset=utf-8"), (CONTENT_SECURITY_POLICY, POLICY)], html)
}

fn text(markdown: &'static str) -> impl IntoResponse {
    ([(CONTENT_TYPE, "text/markdown; charset=utf-8")], markdown)
}

#[cfg(test)]
mod tests;
