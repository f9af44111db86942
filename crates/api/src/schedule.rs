//! Schedules: jobs that come again and again.

use crate::app::App;
use crate::call::Call;
use crate::cursor;
use crate::door::Caller;
use crate::idempotency::{self, rendered};
use crate::job::payload;
use crate::limits;
use crate::problem::Fault;
use crate::query::Params;
use crate::wait;
use axum::Json as Answer;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use baton_core::cron::put::{Act, Kept, Put};
use baton_core::cron::{self, Spec};
use baton_core::doc::{Class, Doc};
use baton_core::name::ScheduleName;
use baton_core::once::Rendered;
use baton_core::{ProjectId, TypeName};
use baton_store::{ListDocs, StoreError};
use baton_wire::{NewSchedule, Schedule, ScheduleList};
use serde_json::Value;

/// Project and name.
type Key = Result<Path<(String, String)>, PathRejection>;

pub async fn list(State(app): State<App>, caller: Caller, params: Params) -> Result<Answer<ScheduleList>, Fault> {
    let asked = cursor::SCHEDULES.asked(&params, &["projectId", "type"])?;
    let project = params.one("projectId")?.map(project).transpose()?;
    let prefix = project.map(|project| format!("{project}/")).unwrap_or_default();
    let kind: Option<TypeName> = params.parsed("type")?;
    let limit = asked.limit;
    let mut after = asked.after_text()?;
    let mut schedules = Vec::new();
    // What was deleted keeps its row, and does not fill a page; nor does what is not wanted.
    for _ in 0..limits::SCHEDULE_ROUNDS {
        let ask = ListDocs {
            org: caller.org.clone(),
            class: Class::Schedule,
            prefix: prefix.clone(),
            flag: None,
            order: asked.order,
            after,
            limit: limit - schedules.len(),
        };
        let page = wait::read(app.store().docs(ask)).await?;
        let reached = |schedule: &Schedule| caller.grant.reaches(&schedule.project_id, &schedule.kind);
        let wanted = |schedule: &Schedule| kind.as_ref().is_none_or(|kind| schedule.kind == *kind);
        schedules.extend(page.items.iter().filter_map(|(_, doc)| show(doc)).filter(reached).filter(wanted));
        after = page.next;
        if after.is_none() || schedules.len() >= limit {
            break;
        }
    }
    Ok(Answer(ScheduleList { schedules, next_cursor: after.map(|key| asked.next_text(&key)) }))
}

pub async fn get(State(app): State<App>, caller: Caller, key: Key, params: Params) -> Result<Answer<Schedule>, Fault> {
    params.allow(&[])?;
    let (project, name) = names(key)?;
    let doc = wait::read(app.store().doc(&caller.org, &cron::Schedule::key(&project, &name))).await?;
    match doc.as_ref().and_then(show).filter(|found| caller.grant.reaches(&project, &found.kind)) {
        Some(schedule) => Ok(Answer(schedule)),
        None => Err(Fault::new("schedule_not_found", format!("project {project} has no schedule called {name}"))),
    }
}

pub async fn put(State(app): State<App>, caller: Caller, key: Key, call: Call) -> Result<Response, Fault> {
    let (project, name) = names(key)?;
    let mut new: NewSchedule = call.body.parse()?;
    caller.reach(&project, &new.kind)?;
    reach_kept(&app, &caller, &project, &name).await?;
    // Checked on the way in, like that of a job.
    if let Value::Object(checked) = payload(std::mem::take(&mut new.payload))? {
        new.payload = checked;
    }
    let act = Act::Put(Box::new(Spec::from(new)));
    idempotency::commit(&app, &caller, Put { org: caller.org.clone(), project, name, act }, None, render).await
}

pub async fn delete(State(app): State<App>, caller: Caller, key: Key, params: Params) -> Result<StatusCode, Fault> {
    params.allow(&[])?;
    let (project, name) = names(key)?;
    caller.reach_project(&project)?;
    reach_kept(&app, &caller, &project, &name).await?;
    let command = Put { org: caller.org.clone(), project, name, act: Act::Delete };
    wait::commit(app.store().commit(command, caller.actor())).await.ok_or(StoreError::OutcomeUnknown)??;
    Ok(StatusCode::NO_CONTENT)
}

pub async fn pause(State(app): State<App>, caller: Caller, key: Key, call: Call) -> Result<Response, Fault> {
    act(&app, &caller, key, &call, Act::Pause, "POST /api/v1/projects/{projectId}/schedules/{name}/pause").await
}

pub async fn resume(State(app): State<App>, caller: Caller, key: Key, call: Call) -> Result<Response, Fault> {
    act(&app, &caller, key, &call, Act::Resume, "POST /api/v1/projects/{projectId}/schedules/{name}/resume").await
}

async fn act(
    app: &App,
    caller: &Caller,
    key: Key,
    call: &Call,
    act: Act,
    scope: &'static str,
) -> Result<Response, Fault> {
    let (project, name) = names(key)?;
    caller.reach_project(&project)?;
    reach_kept(app, caller, &project, &name).await?;
    let keyed = call.keyed_bare(scope)?;
    idempotency::commit(app, caller, Put { org: caller.org.clone(), project, name, act }, keyed, render).await
}

/// A schedule of a type that a key does not reach is not there for it.
async fn reach_kept(app: &App, caller: &Caller, project: &ProjectId, name: &ScheduleName) -> Result<(), Fault> {
    if caller.grant.is_whole() {
        return Ok(());
    }
    let doc = wait::read(app.store().doc(&caller.org, &cron::Schedule::key(project, name))).await?;
    match doc.as_ref().and_then(show) {
        Some(kept) if !caller.grant.reaches(project, &kept.kind) => {
            Err(Fault::new("schedule_not_found", format!("project {project} has no schedule called {name}")))
        }
        _ => Ok(()),
    }
}

fn render(kept: &Kept) -> Rendered {
    let status = if kept.made { 201 } else { 200 };
    rendered(status, &Schedule::new(kept.id, &kept.schedule, kept.paused))
}

fn show(doc: &Doc) -> Option<Schedule> {
    cron::Schedule::of(doc).map(|schedule| Schedule::new(doc.id, &schedule, doc.flag))
}

fn names(path: Key) -> Result<(ProjectId, ScheduleName), Fault> {
    let (project_text, name) = path.map(|Path(names)| names).unwrap_or_default();
    let name = ScheduleName::new(&name).map_err(|error| Fault::field("name", error))?;
    Ok((project(&project_text)?, name))
}

fn project(text: &str) -> Result<ProjectId, Fault> {
    ProjectId::new(text).map_err(|error| Fault::field("projectId", error))
}
