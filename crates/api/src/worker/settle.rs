//! Settling: what came of jobs.

use super::{nameless, parsed};
use crate::app::App;
use crate::body::at_most_deep;
use crate::call::Call;
use crate::door::Caller;
use crate::limits;
use crate::problem::Fault;
use crate::wait;
use axum::Json as Answer;
use axum::extract::State;
use baton_core::Micros;
use baton_core::canon::Json;
use baton_core::job::settle;
use baton_core::time::Span;
use baton_engine::remote::{Lease, Said};
use baton_store::{CommitError, StoreError};
use baton_wire::Object;
use baton_wire::worker::{
    AskPeople, AskQuestion, Complete, CompleteJob, Fail, FailJob, OUTCOMES, Outcome, PARK_MS, Park, ParkJob,
    ReleaseJob, SettleJobs, Settled, SettledJob, SettledJobs, SettledOne,
};
use serde_json::Value;

type One = Result<Answer<SettledOne>, Fault>;

pub async fn complete(State(app): State<App>, caller: Caller, call: Call) -> One {
    let CompleteJob { lease, result } = call.body.parse()?;
    one(&app, &caller, &lease, completed(Complete { result })?).await
}

pub async fn fail(State(app): State<App>, caller: Caller, call: Call) -> One {
    let FailJob { lease, code, message, class, acted } = call.body.parse()?;
    one(&app, &caller, &lease, failed(&Fail { code, message, class, acted })?).await
}

pub async fn park(State(app): State<App>, caller: Caller, call: Call) -> One {
    let ParkJob { lease, for_ms, seen } = call.body.parse()?;
    let now = now(&app, for_ms.is_some()).await?;
    one(&app, &caller, &lease, parked(&Park { for_ms, seen }, now)?).await
}

pub async fn ask(State(app): State<App>, caller: Caller, call: Call) -> One {
    let AskPeople { lease, question } = call.body.parse()?;
    one(&app, &caller, &lease, asked(AskQuestion { question })?).await
}

pub async fn release(State(app): State<App>, caller: Caller, call: Call) -> One {
    let ReleaseJob { lease } = call.body.parse()?;
    one(&app, &caller, &lease, settle::Outcome::Release).await
}

pub async fn settle(
    State(app): State<App>,
    caller: Caller,
    call: Call<{ limits::BATCH_BYTES }>,
) -> Result<Answer<SettledJobs>, Fault> {
    let SettleJobs { outcomes } = call.body.parse()?;
    super::within("outcomes", outcomes.len(), OUTCOMES)?;
    let many = Many::of(&app, outcomes).await?;
    let worker = nameless(&caller);
    let said = app.engine().workers().settle(&worker, many.settles.clone());
    let said = wait::commit(said).await.ok_or(StoreError::OutcomeUnknown)??;
    Ok(Answer(SettledJobs { settled: many.told(said) }))
}

async fn one(app: &App, caller: &Caller, lease: &str, outcome: settle::Outcome) -> One {
    let worker = nameless(caller);
    let said = app.engine().workers().settle(&worker, vec![(parsed(lease)?, outcome)]);
    let mut said = wait::commit(said).await.ok_or(StoreError::OutcomeUnknown)??;
    let settled = said.pop().unwrap_or(Err(CommitError::Store(StoreError::Closed)))?;
    Ok(Answer(SettledOne { settled: word(settled) }))
}

const fn word(settled: settle::Settled) -> Settled {
    match settled {
        settle::Settled::Now => Settled::Now,
        settle::Settled::Already => Settled::Already,
    }
}

/// Outcomes of many jobs, and the leases as they were written.
pub(super) struct Many {
    texts: Vec<String>,
    /// Where in the list those stand that can be leases at all.
    places: Vec<usize>,
    pub settles: Vec<(Lease, settle::Outcome)>,
}

impl Many {
    pub async fn of(app: &App, outcomes: Vec<Outcome>) -> Result<Self, Fault> {
        let now = now(app, outcomes.iter().any(|said| said.park.is_some())).await?;
        let mut many = Self { texts: Vec::new(), places: Vec::new(), settles: Vec::new() };
        for (place, outcome) in outcomes.into_iter().enumerate() {
            let text = outcome.lease.clone();
            super::short(&text).map_err(|fault| fault.at(place))?;
            let outcome = outcome_of(outcome, now).map_err(|fault| fault.at(place))?;
            if let Ok(lease) = text.parse() {
                many.places.push(place);
                many.settles.push((lease, outcome));
            }
            many.texts.push(text);
        }
        Ok(many)
    }

    /// What each came to. What the database could not do can be said again; the others stand.
    pub fn told(self, said: Vec<Said>) -> Vec<SettledJob> {
        let lost = |lease: String| SettledJob {
            lease,
            settled: None,
            code: Some("lease_lost".to_owned()),
            detail: Some("this is not a lease as it was handed out".to_owned()),
        };
        let mut all: Vec<SettledJob> = self.texts.into_iter().map(lost).collect();
        for (place, said) in self.places.into_iter().zip(said) {
            let told = &mut all[place];
            (told.settled, told.code, told.detail) = match said {
                Ok(settled) => (Some(word(settled)), None, None),
                Err(error) => {
                    let fault = Fault::from(error);
                    (None, Some(fault.code().to_owned()), Some(fault.detail().to_owned()))
                }
            };
        }
        all
    }
}

fn outcome_of(said: Outcome, now: Micros) -> Result<settle::Outcome, Fault> {
    match said {
        Outcome { complete: Some(said), fail: None, park: None, ask: None, release: None, .. } => completed(said),
        Outcome { complete: None, fail: Some(said), park: None, ask: None, release: None, .. } => failed(&said),
        Outcome { complete: None, fail: None, park: Some(said), ask: None, release: None, .. } => parked(&said, now),
        Outcome { complete: None, fail: None, park: None, ask: Some(said), release: None, .. } => asked(said),
        Outcome { complete: None, fail: None, park: None, ask: None, release: Some(_), .. } => {
            Ok(settle::Outcome::Release)
        }
        _ => Err(Fault::field("outcomes", "each says one of complete, fail, park, ask and release")),
    }
}

fn completed(said: Complete) -> Result<settle::Outcome, Fault> {
    Ok(settle::Outcome::Done(json("result", said.result)?))
}

fn failed(said: &Fail) -> Result<settle::Outcome, Fault> {
    if said.code.is_empty() {
        return Err(Fault::field("code", "must not be empty"));
    }
    Ok(settle::Outcome::Failed(said.failure()))
}

/// The time of commits, where it matters: asking for it costs a question.
async fn now(app: &App, matters: bool) -> Result<Micros, Fault> {
    if matters { Ok(wait::read(app.store().now()).await?) } else { Ok(Micros::default()) }
}

fn parked(said: &Park, now: Micros) -> Result<settle::Outcome, Fault> {
    if said.for_ms.is_some_and(|ms| ms > PARK_MS) {
        return Err(Fault::field("forMs", format!("must be a number up to {PARK_MS}")));
    }
    let until = said.for_ms.map(|ms| now.plus(Span::millis(i64::try_from(ms).unwrap_or(i64::MAX))));
    let seen = i64::try_from(said.seen).unwrap_or(i64::MAX);
    Ok(settle::Outcome::Park { until, seen })
}

fn asked(said: AskQuestion) -> Result<settle::Outcome, Fault> {
    Ok(settle::Outcome::Ask(json("question", said.question)?))
}

/// An object that is not nested deeper than every answer around it can be read.
fn json(field: &str, object: Object) -> Result<Json, Fault> {
    let value = Value::Object(object);
    if !at_most_deep(&value, limits::PAYLOAD_DEPTH) {
        return Err(Fault::field(
            field,
            format!("at most {} lists and objects inside each other", limits::PAYLOAD_DEPTH),
        ));
    }
    Ok(Json::of(&value))
}
