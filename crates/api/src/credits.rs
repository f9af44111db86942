//! Money: what an org has, what it was given, and every entry.

use crate::app::App;
use crate::call::Call;
use crate::cursor::{self, Asked};
use crate::door::Caller;
use crate::idempotency::{self, rendered};
use crate::problem::Fault;
use crate::query::Params;
use crate::run;
use crate::wait;
use axum::Json as Answer;
use axum::extract::State;
use axum::response::Response;
use baton_core::ledger::grant::{Grant, Granted};
use baton_core::{AgentId, RunId};
use baton_store::{LedgerRow, ListLedger};
use baton_wire::{Balance, Direction, LedgerEntry, LedgerList, NewGrant, Time};

pub async fn balance(State(app): State<App>, caller: Caller, params: Params) -> Result<Answer<Balance>, Fault> {
    params.allow(&[])?;
    caller.reach_all()?;
    let account = run::account(&app, &caller.org).await?;
    let (purse, reserved) = account.map(|account| (account.purse, account.reserved)).unwrap_or_default();
    Ok(Answer(Balance { available: purse.balance, reserved, entries: purse.n }))
}

pub async fn grant(State(app): State<App>, caller: Caller, call: Call) -> Result<Response, Fault> {
    let asked: NewGrant = call.body.parse()?;
    let Some(key) = call.key().map(str::to_owned) else {
        return Err(Fault::new("idempotency_key_required", "nobody wants to give credits twice by mistake"));
    };
    let keyed = call.keyed("POST /api/v1/credits/grants", &asked)?;
    let amount = asked.amount;
    let command = Grant { org: caller.org.clone(), amount, key, note: asked.note };
    let render = move |out: &Granted| {
        let entry = out.posting.clone().map(|posting| entry(&posting.into()));
        let status = if entry.is_some() { 201 } else { 200 };
        rendered(status, &baton_wire::Granted { amount, balance: out.balance, entry })
    };
    idempotency::commit(&app, &caller, command, keyed, render).await
}

pub async fn ledger(State(app): State<App>, caller: Caller, params: Params) -> Result<Answer<LedgerList>, Fault> {
    let asked = cursor::LEDGER.asked(&params, &["account"])?;
    let account = params.one("account")?.unwrap_or("org").to_owned();
    reach(&app, &caller, &account).await?;
    page(&app, &caller, vec![account], &asked).await
}

/// An account that there is for this caller.
async fn reach(app: &App, caller: &Caller, account: &str) -> Result<(), Fault> {
    if account == "org" {
        return caller.reach_all();
    }
    let attempt =
        account.split_once('/').and_then(|(run, n)| Some((run.parse::<RunId>().ok()?, n.parse::<u32>().ok()?)));
    if let Some((id, attempt)) = attempt.filter(|(id, n)| format!("{id}/{n}") == account) {
        let run = run::reached(app, caller, id).await?;
        if (1..=run.attempt).contains(&attempt) {
            return Ok(());
        }
        return Err(Fault::new("run_not_found", format!("run {id} has had no attempt {attempt}")));
    }
    let Ok(id) = account.parse::<AgentId>() else {
        let why = "must be org, an attempt of a run such as run_…/1, or the id of an agent";
        return Err(Fault::field("account", why));
    };
    let found = wait::read(app.store().agent(&caller.org, id)).await?;
    match found.filter(|agent| caller.grant.reaches_project(&agent.project)) {
        Some(_) => Ok(()),
        None => Err(Fault::new("agent_not_found", format!("agent {id} does not exist"))),
    }
}

/// Entries of these accounts, which stand in the order of their names.
pub async fn page(
    app: &App,
    caller: &Caller,
    accounts: Vec<String>,
    asked: &Asked,
) -> Result<Answer<LedgerList>, Fault> {
    let after = asked.after_text()?.map(|text| {
        let (account, n) = text.rsplit_once(' ').ok_or_else(cursor::foreign)?;
        let known = accounts.iter().any(|known| known == account);
        let n = n.parse().map_err(|_| cursor::foreign())?;
        known.then(|| (account.to_owned(), n)).ok_or_else(cursor::foreign)
    });
    let ask = ListLedger {
        org: caller.org.clone(),
        accounts,
        order: asked.order,
        after: after.transpose()?,
        limit: asked.limit,
    };
    let page = wait::read(app.store().ledger(ask)).await?;
    let next_cursor = page.next.map(|(account, n)| asked.next_text(&format!("{account} {n}")));
    Ok(Answer(LedgerList { entries: page.items.iter().map(entry).collect(), next_cursor }))
}

fn entry(row: &LedgerRow) -> LedgerEntry {
    LedgerEntry {
        account: row.account.clone(),
        n: row.n,
        kind: row.kind,
        direction: Direction::of(row.kind),
        amount: row.amount,
        balance_after: row.balance_after,
        key: row.key.clone(),
        run_id: row.run,
        at: Time(row.at),
    }
}
