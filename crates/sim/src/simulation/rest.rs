//! Coming to rest: everything promised ends, as it should, and nothing else is there.

use super::checker::{Checker, Letters};
use super::client::{Book, Client};
use super::kinds;
use super::order::PROJECTS;
use super::work::{SCHEDULE, SCHEDULED};
use crate::answers::{open_decision, resolve};
use crate::lab::name;
use anyhow::{Context, Result, bail, ensure};
use baton_core::OrgId;
use baton_core::command::Actor;
use baton_core::cron::Schedule;
use baton_core::decision::Question;
use baton_core::job::cancel::{INTERRUPT_TIMEOUT, SHUTDOWN_TIMEOUT, USER_REQUESTED};
use baton_core::job::wake::Wake;
use baton_core::job::{Job, Status};
use baton_core::lane::{LaneKey, Pause};
use baton_core::seal;
use baton_core::webhook::DELIVER;
use baton_store::{CommitError, Disk, JobRecord, Store};
use std::collections::BTreeSet;
use std::time::Duration;

/// Between two looks whether somebody needs help.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Waits until everything has ended, and looks whether it ended as it should.
pub(super) async fn rest(client: &Client<'_>, disk: &Disk, checker: &Checker) -> Result<()> {
    loop {
        let open = disk.jobs()?.into_iter().map(|record| record.job).filter(|job| !job.is_ended());
        let open = open.collect::<Vec<_>>();
        checker.check()?;
        let letters = checker.letters();
        if open.is_empty() && (!client.book.hooked || letters.wanted == letters.sent) {
            break;
        }
        if let Some(store) = client.fleet.stores().first() {
            for project in PROJECTS {
                let lane = LaneKey::of_project(&name(project));
                tell(store, Pause { org: OrgId::default(), lane, paused: false }).await?;
            }
            for job in &open {
                help(store, job).await?;
            }
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    let ended = checker.ended();
    for id in client.book.promised.keys() {
        let record = ended.get(id).with_context(|| format!("{id} was promised and never ended"))?;
        ended_well(record, &client.book)?;
    }
    for (id, record) in &ended {
        let delivery = record.job.kind.name.as_str() == DELIVER;
        let asked_for = client.book.promised.contains_key(id) || record.cold.schedule.is_some() || delivery;
        ensure!(asked_for, "nobody asked for {id}");
    }
    delivered(ended.values(), checker.letters(), client.book.hooked)?;
    if let Some(store) = client.fleet.stores().first() {
        scheduled(store, ended.values()).await?;
    }
    ensure!(disk.timers()?.is_empty(), "timers are left: {:?}", disk.timers()?);
    let report = disk.audit(Some(&seal::Key::new([3; 32])))?;
    ensure!(report.is_clean(), "{:?}", report.violations);
    Ok(())
}

/// Does what somebody outside would do sooner or later.
async fn help(store: &Store, job: &Job) -> Result<()> {
    let org = OrgId::default();
    match job.status {
        Status::AwaitingTool { due_at: None, .. } => tell(store, Wake { org, job: job.id }).await,
        _ => match open_decision(job) {
            Some(decision) => tell(store, resolve(decision, "confirm", "sure")).await,
            None => Ok(()),
        },
    }
}

async fn tell<C: baton_core::command::Command>(store: &Store, command: C) -> Result<()> {
    match store.commit(command, Actor::Api).await {
        Err(CommitError::Store(e)) => bail!("nothing goes wrong any more, and yet: {e}"),
        _ => Ok(()),
    }
}

/// Each thing was sent once, and arrived.
fn delivered<'a>(ended: impl Iterator<Item = &'a JobRecord>, letters: Letters, hooked: bool) -> Result<()> {
    let deliveries = ended.filter(|record| record.job.kind.name.as_str() == DELIVER).collect::<Vec<_>>();
    let text = |record: &&JobRecord| record.cold.payload.value()["message"].to_string();
    let messages = deliveries.iter().map(text).collect::<BTreeSet<_>>();
    ensure!(messages.len() == deliveries.len(), "an event was sent twice");
    ensure!(!hooked || letters.wanted == deliveries.len() as u64, "{letters:?}, and there are {}", deliveries.len());
    let lost = deliveries.iter().find(|record| record.result.is_none());
    ensure!(lost.is_none(), "{lost:?} did not arrive");
    Ok(())
}

/// A schedule says that it made what it made.
async fn scheduled<'a>(store: &Store, ended: impl Iterator<Item = &'a JobRecord>) -> Result<()> {
    let made = ended.filter(|record| record.cold.schedule.is_some()).count();
    let doc = store.doc(&OrgId::default(), &Schedule::key(&name(SCHEDULED), &name(SCHEDULE))).await?;
    let said = doc.map_or(0, |doc| doc.body.value()["made"].as_u64().unwrap_or(0));
    ensure!(said == made as u64, "the schedule says it made {said} jobs, there were {made}");
    Ok(())
}

fn ended_well(record: &JobRecord, book: &Book) -> Result<()> {
    let (job, payload) = (&record.job, record.cold.payload.value());
    let order = book.promised.get(&job.id).context("it was promised")?;
    // What stands for several orders has the payload of the first, or of all.
    ensure!(order.dedupes() || payload == order.payload, "{order:?} became {payload}");
    let then = payload["then"].as_str().unwrap_or_default();
    let code = record.error.as_ref().map(|e| e.code.as_str());
    match (&record.result, code) {
        (Some(result), None) => {
            ensure!(result.value()["n"] == payload["n"], "{payload} answers {result:?}");
            ensure!(!["fail", "panic", "hang", "balk"].contains(&then), "{payload} cannot go well");
        }
        (None, Some("asked_to")) => ensure!(then == "fail"),
        (None, Some("handler_panicked")) => ensure!(then == "panic"),
        (None, Some("deadline_exceeded")) => ensure!(record.cold.deadline_at.is_some()),
        // Its worker died, or a clock that was ahead declared it dead, too often.
        (None, Some("recovery_attempts_exhausted")) => ensure!(job.attempts == job.max_attempts),
        (None, Some("attempts_exhausted")) => ensure!(job.attempts == job.max_attempts && job.failures > 0),
        (None, Some("failures_exhausted")) => ensure!(job.failures == job.max_failures),
        (None, Some("declined" | "decision_expired")) => ensure!(then == "ask", "{payload} asked nothing"),
        // Two questions that were merged field by field can make one that nobody can answer.
        (None, Some("invalid_question")) => {
            let unreadable = Question::of(&payload["question"]).is_err();
            ensure!(then == "ask" && order.dedupes() && unreadable, "{payload} can be asked");
        }
        (None, Some(USER_REQUESTED)) => ensure!(book.cancelled.contains(&job.id), "nobody cancelled {}", job.id),
        (None, Some(INTERRUPT_TIMEOUT)) => {
            ensure!(book.cancelled.contains(&job.id) && order.kind == "polite", "{order:?} was forced to end");
        }
        (None, Some(SHUTDOWN_TIMEOUT)) => {
            ensure!(kinds::ENDS_AT_STOP.contains(&order.kind), "{order:?} was to be given back")
        }
        other => bail!("{payload} ended as {other:?}"),
    }
    Ok(())
}
