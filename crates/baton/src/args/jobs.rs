//! `baton jobs`.

use super::{ClientArgs, PageArgs, PayloadArgs};
use crate::moment;
use baton_core::name::SessionId;
use baton_core::time::Span;
use baton_core::{JobId, ProjectId, TypeName};
use baton_wire::{PriorityNumber, Time};
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Args)]
pub struct JobsArgs {
    #[command(subcommand)]
    pub command: JobsCommand,
}

#[derive(Subcommand)]
pub enum JobsCommand {
    /// Add a job to the queue
    Enqueue(EnqueueArgs),
    /// Add many jobs at once: all of them or none
    Batch(BatchArgs),
    /// Show one job
    Get(GetArgs),
    /// List a project's jobs, newest first
    List(ListArgs),
    /// Follow jobs until they have ended
    Watch(WatchArgs),
    /// End a job that nobody needs any more
    Cancel(CancelArgs),
    /// Wake a parked job
    Wake(WakeArgs),
    /// List jobs that failed for good and were not requeued
    DeadLetters(LettersArgs),
    /// Make failed jobs anew, as jobs linked to them
    Requeue(RequeueArgs),
}

impl JobsCommand {
    pub const fn client(&self) -> &ClientArgs {
        match self {
            Self::Enqueue(args) => &args.client,
            Self::Batch(args) => &args.client,
            Self::Get(args) => &args.client,
            Self::List(args) => &args.client,
            Self::Watch(args) => &args.client,
            Self::Cancel(args) => &args.client,
            Self::Wake(args) => &args.client,
            Self::DeadLetters(args) => &args.client,
            Self::Requeue(args) => &args.client,
        }
    }
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  baton jobs enqueue noop --project demo
  baton jobs enqueue echo --project demo --payload '{\"message\":\"hello\"}' --wait
  baton jobs enqueue echo --project demo --priority interactive
  baton jobs enqueue echo --project demo --payload-file job.json --delay 10m
  date | jq -R '{message:.}' | baton jobs enqueue echo --project demo --payload-file -
  baton jobs enqueue echo --project demo --idempotency-key inv-4711   (repeating it does nothing twice)
  baton jobs enqueue echo --project demo --message-id mail-42   (the same message is the same job)")]
pub struct EnqueueArgs {
    /// The type of the job, such as echo
    #[arg(value_name = "TYPE")]
    pub kind: TypeName,
    #[arg(long, value_name = "PROJECT")]
    pub project: ProjectId,
    #[command(flatten)]
    pub payload: PayloadArgs,
    /// interactive, background or 0 to 999, of which lower ones go first; the type's own, unless given
    #[arg(long, value_name = "PRIORITY")]
    pub priority: Option<PriorityNumber>,
    /// The chat session this job was started from
    #[arg(long, value_name = "SESSION")]
    pub source_session: Option<SessionId>,
    /// Start it this much later: 250ms, 5s, 10m, 2h, 1d
    #[arg(long, value_name = "LENGTH", value_parser = moment::span, conflicts_with = "not_before")]
    pub delay: Option<Span>,
    /// Do not start it before this time (RFC 3339)
    #[arg(long, value_name = "TIME", value_parser = moment::time)]
    pub not_before: Option<Time>,
    /// Fail it if it has not ended by this time (RFC 3339)
    #[arg(long, value_name = "TIME", value_parser = moment::time)]
    pub deadline: Option<Time>,
    /// What it was caused by: the same id again, within a day, is the same job
    #[arg(long, value_name = "ID")]
    pub message_id: Option<String>,
    /// Repeated with the same key, it is done once; a random one if not given
    #[arg(long, value_name = "KEY")]
    pub idempotency_key: Option<String>,
    /// Wait until it has ended; exit 3 unless it completed
    #[arg(long)]
    pub wait: bool,
    #[command(flatten)]
    pub client: ClientArgs,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  baton jobs batch jobs.jsonl
  seq 3 | jq -c '{type:\"echo\",projectId:\"demo\",payload:{message:.}}' | baton jobs batch -

Each line is a job as the API takes it: type, projectId, payload, priority, notBefore, deadline,
sourceSessionId, messageId. At most 1000; if one cannot be taken, none is.")]
pub struct BatchArgs {
    /// One JSON object a line; - is standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Repeated with the same key, it is done once; a random one if not given
    #[arg(long, value_name = "KEY")]
    pub idempotency_key: Option<String>,
    #[command(flatten)]
    pub client: ClientArgs,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  baton jobs get job_0193a1b2c3d47001800000000000002a
  baton jobs get job_0193a1b2c3d47001800000000000002a --json | jq .result")]
pub struct GetArgs {
    #[arg(value_name = "JOB")]
    pub id: JobId,
    #[command(flatten)]
    pub client: ClientArgs,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  baton jobs list --project demo
  baton jobs list --project demo --state queued,executing
  baton jobs list --project demo --type echo --order asc   the oldest first
  baton jobs list --project demo --json | jq -r '.jobs[].id'")]
pub struct ListArgs {
    #[arg(long, value_name = "PROJECT")]
    pub project: ProjectId,
    /// Only these: received, queued, executing, awaiting_tool, awaiting_user_confirmation, completed,
    /// failed, cancelled; or running, for those that execute or wait for a tool
    #[arg(long, value_name = "STATE", value_delimiter = ',')]
    pub state: Vec<String>,
    /// Only those of this type
    #[arg(long = "type", value_name = "TYPE")]
    pub kind: Option<TypeName>,
    #[command(flatten)]
    pub page: PageArgs,
    #[command(flatten)]
    pub client: ClientArgs,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  baton jobs watch job_0193a1b2c3d47001800000000000002a
  baton jobs watch --project demo            all that have not ended, and what comes meanwhile
  baton jobs watch --project demo --json     a job as JSON, one a line, whenever it has changed

Exits with 0 if all of them completed, and with 3 if one failed or was cancelled. A server that is
restarted meanwhile is waited for, up to 30 seconds.")]
pub struct WatchArgs {
    #[arg(value_name = "JOB", required_unless_present = "project", conflicts_with = "project")]
    pub ids: Vec<JobId>,
    /// All jobs of a project, until none is left that has not ended
    #[arg(long, value_name = "PROJECT")]
    pub project: Option<ProjectId>,
    #[command(flatten)]
    pub client: ClientArgs,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  baton jobs cancel job_0193a1b2c3d47001800000000000002a
  baton jobs cancel job_0193a1b2c3d47001800000000000002a --reason 'not needed any more'")]
pub struct CancelArgs {
    #[arg(value_name = "JOB")]
    pub id: JobId,
    /// Why; it stands in the history
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    /// Repeated with the same key, it is done once; a random one if not given
    #[arg(long, value_name = "KEY")]
    pub idempotency_key: Option<String>,
    #[command(flatten)]
    pub client: ClientArgs,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  baton jobs wake job_0193a1b2c3d47001800000000000002a")]
pub struct WakeArgs {
    #[arg(value_name = "JOB")]
    pub id: JobId,
    /// Repeated with the same key, it is done once; a random one if not given
    #[arg(long, value_name = "KEY")]
    pub idempotency_key: Option<String>,
    #[command(flatten)]
    pub client: ClientArgs,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  baton jobs dead-letters
  baton jobs dead-letters --project demo --type echo
  baton jobs requeue --project demo          makes them anew")]
pub struct LettersArgs {
    #[arg(long, value_name = "PROJECT")]
    pub project: Option<ProjectId>,
    #[arg(long = "type", value_name = "TYPE")]
    pub kind: Option<TypeName>,
    #[command(flatten)]
    pub page: PageArgs,
    #[command(flatten)]
    pub client: ClientArgs,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  baton jobs requeue job_0193a1b2c3d47001800000000000002a
  baton jobs requeue --project demo --type echo --limit 10
  baton jobs requeue --all                   the newest 1000 dead letters")]
#[command(group = clap::ArgGroup::new("which").required(true).multiple(true).args(["ids", "project", "kind", "all"]))]
pub struct RequeueArgs {
    #[arg(value_name = "JOB", conflicts_with_all = ["project", "kind", "all", "limit"])]
    pub ids: Vec<JobId>,
    /// The dead letters of this project
    #[arg(long, value_name = "PROJECT", conflicts_with = "all")]
    pub project: Option<ProjectId>,
    /// The dead letters of this type
    #[arg(long = "type", value_name = "TYPE", conflicts_with = "all")]
    pub kind: Option<TypeName>,
    /// All dead letters
    #[arg(long)]
    pub all: bool,
    /// At most so many, the newest first [default: 1000]
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
    /// Repeated with the same key, it is done once; a random one if not given
    #[arg(long, value_name = "KEY")]
    pub idempotency_key: Option<String>,
    #[command(flatten)]
    pub client: ClientArgs,
}
