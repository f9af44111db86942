//! The job types of a simulation: every kind of lane, of duplicate and of ending from outside. What
//! a job does is in its payload.

use crate::endpoints;
use crate::lab::name;
use baton_core::Json;
use baton_core::dedupe::{self, Mode};
use baton_core::definition::{AtStop, JobType, Timeout};
use baton_core::job::cancel::{self, Strategy};
use baton_core::job::{Failure, INTERACTIVE};
use baton_core::lane::{Limit, Rule};
use baton_core::retry::Policy;
use baton_core::rules::Rules;
use baton_core::time::Span;
use baton_engine::{JobCx, Outcome, Registry};
use serde_json::json;
use std::time::Duration;

/// No job of a simulation may be begun more often.
const MAX_ATTEMPTS: u32 = 4;
/// How long the types that may hang are let run.
const HASTY: Span = Span::secs(15);
/// A lease that is over before an idle beater beats.
const BRIEF: Span = Span::secs(4);
/// How many jobs may wait in the narrow lane.
const NARROW: u32 = 2;

/// Types that clients ask for.
pub(super) const NAMES: [&str; 8] = ["work", "pair", "open", "single", "drop", "merge", "polite", "narrow"];
/// Of those, the types whose jobs may do nothing for ever: something will end them.
pub(super) const MAY_HANG: [&str; 2] = ["open", "polite"];

/// Of those, the types whose jobs end with their node.
pub(super) const ENDS_AT_STOP: [&str; 2] = ["pair", "narrow"];

pub(super) fn mode(kind: &str) -> Mode {
    match kind {
        "single" => Mode::SingleFlight,
        "drop" => Mode::DropDuplicate,
        "merge" => Mode::MergeDuplicate,
        _ => Mode::None,
    }
}

/// How many jobs may run at once in a lane, by its name.
pub(super) fn limits(lane: &str) -> Option<u32> {
    match lane.split(':').next() {
        Some("project" | "one") => Some(1),
        Some("two") => Some(2),
        Some("webhook") => Some(4),
        _ => None,
    }
}

pub(super) fn is_project(lane: &str) -> bool {
    lane.starts_with("project:")
}

/// How many jobs from outside may wait in a lane, by its name.
pub(super) fn depth(lane: &str, rules: &Rules) -> Option<u32> {
    match lane {
        "one:narrow" => Some(NARROW),
        lane if is_project(lane) => Some(rules.max_per_project),
        _ => None,
    }
}

/// How long the leases of a type last.
pub(super) fn lease(kind: &str) -> Span {
    job_type(kind).lease
}

fn own(key: &str, limit: Limit, depth: Option<u32>) -> Rule {
    Rule::Own { key: name(key), limit, depth }
}

fn job_type(kind: &str) -> JobType {
    let plain = JobType {
        max_attempts: Some(MAX_ATTEMPTS),
        dedupe: dedupe::Rule {
            mode: mode(kind),
            key: (mode(kind) != Mode::None).then(|| name("{project}:{payload.k}")),
        },
        ..JobType::new(name(kind), 1, "")
    };
    let hasty = Timeout::After(HASTY);
    match kind {
        "pair" => JobType {
            lane: own("two:{payload.k}", Limit::At(2), None),
            retry: Policy { max_failures: Some(2), ..Policy::default() },
            at_stop: AtStop::Cancel,
            ..plain
        },
        "open" => JobType { lane: crate::open_lane::rule(), timeout: hasty, ..plain },
        "drop" => JobType { lane: own("two:drop", Limit::At(2), None), ..plain },
        "polite" => JobType {
            cancel: cancel::Rule { strategy: Strategy::InterruptTurn, grace: Span::secs(5) },
            timeout: hasty,
            priority: INTERACTIVE,
            ..plain
        },
        "narrow" => JobType {
            lane: own("one:narrow", Limit::At(1), Some(NARROW)),
            lease: BRIEF,
            at_stop: AtStop::Cancel,
            ..plain
        },
        _ => plain,
    }
}

pub(super) fn registry() -> Registry {
    let mut registry = Registry::empty();
    for kind in NAMES {
        registry.add(job_type(kind), work);
    }
    registry.deliver(endpoints::deliver());
    registry
}

async fn work(cx: JobCx, payload: Json) -> Outcome {
    let payload = payload.value();
    let ms = payload["ms"].as_u64().unwrap_or(0);
    tokio::time::sleep(Duration::from_millis(ms)).await;
    match payload["then"].as_str() {
        Some("fail") => return Outcome::Failed(Failure::new("asked_to", "it was asked to fail")),
        Some("panic") => panic!("it was asked to panic"),
        Some("stumble") if u64::from(cx.job.failures) < payload["times"].as_u64().unwrap_or(0) => {
            return Outcome::Failed(Failure::transient("stumbled", "not yet"));
        }
        Some("park") if cx.job.token < 3 => {
            return Outcome::Park { until: Some(cx.at.plus(Span::secs(20))), seen: cx.job.wakes };
        }
        Some("wait") if cx.job.wakes == 0 => return Outcome::Park { until: None, seen: 0 },
        Some("ask") if cx.answer().is_none() => return Outcome::Ask(Json::of(&payload["question"])),
        // If it cannot be said, the lease is lost and the job is stopped anyway.
        Some("talk") => drop(cx.progress(Some(50), None).await),
        Some("hang") => std::future::pending().await,
        Some("obey") => cx.cancelled().await,
        Some("balk") => {
            cx.cancelled().await;
            return Outcome::Failed(Failure::new("told_to_end", "it gave up"));
        }
        _ => {}
    }
    Outcome::Done(Json::of(&json!({ "n": payload["n"] })))
}
