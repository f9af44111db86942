//! The job types that every Baton knows: `noop` and `echo`.

use crate::registry::{JobCx, Outcome};
use baton_core::TypeName;
use baton_core::canon::Json;
use baton_core::definition::JobType;
use baton_core::job::{BACKGROUND, Failure};
use baton_core::time::Span;
use serde_json::{Value, json};

/// Longest delay of an echo.
const DELAY_MS_MAX: u64 = 24 * 60 * 60 * 1_000;

fn job_type(name: &'static str, summary: &str) -> JobType {
    JobType {
        name: name.parse::<TypeName>().unwrap_or_else(|e| unreachable!("{name}: {e}")),
        version: 1,
        summary: summary.to_owned(),
        priority: BACKGROUND,
        max_attempts: 2,
        lease: Span::secs(30),
    }
}

pub fn noop() -> JobType {
    job_type("noop", "does nothing and completes")
}

pub async fn run_noop(_: JobCx, _: Json) -> Outcome {
    Outcome::Done(Json::of(&json!({})))
}

pub fn echo() -> JobType {
    job_type("echo", "answers with its message, after delay_ms or when woken if wait is set")
}

/// `{"message": …, "delay_ms": 500, "wait": true}`, all of it optional. Waiting holds no worker.
pub async fn run_echo(cx: JobCx, payload: Json) -> Outcome {
    let payload = payload.value();
    let delay_ms = match payload.get("delay_ms") {
        None | Some(Value::Null) => 0,
        Some(value) => match value.as_u64().filter(|ms| *ms <= DELAY_MS_MAX) {
            Some(ms) => ms,
            None => return invalid(&format!("delay_ms must be a whole number from 0 to {DELAY_MS_MAX}")),
        },
    };
    let wait = match payload.get("wait") {
        None | Some(Value::Null) => false,
        Some(Value::Bool(wait)) => *wait,
        Some(_) => return invalid("wait must be true or false"),
    };
    let begun = cx.job.started_at.unwrap_or(cx.at);
    let due = begun.plus(Span::millis(delay_ms.cast_signed()));
    if cx.at < due {
        return Outcome::Park { until: Some(due), seen: cx.job.wakes };
    }
    if wait && cx.job.wakes == 0 {
        return Outcome::Park { until: None, seen: 0 };
    }
    Outcome::Done(Json::of(&json!({ "message": payload.get("message").unwrap_or(&Value::Null) })))
}

fn invalid(message: &str) -> Outcome {
    Outcome::Failed(Failure::new("invalid_payload", message))
}
