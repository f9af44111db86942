//! Every code that HTTP can answer with: one table, by status. Explained in `docs/errors.md`.

/// A stable code with what is always the same about it.
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

pub const CODES: [Code; 79] = [
    row(400, "invalid_json", "The body is not JSON"),
    row(400, "invalid_request", "The request is not understood"),
    row(400, "invalid_yaml", "The body is not YAML"),
    row(400, "invalid_cursor", "The cursor is not one of ours"),
    hint(row(400, "https_needed", "The server speaks HTTPS only"), "ask again at https://"),
    hint(row(400, "idempotency_key_required", "An idempotency key is needed"), "send Idempotency-Key"),
    hint(row(401, "unauthenticated", "It is not known who asks"), "send Authorization: Bearer and your key"),
    hint(
        row(402, "insufficient_credits", "The org does not have that many credits"),
        "an admin gives credits with POST /api/v1/credits/grants",
    ),
    row(403, "forbidden", "The key may not do this"),
    row(403, "out_of_scope", "The key does not reach this"),
    row(403, "not_responsible", "The decision is somebody else's"),
    row(403, "forbidden_host", "The Host header does not name this machine"),
    row(403, "forbidden_origin", "The request comes from a foreign web page"),
    row(404, "not_found", "There is no such route"),
    row(404, "job_not_found", "There is no such job"),
    row(404, "lane_not_found", "There is no such lane"),
    row(404, "schedule_not_found", "There is no such schedule"),
    row(404, "webhook_not_found", "There is no such webhook"),
    row(404, "key_not_found", "There is no such key"),
    row(404, "decision_not_found", "There is no such decision"),
    row(404, "job_type_not_found", "There is no such job type"),
    row(404, "run_not_found", "There is no such run"),
    row(404, "agent_not_found", "There is no such agent"),
    row(404, "part_not_found", "There is no such task or step"),
    row(405, "method_not_allowed", "The route does not accept this method"),
    row(408, "request_timeout", "The body took too long"),
    row(409, "invalid_transition", "The state does not allow this"),
    row(409, "attempts_exhausted", "The run has used all its attempts"),
    row(409, "too_many_signals", "The run was given as many signals as are kept"),
    row(409, "internal_job", "The job is steered through its run"),
    hint(
        row(409, "lease_lost", "The lease is no longer held"),
        "stop working on this job; somebody else has it, or it has ended",
    ),
    row(409, "job_type_reserved", "Baton keeps this name for itself"),
    row(409, "too_many_job_types", "There are as many job types, or versions, as there can be"),
    row(409, "balance_too_large", "The balance would be too large"),
    row(409, "job_conflict", "The job has already ended"),
    row(409, "duplicate_message", "The message was enqueued before"),
    row(409, "already_requeued", "The job was requeued before"),
    retry(row(409, "idempotency_in_flight", "A request with this idempotency key is still under way")),
    row(409, "decision_closed", "The decision is no longer open"),
    row(409, "webhook_exists", "There is such a webhook already"),
    row(409, "too_many_webhooks", "The org has as many webhooks as it can"),
    row(409, "key_exists", "There is such a key already"),
    row(409, "key_dead", "The key was revoked or has expired"),
    row(409, "own_key", "A key cannot revoke itself"),
    row(409, "too_many_sessions", "Too many sessions of this key were ended lately"),
    row(409, "org_exists", "There is such an org already"),
    hint(row(410, "ticket_gone", "The login link works no more"), "get a new one with: baton login"),
    row(413, "body_too_large", "The body is too large"),
    row(413, "payload_too_large", "The payload is too large"),
    row(413, "answer_too_large", "The answer is too large"),
    hint(row(415, "unsupported_media_type", "The body must be JSON"), "send Content-Type: application/json"),
    row(426, "upgrade_required", "This route speaks WebSocket"),
    row(422, "invalid_run", "This cannot be a run"),
    row(422, "invalid_amount", "The amount cannot be used"),
    row(422, "invalid_webhook", "This cannot be a webhook"),
    row(422, "unknown_job_type", "There is no such job type"),
    row(422, "local_job_type", "The server does these jobs itself"),
    row(422, "invalid_job_type", "This cannot be a job type"),
    row(422, "invalid_payload", "The payload does not fit its job type"),
    row(422, "invalid_time", "The time cannot be used"),
    row(422, "invalid_message_id", "The message id cannot be used"),
    row(422, "invalid_schedule", "The schedule cannot be used"),
    row(422, "invalid_key", "The key cannot be made so"),
    row(422, "unknown_option", "The decision has no such option"),
    row(422, "batch_size", "There are too few or too many jobs at once"),
    hint(
        row(422, "idempotency_key_reused", "The idempotency key was used for another request"),
        "use a new Idempotency-Key for a new request",
    ),
    retry(hint(
        row(429, "queue_full", "Too many jobs are waiting"),
        "nothing was enqueued; try again after Retry-After, or cancel what is no longer needed",
    )),
    retry(row(429, "rate_limited", "The key asks too fast")),
    retry(hint(
        row(429, "too_many_listeners", "The key listens too often"),
        "close a socket or a stream of this key, or filter by several names in one",
    )),
    retry(hint(
        row(429, "too_many_waiting", "Too many workers are waiting"),
        "ask again after Retry-After, or for more jobs at once with fewer workers",
    )),
    row(500, "internal", "Something is wrong with Baton itself"),
    retry(hint(
        row(503, "outcome_unknown", "It is not known whether this took place"),
        "repeat the request with the same Idempotency-Key; without a key, look first whether it took place",
    )),
    retry(hint(row(503, "store_unavailable", "The database cannot be reached"), "nothing was done; try again")),
    retry(hint(row(503, "store_closed", "Baton is stopping"), "try again when it is back")),
    retry(hint(row(503, "overloaded", "Too much is waiting"), "nothing was done; try again later")),
    retry(hint(row(503, "listeners_full", "Too many are listening"), "try again later, or read /api/v1/events")),
    retry(row(503, "not_ready", "Baton is not ready")),
    hint(row(503, "feature_disabled", "This node does not do this"), "ask a node that works on runs"),
    // Only an operator can change that, so trying again soon does not help.
    hint(row(503, "queue_disabled", "The queue is switched off"), "start Baton with ORCHESTRATOR_QUEUE_ENABLED=true"),
];

impl Code {
    pub fn find(code: &str) -> Option<&'static Self> {
        CODES.iter().find(|row| row.code == code)
    }

    /// For what no client can be blamed for.
    pub(crate) fn internal() -> &'static Self {
        Self::find("internal").unwrap_or(&const { row(500, "internal", "Something is wrong with Baton itself") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
}
