//! Every route there is, with what it asks for.

use crate::app::App;
use crate::door::{self, Ask, Gate};
use crate::guard::Hosts;
use crate::openapi::{Operation, of};
use crate::problem::Fault;
use crate::{
    access, audit, credits, decision, docs, envelope, event, guard, health, job, job_type, lane, letter, limits, live,
    login, metrics, openapi, run, schedule, tool, webhook, why, worker,
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

/// There is no route that does not say what it asks for and what it is.
struct Entry {
    route: Route,
    operation: fn() -> Operation,
    handler: MethodRouter<App>,
}

fn entry(
    method: Method,
    path: &'static str,
    ask: Ask,
    operation: fn() -> Operation,
    handler: MethodRouter<App>,
) -> Entry {
    Entry { route: Route { method, path, ask }, operation, handler }
}

/// The table. What is not in it does not exist.
#[rustfmt::skip]
fn entries() -> Vec<Entry> {
    use Ask::{Anybody, Installation, Nobody};
    const SEE: Ask = Ask::Right(Right::See);
    const ENQUEUE: Ask = Ask::Right(Right::Enqueue);
    const OPERATE: Ask = Ask::Right(Right::Operate);
    const DECIDE: Ask = Ask::Right(Right::Decide);
    const WEBHOOKS: Ask = Ask::Right(Right::Webhooks);
    const WORK: Ask = Ask::Right(Right::Work);
    const CREDITS: Ask = Ask::Right(Right::Credits);
    const KEYS: Ask = Ask::Right(Right::Keys);
    let g = |path, ask, operation, handler| entry(Method::GET, path, ask, operation, handler);
    let p = |path, ask, operation, handler| entry(Method::POST, path, ask, operation, handler);
    let u = |path, ask, operation, handler| entry(Method::PUT, path, ask, operation, handler);
    let d = |path, ask, operation, handler| entry(Method::DELETE, path, ask, operation, handler);
    vec![
        p("/api/v1/jobs", ENQUEUE, of::job::enqueue, post(job::enqueue)),
        p("/api/v1/jobs/batch", ENQUEUE, of::job::batch, post(job::batch).layer(DefaultBodyLimit::max(limits::BATCH_BYTES))),
        g("/api/v1/jobs/{jobId}", SEE, of::job::get, get(job::get::<Job>)),
        p("/api/v1/jobs/{jobId}/cancel", OPERATE, of::job::cancel, post(job::cancel)),
        p("/api/v1/jobs/{jobId}/wake", OPERATE, of::job::wake, post(job::wake)),
        p("/api/v1/jobs/{jobId}/requeue", OPERATE, of::job::requeue, post(job::requeue)),
        g("/api/v1/projects/{projectId}/jobs", SEE, of::job::list, get(job::list::<Job>)),
        g("/api/orchestrator/jobs/{jobId}", SEE, of::orchestrator::get, get(job::get::<OrchestratorJob>)),
        p("/api/orchestrator/jobs/{jobId}/cancel", OPERATE, of::orchestrator::cancel, post(job::cancel_orchestrated)),
        g("/api/projects/{projectId}/orchestrator/jobs", SEE, of::orchestrator::list, get(job::list::<OrchestratorJob>)),
        p("/api/v1/runs", ENQUEUE, of::run::create, post(run::create)),
        g("/api/v1/runs", SEE, of::run::list, get(run::list)),
        g("/api/v1/runs/{runId}", SEE, of::run::get, get(run::get)),
        d("/api/v1/runs/{runId}", OPERATE, of::run::delete, delete(run::delete)),
        p("/api/v1/runs/{runId}/start", OPERATE, of::run::start, post(run::start)),
        p("/api/v1/runs/{runId}/pause", OPERATE, of::run::pause, post(run::pause)),
        p("/api/v1/runs/{runId}/resume", OPERATE, of::run::resume, post(run::resume)),
        p("/api/v1/runs/{runId}/cancel", OPERATE, of::run::cancel, post(run::cancel)),
        p("/api/v1/runs/{runId}/retry", OPERATE, of::run::retry, post(run::retry)),
        p("/api/v1/runs/{runId}/signals/{name}", OPERATE, of::run::signal, post(run::signal)),
        g("/api/v1/runs/{runId}/document", SEE, of::run::document, get(run::document)),
        g("/api/v1/runs/{runId}/agents", SEE, of::part::agents, get(run::agents)),
        p("/api/v1/runs/{runId}/agents/{agentId}/pause", OPERATE, of::part::pause, post(run::pause_agent)),
        p("/api/v1/runs/{runId}/agents/{agentId}/resume", OPERATE, of::part::resume, post(run::resume_agent)),
        g("/api/v1/runs/{runId}/tasks", SEE, of::part::tasks, get(run::tasks)),
        g("/api/v1/runs/{runId}/steps", SEE, of::part::steps, get(run::steps)),
        g("/api/v1/runs/{runId}/attempts", SEE, of::part::attempts, get(run::attempts)),
        g("/api/v1/runs/{runId}/events", SEE, of::part::events, get(run::events)),
        g("/api/v1/runs/{runId}/ledger", SEE, of::credits::of_run, get(run::ledger)),
        g("/api/v1/run-document.schema.json", Nobody, of::run::schema, get(run::schema)),
        g("/api/v1/tools", SEE, of::run::tools, get(tool::list)),
        g("/api/v1/why/{id}", SEE, of::why::why, get(why::why)),
        g("/api/v1/credits/balance", SEE, of::credits::balance, get(credits::balance)),
        p("/api/v1/credits/grants", CREDITS, of::credits::grant, post(credits::grant)),
        g("/api/v1/ledger", SEE, of::credits::ledger, get(credits::ledger)),
        g("/api/v1/dead-letters", SEE, of::letter::list, get(letter::list)),
        p("/api/v1/dead-letters/requeue", OPERATE, of::letter::requeue, post(letter::requeue)),
        g("/api/v1/lanes", SEE, of::lane::list, get(lane::list)),
        g("/api/v1/lanes/{lane}", SEE, of::lane::get, get(lane::get)),
        p("/api/v1/lanes/{lane}/pause", OPERATE, of::lane::pause, post(lane::pause)),
        p("/api/v1/lanes/{lane}/resume", OPERATE, of::lane::resume, post(lane::resume)),
        g("/api/v1/schedules", SEE, of::schedule::list, get(schedule::list)),
        g("/api/v1/projects/{projectId}/schedules/{name}", SEE, of::schedule::get, get(schedule::get)),
        u("/api/v1/projects/{projectId}/schedules/{name}", OPERATE, of::schedule::put, put(schedule::put)),
        d("/api/v1/projects/{projectId}/schedules/{name}", OPERATE, of::schedule::delete, delete(schedule::delete)),
        p("/api/v1/projects/{projectId}/schedules/{name}/pause", OPERATE, of::schedule::pause, post(schedule::pause)),
        p("/api/v1/projects/{projectId}/schedules/{name}/resume", OPERATE, of::schedule::resume, post(schedule::resume)),
        g("/api/v1/job-types", SEE, of::job_type::list, get(job_type::list)),
        g("/api/v1/job-types/{type}", SEE, of::job_type::get, get(job_type::get)),
        u("/api/v1/job-types/{type}", OPERATE, of::job_type::put, put(job_type::put)),
        p("/api/v1/worker/lease", WORK, of::worker::lease, post(worker::lease).layer(DefaultBodyLimit::max(limits::BATCH_BYTES))),
        p("/api/v1/worker/heartbeat", WORK, of::worker::heartbeat, post(worker::heartbeat)),
        p("/api/v1/worker/progress", WORK, of::worker::progress, post(worker::progress)),
        p("/api/v1/worker/complete", WORK, of::worker::complete, post(worker::complete)),
        p("/api/v1/worker/fail", WORK, of::worker::fail, post(worker::fail)),
        p("/api/v1/worker/park", WORK, of::worker::park, post(worker::park)),
        p("/api/v1/worker/ask", WORK, of::worker::ask, post(worker::ask)),
        p("/api/v1/worker/release", WORK, of::worker::release, post(worker::release)),
        p("/api/v1/worker/settle", WORK, of::worker::settle, post(worker::settle).layer(DefaultBodyLimit::max(limits::BATCH_BYTES))),
        g("/api/v1/decisions", SEE, of::decision::list, get(decision::list)),
        g("/api/v1/decisions/{decisionId}", SEE, of::decision::get, get(decision::get)),
        p("/api/v1/decisions/{decisionId}/resolve", DECIDE, of::decision::resolve, post(decision::resolve)),
        g("/api/v1/events", SEE, of::event::list, get(event::list)),
        g("/api/v1/events/stream", SEE, of::event::stream, get(live::sse::stream)),
        g("/api/ws", SEE, of::event::socket, get(live::socket::open)),
        g("/api/v1/webhooks", WEBHOOKS, of::webhook::list, get(webhook::list)),
        p("/api/v1/webhooks", WEBHOOKS, of::webhook::create, post(webhook::create)),
        g("/api/v1/webhooks/{webhookId}", WEBHOOKS, of::webhook::get, get(webhook::get)),
        u("/api/v1/webhooks/{webhookId}", WEBHOOKS, of::webhook::update, put(webhook::update)),
        d("/api/v1/webhooks/{webhookId}", WEBHOOKS, of::webhook::delete, delete(webhook::delete)),
        p("/api/v1/webhooks/{webhookId}/rotate", WEBHOOKS, of::webhook::rotate, post(webhook::rotate)),
        p("/api/v1/webhooks/{webhookId}/enable", WEBHOOKS, of::webhook::enable, post(webhook::enable)),
        p("/api/v1/webhooks/{webhookId}/disable", WEBHOOKS, of::webhook::disable, post(webhook::disable)),
        p("/api/v1/webhooks/{webhookId}/test", WEBHOOKS, of::webhook::try_out, post(webhook::try_out)),
        g("/api/v1/webhooks/{webhookId}/deliveries", WEBHOOKS, of::webhook::deliveries, get(webhook::deliveries)),
        g("/api/v1/me", Anybody, of::access::me, get(access::me)),
        p("/api/v1/login-links", Anybody, of::access::login_link, post(login::link)),
        p("/api/v1/session", Nobody, of::access::enter, post(login::enter)),
        d("/api/v1/session", Nobody, of::access::leave, delete(login::leave)),
        g("/api/v1/keys", KEYS, of::access::list, get(access::list)),
        p("/api/v1/keys", KEYS, of::access::create, post(access::create)),
        g("/api/v1/keys/{keyId}", KEYS, of::access::get, get(access::get)),
        p("/api/v1/keys/{keyId}/rotate", KEYS, of::access::rotate, post(access::rotate)),
        p("/api/v1/keys/{keyId}/revoke", KEYS, of::access::revoke, post(access::revoke)),
        g("/api/v1/orgs", Installation(Right::Orgs), of::access::orgs, get(access::orgs)),
        p("/api/v1/orgs", Installation(Right::Orgs), of::access::found, post(access::found)),
        g("/api/v1/audit", Installation(Right::Audit), of::installation::audit, get(audit::audit)),
        g("/metrics", Installation(Right::See), of::installation::metrics, get(metrics::scrape)),
        g("/healthz", Nobody, of::installation::alive, get(health::alive)),
        g("/readyz", Nobody, of::installation::ready, get(health::ready)),
        g("/openapi.json", Nobody, of::document::openapi, get(openapi::serve)),
        g("/login", Nobody, of::document::login, get(login::page)),
        g("/login.js", Nobody, of::document::login_script, get(login::script)),
        g("/docs", Nobody, of::document::reference, get(docs::reference)),
        g("/docs/errors", Nobody, of::document::errors, get(docs::errors)),
        g("/docs/errors.md", Nobody, of::document::errors_text, get(docs::errors_text)),
        g("/docs/api", Nobody, of::document::guide, get(docs::guide)),
        g("/docs/api.md", Nobody, of::document::guide_text, get(docs::guide_text)),
        g("/docs/style.css", Nobody, of::document::style, get(docs::style)),
    ]
}

pub fn routes() -> Vec<Route> {
    entries().into_iter().map(|entry| entry.route).collect()
}

/// The same with what each says about itself.
pub(crate) fn described() -> Vec<(Route, Operation)> {
    entries().into_iter().map(|entry| (entry.route, (entry.operation)())).collect()
}

pub fn router(app: App, hosts: Arc<Hosts>) -> Router {
    let mut routes = Router::new();
    for Entry { route: Route { path, ask, .. }, handler, .. } in entries() {
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
