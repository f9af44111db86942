//! What a run leaves behind: its attempts, its history, its money.

use super::look::{self, agents_of, reached};
use super::{Id, run_id};
use crate::app::App;
use crate::credits;
use crate::cursor;
use crate::door::Caller;
use crate::event;
use crate::problem::Fault;
use crate::query::Params;
use crate::wait;
use axum::Json as Answer;
use axum::extract::State;
use baton_core::ledger::Account;
use baton_wire::{Attempt, AttemptList, Event, EventList, LedgerList, limit};

pub async fn attempts(
    State(app): State<App>,
    caller: Caller,
    id: Id,
    params: Params,
) -> Result<Answer<AttemptList>, Fault> {
    params.allow(&[])?;
    let run = reached(&app, &caller, run_id(id)?).await?;
    let records = wait::read(app.store().attempts(&caller.org, run.id)).await?;
    let mut attempts: Vec<Attempt> = records.iter().map(Attempt::from).collect();
    if run.attempt > 0 && attempts.last().is_none_or(|last| last.attempt_number < run.attempt) {
        attempts.push(Attempt::from(&look::listed(&app, &run).await?));
    }
    Ok(Answer(AttemptList { attempts }))
}

pub async fn events(
    State(app): State<App>,
    caller: Caller,
    id: Id,
    params: Params,
) -> Result<Answer<EventList>, Fault> {
    params.allow(&["after", "limit"])?;
    let limit = params.number("limit", 1..=limit::EVENTS, limit::EVENTS_DEFAULT)?;
    let run = reached(&app, &caller, run_id(id)?).await?;
    let after = event::after(&app, params.one("after")?).await?;
    let page = wait::read(app.store().run_events(&caller.org, run.id, after, limit)).await?;
    let next = page.items.last().map_or(after, |row| row.cursor);
    let events = page.items.iter().map(|row| Event::new(row.cursor.to_string(), &row.event)).collect();
    Ok(Answer(EventList { events, next: next.to_string() }))
}

/// Of all its attempts and all their agents.
pub async fn ledger(
    State(app): State<App>,
    caller: Caller,
    id: Id,
    params: Params,
) -> Result<Answer<LedgerList>, Fault> {
    let asked = cursor::RUN_LEDGER.asked(&params, &[])?;
    let run = reached(&app, &caller, run_id(id)?).await?;
    let mut accounts = Vec::new();
    for attempt in 1..=run.attempt {
        accounts.push(Account::Run(run.id, attempt).to_string());
        let agents = agents_of(&app, &run, attempt).await?;
        accounts.extend(agents.iter().map(|agent| agent.account().to_string()));
    }
    accounts.sort_unstable();
    credits::page(&app, &caller, accounts, &asked).await
}
