//! A job's own deadline has come.

use super::{Failure, Scene, settle};
use crate::changes::Changes;
use crate::command::{Command, Ctx, Decision, Reads, Refusal};
use crate::decision;
use crate::definition::Definitions;
use crate::id::JobId;
use crate::name::OrgId;
use crate::time::Micros;
use crate::timer;
use crate::world::View;

/// Issued by the timer; several nodes may issue it, one of them finds the timer.
#[derive(Clone, Debug)]
pub struct Deadline {
    pub org: OrgId,
    pub job: JobId,
    /// The moment the timer stood for when it was found due.
    pub at: Micros,
}

impl Deadline {
    const fn key(&self) -> timer::Key {
        timer::Key { subject: self.job.0, kind: timer::Kind::JobDeadline }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeadlineError {
    #[error("the timer was fired, moved or cleared since it was found due")]
    TimerGone,
}

impl Refusal for DeadlineError {
    fn code(&self) -> &'static str {
        "timer_gone"
    }
}

impl Command for Deadline {
    type Out = ();
    type No = DeadlineError;

    fn org(&self) -> &OrgId {
        &self.org
    }

    fn reads(&self, _: &Definitions) -> Reads {
        Reads::job(self.job).and_timer(self.key())
    }

    fn decide(&self, view: &View<'_>, cx: &mut Ctx<'_>) -> Decision<(), DeadlineError> {
        if view.timer(&self.key()) != Some(self.at) || self.at > cx.now {
            return Decision::Refused(DeadlineError::TimerGone);
        }
        let cleared = Changes::none().timer(timer::Change::Clear { key: self.key() });
        let Some(job) = view.job(self.job).filter(|job| !job.is_ended()) else {
            return Decision::Done((), cleared);
        };
        let reads = decision::reads_of(job);
        if view.missing(&reads) != Reads::none() {
            return Decision::Need(reads);
        }
        let scene = Scene { defs: cx.defs, payload: view.payload(job.id), now: cx.now };
        // Somebody asked that it ends: then that is why it did.
        let ended = match job.cancel_requested() {
            Some(request) => scene.cancel(&job.fenced(), &request.reason),
            None => {
                let failure = Failure::new("deadline_exceeded", "the job had not ended by its deadline");
                settle::fail_outside(job, failure, scene)
            }
        };
        match ended {
            Ok(changes) => {
                let withdrawn = decision::withdrawn(view, job, &cx.actor.to_string(), "job_deadline", cx.now);
                Decision::Done((), changes.and(withdrawn))
            }
            Err(_) => Decision::Done((), cleared),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::bench_top::{BenchTop, NOW, done, enqueue};
    use crate::job::{State, enqueue::Enqueue, settle::Settle};
    use crate::time::Span;

    #[test]
    fn the_deadline_fails_a_running_job_once_and_fences_its_worker() {
        let mut top = BenchTop::new();
        let at = NOW.plus(Span::secs(1));
        let id = top.done(&Enqueue { deadline: Some(at), ..enqueue() }).job.id;
        let fire = Deadline { org: OrgId::default(), job: id, at };
        assert_eq!(top.refuse(&fire).code(), "timer_gone", "not yet due");
        let held = top.claim().fence().unwrap();
        top.now = at;
        top.done(&fire);
        assert_eq!(top.latest().status.state(), State::Failed);
        assert_eq!(top.refuse(&fire), DeadlineError::TimerGone);
        let late = Settle { fence: held, outcome: done() };
        assert_eq!(top.refuse(&late).code(), "lease_lost");
    }

    #[test]
    fn a_job_that_ended_in_time_takes_its_timer_along() {
        let mut top = BenchTop::new();
        let at = NOW.plus(Span::secs(1));
        let id = top.done(&Enqueue { deadline: Some(at), ..enqueue() }).job.id;
        let job = top.claim();
        top.settle(&job, done());
        top.now = at;
        assert_eq!(top.refuse(&Deadline { org: OrgId::default(), job: id, at }), DeadlineError::TimerGone);
    }
}
