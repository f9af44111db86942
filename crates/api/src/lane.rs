//! Lanes: how full they are, and whether anything is handed out.

use crate::app::App;
use crate::call::Call;
use crate::cursor;
use crate::door::Caller;
use crate::idempotency::{self, rendered};
use crate::problem::Fault;
use crate::query::Params;
use crate::wait;
use axum::Json as Answer;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::Response;
use baton_core::lane::{LaneKey, Pause, Paused};
use baton_store::{LaneRecord, ListLanes};
use baton_wire::{Lane, LaneList};

type Name = Result<Path<String>, PathRejection>;

pub async fn list(State(app): State<App>, caller: Caller, params: Params) -> Result<Answer<LaneList>, Fault> {
    let asked = cursor::LANES.asked(&params, &[])?;
    let after = asked.after_text()?.map(|text| LaneKey::new(&text).map_err(|_| cursor::foreign())).transpose()?;
    let ask = ListLanes { org: caller.org.clone(), order: asked.order, after, limit: asked.limit };
    let page = wait::read(app.store().lanes(ask)).await?;
    let next_cursor = page.next.map(|key| asked.next_text(key.as_str()));
    let lanes = page.items.iter().filter(|record| reached(&caller, &record.key)).map(show).collect();
    Ok(Answer(LaneList { lanes, next_cursor }))
}

pub async fn get(State(app): State<App>, caller: Caller, lane: Name, params: Params) -> Result<Answer<Lane>, Fault> {
    params.allow(&[])?;
    let key = key(lane)?;
    match wait::read(app.store().lane(&caller.org, &key)).await?.filter(|_| reached(&caller, &key)) {
        Some(record) => Ok(Answer(show(&record))),
        None => Err(Fault::new("lane_not_found", format!("no job stands in the lane {key}, and it is not paused"))),
    }
}

pub async fn pause(State(app): State<App>, caller: Caller, lane: Name, call: Call) -> Result<Response, Fault> {
    set(&app, &caller, lane, &call, Set { paused: true, scope: "POST /api/v1/lanes/{lane}/pause" }).await
}

pub async fn resume(State(app): State<App>, caller: Caller, lane: Name, call: Call) -> Result<Response, Fault> {
    set(&app, &caller, lane, &call, Set { paused: false, scope: "POST /api/v1/lanes/{lane}/resume" }).await
}

struct Set {
    paused: bool,
    scope: &'static str,
}

async fn set(app: &App, caller: &Caller, lane: Name, call: &Call, set: Set) -> Result<Response, Fault> {
    let key = key(lane)?;
    // A lane holds jobs of every type.
    if !reached(caller, &key) || caller.grant.types.is_some() {
        return Err(Fault::new("out_of_scope", format!("this key does not reach the lane {key}")));
    }
    let keyed = call.keyed_bare(set.scope)?;
    // Read before the commit, because the answer is stored with it; pausing moves no job. A lane
    // in which no job stands can be paused for those that will.
    let found = wait::read(app.store().lane(&caller.org, &key)).await?;
    let record =
        found.unwrap_or_else(|| LaneRecord { key: key.clone(), max: None, running: 0, waiting: 0, paused: false });
    let render = move |out: &Paused| rendered(200, &Lane { paused: out.paused, ..show(&record) });
    let command = Pause { org: caller.org.clone(), lane: key, paused: set.paused };
    idempotency::commit(app, caller, command, keyed, render).await
}

/// A key with a scope reaches the lanes of its projects; other lanes hold everybody's jobs.
fn reached(caller: &Caller, key: &LaneKey) -> bool {
    let project = key.as_str().strip_prefix("project:").and_then(|name| name.parse().ok());
    caller.grant.is_whole() || project.is_some_and(|project| caller.grant.reaches_project(&project))
}

fn key(path: Name) -> Result<LaneKey, Fault> {
    let text = path.map(|Path(text)| text).unwrap_or_default();
    LaneKey::new(&text).map_err(|error| Fault::field("lane", error))
}

fn show(record: &LaneRecord) -> Lane {
    Lane {
        lane: record.key.as_str().to_owned(),
        limit: record.max,
        running: record.running,
        waiting: record.waiting,
        paused: record.paused,
    }
}
