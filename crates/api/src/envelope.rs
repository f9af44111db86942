//! What every exchange gets: an id, a log line, metrics, safe headers, and an answer even if
//! the handler panics.

use crate::app::App;
use crate::metrics;
use crate::problem::{Code, Fault};
use crate::trace::{self, Trace};
use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use baton_wire::header;
use std::any::Any;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;
use tokio::time::Instant;
use tracing::Instrument;
use tracing::field::Empty;

tokio::task_local! {
    static REQUEST_ID: String;
}

/// The id of the request that is being answered here, if one is.
pub(crate) fn current_request_id() -> Option<String> {
    REQUEST_ID.try_with(Clone::clone).ok()
}

pub async fn envelope(State(app): State<App>, request: Request, next: Next) -> Response {
    let started = Instant::now();
    let id = trace::request_id(request.headers()).unwrap_or_else(|| app.request_id());
    let trace = Trace::of(request.headers(), app.drawn_trace());
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().cloned();
    let route = route.as_ref().map_or("none", MatchedPath::as_str);
    // Of the highest level, so that also the quietest log says which request a line is about. Nothing
    // that the caller wrote stands in it but the id, which is plain.
    let span = tracing::error_span!(
        "request",
        requestId = id,
        traceId = trace.id(),
        %method,
        route,
        key = Empty,
        org = Empty
    );

    let answered = REQUEST_ID.scope(id.clone(), answer(request, next)).instrument(span.clone()).await;

    let mut response = answered;
    dress(&mut response, &id, trace);
    let elapsed = started.elapsed();
    let status = response.status().as_u16();
    metrics::answered(&method, route, status, elapsed);
    let code = response.extensions().get::<&'static Code>().map(|code| code.code);
    let _in = span.enter();
    let ms = elapsed.as_millis() as u64;
    if status >= 500 {
        tracing::warn!(status, code, ms, "answered");
    } else if matches!(status, 401 | 403 | 429) {
        // Whoever is turned away leaves a trace.
        tracing::info!(status, code, ms, "answered");
    } else {
        tracing::debug!(status, code, ms, "answered");
    }
    response
}

/// A handler that panics costs its request an answer, never the server its life.
async fn answer(request: Request, next: Next) -> Response {
    let mut running = pin!(next.run(request));
    let outcome = poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| running.as_mut().poll(cx))) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(response)) => Poll::Ready(Ok(response)),
        Err(panic) => Poll::Ready(Err(panic)),
    })
    .await;
    outcome.unwrap_or_else(|panic| Fault::internal(panic_text(&*panic)).into_response())
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("a handler panicked")
}

/// Answers are for the program that asked: not to be kept, guessed at, or shown as a page.
fn dress(response: &mut Response, id: &str, trace: Trace) {
    let always = [
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'")),
        (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    ];
    let headers = response.headers_mut();
    for (name, value) in always {
        headers.entry(name).or_insert(value);
    }
    for (name, value) in [(header::REQUEST_ID, id), (header::TRACEPARENT, &trace.to_string())] {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::Router;
    use axum::body::{Body, to_bytes};
    use axum::middleware::from_fn;
    use axum::routing::get;
    use hyper::service::Service as _;
    use hyper_util::service::TowerToHyperService;

    async fn ask(path: &str) -> (u16, String) {
        async fn at_once() {
            panic!("the secret was 42")
        }
        async fn after_a_while() {
            tokio::task::yield_now().await;
            std::panic::panic_any(7)
        }
        let routes = Router::new()
            .route("/at-once", get(at_once))
            .route("/after-a-while", get(after_a_while))
            .route("/well", get(async || "well"))
            .layer(from_fn(answer));
        let request = Request::builder().uri(path).body(Body::empty()).unwrap();
        let response = TowerToHyperService::new(routes).call(request).await.unwrap();
        let status = response.status().as_u16();
        let body = to_bytes(response.into_body(), 10_000).await.unwrap();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn a_handler_that_panics_is_answered_for() {
        for path in ["/at-once", "/after-a-while"] {
            let (status, body) = ask(path).await;
            assert_eq!(status, 500, "{body}");
            assert!(body.contains("\"code\":\"internal\""), "{body}");
            assert!(!body.contains("secret"), "{body}");
        }
        assert_eq!(ask("/well").await, (200, "well".to_owned()));
    }
}
