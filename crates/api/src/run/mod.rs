//! Runs: making them, showing them, steering them.

mod act;
mod after;
mod create;
mod look;
mod parts;
mod sent;
mod trail;

pub use act::{cancel, delete, pause, pause_agent, resume, resume_agent, retry, signal, start};
pub use create::create;
pub use look::{account, available, live, plan_of, reached};
pub use parts::{agents, steps, tasks};
pub use trail::{attempts, events, ledger};

use crate::app::App;
use crate::cursor;
use crate::door::Caller;
use crate::limits;
use crate::problem::Fault;
use crate::query::Params;
use crate::wait;
use axum::Json as Answer;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use baton_core::id::BadId;
use baton_core::run::State as RunState;
use baton_core::{ProjectId, RunId};
use baton_store::ListRuns;
use baton_wire::{Run, RunList, RunSource, limit};

/// What stands in the path.
pub type Id = Result<Path<String>, PathRejection>;

/// An id that nobody could have been given names no run.
pub fn run_id(path: Id) -> Result<RunId, Fault> {
    let text = path.map(|Path(text)| text).unwrap_or_default();
    text.parse().map_err(|error: BadId| Fault::new("run_not_found", error.to_string()))
}

pub async fn get(State(app): State<App>, caller: Caller, id: Id, params: Params) -> Result<Answer<Run>, Fault> {
    params.allow(&[])?;
    let run = reached(&app, &caller, run_id(id)?).await?;
    Ok(Answer(look::shown(&app, &run).await?))
}

pub async fn document(
    State(app): State<App>,
    caller: Caller,
    id: Id,
    params: Params,
) -> Result<Answer<RunSource>, Fault> {
    params.allow(&[])?;
    let run = reached(&app, &caller, run_id(id)?).await?;
    let found = wait::read(app.store().run_plan(&caller.org, run.id)).await?;
    let (document, plan) = found.ok_or_else(|| Fault::internal(format!("{} has no plan", run.id)))?;
    Ok(Answer(RunSource { run_id: run.id, document: document.value(), plan: plan.value() }))
}

pub async fn list(State(app): State<App>, caller: Caller, params: Params) -> Result<Answer<RunList>, Fault> {
    let asked = cursor::RUNS.asked(&params, &["project", "status"])?;
    let state = params.one("status")?.map(|text| {
        let words = || RunState::ALL.iter().map(|state| state.as_str()).collect::<Vec<_>>().join(", ");
        RunState::parse(text).ok_or_else(|| Fault::field("status", format!("must be one of {}", words())))
    });
    let project: Option<ProjectId> = params.parsed("project")?;
    if let Some(project) = &project {
        caller.reach_project(project)?;
    }
    let narrowed = project.is_none() && caller.grant.projects.is_some();
    let mut ask = ListRuns {
        org: caller.org.clone(),
        project,
        state: state.transpose()?,
        order: asked.order,
        after: asked.after_run()?,
        // Some of what is found will be left out again.
        limit: if narrowed { limit::NAMES } else { asked.limit },
    };
    let mut found = Vec::new();
    let mut next = None;
    for _ in 0..limits::RUN_ROUNDS {
        let page = wait::read(app.store().runs(ask.clone())).await?;
        next = page.next;
        for run in page.items {
            if found.len() == asked.limit {
                // What is beyond the limit belongs to the next page.
                next = found.last().map(|run: &baton_core::run::Run| run.id);
                break;
            }
            if caller.grant.reaches_project(&run.project) {
                found.push(run);
            }
        }
        if next.is_none() || found.len() == asked.limit {
            break;
        }
        ask.after = next;
    }
    let mut runs = Vec::with_capacity(found.len());
    for run in &found {
        runs.push(look::listed(&app, run).await?);
    }
    Ok(Answer(RunList { runs, next_cursor: next.map(|id| asked.next_run(id)) }))
}

/// What run documents may say, for editors.
pub async fn schema(params: Params) -> Result<impl IntoResponse, Fault> {
    params.allow(&[])?;
    Ok(([(CONTENT_TYPE, "application/json")], baton_wire::run::schema().to_string()))
}
