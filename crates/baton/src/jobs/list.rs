//! `baton jobs get` and `baton jobs list`.

use super::show::{row, show};
use super::{job_path, jobs_path};
use crate::args::{GetArgs, ListArgs};
use crate::client::Client;
use crate::fault::Fault;
use crate::pages::{self, Ask};
use crate::paint::dim;
use crate::print;
use baton_wire::{Job, JobList};
use std::io::Write as _;

pub async fn get(args: GetArgs) -> Result<(), Fault> {
    let job: Job = Client::new(&args.client)?.get(&job_path(args.id), &[]).await?;
    show(&job, args.client.json)
}

pub async fn run(args: ListArgs) -> Result<(), Fault> {
    let states = args.state.into_iter().map(|state| ("state", state));
    let query = states.chain(args.kind.map(|kind| ("type", kind.to_string()))).collect();
    let path = jobs_path(&args.project);
    let ask = Ask { path: &path, query, page: &args.page };
    let list: JobList = pages::read(&Client::new(&args.client)?, ask).await?;
    if args.client.json {
        return print::json(&list);
    }
    if list.jobs.is_empty() {
        writeln!(print::out(), "{}", dim("no jobs"))?;
    } else {
        let header = ["JOB", "TYPE", "STATE", "PRIORITY", "ATTEMPTS", "CREATED", "ENDED"];
        print::table(&header, list.jobs.iter().map(row))?;
    }
    print::more(&args.page, list.next_cursor.as_deref())
}
