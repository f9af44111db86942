//! Ending jobs from outside, in every way there is, and letting them go on when they ask.

use super::actor::{act, free, kind};
use super::client::{executing, order};
use super::{Client, Story, Witness};
use crate::answers::{open_decision, resolve};
use anyhow::{Result, ensure};
use baton_core::OrgId;
use baton_core::definition::{JobType, Timeout};
use baton_core::job::cancel::{Cancel, INTERRUPT_TIMEOUT, Rule, Strategy, USER_REQUESTED};
use baton_core::job::enqueue::Enqueue;
use baton_core::job::state;
use baton_core::job::state::Face;
use baton_core::time::Span;
use baton_engine::Registry;
use baton_store::JobRecord;
use serde_json::json;

pub struct Cancels;

const PROJECT: &str = "cancel";

/// Key, type, what it does, and the reasons for which it may end: one that was told to end and lost
/// its worker ends for the reason it was told.
const RUNNING: [(&str, &str, &str, &[&str]); 3] = [
    ("marked", "mark", "hang", &["no longer wanted"]),
    ("obeys", "patient", "obey", &["no longer wanted"]),
    ("stubborn", "interrupt", "hang", &[INTERRUPT_TIMEOUT, "no longer wanted"]),
];

async fn cancel(client: &Client<'_>, key: &str, reason: Option<&str>) -> Result<()> {
    let reason = reason.map(str::to_owned);
    let told = client.tell(Cancel { org: OrgId::default(), job: client.id(key)?, reason }).await?;
    ensure!(told.is_some(), "{key} has ended otherwise");
    Ok(())
}

/// Asks, and goes on with the answer.
async fn confirm(client: &Client<'_>, key: &str) -> Result<()> {
    let heard = |record: &JobRecord| record.job.aside.as_ref().is_some_and(|aside| aside.answer.is_some());
    let settled = |record: &JobRecord| open_decision(&record.job).is_some() || heard(record) || record.job.is_ended();
    let found = client.until(key, settled).await?;
    if let Some(decision) = open_decision(&found.job) {
        // Refused if it was heard meanwhile.
        client.tell(resolve(decision, "confirm", key)).await?;
    }
    Ok(())
}

impl Story for Cancels {
    const PROJECTS: &'static [&'static str] = &[PROJECT];

    fn registry() -> Registry {
        let mut registry = Registry::empty();
        let interrupt = Rule { strategy: Strategy::InterruptTurn, grace: Span::millis(60) };
        let patient = Rule { grace: Span::secs(60), ..interrupt.clone() };
        registry.add(JobType { timeout: Timeout::Never, ..free("mark") }, act);
        registry.add(JobType { timeout: Timeout::Never, cancel: patient, ..free("patient") }, act);
        registry.add(JobType { timeout: Timeout::Never, cancel: interrupt, ..free("interrupt") }, act);
        registry.add(kind("asks"), act);
        registry
    }

    async fn play(client: &mut Client<'_>) -> Result<()> {
        let later = client.store.now().await?.plus(Span::secs(3_600));
        let queued = Enqueue { not_before: Some(later), ..order(PROJECT, "mark", &json!({})) };
        client.ask("queued", queued).await?;
        for (key, kind, act, _) in RUNNING {
            client.ask(key, order(PROJECT, kind, &json!({ "do": act }))).await?;
        }
        for key in ["asks", "asks in vain", "after it"] {
            let act = if key == "after it" { "" } else { "ask" };
            client.ask(key, order(PROJECT, "asks", &json!({ "do": act }))).await?;
        }
        cancel(client, "queued", None).await?;
        for (key, ..) in RUNNING {
            client.until(key, |record| executing(record) || record.job.is_ended()).await?;
            cancel(client, key, Some("no longer wanted")).await?;
        }
        // Their lane is free while they wait for somebody.
        client.ended(&["after it"]).await?;
        confirm(client, "asks").await?;
        let vain = client.until("asks in vain", |r| r.job.status.state() != state::State::Queued).await?;
        ensure!(vain.job.attempts > 0);
        cancel(client, "asks in vain", None).await?;
        client.ended(&["queued", "marked", "obeys", "stubborn", "asks", "asks in vain"]).await
    }

    async fn check(witness: &Witness<'_>) -> Result<()> {
        witness.exactly(&["queued", "marked", "obeys", "stubborn", "asks", "asks in vain", "after it"])?;
        for key in ["queued", "asks in vain"] {
            witness.ended_for(key, Face::Canceled, &[USER_REQUESTED])?;
        }
        for (key, _, _, reasons) in RUNNING {
            witness.ended_for(key, Face::Canceled, reasons)?;
        }
        witness.ended_as("after it", Face::Completed)?;
        let asked = witness.ended_as("asks", Face::Completed)?;
        let answer = asked.result.as_ref().map(|r| r.value()["answer"]["comment"].clone());
        ensure!(answer == Some(json!("asks")), "it went on with {answer:?}");
        Ok(())
    }
}
