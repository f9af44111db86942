//! Every route there is, with what it asks for.

use crate::app::App;
use crate::door::{self, Ask, Gate};
use crate::guard::Hosts;
use crate::problem::Fault;
use crate::{
    access, audit, decision, docs, envelope, event, guard, health, job, lane, letter, limits, live, metrics, schedule,
};
use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::http::Method;
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodRouter, delete, get, post, put};
use baton_core::access::Right;
use baton_wire::{Job, OrchestratorJob};
use std::sync::Arc;

/// A route as others look at it: documents, and tests that try every one of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    pub method: Method,
    pub path: &'static str,
    pub ask: Ask,
}

struct Entry {
    route: Route,
    handler: MethodRouter<App>,
}

/// The table. What is not in it does not exist.
#[rustfmt::skip]
fn entries() -> Vec<Entry> {
    use Ask::{Anybody, Installation, Nobody};
    const SEE: Ask = Ask::Right(Right::See);
    const ENQUEUE: Ask = Ask::Right(Right::Enqueue);
    const OPERATE: Ask = Ask::Right(Right::Operate);
    const DECIDE: Ask = Ask::Right(Right::Decide);
    const KEYS: Ask = Ask::Right(Right::Keys);
    let g = |path, ask, handler| Entry { route: Route { method: Method::GET, path, ask }, handler };
    let p = |path, ask, handler| Entry { route: Route { method: Method::POST, path, ask }, handler };
    let u = |path, ask, handler| Entry { route: Route { method: Method::PUT, path, ask }, handler };
    let d = |path, ask, handler| Entry { route: Route { method: Method::DELETE, path, ask }, handler };
    vec![
        p("/api/v1/jobs", ENQUEUE, post(job::enqueue)),
        p("/api/v1/jobs/batch", ENQUEUE, post(job::batch).layer(DefaultBodyLimit::max(limits::BATCH_BYTES))),
        g("/api/v1/jobs/{jobId}", SEE, get(job::get::<Job>)),
        p("/api/v1/jobs/{jobId}/cancel", OPERATE, post(job::cancel)),
        p("/api/v1/jobs/{jobId}/wake", OPERATE, post(job::wake)),
        p("/api/v1/jobs/{jobId}/requeue", OPERATE, post(job::requeue)),
        g("/api/v1/projects/{projectId}/jobs", SEE, get(job::list::<Job>)),
        g("/api/orchestrator/jobs/{jobId}", SEE, get(job::get::<OrchestratorJob>)),
        p("/api/orchestrator/jobs/{jobId}/cancel", OPERATE, post(job::cancel_orchestrated)),
        g("/api/projects/{projectId}/orchestrator/jobs", SEE, get(job::list::<OrchestratorJob>)),
        g("/api/v1/dead-letters", SEE, get(letter::list)),
        p("/api/v1/dead-letters/requeue", OPERATE, post(letter::requeue)),
        g("/api/v1/lanes", SEE, get(lane::list)),
        g("/api/v1/lanes/{lane}", SEE, get(lane::get)),
        p("/api/v1/lanes/{lane}/pause", OPERATE, post(lane::pause)),
        p("/api/v1/lanes/{lane}/resume", OPERATE, post(lane::resume)),
        g("/api/v1/schedules", SEE, get(schedule::list)),
        g("/api/v1/projects/{projectId}/schedules/{name}", SEE, get(schedule::get)),
        u("/api/v1/projects/{projectId}/schedules/{name}", OPERATE, put(schedule::put)),
        d("/api/v1/projects/{projectId}/schedules/{name}", OPERATE, delete(schedule::delete)),
        p("/api/v1/projects/{projectId}/schedules/{name}/pause", OPERATE, post(schedule::pause)),
        p("/api/v1/projects/{projectId}/schedules/{name}/resume", OPERATE, post(schedule::resume)),
        g("/api/v1/decisions", SEE, get(decision::list)),
        g("/api/v1/decisions/{decisionId}", SEE, get(decision::get)),
        p("/api/v1/decisions/{decisionId}/resolve", DECIDE, post(decision::resolve)),
        g("/api/v1/events", SEE, get(event::list)),
        g("/api/v1/events/stream", SEE, get(live::sse::stream)),
        g("/api/ws", SEE, get(live::socket::open)),
        g("/api/v1/me", Anybody, get(access::me)),
        g("/api/v1/keys", KEYS, get(access::list)),
        p("/api/v1/keys", KEYS, post(access::create)),
        g("/api/v1/keys/{keyId}", KEYS, get(access::get)),
        p("/api/v1/keys/{keyId}/rotate", KEYS, post(access::rotate)),
        p("/api/v1/keys/{keyId}/revoke", KEYS, post(access::revoke)),
        g("/api/v1/orgs", Installation(Right::Orgs), get(access::orgs)),
        p("/api/v1/orgs", Installation(Right::Orgs), post(access::found)),
        g("/api/v1/audit", Installation(Right::Audit), get(audit::audit)),
        g("/metrics", Installation(Right::See), get(metrics::scrape)),
        g("/healthz", Nobody, get(health::alive)),
        g("/readyz", Nobody, get(health::ready)),
        g("/docs/errors", Nobody, get(docs::errors)),
        g("/docs/errors.md", Nobody, get(docs::errors)),
        g("/docs/api.md", Nobody, get(docs::api)),
    ]
}

pub fn routes() -> Vec<Route> {
    entries().into_iter().map(|entry| entry.route).collect()
}

pub fn router(app: App, hosts: Arc<Hosts>) -> Router {
    let mut routes = Router::new();
    for Entry { route: Route { path, ask, .. }, handler } in entries() {
        let gate = Gate { app: app.clone(), ask };
        routes = routes.route(path, handler.layer(from_fn_with_state(gate, door::pass)));
    }
    dress(routes.with_state(app.clone()), app, hosts)
}

/// What is said to those who speak plainly where TLS is spoken.
pub(crate) fn plain(app: App) -> Router {
    let fallback =
        || async { Fault::new("https_needed", "this port speaks TLS; what was sent to it could be read on the way") };
    Router::new().fallback(fallback).layer(from_fn_with_state(app, envelope::envelope))
}

/// What surrounds every route, the missing ones included.
pub(crate) fn dress(routes: Router, app: App, hosts: Arc<Hosts>) -> Router {
    routes
        .fallback(no_route)
        .method_not_allowed_fallback(no_method)
        .layer(DefaultBodyLimit::max(limits::BODY_BYTES))
        .layer(from_fn_with_state(hosts, guard::guard))
        .layer(from_fn_with_state(app, envelope::envelope))
}

async fn no_route(request: Request) -> Fault {
    Fault::new("not_found", format!("there is nothing at {}", request.uri().path()))
}

async fn no_method(method: Method) -> Fault {
    Fault::new("method_not_allowed", format!("{method} is not among what this route accepts; see the Allow header"))
}
