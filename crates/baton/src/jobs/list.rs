//! `baton jobs get` and `baton jobs list`.

use super::job_path;
use super::show::{row, show};
use crate::args::{GetArgs, ListArgs};
use crate::client::Client;
use crate::fault::Fault;
use crate::paint::dim;
use crate::print;
use baton_wire::{Job, JobList};
use std::io::Write as _;

pub async fn get(args: GetArgs) -> Result<(), Fault> {
    let job: Job = Client::new(&args.client)?.get(&job_path(args.id), &[]).await?;
    show(&job, args.client.json)
}

pub async fn run(args: ListArgs) -> Result<(), Fault> {
    let mut query = vec![("limit", args.limit.to_string())];
    query.extend(args.state.iter().map(|state| ("state", state.clone())));
    query.extend(args.cursor.map(|cursor| ("cursor", cursor)));
    let path = format!("/api/projects/{}/orchestrator/jobs", args.project);
    let list: JobList = Client::new(&args.client)?.get(&path, &query).await?;
    if args.client.json {
        return print::json(&list);
    }
    if list.jobs.is_empty() {
        writeln!(print::out(), "{}", dim("no jobs"))?;
        return Ok(());
    }
    let header = ["JOB", "TYPE", "STATE", "PRIORITY", "ATTEMPTS", "CREATED", "ENDED"];
    print::table(&header, list.jobs.iter().map(row))?;
    if let Some(cursor) = list.next_cursor {
        writeln!(print::out(), "{}", dim(format_args!("older ones: --cursor {cursor}")))?;
    }
    Ok(())
}
