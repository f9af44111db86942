//! Job types for experiments with the queue: one for each rule that a type can have.

use crate::lab::{Lab, name};
use baton_core::OrgId;
use baton_core::canon::Json;
use baton_core::dedupe::{self, Mode};
use baton_core::definition::{Definitions, JobType};
use baton_core::job::cancel;
use baton_core::job::enqueue::Enqueue;
use baton_core::lane::{Limit, Rule};
use baton_core::rules::Rules;
use baton_core::time::Span;
use serde_json::json;
use std::sync::Arc;

fn plain(kind: &str) -> JobType {
    JobType { max_attempts: Some(3), ..JobType::new(name(kind), 1, "") }
}

fn in_lane(kind: &str, limit: Limit, depth: Option<u32>) -> JobType {
    let key = name(&format!("{kind}:{{project}}"));
    JobType { lane: Rule::Own { key, limit, depth }, ..plain(kind) }
}

fn deduped(kind: &str, mode: Mode) -> JobType {
    let key = Some(name("{payload.k}"));
    JobType { dedupe: dedupe::Rule { mode, key }, ..in_lane(kind, Limit::None, None) }
}

/// In whichever lane its payload names.
fn placed() -> JobType {
    let lane = Rule::Own { key: name("{payload.lane}"), limit: Limit::At(5), depth: None };
    JobType { lane, ..deduped("placed", Mode::DropDuplicate) }
}

/// In the lane of `pair`, but not counted there.
fn guest() -> JobType {
    JobType { lane: Rule::Own { key: name("pair:{project}"), limit: Limit::None, depth: None }, ..plain("guest") }
}

/// In the project's lane: `one`; in lanes of their own: `pair` and its `guest`, `wide`, `deep`; deduplicated by
/// `k`: `single`, `drop`, `merge`, `placed`; interrupted when cancelled: `soft`.
pub fn all() -> Vec<JobType> {
    let soft = cancel::Rule { strategy: cancel::Strategy::InterruptTurn, grace: Span::secs(5) };
    vec![
        plain("one"),
        in_lane("pair", Limit::At(2), None),
        guest(),
        in_lane("wide", Limit::None, None),
        in_lane("deep", Limit::At(1), Some(3)),
        deduped("single", Mode::SingleFlight),
        deduped("drop", Mode::DropDuplicate),
        deduped("merge", Mode::MergeDuplicate),
        placed(),
        JobType { cancel: soft, ..in_lane("soft", Limit::None, None) },
    ]
}

/// A lab that knows them, under some rules.
pub fn lab_with(mut lab: Lab, rules: Rules) -> Lab {
    let types = all().into_iter().map(baton_core::definition::Entry::plain);
    lab.definitions = Arc::new(Definitions::with(types, rules));
    lab
}

/// A job of a type in a project.
pub fn job(kind: &str, project: &str) -> Enqueue {
    Enqueue::new(OrgId::default(), name(project), name(kind), Json::of(&json!({})))
}

/// One that duplicates are told by.
pub fn keyed(kind: &str, key: &str, more: &str) -> Enqueue {
    Enqueue { payload: Json::of(&json!({ "k": key, more: true })), ..job(kind, "p1") }
}
