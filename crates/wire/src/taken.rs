//! What became of requests to enqueue.

use crate::job::Job;
use crate::shape::Shape;
use crate::state::JobState;
use baton_core::JobId;
use baton_core::command::Refusal as _;
use baton_core::job::enqueue::Enqueued;
use baton_core::job::requeue::Requeued;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The job that stands for a request: a new one, or the one that already did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EnqueuedJob {
    #[serde(flatten)]
    pub job: Job,
    /// `enqueued`, or why it is not a new job, such as `already_queued`.
    pub dedupe: String,
}

impl From<&Enqueued> for EnqueuedJob {
    fn from(out: &Enqueued) -> Self {
        Self { job: Job::taken(out), dedupe: out.how.as_str().to_owned() }
    }
}

/// The same in short, for one of many.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Taken {
    #[schemars(with = "Shape<JobId>")]
    pub job_id: JobId,
    pub dedupe: String,
    pub state: JobState,
}

impl From<&Enqueued> for Taken {
    fn from(out: &Enqueued) -> Self {
        Self { job_id: out.job.id, dedupe: out.how.as_str().to_owned(), state: out.job.status.state().into() }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BatchTaken {
    /// In the order of the request.
    pub jobs: Vec<Taken>,
    /// How many of them are new.
    pub enqueued: usize,
}

impl BatchTaken {
    pub fn of(outs: &[Enqueued]) -> Self {
        Self { jobs: outs.iter().map(Taken::from).collect(), enqueued: new(outs) }
    }
}

/// A dead letter with the job that it was made anew as.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RequeuedLetter {
    #[schemars(with = "Shape<JobId>")]
    pub requeued_from: JobId,
    #[serde(flatten)]
    pub taken: Taken,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LettersRequeued {
    pub jobs: Vec<RequeuedLetter>,
    /// How many of them are new jobs.
    pub requeued: usize,
    /// Those that a filter found and that stay dead letters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<LetterLeft>,
}

/// A dead letter that was not made anew, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LetterLeft {
    #[schemars(with = "Shape<JobId>")]
    pub job_id: JobId,
    pub code: String,
    pub detail: String,
}

impl LettersRequeued {
    /// `from` are the dead letters, in the order of what became of them.
    pub fn named(from: &[JobId], outs: &[Enqueued]) -> Self {
        let jobs = from.iter().zip(outs).map(|(from, out)| RequeuedLetter { requeued_from: *from, taken: out.into() });
        Self { jobs: jobs.collect(), requeued: new(outs), left: Vec::new() }
    }

    pub fn found(out: &Requeued) -> Self {
        let jobs = out.made.iter().map(|(from, out)| RequeuedLetter { requeued_from: *from, taken: out.into() });
        let left = out.left.iter().filter_map(|why| {
            Some(LetterLeft { job_id: why.job()?, code: why.code().to_owned(), detail: why.to_string() })
        });
        Self { jobs: jobs.collect(), requeued: out.made.len(), left: left.collect() }
    }
}

fn new(outs: &[Enqueued]) -> usize {
    outs.iter().filter(|out| out.how.is_new()).count()
}
