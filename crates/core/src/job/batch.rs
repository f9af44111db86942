//! Many jobs at once: all of them or none.

use super::enqueue::{Enqueue, EnqueueError, Enqueued};
use super::intake::{self, Intake};
use crate::command::{Command, Ctx, Decision, Reads, Refusal};
use crate::definition::Definitions;
use crate::limits;
use crate::name::{OrgId, TypeName};
use crate::world::View;

/// Jobs that are looked at to tell what a batch brings in: as a rule all are of one type.
const LOOKED_AT: usize = 16;

#[derive(Clone, Debug)]
pub struct Batch {
    pub org: OrgId,
    /// All of the same org.
    pub jobs: Vec<Enqueue>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BatchError {
    #[error("a batch has 1 to {max} jobs, not {jobs}", max = limits::BATCH_JOBS)]
    Size { jobs: usize },
    #[error("jobs[{index}]: {source}; nothing of the batch was taken")]
    Job { index: usize, source: EnqueueError },
}

impl Refusal for BatchError {
    fn code(&self) -> &'static str {
        match self {
            Self::Size { .. } => "batch_size",
            Self::Job { source, .. } => source.code(),
        }
    }
}

impl Command for Batch {
    type Out = Vec<Enqueued>;
    type No = BatchError;

    fn org(&self) -> &OrgId {
        &self.org
    }

    fn reads(&self, defs: &Definitions) -> Reads {
        let mut reads = Reads::none();
        for job in self.jobs.iter().take(limits::BATCH_JOBS) {
            reads.merge(intake::reads(job, defs));
        }
        reads
    }

    fn decide(&self, view: &View<'_>, cx: &mut Ctx<'_>) -> Decision<Vec<Enqueued>, BatchError> {
        if self.jobs.is_empty() || self.jobs.len() > limits::BATCH_JOBS {
            return Decision::Refused(BatchError::Size { jobs: self.jobs.len() });
        }
        let mut intake = Intake::new(*view, cx.defs);
        let mut taken = Vec::with_capacity(self.jobs.len());
        for (index, job) in self.jobs.iter().enumerate() {
            match intake.take(job, cx) {
                Ok(out) => taken.push(out),
                Err(source) => return Decision::Refused(BatchError::Job { index, source }),
            }
        }
        Decision::Done(taken, intake.finish())
    }

    fn weight(&self) -> usize {
        self.jobs.len()
    }

    fn brings_in(&self, such: &dyn Fn(&TypeName) -> bool) -> bool {
        self.jobs.iter().take(LOOKED_AT).any(|job| such(&job.kind))
    }
}
