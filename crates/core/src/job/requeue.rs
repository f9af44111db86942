//! Dead letters: jobs that failed for good, made anew as jobs linked to them.

use super::enqueue::{Enqueue, EnqueueError, Enqueued, Origin};
use super::intake::{self, Intake};
use super::{Cold, Job, State};
use crate::command::{Command, Ctx, Decision, Reads, Refusal};
use crate::definition::Definitions;
use crate::id::JobId;
use crate::limits;
use crate::name::OrgId;
use crate::run::OfRun;
use crate::world::View;

/// All that are named, or none.
#[derive(Clone, Debug)]
pub struct Requeue {
    pub org: OrgId,
    pub jobs: Vec<JobId>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequeueError {
    #[error("1 to {max} jobs can be requeued at once, not {jobs}", max = limits::BATCH_JOBS)]
    Size { jobs: usize },
    #[error("job {0} does not exist")]
    NotFound(JobId),
    #[error("job {job} is {state}; only a failed job can be requeued")]
    NotFailed { job: JobId, state: State },
    #[error("job {job} was requeued before, as {into}")]
    Before { job: JobId, into: JobId },
    #[error("job {job} is not made anew: {of} stands for the same already")]
    Duplicate { job: JobId, of: JobId },
    #[error("job {job} cannot be requeued: {source}")]
    Job { job: JobId, source: EnqueueError },
    #[error(transparent)]
    OfRun(#[from] OfRun),
}

impl Refusal for RequeueError {
    fn code(&self) -> &'static str {
        match self {
            Self::Size { .. } => "batch_size",
            Self::NotFound(_) => "job_not_found",
            Self::NotFailed { .. } => "invalid_transition",
            Self::Before { .. } => "already_requeued",
            Self::Duplicate { .. } => "job_conflict",
            Self::Job { source, .. } => source.code(),
            Self::OfRun(_) => OfRun::CODE,
        }
    }
}

impl RequeueError {
    /// The dead letter that it is about.
    pub const fn job(&self) -> Option<JobId> {
        match self {
            Self::Size { .. } => None,
            Self::NotFound(job)
            | Self::NotFailed { job, .. }
            | Self::Before { job, .. }
            | Self::Duplicate { job, .. }
            | Self::Job { job, .. }
            | Self::OfRun(OfRun { job, .. }) => Some(*job),
        }
    }
}

/// The order that makes a job anew: as it was asked for, due at once.
fn order(job: &Job, cold: &Cold) -> Enqueue {
    Enqueue {
        priority: Some(job.priority),
        source_session: cold.source_session.clone(),
        origin: Origin::Requeue(job.id),
        ..Enqueue::new(job.org.clone(), job.project.clone(), job.kind.name.clone(), cold.payload.clone())
    }
}

/// A dead letter that may be made anew, as far as it alone says.
fn letter<'a>(id: JobId, view: &View<'a>) -> Result<(&'a Job, &'a Cold), RequeueError> {
    let Some((job, cold, _)) = view.record(id) else { return Err(RequeueError::NotFound(id)) };
    OfRun::check(job)?;
    if job.status.state() != State::Failed {
        return Err(RequeueError::NotFailed { job: id, state: job.status.state() });
    }
    match view.requeued(id) {
        Some(into) => Err(RequeueError::Before { job: id, into }),
        None => Ok((job, cold)),
    }
}

/// What must be seen of dead letters themselves. How many of them come into project lanes is only
/// known later, but room must be asked for now: what somebody else in the group asked for is not ours.
fn letters(jobs: &[JobId]) -> Reads {
    let named = || jobs.iter().copied().take(limits::BATCH_JOBS).collect();
    let crowd = jobs.len().min(limits::BATCH_JOBS) as u32;
    Reads { records: named(), requeued: named(), crowd, ..Reads::none() }
}

/// Which lanes and keys orders need is only known once the letters are.
fn missing<'a>(orders: impl Iterator<Item = &'a Enqueue>, view: &View<'_>, defs: &Definitions) -> Option<Reads> {
    let mut reads = Reads::none();
    for order in orders {
        reads.merge(intake::reads(order, defs));
    }
    (view.missing(&reads) != Reads::none()).then_some(reads)
}

impl Command for Requeue {
    type Out = Vec<Enqueued>;
    type No = RequeueError;

    fn org(&self) -> &OrgId {
        &self.org
    }

    fn reads(&self, _: &Definitions) -> Reads {
        letters(&self.jobs)
    }

    fn decide(&self, view: &View<'_>, cx: &mut Ctx<'_>) -> Decision<Vec<Enqueued>, RequeueError> {
        if self.jobs.is_empty() || self.jobs.len() > limits::BATCH_JOBS {
            return Decision::Refused(RequeueError::Size { jobs: self.jobs.len() });
        }
        let mut orders = Vec::with_capacity(self.jobs.len());
        for id in &self.jobs {
            match letter(*id, view) {
                Ok((job, cold)) => orders.push((*id, order(job, cold))),
                Err(no) => return Decision::Refused(no),
            }
        }
        if let Some(reads) = missing(orders.iter().map(|(_, order)| order), view, cx.defs) {
            return Decision::Need(reads);
        }
        let mut intake = Intake::new(*view, cx.defs);
        let mut taken: Vec<Enqueued> = Vec::with_capacity(orders.len());
        let mut seen = std::collections::BTreeMap::new();
        for (job, order) in orders {
            if let Some(into) = seen.get(&job) {
                return Decision::Refused(RequeueError::Before { job, into: *into });
            }
            match intake.take(&order, cx) {
                Ok(out) if !out.how.is_new() => {
                    return Decision::Refused(RequeueError::Duplicate { job, of: out.job.id });
                }
                Ok(out) => {
                    seen.insert(job, out.job.id);
                    taken.push(out);
                }
                Err(source) => return Decision::Refused(RequeueError::Job { job, source }),
            }
        }
        Decision::Done(taken, intake.finish())
    }
}

/// As many of those that a filter found as can be: one that is made anew already, that another
/// stands for, or that no longer fits its type is left, and so is everything behind a full queue.
#[derive(Clone, Debug)]
pub struct RequeueFound {
    pub org: OrgId,
    pub jobs: Vec<JobId>,
}

#[derive(Clone, Debug, Default)]
pub struct Requeued {
    /// Dead letters with the jobs that they were made anew as.
    pub made: Vec<(JobId, Enqueued)>,
    pub left: Vec<RequeueError>,
}

impl Command for RequeueFound {
    type Out = Requeued;
    type No = RequeueError;

    fn org(&self) -> &OrgId {
        &self.org
    }

    fn reads(&self, _: &Definitions) -> Reads {
        letters(&self.jobs)
    }

    fn decide(&self, view: &View<'_>, cx: &mut Ctx<'_>) -> Decision<Requeued, RequeueError> {
        if self.jobs.len() > limits::BATCH_JOBS {
            return Decision::Refused(RequeueError::Size { jobs: self.jobs.len() });
        }
        let mut out = Requeued::default();
        let mut orders = Vec::with_capacity(self.jobs.len());
        for id in &self.jobs {
            match letter(*id, view) {
                Ok((job, cold)) => orders.push((*id, order(job, cold))),
                Err(no) => out.left.push(no),
            }
        }
        if let Some(reads) = missing(orders.iter().map(|(_, order)| order), view, cx.defs) {
            return Decision::Need(reads);
        }
        let mut intake = Intake::new(*view, cx.defs);
        let mut no_room = None;
        for (job, order) in orders {
            if let Some(of) = intake.stands_for(&order) {
                out.left.push(RequeueError::Duplicate { job, of });
                continue;
            }
            match intake.take(&order, cx) {
                Ok(made) => out.made.push((job, made)),
                Err(source) => {
                    let no = RequeueError::Job { job, source: source.clone() };
                    if matches!(source, EnqueueError::QueueFull { .. } | EnqueueError::Disabled) {
                        no_room.get_or_insert_with(|| no.clone());
                    }
                    out.left.push(no);
                }
            }
        }
        match no_room {
            // Nothing fits anywhere: worth trying again as a whole.
            Some(no) if out.made.is_empty() => Decision::Refused(no),
            _ => Decision::Done(out, intake.finish()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Failure;
    use crate::job::bench_top::{BenchTop, done};
    use crate::job::settle::Outcome;

    #[test]
    fn room_is_asked_for_as_many_as_may_come() {
        let jobs: Vec<_> = (0..300).map(|n| JobId(uuid::Uuid::from_u128(n))).collect();
        let defs = crate::job::bench_top::defs();
        assert_eq!(Requeue { org: OrgId::default(), jobs: jobs.clone() }.reads(&defs).crowd, 300);
        assert_eq!(RequeueFound { org: OrgId::default(), jobs }.reads(&defs).crowd, 300);
    }

    #[test]
    fn of_what_was_found_as_many_are_made_anew_as_can_be() {
        let mut top = BenchTop::new();
        let first = top.enqueue().id;
        let job = top.claim();
        top.settle(&job, Outcome::Failed(Failure::new("broken", "no")));
        let found = |jobs: &[JobId]| RequeueFound { org: OrgId::default(), jobs: jobs.to_vec() };
        let nobody = JobId(uuid::Uuid::from_u128(4));
        let out = top.done(&found(&[nobody, first]));
        assert_eq!(out.left, [RequeueError::NotFound(nobody)]);
        assert_eq!(out.made.iter().map(|(from, _)| *from).collect::<Vec<_>>(), [first]);
        let again = top.done(&found(&[first]));
        assert!(again.made.is_empty() && matches!(again.left[..], [RequeueError::Before { .. }]));
        assert!(top.done(&found(&[])).made.is_empty(), "nothing found is nothing done");
    }

    #[test]
    fn a_failed_job_is_made_anew_once_and_linked() {
        let mut top = BenchTop::new();
        let id = top.enqueue().id;
        let requeue = Requeue { org: OrgId::default(), jobs: vec![id] };
        assert_eq!(top.refuse(&requeue).code(), "invalid_transition");
        let job = top.claim();
        top.settle(&job, Outcome::Failed(Failure::new("broken", "no")));
        let made = top.done(&requeue);
        assert_eq!(made[0].cold.requeued_from, Some(id));
        assert_ne!(made[0].job.id, id);
        assert_eq!(made[0].job.attempts, 0);
        assert_eq!(top.refuse(&requeue), RequeueError::Before { job: id, into: made[0].job.id });
    }

    #[test]
    fn what_did_not_fail_is_not_made_anew_and_one_bad_id_spoils_all() {
        let mut top = BenchTop::new();
        let id = top.enqueue().id;
        let job = top.claim();
        top.settle(&job, done());
        let nobody = JobId(uuid::Uuid::from_u128(4));
        for (jobs, code) in [
            (vec![id], "invalid_transition"),
            (vec![nobody], "job_not_found"),
            (vec![], "batch_size"),
            (vec![nobody; limits::BATCH_JOBS + 1], "batch_size"),
        ] {
            assert_eq!(top.refuse(&Requeue { org: OrgId::default(), jobs }).code(), code);
        }
    }
}
