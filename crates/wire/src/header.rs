//! Headers with a meaning of their own. Lower case, as HTTP libraries want them.

/// Names a request, so that repeating it does nothing twice.
pub const IDEMPOTENCY_KEY: &str = "idempotency-key";
/// `true` on an answer that was given before.
pub const IDEMPOTENCY_REPLAYED: &str = "idempotency-replayed";
/// On every response; the server's log has the same. Taken over from a request that has a usable one.
pub const REQUEST_ID: &str = "x-request-id";
/// Which trace an exchange belongs to (W3C Trace Context).
pub const TRACEPARENT: &str = "traceparent";
