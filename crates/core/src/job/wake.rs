//! Waking a parked job. Every answer, signal and timer that a job waits for ends in this.

use super::state::IllegalMove;
use super::{Change, Job, Pause, State, Status};
use crate::changes::Changes;
use crate::command::{Command, Ctx, Decision, Reads, Refusal};
use crate::definition::Definitions;
use crate::id::JobId;
use crate::name::OrgId;
use crate::run::OfRun;
use crate::time::Micros;
use crate::world::View;
use serde_json::json;

#[derive(Clone, Debug)]
pub struct Wake {
    pub org: OrgId,
    pub job: JobId,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// It was parked and is due now.
    Due,
    /// It is not parked; if it is about to park, it will be due at once.
    Noted,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WakeError {
    #[error("job {0} does not exist")]
    NotFound(JobId),
    #[error("job {job} cannot be woken: {illegal}")]
    AlreadyEnded { job: JobId, illegal: IllegalMove },
    #[error(transparent)]
    OfRun(#[from] OfRun),
}

impl Refusal for WakeError {
    fn code(&self) -> &'static str {
        match self {
            Self::NotFound(_) => "job_not_found",
            Self::AlreadyEnded { .. } => "invalid_transition",
            Self::OfRun(_) => OfRun::CODE,
        }
    }
}

impl Command for Wake {
    type Out = Woken;
    type No = WakeError;

    fn org(&self) -> &OrgId {
        &self.org
    }

    fn reads(&self, _: &Definitions) -> Reads {
        Reads::job(self.job)
    }

    fn decide(&self, view: &View<'_>, cx: &mut Ctx<'_>) -> Decision<Woken, WakeError> {
        let Some(job) = view.job(self.job) else {
            return Decision::Refused(WakeError::NotFound(self.job));
        };
        if let Err(of_run) = OfRun::check(job) {
            return Decision::Refused(of_run.into());
        }
        match woken(job, cx.now) {
            Ok((how, changes)) => Decision::Done(how, changes),
            Err(illegal) => Decision::Refused(WakeError::AlreadyEnded { job: job.id, illegal }),
        }
    }
}

/// Wakes a job, or notes that somebody did.
pub(crate) fn woken(job: &Job, now: Micros) -> Result<(Woken, Changes), IllegalMove> {
    let mut next = job.clone();
    next.wakes += 1;
    match &mut next.status {
        Status::Ended { how, .. } => Err(how.state().illegal(State::Executing)),
        Status::AwaitingTool { pause: Pause::Tool, due_at } if due_at.is_none_or(|due| due > now) => {
            *due_at = Some(now);
            let told = next.tells("job.woken", json!({ "wakes": next.wakes }));
            Ok((Woken::Due, told.job(Change::Put(next))))
        }
        _ => Ok((Woken::Noted, Changes::none().job(Change::Put(next)))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::bench_top::{BenchTop, NOW, done};
    use crate::job::settle::Outcome;

    #[test]
    fn waking_makes_a_parked_job_due_and_an_ended_one_refuses() {
        let mut top = BenchTop::new();
        let id = top.enqueue().id;
        let wake = Wake { org: OrgId::default(), job: id };
        assert_eq!(top.done(&wake), Woken::Noted);
        let job = top.claim();
        assert_eq!(top.done(&wake), Woken::Noted);
        top.settle(&job, Outcome::Park { until: None, seen: 2 });
        assert_eq!(top.latest().status.due_at(), None);
        assert_eq!(top.done(&wake), Woken::Due);
        assert_eq!(top.latest().status.due_at(), Some(NOW));
        assert_eq!(top.done(&wake), Woken::Noted, "already due");
        let job = top.claim();
        top.settle(&job, done());
        assert_eq!(top.refuse(&wake).code(), "invalid_transition");
    }
}
