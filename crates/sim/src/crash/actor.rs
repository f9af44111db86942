//! What the jobs of the stories do: their payload says so.

use crate::lab::name;
use baton_core::Json;
use baton_core::definition::JobType;
use baton_core::job::Failure;
use baton_core::lane::{Limit, Rule};
use baton_core::retry::Policy;
use baton_core::time::Span;
use baton_engine::{JobCx, Outcome};
use serde_json::json;

/// Attempts of a job that must not end because a crash used one of them up.
pub(super) const PLENTY: u32 = 6;

/// Failures after which a job that fails at first goes well.
pub(super) const FAILS: u32 = 2;

/// Answers with its payload, sooner or later, or not at all.
pub(super) async fn act(cx: JobCx, payload: Json) -> Outcome {
    let order = payload.value();
    match order["do"].as_str().unwrap_or_default() {
        "wait" if cx.job.wakes == 0 => return Outcome::Park { until: None, seen: 0 },
        "ask" if cx.answer().is_none() => {
            let question = order.get("question").cloned().unwrap_or_else(|| json!({ "prompt": "sure?" }));
            return Outcome::Ask(Json::of(&question));
        }
        "stumble" if cx.job.failures < FAILS => return Outcome::Failed(Failure::transient("stumbled", "not yet")),
        "fail" => return Outcome::Failed(Failure::transient("fails", "never")),
        "wrong" => return Outcome::Failed(Failure::new("wrong", "it is wrong")),
        "hang" => std::future::pending().await,
        "obey" => cx.cancelled().await,
        _ => {}
    }
    Outcome::Done(Json::of(&json!({ "order": order, "answer": cx.answer() })))
}

/// In the project's own lane, tried again at once.
pub(super) fn kind(text: &str) -> JobType {
    JobType { max_attempts: Some(PLENTY), retry: quick(), ..JobType::new(name(text), 1, "") }
}

/// In a lane without a limit.
pub(super) fn free(text: &str) -> JobType {
    JobType { lane: crate::open_lane::rule(), ..kind(text) }
}

/// Tried again so soon that a story can wait for it.
pub(super) fn quick() -> Policy {
    Policy { base: Span::millis(5), max: Span::millis(50), ..Policy::default() }
}

pub(super) fn lane(key: &str, limit: u32) -> Rule {
    Rule::Own { key: name(key), limit: Limit::At(limit), depth: None }
}

/// The limits of all lanes of the stories, by their names.
pub(super) fn limits(lane: &str) -> Option<u32> {
    match lane.split(':').next() {
        Some("project" | "one") => Some(1),
        Some("two") => Some(2),
        Some("webhook") => Some(4),
        _ => None,
    }
}
