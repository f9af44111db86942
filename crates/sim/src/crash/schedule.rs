//! A schedule that nobody looks after for some hours: no moment is lost, none comes twice.

use super::actor::{act, kind};
use super::{Client, Story, Witness};
use crate::lab::name;
use anyhow::{Context, Result, ensure};
use baton_core::OrgId;
use baton_core::cron::put::{Act, Put};
use baton_core::cron::{CatchUp, Schedule, Spec, When};
use baton_core::job::state::Face;
use baton_core::time::{Micros, Span};
use baton_engine::Registry;
use baton_store::{Filter, ListJobs, Order, Store};
use serde_json::json;
use std::time::Duration;

pub struct Schedules;

const PROJECT: &str = "cron";
const NAME: &str = "hourly";
const HOUR: Span = Span::secs(3_600);

/// Half an hour from now and every hour after: far from any moment that the story itself may cross.
fn cron(now: Micros) -> String {
    let minute = (now.0 / 60_000_000 + 30) % 60;
    format!("{minute} * * * *")
}

async fn schedule(store: &Store) -> Result<Schedule> {
    let doc = store.doc(&OrgId::default(), &Schedule::key(&name(PROJECT), &name(NAME))).await?;
    doc.as_ref().and_then(Schedule::of).context("the schedule is there")
}

/// Waits until nothing is due any more, and until what was made has ended.
async fn caught_up(client: &Client<'_>) -> Result<()> {
    loop {
        let now = client.store.now().await?;
        let filter = Filter { states: vec![Face::Queued, Face::Running], kind: None };
        let (org, project) = (OrgId::default(), name(PROJECT));
        let order = Order::Falling;
        let ask = ListJobs { org, project, filter, order, after: None, limit: 100, bytes: usize::MAX };
        let due = schedule(&client.store).await?.next_at.is_some_and(|at| at <= now);
        if !due && client.store.jobs(ask).await?.items.is_empty() {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

impl Story for Schedules {
    const PROJECTS: &'static [&'static str] = &[PROJECT];
    const SCHEDULES: bool = true;

    fn registry() -> Registry {
        let mut registry = Registry::empty();
        registry.add(kind("tick"), act);
        registry
    }

    async fn play(client: &mut Client<'_>) -> Result<()> {
        let now = client.store.now().await?;
        let cron = client.noted("cron", || cron(now));
        // Only until it was answered: putting it again would let go of what was missed.
        if !client.taken("put") {
            let spec = Spec {
                when: When { cron, time_zone: "UTC".to_owned() },
                kind: name("tick"),
                payload: json!({}),
                priority: None,
                source_session: None,
                catch_up: CatchUp::All,
                single_flight: false,
            };
            let act = Act::Put(Box::new(spec));
            let put = Put { org: OrgId::default(), project: name(PROJECT), name: name(NAME), act };
            client.tell(put).await?.context("the schedule can be made")?;
            client.first_time("put");
        }
        client.advance("one hour", HOUR).await?;
        caught_up(client).await?;
        client.advance("three hours", Span(3 * HOUR.0)).await?;
        caught_up(client).await
    }

    async fn check(witness: &Witness<'_>) -> Result<()> {
        let schedule = schedule(witness.store).await?;
        let next = schedule.next_at.context("it goes on")?;
        let mut moments = 0;
        let mut at = schedule.spec.when.next_after(schedule.created_at)?;
        while at < next {
            moments += 1;
            at = schedule.spec.when.next_after(at)?;
        }
        ensure!(moments == 4, "{moments} moments in four hours");
        ensure!(schedule.made == moments, "{} jobs for {moments} moments", schedule.made);
        ensure!(witness.jobs.len() as u64 == moments, "{} jobs are there", witness.jobs.len());
        for record in &witness.jobs {
            ensure!(record.cold.schedule.is_some() && record.job.status.face() == Face::Completed);
        }
        let (due, timer) = witness.store.due_timers(10).await?;
        ensure!(due.is_empty() && timer == Some(next), "only the schedule's timer is left");
        Ok(())
    }
}
