//! Taking jobs in: one, or many at once.

use crate::app::App;
use crate::body::at_most_deep;
use crate::call::Call;
use crate::door::Caller;
use crate::idempotency::{self, rendered};
use crate::limits;
use crate::problem::Fault;
use axum::extract::{FromRequest as _, Request, State};
use axum::response::Response;
use baton_core::canon::Json;
use baton_core::job::batch::Batch;
use baton_core::job::enqueue::{Enqueue, Enqueued};
use baton_wire::{BatchTaken, EnqueuedJob, NewBatch, NewJob, PriorityNumber};
use serde_json::Value;

pub async fn enqueue(State(app): State<App>, caller: Caller, call: Call) -> Result<Response, Fault> {
    let new: NewJob = call.body.parse()?;
    let keyed = call.keyed("POST /api/v1/jobs", &new)?;
    let render = |out: &Enqueued| rendered(status(out.how.is_new()), &EnqueuedJob::from(out));
    idempotency::commit(&app, &caller, order(&caller, new)?, keyed, render).await
}

pub async fn batch(State(app): State<App>, caller: Caller, request: Request) -> Result<Response, Fault> {
    // Such a body is large: only so many are read, and held, at once.
    let turn = tokio::time::timeout(limits::BATCH_WAIT, app.batches().acquire()).await;
    let Ok(Ok(_turn)) = turn else {
        return Err(Fault::new("overloaded", "too many batches are being taken in"));
    };
    let call = Call::<{ limits::BATCH_BYTES }>::from_request(request, &app).await?;
    let new: NewBatch = call.body.parse()?;
    let keyed = call.keyed("POST /api/v1/jobs/batch", &new)?;
    let one =
        |(index, job)| order(&caller, job).map_err(|fault: Fault| fault.inside(&format!("jobs[{index}].")).at(index));
    let orders = new.jobs.into_iter().enumerate().map(one);
    let command = Batch { org: caller.org.clone(), jobs: orders.collect::<Result<_, Fault>>()? };
    let render = |outs: &Vec<Enqueued>| {
        let taken = BatchTaken::of(outs);
        rendered(status(taken.enqueued > 0), &taken)
    };
    idempotency::commit(&app, &caller, command, keyed, render).await
}

/// 201 if something new was made.
pub const fn status(new: bool) -> u16 {
    if new { 201 } else { 200 }
}

fn order(caller: &Caller, new: NewJob) -> Result<Enqueue, Fault> {
    caller.reach(&new.project_id, &new.kind)?;
    let payload = payload(new.payload)?;
    Ok(Enqueue {
        priority: new.priority.map(PriorityNumber::get),
        source_session: new.source_session_id,
        not_before: new.not_before.map(|time| time.0),
        deadline: new.deadline.map(|time| time.0),
        message_id: new.message_id,
        ..Enqueue::new(caller.org.clone(), new.project_id, new.kind, Json::of(&payload))
    })
}

/// A payload that every answer around it can hold.
pub fn payload(object: baton_wire::Object) -> Result<Value, Fault> {
    let payload = Value::Object(object);
    if at_most_deep(&payload, limits::PAYLOAD_DEPTH) {
        return Ok(payload);
    }
    let why = format!("lists and objects may be nested {} deep", limits::PAYLOAD_DEPTH);
    Err(Fault::field("payload", why))
}
