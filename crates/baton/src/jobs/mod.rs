//! `baton jobs`.

mod act;
mod batch;
mod enqueue;
mod letters;
mod list;
mod show;
mod watch;

pub use watch::ended;

use crate::args::{JobsArgs, JobsCommand};
use crate::fault::Fault;
use baton_core::{JobId, ProjectId};

pub use show::seconds;

pub async fn run(args: JobsArgs) -> Result<(), Fault> {
    match args.command {
        JobsCommand::Enqueue(args) => enqueue::run(args).await,
        JobsCommand::Batch(args) => batch::run(args).await,
        JobsCommand::Get(args) => list::get(args).await,
        JobsCommand::List(args) => list::run(args).await,
        JobsCommand::Watch(args) => watch::run(args).await,
        JobsCommand::Cancel(args) => act::cancel(args).await,
        JobsCommand::Wake(args) => act::wake(args).await,
        JobsCommand::DeadLetters(args) => letters::run(args).await,
        JobsCommand::Requeue(args) => letters::requeue(args).await,
    }
}

fn job_path(id: JobId) -> String {
    format!("/api/v1/jobs/{id}")
}

fn jobs_path(project: &ProjectId) -> String {
    format!("/api/v1/projects/{project}/jobs")
}
