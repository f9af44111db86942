//! What hooks leave behind: one row for a key, with what was said last, however often a job was run.

use super::actor::{PLENTY, quick};
use super::client::order;
use super::{Client, Story, Witness};
use crate::conformance::steps::counts;
use crate::lab::name;
use anyhow::{Context, Result, ensure};
use baton_core::OrgId;
use baton_core::definition::JobType;
use baton_core::job::cancel::Cancel;
use baton_core::job::enqueue::Enqueue;
use baton_core::job::{Failure, Job};
use baton_core::sink::{Key, Row};
use baton_core::time::Span;
use baton_engine::{Done, JobCx, JobDefinition, Registry};
use serde_json::{Value, json};

pub struct Sinks;

const PROJECT: &str = "sinks";
/// Key and how it ends.
const JOBS: [(&str, &str); 4] =
    [("goes well", "completed"), ("stumbles", "completed"), ("goes wrong", "failed"), ("not wanted", "canceled")];

/// Writes on the board how a job stands, and a line in its log for each attempt.
struct Noted;

fn key(order: &Value) -> &str {
    order["key"].as_str().unwrap_or("nobody's")
}

fn board(job: &Job, order: &Value, state: &str) -> Row {
    Row::new("board", key(order), &json!({ "state": state, "attempt": job.attempts }))
}

impl JobDefinition for Noted {
    type Payload = Value;
    type Output = Value;
    const HOOKS: bool = true;

    fn job_type(&self) -> JobType {
        JobType { max_attempts: Some(PLENTY), retry: quick(), ..JobType::new(name("noted"), 1, "") }
    }

    async fn run(&self, cx: JobCx, order: Value) -> Result<Done<Value>, Failure> {
        match key(&order) {
            "stumbles" if cx.job.failures == 0 => Err(Failure::transient("stumbled", "not yet")),
            "goes wrong" => Err(Failure::new("wrong", "it is wrong")),
            _ => Ok(Done::Result(json!({ "key": key(&order) }))),
        }
    }

    fn on_queued(&self, job: &Job, order: &Value) -> Vec<Row> {
        vec![board(job, order, "queued")]
    }

    fn on_started(&self, job: &Job, order: &Value) -> Vec<Row> {
        let line = format!("{}, attempt {}", key(order), job.attempts);
        vec![board(job, order, "started"), Row::new("log", &line, &json!({ "token": job.token }))]
    }

    fn on_completed(&self, job: &Job, order: &Value, _: &Value) -> Vec<Row> {
        vec![board(job, order, "completed")]
    }

    fn on_failed(&self, job: &Job, order: &Value, _: &Failure) -> Vec<Row> {
        vec![board(job, order, "failed")]
    }

    fn on_canceled(&self, job: &Job, order: &Value, _: &str) -> Vec<Row> {
        vec![board(job, order, "canceled")]
    }
}

impl Story for Sinks {
    const PROJECTS: &'static [&'static str] = &[PROJECT];

    fn registry() -> Registry {
        let mut registry = Registry::empty();
        registry.define(Noted);
        registry
    }

    async fn play(client: &mut Client<'_>) -> Result<()> {
        for (key, _) in JOBS {
            let later = client.store.now().await?.plus(Span::secs(3_600));
            let not_before = (key == "not wanted").then_some(later);
            client.ask(key, Enqueue { not_before, ..order(PROJECT, "noted", &json!({ "key": key })) }).await?;
        }
        client.tell(Cancel { org: OrgId::default(), job: client.id("not wanted")?, reason: None }).await?;
        client.ended(&JOBS.map(|(key, _)| key)).await
    }

    async fn check(witness: &Witness<'_>) -> Result<()> {
        witness.exactly(&JOBS.map(|(key, _)| key))?;
        let mut attempts = 0;
        for (key, state) in JOBS {
            let job = &witness.record(key)?.job;
            let row = Key { space: "board".to_owned(), key: key.to_owned() };
            let said = witness.store.sink(&OrgId::default(), &row).await?.context("it is on the board")?;
            let expected = json!({ "state": state, "attempt": job.attempts });
            ensure!(said.value() == expected, "{key}: the board says {said:?}, not {expected}");
            attempts += i64::from(job.attempts);
        }
        counts(witness.store, "SELECT count(*) FROM sink WHERE space = 'board'", JOBS.len() as i64).await?;
        counts(witness.store, "SELECT count(*) FROM sink WHERE space = 'log'", attempts).await
    }
}
