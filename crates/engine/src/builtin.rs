//! The job types that every Baton knows: `noop` and `echo`.

use crate::definition::{Done, JobDefinition};
use crate::job_cx::JobCx;
use crate::registry::{Outcome, Registry};
use baton_core::TypeName;
use baton_core::canon::Json;
use baton_core::definition::JobType;
use baton_core::job::Failure;
use baton_core::time::Span;
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;

/// Longest delay of an echo.
const DELAY_MS_MAX: u64 = 24 * 60 * 60 * 1_000;

/// Longest work of an echo.
const WORK_MS_MAX: u64 = 10 * 60 * 1_000;

pub(crate) fn register(all: &mut Registry) {
    // Jobs that were enqueued before there was more to say are still run.
    all.add(JobType { max_attempts: Some(2), ..noop(1) }, run_noop);
    all.add(JobType { max_attempts: Some(2), ..plain("echo", 1, ECHO_1) }, run_echo_1);
    all.add(noop(2), run_noop);
    all.define(Echo { version: 2 });
    all.define(Echo::NEWEST);
}

fn plain(name: &'static str, version: u32, summary: &str) -> JobType {
    let name = name.parse::<TypeName>().unwrap_or_else(|e| unreachable!("{name}: {e}"));
    JobType::new(name, version, summary)
}

fn noop(version: u32) -> JobType {
    plain("noop", version, "does nothing and completes")
}

async fn run_noop(_: JobCx, _: Json) -> Outcome {
    Outcome::Done(Json::of(&json!({})))
}

const ECHO_1: &str = "answers with its message, after delay_ms or when woken if wait is set";

async fn run_echo_1(cx: JobCx, payload: Json) -> Outcome {
    let payload = match serde_json::from_value::<Order>(payload.value()) {
        Ok(payload) if payload.delay_ms.unwrap_or(0) <= DELAY_MS_MAX => payload,
        Ok(_) => {
            let why = format!("delay_ms must be a whole number from 0 to {DELAY_MS_MAX}");
            return Outcome::Failed(Failure::new("invalid_payload", &why));
        }
        Err(e) => return Outcome::Failed(Failure::new("invalid_payload", &e.to_string())),
    };
    match (Echo { version: 1 }).run(cx, payload).await {
        Ok(Done::Result(result)) => Outcome::Done(Json::of(&result)),
        Ok(Done::Park { until, seen }) => Outcome::Park { until, seen },
        Ok(Done::Ask(question)) => Outcome::Ask(Json::of(&question)),
        Err(failure) => Outcome::Failed(failure),
    }
}

/// What an echo is asked to do; all of it optional.
#[derive(Debug, Deserialize)]
pub struct Order {
    #[serde(default)]
    message: Value,
    /// Waiting holds no worker.
    delay_ms: Option<u64>,
    /// Until somebody wakes it.
    wait: Option<bool>,
    /// Until somebody answers.
    ask: Option<Ask>,
    fail: Option<Fail>,
    /// Working holds its worker.
    work_ms: Option<u64>,
    progress: Option<bool>,
}

/// Whether it asks, or what.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Ask {
    Whether(bool),
    What(Value),
}

impl Order {
    fn question(&self) -> Option<Value> {
        match &self.ask {
            None | Some(Ask::Whether(false)) => None,
            Some(Ask::Whether(true)) => Some(json!({ "prompt": "May it go on?", "message": self.message })),
            Some(Ask::What(question)) => Some(question.clone()),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Fail {
    Transient,
    Deterministic,
}

/// Answers with its message: to try things out with.
pub struct Echo {
    pub version: u32,
}

impl Echo {
    pub const NEWEST: Self = Self { version: 3 };
}

impl JobDefinition for Echo {
    type Payload = Order;
    type Output = Value;

    fn job_type(&self) -> JobType {
        // Since its third version it asks what it is told to.
        let ask = if self.version < 3 { json!(["boolean", "null"]) } else { json!(["boolean", "object", "null"]) };
        JobType {
            payload_schema: Some(json!({
                "type": "object",
                "properties": {
                    "delay_ms": { "type": ["integer", "null"], "minimum": 0, "maximum": DELAY_MS_MAX },
                    "wait": { "type": ["boolean", "null"] },
                    "ask": { "type": ask },
                    "fail": { "enum": ["transient", "deterministic", null] },
                    "progress": { "type": ["boolean", "null"] },
                    "work_ms": { "type": ["integer", "null"], "minimum": 0, "maximum": WORK_MS_MAX },
                },
            })),
            result_schema: Some(json!({ "type": "object", "required": ["message"] })),
            ..plain("echo", self.version, "answers with its message, at once or after waiting as its payload says")
        }
    }

    async fn run(&self, cx: JobCx, order: Order) -> Result<Done<Value>, Failure> {
        let begun = cx.job.started_at.unwrap_or(cx.at);
        let delay = i64::try_from(order.delay_ms.unwrap_or(0)).unwrap_or(i64::MAX);
        let due = begun.plus(Span::millis(delay));
        if cx.at < due {
            return Ok(Done::Park { until: Some(due), seen: cx.job.wakes });
        }
        if order.wait == Some(true) && cx.job.wakes == 0 {
            return Ok(Done::Park { until: None, seen: 0 });
        }
        if let Some(question) = order.question().filter(|_| cx.answer().is_none()) {
            return Ok(Done::Ask(question));
        }
        if order.progress == Some(true) {
            // If it cannot be said, the lease is lost and the job is stopped anyway.
            let _ = cx.progress(Some(50), Some("half way")).await;
        }
        if let Some(ms) = order.work_ms {
            tokio::time::sleep(Duration::from_millis(ms)).await;
        }
        match order.fail {
            Some(Fail::Transient) => return Err(Failure::transient("asked_to_fail", "the payload said so")),
            Some(Fail::Deterministic) => return Err(Failure::new("asked_to_fail", "the payload said so")),
            None => {}
        }
        let mut result = json!({ "message": order.message });
        if let Some(answer) = cx.answer() {
            result["answer"] = answer.clone();
        }
        Ok(Done::Result(result))
    }
}
