//! Saying the same thing twice: the second time is answered like the first, and does nothing.

use crate::app::App;
use crate::door::Caller;
use crate::flight::Turn;
use crate::problem::Fault;
use crate::refusal::Told;
use crate::wait;
use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use baton_core::canon::{Digest, Json};
use baton_core::command::Command;
use baton_core::limits::IDEMPOTENCY_KEY_CHARS;
use baton_core::once::{self, Rendered};
use baton_store::{Answer, Once, StoreError};
use baton_wire::header;
use std::sync::{Arc, Mutex, PoisonError};

/// What a client repeats: the key it chose, and for what.
#[derive(Clone, Debug)]
pub struct Keyed {
    key: String,
    /// The endpoint: the same key at another endpoint is another key.
    scope: &'static str,
    request: Digest,
}

/// What makes a request the same request.
pub struct Asked<'a> {
    /// The endpoint as its route is written.
    pub scope: &'static str,
    /// The path as it was asked for.
    pub path: &'a str,
    /// What was understood of the body, so that white space and field order do not matter.
    pub body: &'a Json,
}

/// The key that a request carries, if any.
pub fn key(headers: &HeaderMap) -> Result<Option<String>, Fault> {
    let name = HeaderName::from_static(header::IDEMPOTENCY_KEY);
    let mut values = headers.get_all(&name).iter();
    let value = match (values.next(), values.next()) {
        (None, _) => return Ok(None),
        (Some(value), None) => value,
        (Some(_), Some(_)) => return Err(Fault::field("Idempotency-Key", "given more than once")),
    };
    let key = value.to_str().unwrap_or_default();
    if key.is_empty() || key.len() > IDEMPOTENCY_KEY_CHARS {
        let why = format!("must be 1 to {IDEMPOTENCY_KEY_CHARS} printable ASCII characters");
        return Err(Fault::field("Idempotency-Key", why));
    }
    Ok(Some(key.to_owned()))
}

impl Keyed {
    pub fn new(key: String, asked: &Asked<'_>) -> Self {
        let parts = ["POST", "\n", asked.path, "\n", asked.body.as_str()].map(str::as_bytes);
        Self { key, scope: asked.scope, request: Digest::of(&parts) }
    }
}

/// Commits a command and answers with what `render` makes of its outcome. Under a key the very
/// same answer is stored with the effect.
pub async fn commit<C: Command>(
    app: &App,
    caller: &Caller,
    command: C,
    keyed: Option<Keyed>,
    render: impl Fn(&C::Out) -> Rendered + Send + 'static,
) -> Result<Response<Body>, Fault>
where
    C::No: Told,
{
    commit_secret(app, caller, command, keyed, move |out: &C::Out, _| render(out)).await
}

/// The same for an answer that holds a secret: it is sent, and what is stored leaves it out. `render`
/// is told whether to show it.
pub async fn commit_secret<C: Command>(
    app: &App,
    caller: &Caller,
    command: C,
    keyed: Option<Keyed>,
    render: impl Fn(&C::Out, bool) -> Rendered + Send + 'static,
) -> Result<Response<Body>, Fault>
where
    C::No: Told,
{
    let actor = caller.actor();
    let Some(keyed) = keyed else {
        let committed = wait::commit(app.store().commit(command, actor)).await.ok_or(StoreError::OutcomeUnknown)?;
        return Ok(response(render(&committed?, true), false));
    };
    let key = once::Key { org: caller.org.clone(), scope: keyed.scope.to_owned(), key: keyed.key };
    let flight = match app.flights().turn(&key, keyed.request).await? {
        Turn::Go(flight) => flight,
        Turn::Landed(answer) => return Ok(response(answer, true)),
    };
    // The store may decide, and so render, more than once; the last one is what it commits. It is
    // sent from here, so that what was stored and what is sent cannot differ.
    let stored = Arc::new(Mutex::new(None));
    let last = stored.clone();
    let once = Once {
        key,
        request: keyed.request,
        render: Box::new(move |out| {
            let kept = render(out, false);
            *last.lock().unwrap_or_else(PoisonError::into_inner) = Some((render(out, true), kept.clone()));
            kept
        }),
    };
    let committed = wait::commit(app.store().commit_once(command, actor, once)).await;
    match committed.ok_or(StoreError::OutcomeUnknown)?? {
        Answer::Replayed(answer) => {
            flight.land(keyed.request, answer.clone());
            Ok(response(answer, true))
        }
        Answer::Fresh(_) => match stored.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some((answer, kept)) => {
                flight.land(keyed.request, kept);
                Ok(response(answer, false))
            }
            None => Err(Fault::internal("a command was committed under a key without rendering its answer")),
        },
    }
}

pub fn rendered(status: u16, body: &impl serde::Serialize) -> Rendered {
    // These shapes have text keys only, so writing them cannot fail.
    Rendered { status, body: serde_json::to_string(body).unwrap_or_default() }
}

fn response(answer: Rendered, replayed: bool) -> Response<Body> {
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::OK);
    // Nothing was created this time.
    let status = if replayed && status == StatusCode::CREATED { StatusCode::OK } else { status };
    let mut response = Response::new(Body::from(answer.body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if replayed {
        headers.insert(HeaderName::from_static(header::IDEMPOTENCY_REPLAYED), HeaderValue::from_static("true"));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(values: &[&[u8]]) -> Result<Option<String>, Fault> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(header::IDEMPOTENCY_KEY, HeaderValue::from_bytes(value).unwrap());
        }
        key(&headers)
    }

    #[test]
    fn a_key_is_one_short_printable_text() {
        assert!(read(&[]).unwrap().is_none());
        assert_eq!(read(&[b"a b-c"]).unwrap().as_deref(), Some("a b-c"));
        assert!(read(&[&[b'k'; 255]]).unwrap().is_some());
        for bad in [&[&b""[..]][..], &[&[b'k'; 256]], &[b"\xc3\xbc"], &[b"a", b"a"]] {
            assert_eq!(read(bad).unwrap_err().code(), "invalid_request", "{bad:?}");
        }
    }

    #[test]
    fn path_and_body_make_the_request() {
        let digest = |path, body: &str| {
            let asked = Asked { scope: "POST /x", path, body: &Json::parse(body).unwrap() };
            Keyed::new("k".to_owned(), &asked).request
        };
        assert_eq!(digest("/x", r#"{"a":1,"b":2}"#), digest("/x", r#"{ "b": 2, "a": 1 }"#));
        assert_ne!(digest("/x", r#"{"a":1}"#), digest("/x", r#"{"a":2}"#));
        assert_ne!(digest("/x", "{}"), digest("/y", "{}"));
    }

    #[test]
    fn a_repetition_created_nothing() {
        let answer = |status| Rendered { status, body: "{}".to_owned() };
        assert_eq!(response(answer(201), false).status(), 201);
        let again = response(answer(201), true);
        assert_eq!(again.status(), 200);
        assert_eq!(again.headers()[header::IDEMPOTENCY_REPLAYED], "true");
        assert_eq!(response(answer(202), true).status(), 202);
    }
}
