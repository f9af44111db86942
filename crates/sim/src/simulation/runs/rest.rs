//! Coming to rest: every run ends, and what was spent adds up.

use super::checker::Checker;
use super::document::SIGNAL;
use super::people::People;
use super::play::GRANTED;
use crate::lab::name;
use anyhow::{Context, Result, ensure};
use baton_core::credits::Credits;
use baton_core::doc;
use baton_core::ledger::OrgAccount;
use baton_core::run::hold::Hold;
use baton_core::run::signal::Signal;
use baton_core::run::{AgentState, Run, State};
use baton_core::{Json, OrgId, RunId, seal};
use baton_store::{Disk, Store};
use serde_json::json;
use std::time::Duration;

/// Between two looks whether somebody needs help.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Waits until everything has ended, and looks whether it ended as it should.
pub(super) async fn rest(people: &People<'_>, runs: &[RunId], disk: &Disk, checker: &Checker) -> Result<()> {
    loop {
        checker.check()?;
        let mut open = disk.jobs()?.iter().any(|record| !record.job.is_ended());
        for run in runs {
            open |= help(people, *run).await?;
        }
        if !open {
            break;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    let store = people.any_store().await?;
    settled(&store, runs, checker).await?;
    let asked = disk.docs(doc::Class::Decision)?.into_iter().filter(|(_, doc)| doc.flag).collect::<Vec<_>>();
    ensure!(asked.is_empty(), "{asked:?} are open and nobody waits for them");
    ensure!(disk.timers()?.is_empty(), "timers are left: {:?}", disk.timers()?);
    let report = disk.audit(Some(&seal::Key::new([3; 32])))?;
    ensure!(report.is_clean(), "{:?}", report.violations);
    Ok(())
}

/// Does what people would do sooner or later. Whether there is anything left to wait for.
async fn help(people: &People<'_>, id: RunId) -> Result<bool> {
    let Some((_, run, agents)) = people.look(id).await else { return Ok(true) };
    if run.state.is_ended() || run.state == State::Created {
        return Ok(false);
    }
    let org = OrgId::default;
    if run.state == State::Paused {
        people.insist(&Hold { org: org(), run: id, agent: None, pause: false }).await?;
    }
    for agent in agents.iter().filter(|agent| agent.state == AgentState::Paused) {
        people.insist(&Hold { org: org(), run: id, agent: Some(agent.id), pause: false }).await?;
    }
    people.insist(&Signal { org: org(), run: id, name: name(SIGNAL), data: Json::of(&json!("late")) }).await?;
    people.answer(id, None).await?;
    Ok(true)
}

/// What the org had is what it has, and what its runs cost.
async fn settled(store: &Store, runs: &[RunId], checker: &Checker) -> Result<()> {
    let org = OrgId::default();
    let told = checker.runs();
    ensure!(told.keys().all(|run| runs.contains(run)), "nobody asked for some of {told:?}");
    let mut spent = 0;
    for id in runs {
        let run: Run = store.run(&org, *id).await?.with_context(|| format!("{id} was promised and is lost"))?;
        ensure!(told.get(id) == Some(&run.state), "{run:?}, and its history says {:?}", told.get(id));
        let attempts = store.attempts(&org, *id).await?;
        ensure!(attempts.len() as u32 == run.attempt, "{} attempts of {run:?}", attempts.len());
        spent += attempts.iter().map(|attempt| attempt.charged.micros()).sum::<i64>();
    }
    let key = doc::Key { class: doc::Class::Account, key: "org".to_owned() };
    let account = store.doc(&org, &key).await?.context("the account is lost")?;
    let left = OrgAccount::from_doc(account).purse.balance.micros();
    ensure!(left + spent == Credits::whole(GRANTED).micros(), "{left} are left and {spent} were spent of {GRANTED}");
    Ok(())
}
