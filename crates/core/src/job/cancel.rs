//! Cancelling a job: at once, or after it was given time to end by itself.

use super::state::IllegalMove;
use super::{CancelRequest, Change, Job, Scene, State, Status};
use crate::changes::Changes;
use crate::command::{Command, Ctx, Decision, Reads, Refusal};
use crate::decision;
use crate::definition::Definitions;
use crate::id::JobId;
use crate::limits;
use crate::name::OrgId;
use crate::run::OfRun;
use crate::time::{Micros, Span};
use crate::timer;
use crate::world::View;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// How a running job of a type is cancelled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// It has ended at once; its worker is fenced.
    #[default]
    MarkCanceled,
    /// Its worker is told, interrupts what the job does outside, and has a while to end it.
    InterruptTurn,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    pub strategy: Strategy,
    /// How long an interrupted job may take to end.
    pub grace: Span,
}

impl Default for Rule {
    fn default() -> Self {
        Self { strategy: Strategy::MarkCanceled, grace: Span::secs(5) }
    }
}

impl Rule {
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

pub const USER_REQUESTED: &str = "user_requested";
pub const INTERRUPT_TIMEOUT: &str = "interrupt_timeout";
pub const SHUTDOWN_TIMEOUT: &str = "shutdown_timeout";

#[derive(Clone, Debug)]
pub struct Cancel {
    pub org: OrgId,
    pub job: JobId,
    /// [`USER_REQUESTED`], unless given.
    pub reason: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cancelled {
    /// It has ended.
    Now,
    /// It was told to end, now or before.
    Requested,
    /// It was cancelled before.
    Already,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CancelError {
    #[error("job {0} does not exist")]
    NotFound(JobId),
    #[error("job {job} cannot be cancelled: {illegal}")]
    AlreadyEnded { job: JobId, illegal: IllegalMove },
    #[error(transparent)]
    OfRun(#[from] OfRun),
}

impl Refusal for CancelError {
    fn code(&self) -> &'static str {
        match self {
            Self::NotFound(_) => "job_not_found",
            Self::AlreadyEnded { .. } => "invalid_transition",
            Self::OfRun(_) => OfRun::CODE,
        }
    }
}

impl Command for Cancel {
    type Out = Cancelled;
    type No = CancelError;

    fn org(&self) -> &OrgId {
        &self.org
    }

    fn reads(&self, _: &Definitions) -> Reads {
        Reads::job(self.job)
    }

    fn decide(&self, view: &View<'_>, cx: &mut Ctx<'_>) -> Decision<Cancelled, CancelError> {
        let Some(job) = view.job(self.job) else {
            return Decision::Refused(CancelError::NotFound(self.job));
        };
        if let Err(of_run) = OfRun::check(job) {
            return Decision::Refused(of_run.into());
        }
        let ended = |illegal| Decision::Refused(CancelError::AlreadyEnded { job: job.id, illegal });
        match job.status.state() {
            State::Cancelled => return Decision::Done(Cancelled::Already, Changes::none()),
            state @ (State::Completed | State::Failed) => return ended(state.illegal(State::Cancelled)),
            _ => {}
        }
        let reason = self.reason.as_deref().filter(|r| !r.trim().is_empty()).unwrap_or(USER_REQUESTED);
        let reason = limits::cut(reason, limits::REASON_CHARS);
        let rule = cx.defs.pinned(&job.org, &job.kind).map(|kind| kind.cancel.clone()).unwrap_or_default();
        if rule.strategy == Strategy::InterruptTurn && matches!(job.status, Status::Executing { .. }) {
            if job.cancel_requested().is_some() {
                return Decision::Done(Cancelled::Requested, Changes::none());
            }
            return Decision::Done(Cancelled::Requested, request(job, &reason, cx.now, rule.grace));
        }
        let reads = decision::reads_of(job);
        if view.missing(&reads) != Reads::none() {
            return Decision::Need(reads);
        }
        let scene = Scene { defs: cx.defs, payload: view.payload(job.id), now: cx.now };
        let mut asked = job.fenced();
        asked.aside_mut().cancel.get_or_insert_with(|| CancelRequest { at: cx.now, reason: reason.clone() });
        match scene.cancel(&asked, &reason) {
            Ok(changes) => {
                let withdrawn = decision::withdrawn(view, job, &cx.actor.to_string(), "job_cancelled", cx.now);
                Decision::Done(Cancelled::Now, changes.and(withdrawn))
            }
            Err(illegal) => ended(illegal),
        }
    }
}

/// Ends a job that the engine has no more use for, whoever holds it. It must not wait for a decision.
pub(crate) fn at_once(job: &Job, cx: &Ctx<'_>, reason: &str) -> Changes {
    let scene = Scene { defs: cx.defs, payload: None, now: cx.now };
    // One that has ended needs no ending.
    scene.cancel(&job.fenced(), reason).unwrap_or_default()
}

fn request(job: &Job, reason: &str, now: Micros, grace: Span) -> Changes {
    let mut next = job.clone();
    next.aside_mut().cancel = Some(CancelRequest { at: now, reason: reason.to_owned() });
    let until = now.plus(grace);
    next.tells("job.cancel_requested", json!({ "reason": reason, "until": until }))
        .timer(timer::Change::Set { key: next.cancel_timer(), at: until })
        .job(Change::Put(next))
}

/// The graceful window is over: whatever the job does, it has ended.
#[derive(Clone, Debug)]
pub struct Force {
    pub org: OrgId,
    pub job: JobId,
    /// The moment the timer stood for when it was found due.
    pub at: Micros,
}

impl Force {
    const fn key(&self) -> timer::Key {
        timer::Key { subject: self.job.0, kind: timer::Kind::JobCancel }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ForceError {
    #[error("the timer was fired, moved or cleared since it was found due")]
    TimerGone,
}

impl Refusal for ForceError {
    fn code(&self) -> &'static str {
        "timer_gone"
    }
}

impl Command for Force {
    type Out = ();
    type No = ForceError;

    fn org(&self) -> &OrgId {
        &self.org
    }

    fn reads(&self, _: &Definitions) -> Reads {
        Reads::job(self.job).and_timer(self.key())
    }

    fn decide(&self, view: &View<'_>, cx: &mut Ctx<'_>) -> Decision<(), ForceError> {
        if view.timer(&self.key()) != Some(self.at) || self.at > cx.now {
            return Decision::Refused(ForceError::TimerGone);
        }
        let cleared = Changes::none().timer(timer::Change::Clear { key: self.key() });
        let Some(job) = view.job(self.job).filter(|job| !job.is_ended()) else {
            return Decision::Done((), cleared);
        };
        let scene = Scene { defs: cx.defs, payload: view.payload(job.id), now: cx.now };
        match scene.cancel(&job.fenced(), INTERRUPT_TIMEOUT) {
            Ok(changes) => Decision::Done((), changes),
            Err(_) => Decision::Done((), cleared),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::JobType;
    use crate::job::bench_top::{BenchTop, NOW, done, echo_type};
    use crate::job::settle::{Outcome, Settle};

    fn cancel(id: JobId) -> Cancel {
        Cancel { org: OrgId::default(), job: id, reason: None }
    }

    fn interruptible() -> BenchTop {
        let rule = Rule { strategy: Strategy::InterruptTurn, grace: Span::secs(5) };
        BenchTop::of(JobType { cancel: rule, ..echo_type() })
    }

    #[test]
    fn what_waits_is_cancelled_at_once_with_a_reason_and_only_once() {
        for mut top in [BenchTop::new(), interruptible()] {
            let id = top.enqueue().id;
            assert_eq!(top.done(&cancel(id)), Cancelled::Now);
            assert_eq!(top.latest().status.state(), State::Cancelled);
            assert!(top.texts().contains(USER_REQUESTED));
            assert_eq!(top.done(&cancel(id)), Cancelled::Already);
            assert_eq!(top.kinds(), ["job.queued", "job.cancelled"]);
        }
    }

    #[test]
    fn a_job_waiting_for_its_tool_or_a_person_is_cancelled_at_once_in_both_ways() {
        for outcome in [Outcome::Park { until: None, seen: 0 }, Outcome::Ask(crate::Json::of(&json!({ "sure": true })))]
        {
            for mut top in [BenchTop::new(), interruptible()] {
                top.enqueue();
                let job = top.claim();
                top.settle(&job, outcome.clone());
                let why = Cancel { reason: Some("changed my mind".to_owned()), ..cancel(job.id) };
                assert_eq!(top.done(&why), Cancelled::Now);
                assert!(top.texts().contains("changed my mind"));
            }
        }
    }

    #[test]
    fn marking_a_running_job_ends_it_and_fences_its_worker() {
        let mut top = BenchTop::new();
        top.enqueue();
        let job = top.claim();
        assert_eq!(top.done(&cancel(job.id)), Cancelled::Now);
        let late = Settle { fence: job.fence().unwrap(), outcome: done() };
        assert_eq!(top.refuse(&late).code(), "lease_lost");
        assert_eq!(top.latest().status.state(), State::Cancelled);
    }

    #[test]
    fn an_interrupted_job_runs_on_until_its_worker_speaks_and_what_it_says_is_discarded() {
        for outcome in [done(), Outcome::Release, Outcome::Park { until: None, seen: 0 }] {
            let mut top = interruptible();
            top.enqueue();
            let job = top.claim();
            assert_eq!(top.done(&cancel(job.id)), Cancelled::Requested);
            assert_eq!(top.done(&cancel(job.id)), Cancelled::Requested, "asked once is enough");
            assert_eq!(top.latest().status.state(), State::Executing);
            assert_eq!(top.latest().cancel_requested().unwrap().at, NOW);
            top.settle(&job, outcome);
            assert_eq!(top.latest().status.state(), State::Cancelled);
            assert!(!top.kinds().contains(&"job.completed"));
            assert!(top.texts().contains(USER_REQUESTED));
            let fire = Force { org: OrgId::default(), job: job.id, at: NOW.plus(Span::secs(5)) };
            top.now = fire.at;
            assert_eq!(top.refuse(&fire), ForceError::TimerGone, "the timer went with the job");
        }
    }

    #[test]
    fn one_that_does_not_end_in_time_is_ended() {
        let mut top = interruptible();
        top.enqueue();
        let job = top.claim();
        top.done(&cancel(job.id));
        let fire = Force { org: OrgId::default(), job: job.id, at: NOW.plus(Span::secs(5)) };
        assert_eq!(top.refuse(&fire), ForceError::TimerGone, "not yet");
        top.now = fire.at;
        top.done(&fire);
        assert_eq!(top.latest().status.state(), State::Cancelled);
        assert!(top.texts().contains(INTERRUPT_TIMEOUT));
        let late = Settle { fence: job.fence().unwrap(), outcome: done() };
        assert_eq!(top.refuse(&late).code(), "lease_lost");
    }

    #[test]
    fn a_job_that_ended_otherwise_stays_as_it_is() {
        let mut top = BenchTop::new();
        top.enqueue();
        let job = top.claim();
        top.settle(&job, done());
        assert_eq!(top.refuse(&cancel(job.id)).code(), "invalid_transition");
        assert_eq!(top.refuse(&cancel(JobId(uuid::Uuid::from_u128(1)))).code(), "job_not_found");
    }
}
