//! Job types: what work means, as data.

use crate::app::App;
use crate::call::Call;
use crate::cursor;
use crate::door::Caller;
use crate::idempotency::{self, rendered};
use crate::problem::Fault;
use crate::query::Params;
use axum::Json as Answer;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::Response;
use baton_core::TypeName;
use baton_core::definition::{Definitions, Entry, PutJobType, Registration, Served};
use baton_core::job::Kind;
use baton_core::limits::JOB_TYPE_VERSIONS;
use baton_core::once::Rendered;
use baton_engine::check_schema;
use baton_store::Order;
use baton_wire::{JobType, JobTypeList, NewJobType};
use std::sync::Arc;

type Name = Result<Path<String>, PathRejection>;

pub async fn list(State(app): State<App>, caller: Caller, params: Params) -> Result<Answer<JobTypeList>, Fault> {
    let asked = cursor::JOB_TYPES.asked(&params, &[])?;
    let after = asked.after_text()?;
    let defs = app.store().definitions();
    let all = defs.offered(&caller.org).into_iter().filter(|(name, _)| caller.grant.reaches_type(name));
    let beyond = |name: &TypeName| match (&after, asked.order) {
        (None, _) => true,
        (Some(after), Order::Rising) => name.as_str() > after.as_str(),
        (Some(after), Order::Falling) => name.as_str() < after.as_str(),
    };
    let mut found: Vec<&Entry> = all.filter(|(name, _)| beyond(name)).map(|(_, entry)| entry).collect();
    if asked.order == Order::Falling {
        found.reverse();
    }
    let more = found.len() > asked.limit;
    found.truncate(asked.limit);
    let next = found.last().filter(|_| more).map(|entry| asked.next_text(entry.job_type.name.as_str()));
    Ok(Answer(JobTypeList { job_types: found.into_iter().map(JobType::from).collect(), next_cursor: next }))
}

pub async fn get(State(app): State<App>, caller: Caller, name: Name, params: Params) -> Result<Answer<JobType>, Fault> {
    params.allow(&["version"])?;
    let version: Option<u32> = params.parsed("version")?;
    if version.is_some_and(|version| !(1..=JOB_TYPE_VERSIONS).contains(&version)) {
        return Err(Fault::field("version", format!("must be a number from 1 to {JOB_TYPE_VERSIONS}")));
    }
    let name = parsed(name)?;
    let known = |defs: &Definitions| {
        let newest = defs.newest(&caller.org, &name).filter(|entry| !entry.job_type.internal)?;
        let entry = match version {
            None => Some(newest),
            Some(version) => defs.entry(&caller.org, &Kind { name: name.clone(), version }),
        };
        entry.map(|entry| JobType { served_by: JobType::from(newest).served_by, ..JobType::from(entry) })
    };
    let found = match known(&app.store().definitions()) {
        Some(found) => Some(found),
        None => known(&*learned(&app).await?),
    };
    match found.filter(|_| caller.grant.reaches_type(&name)) {
        Some(found) => Ok(Answer(found)),
        None => Err(Fault::new("job_type_not_found", format!("there is no job type {name}, or no such version of it"))),
    }
}

pub async fn put(State(app): State<App>, caller: Caller, name: Name, call: Call) -> Result<Response, Fault> {
    let name = parsed(name)?;
    // Whatever is wrong with a field, it is the type that cannot be so.
    let new: NewJobType = call.body.parse().map_err(|fault| fault.renamed("invalid_request", "invalid_job_type"))?;
    // What a type is like matters to every project.
    caller.reach_all()?;
    let job_type = new.named(name);
    for (field, schema) in [("payloadSchema", &job_type.payload_schema), ("resultSchema", &job_type.result_schema)] {
        if let Some(schema) = schema {
            check_schema(schema).map_err(|why| Fault::new("invalid_job_type", format!("{field}: {why}")))?;
        }
    }
    idempotency::commit(&app, &caller, PutJobType { org: caller.org.clone(), job_type }, None, render).await
}

fn render(put: &Registration) -> Rendered {
    rendered(if put.made { 201 } else { 200 }, &JobType::of(&put.job_type, Served::ByWorkers))
}

fn parsed(name: Name) -> Result<TypeName, Fault> {
    let text = name.map(|Path(text)| text).unwrap_or_default();
    TypeName::new(&text).map_err(|error| Fault::field("type", error))
}

/// What is known after looking at what other nodes have registered.
pub async fn learned(app: &App) -> Result<Arc<Definitions>, Fault> {
    crate::wait::read(app.store().learn()).await?;
    Ok(app.store().definitions())
}
