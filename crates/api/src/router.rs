//! Every route there is.

use crate::app::App;
use crate::problem::Fault;
use crate::{audit, docs, envelope, event, guard, health, job, lane, letter, limits, metrics, schedule};
use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::http::Method;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{get, post};
use baton_wire::{Job, OrchestratorJob};

pub fn router(app: App) -> Router {
    let batch = post(job::batch).layer(DefaultBodyLimit::max(limits::BATCH_BYTES));
    let named = get(schedule::get).put(schedule::put).delete(schedule::delete);
    let routes = Router::new()
        .route("/api/v1/jobs", post(job::enqueue))
        .route("/api/v1/jobs/batch", batch)
        .route("/api/v1/jobs/{jobId}", get(job::get::<Job>))
        .route("/api/v1/jobs/{jobId}/cancel", post(job::cancel))
        .route("/api/v1/jobs/{jobId}/wake", post(job::wake))
        .route("/api/v1/jobs/{jobId}/confirm", post(job::confirm))
        .route("/api/v1/jobs/{jobId}/requeue", post(job::requeue))
        .route("/api/v1/projects/{projectId}/jobs", get(job::list::<Job>))
        .route("/api/orchestrator/jobs/{jobId}", get(job::get::<OrchestratorJob>))
        .route("/api/orchestrator/jobs/{jobId}/cancel", post(job::cancel_orchestrated))
        .route("/api/projects/{projectId}/orchestrator/jobs", get(job::list::<OrchestratorJob>))
        .route("/api/v1/dead-letters", get(letter::list))
        .route("/api/v1/dead-letters/requeue", post(letter::requeue))
        .route("/api/v1/lanes", get(lane::list))
        .route("/api/v1/lanes/{lane}", get(lane::get))
        .route("/api/v1/lanes/{lane}/pause", post(lane::pause))
        .route("/api/v1/lanes/{lane}/resume", post(lane::resume))
        .route("/api/v1/schedules", get(schedule::list))
        .route("/api/v1/projects/{projectId}/schedules/{name}", named)
        .route("/api/v1/projects/{projectId}/schedules/{name}/pause", post(schedule::pause))
        .route("/api/v1/projects/{projectId}/schedules/{name}/resume", post(schedule::resume))
        .route("/api/v1/events", get(event::list))
        .route("/api/v1/audit", get(audit::audit))
        .route("/healthz", get(health::alive))
        .route("/readyz", get(health::ready))
        .route("/metrics", get(metrics::scrape))
        .route("/docs/errors", get(docs::errors))
        .route("/docs/errors.md", get(docs::errors))
        .route("/docs/api.md", get(docs::api))
        .with_state(app.clone());
    dress(routes, app)
}

/// What surrounds every route, the missing ones included.
pub(crate) fn dress(routes: Router, app: App) -> Router {
    routes
        .fallback(no_route)
        .method_not_allowed_fallback(no_method)
        .layer(DefaultBodyLimit::max(limits::BODY_BYTES))
        .layer(from_fn(guard::guard))
        .layer(from_fn_with_state(app, envelope::envelope))
}

async fn no_route(request: Request) -> Fault {
    Fault::new("not_found", format!("there is nothing at {}", request.uri().path()))
}

async fn no_method(method: Method) -> Fault {
    Fault::new("method_not_allowed", format!("{method} is not among what this route accepts; see the Allow header"))
}
