//! Leasing jobs, and waiting for them.

use super::settle::Many;
use crate::app::App;
use crate::call::Call;
use crate::door::Caller;
use crate::job_type;
use crate::limits;
use crate::problem::Fault;
use axum::Json as Answer;
use axum::extract::State;
use baton_core::TypeName;
use baton_core::definition::{Definitions, Served};
use baton_engine::remote::{Handed, Wanted, Worker};
use baton_wire::worker::{LEASES, LeaseJobs, LeasedJob, Leases, NAMES, OUTCOMES, WAIT_MS, WorkersJob};
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::Duration;

pub async fn lease(
    State(app): State<App>,
    caller: Caller,
    call: Call<{ limits::BATCH_BYTES }>,
) -> Result<Answer<Leases>, Fault> {
    let mut asked: LeaseJobs = call.body.parse()?;
    let settle = std::mem::take(&mut asked.settle);
    if settle.len() > OUTCOMES {
        return Err(Fault::field("settle", format!("at most {OUTCOMES} outcomes are settled at once")));
    }
    let wanted = wanted(&app, &caller, asked).await?;
    let many = Many::of(&app, settle).await?;
    // Who waits takes a place; who only looks, or settles, never has to.
    let place = if wanted.wait.is_zero() { None } else { Some(app.waiting().take(caller.key)?) };
    let workers = app.engine().workers();
    let (said, parcel) = workers.lease(&wanted, many.settles.clone()).await?;
    drop(place);
    // Its key may have been revoked while it waited. Then the parcel goes back unopened.
    let still = if wanted.wait.is_zero() { Ok(()) } else { app.keyring().still(&caller).await };
    let handed = match still {
        Ok(()) => workers.open(&wanted, parcel),
        // What was settled is told all the same.
        Err(_) if !said.is_empty() => Vec::new(),
        Err(fault) => return Err(fault),
    };
    Ok(Answer(Leases { leases: handed.into_iter().map(shown).collect(), settled: many.told(said) }))
}

async fn wanted(app: &App, caller: &Caller, asked: LeaseJobs) -> Result<Wanted, Fault> {
    super::within("types", asked.types.len(), NAMES)?;
    let types: BTreeSet<TypeName> = asked.types.into_iter().collect();
    for kind in &types {
        if !caller.grant.reaches_type(kind) {
            return Err(Fault::new("out_of_scope", format!("this key does not reach the job type {kind}")));
        }
    }
    served(app, caller, &types).await?;
    if let Some(lanes) = &asked.lanes {
        super::within("lanes", lanes.len(), NAMES)?;
    }
    if let Some(projects) = &asked.projects {
        super::within("projects", projects.len(), NAMES)?;
        projects.iter().try_for_each(|project| caller.reach_project(project))?;
    }
    let max = asked.max.unwrap_or(1);
    super::within("max", max, LEASES)?;
    if asked.wait_ms > WAIT_MS {
        return Err(Fault::field("waitMs", format!("must be a number up to {WAIT_MS}")));
    }
    let name = asked.worker.map(|name| name.parse()).transpose();
    let name = name.map_err(|error: baton_engine::remote::BadWorker| Fault::field("worker", error))?;
    Ok(Wanted {
        worker: Worker { org: caller.org.clone(), key: caller.key, name },
        types,
        lanes: asked.lanes.map(|lanes| lanes.into_iter().map(|lane| lane.0).collect()),
        projects: match asked.projects {
            Some(projects) => Some(projects.into_iter().collect()),
            None => caller.grant.projects.clone(),
        },
        max,
        wait: Duration::from_millis(asked.wait_ms),
    })
}

/// Whether workers serve all of these; another node may have registered one a moment ago.
async fn served(app: &App, caller: &Caller, types: &BTreeSet<TypeName>) -> Result<(), Fault> {
    let unknown = |defs: &Definitions| types.iter().find(|kind| defs.newest(&caller.org, kind).is_none()).cloned();
    let mut defs = app.store().definitions();
    if unknown(&defs).is_some() {
        defs = job_type::learned(app).await?;
    }
    if let Some(kind) = unknown(&defs) {
        return Err(Fault::new("unknown_job_type", format!("there is no job type {kind}")));
    }
    let here = |kind: &&TypeName| defs.newest(&caller.org, kind).is_some_and(|entry| entry.served == Served::Here);
    match types.iter().find(here) {
        Some(kind) => Err(Fault::new("local_job_type", format!("the server itself does the jobs of type {kind}"))),
        None => Ok(()),
    }
}

fn shown(handed: Handed) -> LeasedJob {
    let Handed { lease, leased, timeout, lasts } = handed;
    let ms = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    let until = leased.job.status.lease().map_or(leased.at, |lease| lease.until);
    LeasedJob {
        lease: lease.to_string(),
        lease_ms: ms(lasts),
        lease_until: baton_wire::Time(until),
        timeout_ms: timeout.map(ms),
        job: WorkersJob::from(&*leased.job),
        payload: match leased.payload.value() {
            Value::Object(object) => object,
            _ => baton_wire::Object::new(),
        },
    }
}
