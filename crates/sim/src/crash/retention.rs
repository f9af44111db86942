//! Forgetting: ended jobs go with their history, what was sealed can still be verified, and what was
//! asked for before is not done again.

use super::actor::{act, kind};
use super::client::order;
use super::{Client, Story, Witness};
use crate::lab::name;
use anyhow::{Context, Result, ensure};
use baton_core::OrgId;
use baton_core::rules::Rules;
use baton_engine::{Options, Registry};
use baton_store::{Cursor, Filter, ListJobs, Order};
use serde_json::json;
use std::time::Duration;

pub struct Retention;

const PROJECT: &str = "retention";
const JOBS: [&str; 4] = ["first", "second", "third", "fourth"];
const KEPT: u32 = 1;

impl Story for Retention {
    const PROJECTS: &'static [&'static str] = &[PROJECT];

    fn registry() -> Registry {
        let mut registry = Registry::empty();
        registry.add(kind("step"), act);
        registry
    }

    fn rules() -> Rules {
        Rules { retained: KEPT, ..Rules::default() }
    }

    fn tune(options: &mut Options) {
        options.seal_every = Duration::from_millis(15);
        options.prune_every = Duration::from_millis(10);
    }

    async fn play(client: &mut Client<'_>) -> Result<()> {
        for key in JOBS {
            let act = if key == "second" { "wrong" } else { "stumble" };
            client.ask(key, order(PROJECT, "step", &json!({ "do": act }))).await?;
        }
        loop {
            let (org, project) = (OrgId::default(), name(PROJECT));
            let ask = ListJobs {
                org,
                project,
                filter: Filter::default(),
                order: Order::Falling,
                after: None,
                limit: 100,
                bytes: usize::MAX,
            };
            let left = client.store.jobs(ask).await?.items;
            if left.len() == KEPT as usize && left.iter().all(|record| record.job.is_ended()) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        // The job is forgotten, the request is not.
        for key in JOBS {
            client.ask(key, order(PROJECT, "step", &json!({}))).await?;
        }
        Ok(())
    }

    async fn check(witness: &Witness<'_>) -> Result<()> {
        let gone = JOBS.len() as u64 - u64::from(KEPT);
        ensure!(witness.store.prunable(None, KEPT).await?.is_none(), "more could be forgotten");
        for key in JOBS {
            let id = witness.id(key)?;
            let there = witness.store.job(&OrgId::default(), id).await?.is_some();
            ensure!(there == witness.jobs.iter().any(|record| record.job.id == id), "{key} is half gone");
        }
        let history = witness.store.events(&OrgId::default(), Cursor::START, 100_000).await?.items;
        let told = history.iter().filter(|row| row.event.kind == "retention.pruned");
        let told = told.map(|row| row.event.data.value()["jobs"].as_u64().context("it says how many"));
        let told: u64 = told.collect::<Result<Vec<_>>>()?.iter().sum();
        ensure!(told == gone, "{told} jobs are said to be gone, {gone} are");
        Ok(())
    }
}
