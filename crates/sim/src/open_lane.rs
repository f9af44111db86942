//! Job types without a lane limit, for experiments that are not about lanes.

use baton_core::definition::JobType;
use baton_core::job::Failure;
use baton_core::lane::{Limit, Rule};
use baton_engine::builtin::Echo;
use baton_engine::{Done, JobCx, JobDefinition, Outcome, Registry};
use serde_json::{Value, json};

/// One lane for all projects, as wide as anybody likes.
pub fn rule() -> Rule {
    Rule::Own { key: crate::lab::name("open"), limit: Limit::None, depth: None }
}

/// The built-in types, newer and in the open lane.
pub fn registry() -> Registry {
    let mut all = Registry::builtin();
    all.define(OpenEcho);
    let noop = JobType { lane: rule(), ..JobType::new(crate::lab::name("noop"), VERSION, "") };
    all.add(noop, |_: JobCx, _: baton_core::Json| async { Outcome::Done(baton_core::Json::of(&json!({}))) });
    all
}

pub const VERSION: u32 = 9;

struct OpenEcho;

impl JobDefinition for OpenEcho {
    type Payload = <Echo as JobDefinition>::Payload;
    type Output = Value;

    fn job_type(&self) -> JobType {
        JobType { lane: rule(), ..JobType::new(Echo::NEWEST.job_type().name, VERSION, "") }
    }

    async fn run(&self, cx: JobCx, payload: Self::Payload) -> Result<Done<Value>, Failure> {
        Echo::NEWEST.run(cx, payload).await
    }
}
