//! `baton jobs enqueue`.

use super::show::show;
use super::{job_path, watch};
use crate::args::EnqueueArgs;
use crate::client::{Client, Said, fresh_key};
use crate::fault::Fault;
use crate::paint::dim;
use crate::{input, print};
use baton_core::job::enqueue::How;
use baton_engine::SystemClock;
use baton_store::Clock as _;
use baton_wire::{EnqueuedJob, JobState, NewJob, Time};
use std::io::Write as _;

pub async fn run(args: EnqueueArgs) -> Result<(), Fault> {
    let new = NewJob {
        payload: input::payload(&args.payload)?,
        kind: args.kind,
        project_id: args.project,
        priority: args.priority,
        source_session_id: args.source_session,
        not_before: args.delay.map(|delay| Time(SystemClock.now().plus(delay))).or(args.not_before),
        deadline: args.deadline,
        message_id: args.message_id,
    };
    let key = args.idempotency_key.unwrap_or_else(fresh_key);
    let mut client = Client::new(&args.client)?;
    let said: Said<EnqueuedJob> = client.post("/api/v1/jobs", &new, &key).await?;
    let EnqueuedJob { mut job, dedupe } = said.value;
    if said.replayed {
        // The answer of then says how the job stood then.
        job = client.get(&job_path(job.id), &[]).await?;
        aside("this key was used before: nothing was enqueued, this is the job of then")?;
    } else if let Some(why) = duplicate(&dedupe) {
        aside(why)?;
    }
    if !args.wait {
        if args.client.json {
            return print::json(&EnqueuedJob { job, dedupe });
        }
        writeln!(print::out(), "{} is {}", job.id, job.state)?;
        return Ok(());
    }
    client.be_patient();
    let job = watch::ended(&client, job.id).await?;
    show(&job, args.client.json)?;
    if job.state == JobState::Completed {
        return Ok(());
    }
    let why = job.error.or(job.cancel_reason).map(|why| format!(": {why}")).unwrap_or_default();
    Err(Fault::new("job_not_completed", format!("job {} ended as {}{why}", job.id, job.state)))
}

/// Said beside the answer, so that the answer stays the same for whoever reads it.
fn aside(text: &str) -> Result<(), Fault> {
    writeln!(print::err(), "{}", dim(text))?;
    Ok(())
}

/// Why there is no new job, if there is none.
pub fn duplicate(dedupe: &str) -> Option<&'static str> {
    const WHY: [(How, &str); 4] = [
        (How::AlreadyQueued, "a duplicate: nothing was enqueued, this is the job that has not ended"),
        (How::Dropped, "a duplicate: nothing was enqueued, this is the job that stands for it"),
        (How::Merged, "a duplicate: its payload was merged into this job, which waits"),
        (How::SameMessage, "the same message: nothing was enqueued, this is the job of then"),
    ];
    WHY.iter().find(|(how, _)| how.as_str() == dedupe).map(|(_, why)| *why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_job_is_no_duplicate() {
        assert_eq!(duplicate(How::Enqueued.as_str()), None);
        assert_eq!(duplicate(How::FollowUp.as_str()), None);
        assert!(duplicate(How::AlreadyQueued.as_str()).is_some());
    }
}
