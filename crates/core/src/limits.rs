//! Limits with a name. Those an operator may change are in the configuration as well.

/// Largest payload of a job, as canonical JSON text.
pub const PAYLOAD_BYTES: usize = 256 * 1024;
/// Largest result of a job, as canonical JSON text.
pub const RESULT_BYTES: usize = 256 * 1024;
/// Longest error message that is kept.
pub const ERROR_CHARS: usize = 2_000;
/// Longest idempotency key.
pub const IDEMPOTENCY_KEY_CHARS: usize = 255;
/// Jobs that one command may touch at once.
pub const JOBS_PER_COMMAND: usize = 1_000;
/// A job can be scheduled, or given a deadline, this far ahead.
pub const AHEAD: crate::time::Span = crate::time::Span::secs(366 * 24 * 60 * 60);

/// Cuts a message to a length in characters, never inside one. NUL, which PostgreSQL cannot
/// store, is shown as its picture.
pub fn cut(text: &str, chars: usize) -> String {
    let text = text.replace('\0', "\u{2400}");
    match text.char_indices().nth(chars) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
