//! The worker protocol: leasing jobs, beating for them, saying what came of them.

mod lease;
mod settle;

pub use lease::lease;
pub use settle::{ask, complete, fail, park, release, settle};

use crate::app::App;
use crate::call::Call;
use crate::door::Caller;
use crate::problem::Fault;
use crate::wait;
use axum::Json as Answer;
use axum::extract::State;
use baton_core::job::{Context, Progress};
use baton_engine::remote::{Lease, Worker};
use baton_store::StoreError;
use baton_wire::worker::{BEATS, Beaten, Heartbeat, LEASE_CHARS, ProgressHeard, ReportProgress};

/// Whoever asks, as a worker without a name: leases bring the name that they were taken under.
fn nameless(caller: &Caller) -> Worker {
    Worker { org: caller.org.clone(), key: caller.key, name: None }
}

/// What cannot be a lease was never held.
fn parsed(text: &str) -> Result<Lease, Fault> {
    short(text)?;
    text.parse().map_err(|error: baton_engine::remote::BadLease| Fault::new("lease_lost", error.to_string()))
}

pub async fn heartbeat(State(app): State<App>, caller: Caller, call: Call) -> Result<Answer<Beaten>, Fault> {
    let asked: Heartbeat = call.body.parse()?;
    within("leases", asked.leases.len(), BEATS)?;
    let mut beaten = Beaten { lost: Vec::new(), cancelled: Vec::new() };
    let mut held = Vec::with_capacity(asked.leases.len());
    for text in asked.leases {
        short(&text)?;
        match text.parse::<Lease>() {
            // The text as it was written: whoever beats compares it with its own.
            Ok(lease) => held.push((text, lease)),
            Err(_) => beaten.lost.push(text),
        }
    }
    let leases: Vec<Lease> = held.iter().map(|(_, lease)| lease.clone()).collect();
    let (lost, cancelled) = wait::commit(app.engine().workers().beat(&nameless(&caller), &leases))
        .await
        .ok_or(StoreError::OutcomeUnknown)??;
    for (text, lease) in held {
        if lost.contains(&lease) {
            beaten.lost.push(text);
        } else if cancelled.contains(&lease) {
            beaten.cancelled.push(text);
        }
    }
    Ok(Answer(beaten))
}

pub async fn progress(State(app): State<App>, caller: Caller, call: Call) -> Result<Answer<ProgressHeard>, Fault> {
    let said: ReportProgress = call.body.parse()?;
    if said.percent.is_some_and(|percent| percent > 100) {
        return Err(Fault::field("percent", "must be a number from 0 to 100"));
    }
    let lease = parsed(&said.lease)?;
    let told = said.percent.is_some() || said.note.is_some();
    let progress = told.then_some(Progress { percent: said.percent, note: said.note });
    let context = said.context.map(|context| Context { thread: context.thread_id, turn: context.turn_id });
    let worker = nameless(&caller);
    let reported = wait::commit(app.engine().workers().report(&worker, &lease, progress, context))
        .await
        .ok_or(StoreError::OutcomeUnknown)??;
    Ok(Answer(ProgressHeard { cancel_requested: reported.cancel_requested }))
}

/// No lease is longer, so whatever is was not handed out by us.
fn short(lease: &str) -> Result<(), Fault> {
    if lease.chars().count() <= LEASE_CHARS {
        return Ok(());
    }
    Err(Fault::field("lease", format!("at most {LEASE_CHARS} characters")))
}

fn within(field: &str, given: usize, max: usize) -> Result<(), Fault> {
    if (1..=max).contains(&given) {
        return Ok(());
    }
    Err(Fault::field(field, format!("1 to {max} are taken at once, and {given} are given")))
}
