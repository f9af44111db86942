//! Errors as clients see them: a code from the one table, and the body around it.

pub use crate::code::{CODES, Code};
use crate::envelope;
use crate::limits;
use crate::refusal::Told;
use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, Response, StatusCode};
use axum::response::IntoResponse;
use baton_store::{CommitError, StoreError};
use baton_wire::{DocumentProblem, Members, Problem};

/// A request that is answered with a problem. Details never name internals: causes are logged.
#[derive(Debug)]
pub struct Fault {
    code: &'static Code,
    detail: String,
    /// Boxed: most have none, and every handler's result is as large as its error.
    members: Box<Members>,
}

impl Fault {
    pub fn new(code: &str, detail: impl Into<String>) -> Self {
        match Code::find(code) {
            Some(code) => Self { code, detail: detail.into(), members: Box::default() },
            None => Self::internal(format!("the code {code} is not in the table")),
        }
    }

    /// A request in which one field or parameter is wrong.
    pub fn field(field: &str, why: impl std::fmt::Display) -> Self {
        Self::new("invalid_request", format!("{field}: {why}"))
    }

    pub fn internal(cause: impl std::fmt::Display) -> Self {
        tracing::error!(%cause, "a request failed");
        let detail = "the cause is in the server's log under the request's id".to_owned();
        Self { code: Code::internal(), detail, members: Box::default() }
    }

    /// The same about a field that stands inside of something.
    #[must_use]
    pub fn inside(mut self, place: &str) -> Self {
        self.detail.insert_str(0, place);
        self
    }

    /// Which one of a list is wrong.
    #[must_use]
    pub const fn at(mut self, index: usize) -> Self {
        self.members.index = Some(index);
        self
    }

    /// All that is wrong with a run document.
    #[must_use]
    pub fn with_problems(mut self, problems: Vec<DocumentProblem>) -> Self {
        self.members.problems = Some(problems);
        self
    }

    /// After how many milliseconds it is worth trying again.
    #[must_use]
    pub fn after(mut self, ms: u32) -> Self {
        self.members.retry_after_ms = Some(ms);
        self
    }

    /// The same under the name that another contract has for it.
    #[must_use]
    pub fn renamed(self, from: &str, to: &str) -> Self {
        if self.code.code != from {
            return self;
        }
        Self { members: self.members, ..Self::new(to, self.detail) }
    }

    /// The same in the words that another contract has for a state.
    #[must_use]
    pub fn respelled(mut self, from: &str, to: &str) -> Self {
        let members = &mut *self.members;
        let states = [&mut members.from, &mut members.to].into_iter().flatten();
        for state in states.chain(members.allowed.iter_mut().flatten()).filter(|state| *state == from) {
            to.clone_into(state);
        }
        self.detail = self.detail.replace(from, to);
        self
    }

    pub const fn code(&self) -> &'static str {
        self.code.code
    }

    pub fn detail(&self) -> &str {
        &self.detail
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
            members: (*self.members).clone(),
        }
    }

    /// In whole seconds, of which there is at least one.
    fn retry_after(&self) -> u32 {
        self.members.retry_after_ms.map_or(limits::RETRY_AFTER_S, |ms| ms.div_ceil(1_000).max(1))
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

impl<E: Told> From<CommitError<E>> for Fault {
    fn from(error: CommitError<E>) -> Self {
        match error {
            CommitError::Refused(no) => {
                Self { members: Box::new(no.members()), ..Self::new(no.code(), no.to_string()) }
            }
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
        if self.code.status == 401 {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if self.code.retry {
            headers.insert(RETRY_AFTER, HeaderValue::from(self.retry_after()));
        }
        // For the envelope's log and metrics, which see only the response.
        response.extensions_mut().insert(self.code);
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_core::JobId;
    use baton_core::access::change::KeyError;
    use baton_core::command::Never;
    use baton_core::cron::BadWhen;
    use baton_core::cron::put::PutError;
    use baton_core::decision::resolve::ResolveError;
    use baton_core::id::DecisionId;
    use baton_core::job::State;
    use baton_core::job::batch::BatchError;
    use baton_core::job::cancel::CancelError;
    use baton_core::job::enqueue::EnqueueError;
    use baton_core::job::requeue::RequeueError;
    use baton_core::job::wake::WakeError;

    fn id() -> JobId {
        "job_018bcfe568007001800000000000002a".parse().unwrap()
    }

    fn decision() -> DecisionId {
        "dec_018bcfe568007001800000000000002a".parse().unwrap()
    }

    fn no(refusal: impl Told) -> Fault {
        CommitError::Refused(refusal).into()
    }

    fn full() -> EnqueueError {
        EnqueueError::QueueFull { what: "lane project:p".to_owned(), limit: 100, waiting: 100, own: 0 }
    }

    #[test]
    fn whatever_a_request_can_be_refused_with_has_a_status() {
        let name = || "x".parse().unwrap();
        let refusals: Vec<(Fault, u16)> = vec![
            (no(EnqueueError::UnknownType { name: name(), known: String::new() }), 422),
            (no(EnqueueError::PayloadTooLarge { bytes: 2, max: 1 }), 413),
            (no(EnqueueError::InvalidPayload { detail: String::new() }), 422),
            (no(EnqueueError::DeadlinePast), 422),
            (no(EnqueueError::DeadlineBeforeStart), 422),
            (no(EnqueueError::TooFarAhead { what: "the deadline" }), 422),
            (no(EnqueueError::BadMessageId), 422),
            (no(EnqueueError::MessageForgotten { job: id() }), 409),
            (no(EnqueueError::MessageOfAnotherType), 409),
            (no(EnqueueError::Disabled), 503),
            (no(full()), 429),
            (no(BatchError::Size { jobs: 0 }), 422),
            (no(BatchError::Job { index: 1, source: full() }), 429),
            (no(RequeueError::Size { jobs: 0 }), 422),
            (no(RequeueError::NotFound(id())), 404),
            (no(RequeueError::NotFailed { job: id(), state: State::Queued }), 409),
            (no(RequeueError::Before { job: id(), into: id() }), 409),
            (no(RequeueError::Duplicate { job: id(), of: id() }), 409),
            (no(RequeueError::Job { job: id(), source: full() }), 429),
            (no(WakeError::NotFound(id())), 404),
            (no(WakeError::AlreadyEnded { job: id(), illegal: State::Failed.illegal(State::Executing) }), 409),
            (no(CancelError::NotFound(id())), 404),
            (no(CancelError::AlreadyEnded { job: id(), illegal: State::Failed.illegal(State::Cancelled) }), 409),
            (no(ResolveError::NotFound(decision())), 404),
            (no(ResolveError::Over(decision())), 409),
            (no(ResolveError::NotYours { id: decision(), whose: String::new() }), 403),
            (no(ResolveError::NoOption { option: "x".parse().unwrap(), options: String::new() }), 422),
            (no(ResolveError::TooLarge { bytes: 2, max: 1 }), 413),
            (no(KeyError::OrgExists("o".parse().unwrap())), 409),
            (no(PutError::NotFound { project: "p".parse().unwrap(), name: "n".parse().unwrap() }), 404),
            (no(PutError::When(BadWhen::Never(String::new()))), 422),
            (no(PutError::UnknownType { name: name(), known: String::new() }), 422),
            (no(PutError::InvalidPayload(String::new())), 422),
            (no(PutError::PayloadTooLarge { bytes: 2, max: 1 }), 413),
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
    fn a_full_queue_says_how_full_and_when_to_come_again() {
        let fault = no(BatchError::Job { index: 7, source: full() });
        let expected = Members {
            index: Some(7),
            limit: Some(100),
            waiting: Some(100),
            retry_after_ms: Some(5_000),
            ..Members::default()
        };
        assert_eq!(*fault.members, expected);
        assert_eq!(fault.into_response().headers()[RETRY_AFTER], "5");
        assert!(!no(EnqueueError::Disabled).into_response().headers().contains_key(RETRY_AFTER));
    }

    #[test]
    fn a_contract_may_have_its_own_name_for_a_refusal() {
        let ended = || no(CancelError::AlreadyEnded { job: id(), illegal: State::Failed.illegal(State::Cancelled) });
        assert_eq!(ended().renamed("invalid_transition", "job_conflict").code(), "job_conflict");
        assert_eq!(no(CancelError::NotFound(id())).renamed("invalid_transition", "x").code(), "job_not_found");
    }

    #[test]
    fn a_code_that_nobody_listed_is_our_fault_and_not_the_clients() {
        assert_eq!(Fault::new("moon", "x").code(), "internal");
    }
}
