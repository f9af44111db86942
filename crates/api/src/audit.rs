//! Verifying the whole history on demand.

use crate::app::App;
use crate::limits;
use crate::problem::Fault;
use crate::query::Params;
use crate::wait;
use axum::Json;
use axum::extract::State;
use baton_wire::Audit;

pub async fn audit(State(app): State<App>, params: Params) -> Result<Json<Audit>, Fault> {
    params.allow(&[])?;
    // It reads everything there is; several at once would only read it in each other's way.
    let Ok(_turn) = app.audits().try_acquire() else {
        return Err(Fault::new("overloaded", "the history is being verified for somebody else"));
    };
    let report = wait::read_within(limits::AUDIT_WAIT, app.engine().audit()).await?;
    if !report.is_clean() {
        tracing::error!(violations = report.violations_total, "the history has been tampered with or damaged");
    }
    Ok(Json(report.into()))
}
