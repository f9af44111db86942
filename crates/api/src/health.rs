//! What probes ask: whether the process lives, and whether it should be sent work.

use crate::app::App;
use crate::problem::Fault;
use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::Serialize;

/// How a node is.
#[derive(Serialize, JsonSchema)]
pub struct Status {
    status: &'static str,
    version: &'static str,
}

const fn status(status: &'static str) -> Json<Status> {
    Json(Status { status, version: env!("CARGO_PKG_VERSION") })
}

pub async fn alive() -> Json<Status> {
    status("alive")
}

pub async fn ready(State(app): State<App>) -> Result<Json<Status>, Fault> {
    if app.is_stopping() {
        return Err(Fault::new("not_ready", "Baton is stopping"));
    }
    match app.engine().ready() {
        Ok(()) => Ok(status("ready")),
        Err(not_ready) => {
            tracing::warn!(code = not_ready.code(), cause = %not_ready, "not ready");
            Err(Fault::new("not_ready", not_ready.to_string()))
        }
    }
}
