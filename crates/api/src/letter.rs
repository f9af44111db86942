//! Dead letters: jobs that failed for good and have not been made anew.

use crate::app::App;
use crate::call::Call;
use crate::cursor;
use crate::door::Caller;
use crate::idempotency::{self, rendered};
use crate::job::{reach, show};
use crate::limits;
use crate::problem::Fault;
use crate::query::Params;
use crate::wait;
use axum::Json as Answer;
use axum::extract::State;
use axum::response::Response;
use baton_core::JobId;
use baton_core::job::enqueue::Enqueued;
use baton_core::job::requeue::{Requeue, RequeueFound, Requeued};
use baton_core::limits::BATCH_JOBS;
use baton_core::once::Rendered;
use baton_store::{DeadLetters, JobRecord, Order};
use baton_wire::{JobList, LettersRequeued, RequeueLetters};
use std::collections::BTreeSet;

pub async fn list(State(app): State<App>, caller: Caller, params: Params) -> Result<Answer<JobList>, Fault> {
    let asked = cursor::LETTERS.asked(&params, &["projectId", "type"])?;
    let ask = DeadLetters {
        org: caller.org.clone(),
        project: params.parsed("projectId")?,
        kind: params.parsed("type")?,
        order: asked.order,
        after: asked.after_job()?,
        limit: asked.limit,
        bytes: limits::PAGE_BYTES,
    };
    let page = wait::read(app.store().dead_letters(ask)).await?;
    let reached = |record: &&JobRecord| caller.grant.reaches(&record.job.project, &record.job.kind.name);
    let jobs = page.items.iter().filter(reached).map(show).collect();
    Ok(Answer(JobList { jobs, next_cursor: page.next.map(|id| asked.next_job(id)) }))
}

pub async fn requeue(State(app): State<App>, caller: Caller, call: Call) -> Result<Response, Fault> {
    let asked: RequeueLetters = call.body.parse_or_default()?;
    let keyed = call.keyed("POST /api/v1/dead-letters/requeue", &asked)?;
    if let Some(mut jobs) = asked.job_ids {
        if asked.project_id.is_some() || asked.kind.is_some() || asked.limit.is_some() || asked.all {
            return Err(Fault::field("jobIds", "stands alone, without projectId, type, limit or all"));
        }
        // One that is named twice is meant once.
        let mut seen = BTreeSet::new();
        jobs.retain(|id| seen.insert(*id));
        if !(1..=BATCH_JOBS).contains(&jobs.len()) {
            let detail = format!("1 to {BATCH_JOBS} jobs can be requeued at once, not {}", jobs.len());
            return Err(Fault::new("batch_size", detail));
        }
        for id in &jobs {
            reach(&app, &caller, *id).await?;
        }
        let from = jobs.clone();
        let command = Requeue { org: caller.org.clone(), jobs };
        let render = move |outs: &Vec<Enqueued>| answer(&LettersRequeued::named(&from, outs));
        return idempotency::commit(&app, &caller, command, keyed, render).await;
    }
    if asked.project_id.is_none() && asked.kind.is_none() && !asked.all {
        return Err(Fault::field(
            "all",
            "must be true to mean every project and type; or give jobIds, projectId or type",
        ));
    }
    // What a key does not reach is not looked through: it would have to read all of it to find its own.
    let (project, kind) = (asked.project_id.as_ref(), asked.kind.as_ref());
    if !caller.grant.reaches_all_of(project, kind) {
        let detail = "this key reaches a part of the org only: name a projectId and a type that it reaches";
        return Err(Fault::new("out_of_scope", detail));
    }
    let limit = asked.limit.unwrap_or(BATCH_JOBS);
    if !(1..=BATCH_JOBS).contains(&limit) {
        return Err(Fault::field("limit", format!("must be a number from 1 to {BATCH_JOBS}")));
    }
    let ask = DeadLetters {
        org: caller.org.clone(),
        project: asked.project_id,
        kind: asked.kind,
        order: Order::Falling,
        after: None,
        limit,
        bytes: limits::PAGE_BYTES,
    };
    let command = RequeueFound { org: caller.org.clone(), jobs: find(&app, &ask).await? };
    idempotency::commit(&app, &caller, command, keyed, |out: &Requeued| answer(&LettersRequeued::found(out))).await
}

fn answer(requeued: &LettersRequeued) -> Rendered {
    rendered(if requeued.requeued > 0 { 201 } else { 200 }, requeued)
}

/// The newest, up to the limit. Large ones come in several pages.
async fn find(app: &App, ask: &DeadLetters) -> Result<Vec<JobId>, Fault> {
    let mut found = Vec::new();
    let mut after = None;
    loop {
        let limit = ask.limit - found.len();
        let page = wait::read(app.store().dead_letters(DeadLetters { after, limit, ..ask.clone() })).await?;
        found.extend(page.items.iter().map(|record| record.job.id));
        after = page.next;
        if after.is_none() || found.len() >= ask.limit {
            return Ok(found);
        }
    }
}
