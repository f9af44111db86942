//! `baton jobs dead-letters` and `baton jobs requeue`.

use super::enqueue::duplicate;
use super::job_path;
use super::show::{seconds, state};
use crate::args::{LettersArgs, RequeueArgs};
use crate::client::{Client, Said, fresh_key};
use crate::fault::Fault;
use crate::pages::{self, Ask};
use crate::paint::dim;
use crate::print;
use baton_wire::{EnqueuedJob, Job, JobList, LettersRequeued, Object, RequeueLetters, RequeuedLetter};
use comfy_table::{Color, Row};
use std::io::Write as _;

/// Errors are shown in one line; the whole text is in `baton jobs get`.
const ERROR_CHARS: usize = 80;

pub async fn run(args: LettersArgs) -> Result<(), Fault> {
    let project = args.project.map(|project| ("projectId", project.to_string()));
    let query = project.into_iter().chain(args.kind.map(|kind| ("type", kind.to_string()))).collect();
    let ask = Ask { path: "/api/v1/dead-letters", query, page: &args.page };
    let list: JobList = pages::read(&Client::new(&args.client)?, ask).await?;
    if args.client.json {
        return print::json(&list);
    }
    if list.jobs.is_empty() {
        writeln!(print::out(), "{}", dim("no dead letters"))?;
    } else {
        print::table(&["JOB", "PROJECT", "TYPE", "ATTEMPTS", "ENDED", "ERROR"], list.jobs.iter().map(row))?;
    }
    print::more(&args.page, list.next_cursor.as_deref())
}

fn row(job: &Job) -> Row {
    let error = job.error.as_deref().unwrap_or_default();
    Row::from(vec![
        print::text(job.id),
        print::text(&job.project_id),
        print::text(&job.kind),
        print::text(format!("{}/{}", job.attempts, job.max_attempts)),
        print::text(job.completed_at.map(seconds).unwrap_or_default()),
        print::text(baton_core::limits::cut(error, ERROR_CHARS)).fg(Color::Red),
    ])
}

pub async fn requeue(args: RequeueArgs) -> Result<(), Fault> {
    let client = Client::new(&args.client)?;
    let key = args.idempotency_key.unwrap_or_else(fresh_key);
    if let [id] = args.ids[..] {
        let path = format!("{}/requeue", job_path(id));
        let said: Said<EnqueuedJob> = client.post(&path, &Object::new(), &key).await?;
        if args.client.json {
            return print::json(&said.value);
        }
        let EnqueuedJob { job, dedupe } = said.value;
        if let Some(why) = duplicate(&dedupe) {
            writeln!(print::err(), "{}", dim(why))?;
        }
        writeln!(print::out(), "{} is {}, and repeats {id}", job.id, job.state)?;
        return Ok(());
    }
    let which = RequeueLetters {
        job_ids: Some(args.ids).filter(|ids| !ids.is_empty()),
        project_id: args.project,
        kind: args.kind,
        limit: args.limit,
        all: args.all,
    };
    let said: Said<LettersRequeued> = client.post("/api/v1/dead-letters/requeue", &which, &key).await?;
    let requeued = said.value;
    if args.client.json {
        return print::json(&requeued);
    }
    for left in &requeued.left {
        writeln!(print::err(), "{}", dim(&print::visible(&left.detail)))?;
    }
    if requeued.jobs.is_empty() {
        let nothing = if requeued.left.is_empty() { "no dead letters" } else { "nothing was requeued" };
        writeln!(print::out(), "{}", dim(nothing))?;
        return Ok(());
    }
    let row = |letter: &RequeuedLetter| {
        let taken = &letter.taken;
        Row::from(vec![
            print::text(letter.requeued_from),
            print::text(taken.job_id),
            state(taken.state),
            print::text(&taken.dedupe),
        ])
    };
    print::table(&["DEAD LETTER", "JOB", "STATE", "REQUEST"], requeued.jobs.iter().map(row))
}
