//! Acting on a run that is there, or on one of its agents.

use super::after::{AfterAgent, AfterRun, Standing};
use super::create::able;
use super::look::{plan_of, reach};
use super::{Id, run_id};
use crate::app::App;
use crate::body::at_most_deep;
use crate::call::Call;
use crate::door::Caller;
use crate::idempotency::{self, Keyed, rendered};
use crate::limits;
use crate::problem::Fault;
use crate::query::Params;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::Response;
use baton_core::canon::Json;
use baton_core::command::Command;
use baton_core::id::BadId;
use baton_core::limits::{PAYLOAD_BYTES, REASON_CHARS};
use baton_core::name::SignalName;
use baton_core::run::cancel::{Cancel, Delete};
use baton_core::run::hold::Hold;
use baton_core::run::retry::Retry;
use baton_core::run::signal::{Signal, Signalled};
use baton_core::run::start::Start;
use baton_core::run::{Agent, Run, RunError};
use baton_core::{AgentId, RunId};

/// Commits, and answers with the run as it stands after that.
async fn act<C>(app: &App, caller: &Caller, run: RunId, command: C, keyed: Option<Keyed>) -> Result<Response, Fault>
where
    C: Command<Out = Run, No = RunError>,
{
    reach(app, caller, run).await?;
    let render = |out: &Standing| rendered(200, &baton_wire::Run::of(&out.run, &out.live, out.now));
    idempotency::commit(app, caller, AfterRun(command), keyed, render).await
}

pub async fn start(State(app): State<App>, caller: Caller, id: Id, call: Call) -> Result<Response, Fault> {
    let run = run_id(id)?;
    let keyed = call.keyed_bare("POST /api/v1/runs/{runId}/start")?;
    able(&app)?;
    act(&app, &caller, run, Start { org: caller.org.clone(), run }, keyed).await
}

pub async fn pause(State(app): State<App>, caller: Caller, id: Id, call: Call) -> Result<Response, Fault> {
    let run = run_id(id)?;
    let keyed = call.keyed_bare("POST /api/v1/runs/{runId}/pause")?;
    act(&app, &caller, run, Hold { org: caller.org.clone(), run, agent: None, pause: true }, keyed).await
}

pub async fn resume(State(app): State<App>, caller: Caller, id: Id, call: Call) -> Result<Response, Fault> {
    let run = run_id(id)?;
    let keyed = call.keyed_bare("POST /api/v1/runs/{runId}/resume")?;
    able(&app)?;
    act(&app, &caller, run, Hold { org: caller.org.clone(), run, agent: None, pause: false }, keyed).await
}

pub async fn cancel(State(app): State<App>, caller: Caller, id: Id, call: Call) -> Result<Response, Fault> {
    let run = run_id(id)?;
    let asked: baton_wire::Cancel = call.body.parse_or_default()?;
    if asked.reason.as_ref().is_some_and(|reason| reason.chars().count() > REASON_CHARS) {
        return Err(Fault::field("reason", format!("at most {REASON_CHARS} characters")));
    }
    let keyed = call.keyed("POST /api/v1/runs/{runId}/cancel", &asked)?;
    act(&app, &caller, run, Cancel { org: caller.org.clone(), run, reason: asked.reason }, keyed).await
}

pub async fn retry(State(app): State<App>, caller: Caller, id: Id, call: Call) -> Result<Response, Fault> {
    let run = run_id(id)?;
    let keyed = call.keyed_bare("POST /api/v1/runs/{runId}/retry")?;
    act(&app, &caller, run, Retry { org: caller.org.clone(), run }, keyed).await
}

/// Deleting twice is deleting once: no key is needed.
pub async fn delete(State(app): State<App>, caller: Caller, id: Id, params: Params) -> Result<Response, Fault> {
    params.allow(&[])?;
    let run = run_id(id)?;
    act(&app, &caller, run, Delete { org: caller.org.clone(), run }, None).await
}

type Two = Result<Path<(String, String)>, PathRejection>;

pub async fn pause_agent(State(app): State<App>, caller: Caller, ids: Two, call: Call) -> Result<Response, Fault> {
    hold(&app, &caller, ids, &call, (true, "POST /api/v1/runs/{runId}/agents/{agentId}/pause")).await
}

pub async fn resume_agent(State(app): State<App>, caller: Caller, ids: Two, call: Call) -> Result<Response, Fault> {
    able(&app)?;
    hold(&app, &caller, ids, &call, (false, "POST /api/v1/runs/{runId}/agents/{agentId}/resume")).await
}

async fn hold(
    app: &App,
    caller: &Caller,
    ids: Two,
    call: &Call,
    (pause, scope): (bool, &'static str),
) -> Result<Response, Fault> {
    let (run, agent) = ids.map(|Path(ids)| ids).unwrap_or_default();
    let run = run_id(Ok(Path(run)))?;
    let agent: AgentId = agent.parse().map_err(|error: BadId| Fault::new("agent_not_found", error.to_string()))?;
    let keyed = call.keyed_bare(scope)?;
    super::reached(app, caller, run).await?;
    // A plan never changes, so this is not too early.
    let plan = plan_of(app, &caller.org, run).await?;
    let command = AfterAgent { hold: Hold { org: caller.org.clone(), run, agent: Some(agent), pause }, agent };
    let render = move |out: &Agent| rendered(200, &baton_wire::Agent::of(out, plan.agents.get(out.index as usize)));
    idempotency::commit(app, caller, command, keyed, render).await
}

pub async fn signal(State(app): State<App>, caller: Caller, ids: Two, call: Call) -> Result<Response, Fault> {
    let (run, name) = ids.map(|Path(ids)| ids).unwrap_or_default();
    let run = run_id(Ok(Path(run)))?;
    let name = SignalName::new(&name).map_err(|error| Fault::field("name", error))?;
    let data = call.body.value()?;
    if !at_most_deep(&data, limits::PAYLOAD_DEPTH) {
        let why = format!("lists and objects may be nested {} deep", limits::PAYLOAD_DEPTH);
        return Err(Fault::new("invalid_request", why));
    }
    let keyed = call.keyed("POST /api/v1/runs/{runId}/signals/{name}", &data)?;
    let data = Json::of(&data);
    if data.len() > PAYLOAD_BYTES {
        let detail = format!("the data has {} bytes as canonical JSON; at most {PAYLOAD_BYTES} are kept", data.len());
        return Err(Fault::new("payload_too_large", detail));
    }
    reach(&app, &caller, run).await?;
    let said = name.to_string();
    let render = move |(run, how): &(Run, Signalled)| {
        let news = *how == Signalled::Now;
        rendered(200, &baton_wire::Signalled { run_id: run.id, name: said.clone(), news })
    };
    idempotency::commit(&app, &caller, Signal { org: caller.org.clone(), run, name, data }, keyed, render).await
}
