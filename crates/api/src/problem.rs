//! Errors as clients see them: one table from code to status, and the body around it.

use crate::envelope;
use crate::limits;
use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, Response, StatusCode};
use axum::response::IntoResponse;
use baton_core::command::Refusal;
use baton_store::{CommitError, StoreError};
use baton_wire::Problem;

/// A stable code with what is always the same about it. Explained in `docs/errors.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code {
    pub code: &'static str,
    pub status: u16,
    pub title: &'static str,
    /// What to do, where that does not depend on the request.
    pub hint: Option<&'static str>,
    /// Whether trying again soon can help.
    pub retry: bool,
}

const fn row(status: u16, code: &'static str, title: &'static str) -> Code {
    Code { code, status, title, hint: None, retry: false }
}

const fn hint(code: Code, hint: &'static str) -> Code {
    Code { hint: Some(hint), ..code }
}

const fn retry(code: Code) -> Code {
    Code { retry: true, ..code }
}

/// Every code that HTTP can answer with, by status.
pub const CODES: [Code; 22] = [
    row(400, "invalid_json", "The body is not JSON"),
    row(400, "invalid_request", "The request is not understood"),
    row(400, "invalid_cursor", "The cursor is not one of ours"),
    row(403, "forbidden_host", "The Host header does not name this machine"),
    row(403, "forbidden_origin", "The request comes from a foreign web page"),
    row(404, "not_found", "There is no such route"),
    row(404, "job_not_found", "There is no such job"),
    row(405, "method_not_allowed", "The route does not accept this method"),
    row(408, "request_timeout", "The body took too long"),
    row(409, "invalid_transition", "The job's state does not allow this"),
    row(413, "body_too_large", "The body is too large"),
    row(413, "payload_too_large", "The payload is too large"),
    hint(row(415, "unsupported_media_type", "The body must be JSON"), "send Content-Type: application/json"),
    row(422, "unknown_job_type", "There is no such job type"),
    row(422, "invalid_time", "The time cannot be used"),
    hint(
        row(422, "idempotency_key_reused", "The idempotency key was used for another request"),
        "use a new Idempotency-Key for a new request",
    ),
    row(500, "internal", "Something is wrong with Baton itself"),
    retry(hint(
        row(503, "outcome_unknown", "It is not known whether this took place"),
        "repeat the request with the same Idempotency-Key; without a key, look first whether it took place",
    )),
    retry(hint(row(503, "store_unavailable", "The database cannot be reached"), "nothing was done; try again")),
    retry(hint(row(503, "store_closed", "Baton is stopping"), "try again when it is back")),
    retry(hint(row(503, "overloaded", "Too much is waiting"), "nothing was done; try again later")),
    retry(row(503, "not_ready", "Baton is not ready")),
];

impl Code {
    pub fn find(code: &str) -> Option<&'static Self> {
        CODES.iter().find(|row| row.code == code)
    }

    /// For what no client can be blamed for.
    fn internal() -> &'static Self {
        Self::find("internal").unwrap_or(&const { row(500, "internal", "Something is wrong with Baton itself") })
    }
}

/// A request that is answered with a problem. Details never name internals: causes are logged.
#[derive(Debug)]
pub struct Fault {
    code: &'static Code,
    detail: String,
}

impl Fault {
    pub fn new(code: &str, detail: impl Into<String>) -> Self {
        match Code::find(code) {
            Some(code) => Self { code, detail: detail.into() },
            None => Self::internal(format!("the code {code} is not in the table")),
        }
    }

    /// A request in which one field or parameter is wrong.
    pub fn field(field: &str, why: impl std::fmt::Display) -> Self {
        Self::new("invalid_request", format!("{field}: {why}"))
    }

    pub fn internal(cause: impl std::fmt::Display) -> Self {
        tracing::error!(%cause, "a request failed");
        Self { code: Code::internal(), detail: "the cause is in the server's log under the request's id".to_owned() }
    }

    pub const fn code(&self) -> &'static str {
        self.code.code
    }

    fn problem(&self) -> Problem {
        Problem {
            kind: Problem::page(self.code.code),
            title: self.code.title.to_owned(),
            status: Some(self.code.status),
            detail: self.detail.clone(),
            code: self.code.code.to_owned(),
            hint: self.code.hint.map(str::to_owned),
            request_id: envelope::current_request_id(),
        }
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        let detail = match &error {
            StoreError::Unavailable(_) => "the database does not answer",
            StoreError::OutcomeUnknown => "the database went away during the commit",
            StoreError::Overloaded => "too many commands are waiting to be committed",
            StoreError::Closed => "the database was closed because Baton is stopping",
            StoreError::Rejected(_) | StoreError::Panicked(_) | StoreError::Garbled(_) | StoreError::Damaged(_) => {
                return Self::internal(error);
            }
        };
        tracing::warn!(cause = %error, code = error.code(), "the store did not answer");
        Self::new(error.code(), detail)
    }
}

impl<E: Refusal> From<CommitError<E>> for Fault {
    fn from(error: CommitError<E>) -> Self {
        match error {
            CommitError::Refused(no) => Self::new(no.code(), no.to_string()),
            CommitError::KeyReused => Self::new("idempotency_key_reused", error.to_string()),
            CommitError::Store(error) => error.into(),
        }
    }
}

impl IntoResponse for Fault {
    fn into_response(self) -> Response<Body> {
        let body = serde_json::to_string(&self.problem()).unwrap_or_default();
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = StatusCode::from_u16(self.code.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(Problem::CONTENT_TYPE));
        if self.code.retry {
            headers.insert(RETRY_AFTER, HeaderValue::from(limits::RETRY_AFTER_S));
        }
        // For the envelope's log and metrics, which see only the response.
        response.extensions_mut().insert(self.code);
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_core::command::Never;
    use baton_core::job::enqueue::EnqueueError;
    use baton_core::job::wake::WakeError;
    use std::collections::BTreeSet;

    /// The codes that a section of `docs/errors.md` explains.
    fn explained(section: &str) -> BTreeSet<&'static str> {
        let text = crate::docs::ERRORS;
        let start = text.find(&format!("\n## {section}\n")).expect("the section exists") + 4;
        let rest = &text[start..];
        let end = rest.find("\n## ").unwrap_or(rest.len());
        rest[..end].lines().filter_map(|line| line.strip_prefix("### ")).collect()
    }

    #[test]
    fn every_code_is_explained_and_every_explained_code_exists() {
        let table: BTreeSet<_> = CODES.iter().map(|row| row.code).collect();
        assert_eq!(table.len(), CODES.len(), "a code stands once");
        assert_eq!(table, explained("Answers of the server"));
    }

    #[test]
    fn a_code_is_explained_once_in_the_whole_page() {
        let mut seen = BTreeSet::new();
        for code in crate::docs::ERRORS.lines().filter_map(|line| line.strip_prefix("### ")) {
            assert!(seen.insert(code), "{code} is explained twice, so its link is ambiguous");
        }
    }

    #[test]
    fn whatever_a_request_can_be_refused_with_has_a_status() {
        let name = || "x".parse().unwrap();
        let id = "job_018bcfe568007001800000000000002a".parse().unwrap();
        let refusals: Vec<(Fault, u16)> = vec![
            (CommitError::Refused(EnqueueError::UnknownType { name: name(), known: String::new() }).into(), 422),
            (CommitError::Refused(EnqueueError::PayloadTooLarge { bytes: 2, max: 1 }).into(), 413),
            (CommitError::Refused(EnqueueError::DeadlinePast).into(), 422),
            (CommitError::Refused(EnqueueError::TooFarAhead { what: "the deadline" }).into(), 422),
            (CommitError::Refused(WakeError::NotFound(id)).into(), 404),
            (
                CommitError::Refused(WakeError::AlreadyEnded { job: id, state: baton_core::job::State::Failed }).into(),
                409,
            ),
            (CommitError::<Never>::KeyReused.into(), 422),
            (StoreError::Unavailable("secret".into()).into(), 503),
            (StoreError::OutcomeUnknown.into(), 503),
            (StoreError::Overloaded.into(), 503),
            (StoreError::Closed.into(), 503),
            (StoreError::Rejected("secret".into()).into(), 500),
            (StoreError::Garbled("secret".into()).into(), 500),
        ];
        for (fault, status) in refusals {
            assert_eq!(fault.code.status, status, "{fault:?}");
            assert!(!fault.detail.contains("secret"), "{fault:?}");
            assert_eq!(fault.code.code == "internal", status == 500, "{fault:?}");
        }
    }

    #[test]
    fn a_code_that_nobody_listed_is_our_fault_and_not_the_clients() {
        assert_eq!(Fault::new("moon", "x").code(), "internal");
    }
}
