//! Making a run from a document.

use super::sent::{Sent, invalid};
use crate::app::App;
use crate::door::Caller;
use crate::idempotency::{self, rendered};
use crate::problem::Fault;
use axum::extract::State;
use axum::response::Response;
use baton_core::canon::Json;
use baton_core::plan::{self, Tools};
use baton_core::run::Run;
use baton_core::run::create::Create;
use baton_wire::Live;
use std::sync::Arc;

/// The tools of this node; refused where no agents are worked on, because nobody could say whether what a
/// document names is there, nor send for a worker.
pub fn able(app: &App) -> Result<Arc<Tools>, Fault> {
    app.engine().tools().ok_or_else(|| Fault::new("feature_disabled", "this node does not work on runs"))
}

pub async fn create(State(app): State<App>, caller: Caller, sent: Sent) -> Result<Response, Fault> {
    let tools = able(&app)?;
    let (document, places) = sent.read()?;
    let compiled = plan::check(&document, &tools).map_err(|problems| invalid(problems, &places))?;
    caller.reach_project(&compiled.project)?;
    let document = Json::of(&document);
    let keyed = sent.keyed("POST /api/v1/runs", &document);
    let command = Create::new(caller.org.clone(), document, compiled);
    let render = |run: &Run| rendered(201, &baton_wire::Run::of(run, &Live::default(), run.created_at));
    idempotency::commit(&app, &caller, command, keyed, render).await
}
