//! Trying again: until it goes well, until a budget is used up, and after running too long.

use super::actor::{FAILS, act, free, kind, quick};
use super::client::order;
use super::{Client, Story, Witness};
use anyhow::{Result, ensure};
use baton_core::definition::{JobType, Timeout};
use baton_core::job::state::Face;
use baton_core::retry::{ATTEMPTS_EXHAUSTED, FAILURES_EXHAUSTED, Policy};
use baton_core::time::Span;
use baton_engine::Registry;
use serde_json::json;

pub struct Retries;

/// Key, type, what it does.
const JOBS: [(&str, &str, &str); 6] = [
    ("stumbles", "tries", "stumble"),
    ("stumbles in its lane", "lane", "stumble"),
    ("wears out", "twice", "fail"),
    ("fails enough", "forgives", "fail"),
    ("is wrong", "tries", "wrong"),
    ("runs too long", "hasty", "hang"),
];

/// A worker that was lost in the last attempt uses it up as well.
const LOST: &str = "recovery_attempts_exhausted";

impl Story for Retries {
    const PROJECTS: &'static [&'static str] = &["retry"];

    fn registry() -> Registry {
        let mut registry = Registry::empty();
        registry.add(free("tries"), act);
        registry.add(kind("lane"), act);
        registry.add(JobType { max_attempts: Some(2), ..free("twice") }, act);
        registry.add(JobType { retry: Policy { max_failures: Some(2), ..quick() }, ..free("forgives") }, act);
        let timeout = Timeout::After(Span::millis(30));
        registry.add(JobType { max_attempts: Some(2), timeout, ..free("hasty") }, act);
        registry
    }

    async fn play(client: &mut Client<'_>) -> Result<()> {
        for (key, kind, act) in JOBS {
            client.ask(key, order("retry", kind, &json!({ "do": act }))).await?;
        }
        client.ended(&JOBS.map(|(key, ..)| key)).await
    }

    async fn check(witness: &Witness<'_>) -> Result<()> {
        witness.exactly(&JOBS.map(|(key, ..)| key))?;
        for key in ["stumbles", "stumbles in its lane"] {
            let job = &witness.ended_as(key, Face::Completed)?.job;
            ensure!(job.failures == FAILS && job.attempts > FAILS, "{job:?}");
        }
        for key in ["wears out", "runs too long"] {
            let job = &witness.ended_for(key, Face::Failed, &[ATTEMPTS_EXHAUSTED, LOST])?.job;
            ensure!(job.attempts == 2, "{job:?}");
        }
        let job = &witness.ended_for("fails enough", Face::Failed, &[FAILURES_EXHAUSTED])?.job;
        ensure!(job.failures == 2 && job.attempts <= 3, "{job:?}");
        let job = &witness.ended_for("is wrong", Face::Failed, &["wrong"])?.job;
        ensure!(job.failures == 1 && job.attempts <= 2, "{job:?}");
        Ok(())
    }
}
