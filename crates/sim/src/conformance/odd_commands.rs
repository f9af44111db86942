//! Commands that no product issues. The committer must survive them all, and so must whoever
//! waits beside them.

use crate::lab::{name, nobody};
use baton_core::command::{Command, Ctx, Decision, Never, Reads};
use baton_core::definition::Definitions;
use baton_core::event::{Event, Head, Subject};
use baton_core::job::wake::WakeError;
use baton_core::job::{self, Cold, Job, Kind, Status};
use baton_core::lane::Place;
use baton_core::{Changes, JobId, Json, Micros, OrgId, View, timer};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use uuid::Uuid;

/// What of a bad command is written would be found in this project.
pub(super) const NOWHERE: &str = "nowhere";

fn org() -> &'static OrgId {
    static ORG: std::sync::LazyLock<OrgId> = std::sync::LazyLock::new(OrgId::default);
    &ORG
}

fn happened(id: JobId) -> Event {
    Event { subject: Subject::Job(id), kind: "job.odd", data: json!({}).into() }
}

/// A queued job that no rule has made.
fn made_up(id: JobId, now: Micros) -> (Job, Cold) {
    let job = Job {
        org: org().clone(),
        id,
        project: name(NOWHERE),
        kind: Kind { name: name("echo"), version: 1 },
        priority: 1,
        status: Status::Queued { due_at: now },
        lane: Place { key: name("odd"), max: None, kept: false },
        since: now,
        attempts: 0,
        max_attempts: 1,
        failures: 0,
        max_failures: 1,
        token: 0,
        wakes: 0,
        created_at: now,
        started_at: None,
        has_deadline: false,
        outside: false,
        dedupe: None,
        aside: None,
        head: Head::NONE,
    };
    let cold = Cold {
        payload: Json::of(&json!({})),
        source_session: None,
        deadline_at: None,
        dedupe_key: None,
        requeued_from: None,
        schedule: None,
    };
    (job, cold)
}

/// Does something bad, after it has asked for something good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bad {
    /// Panics while it decides.
    Panics,
    /// Panics while it names what it reads.
    PanicsEarly,
    /// Is done, but tells of a job that it has neither read nor made.
    TellsOfAStranger,
    /// Looks at a job that it did not name.
    Peeks,
    /// Makes a job without a history, which the database does not take.
    BreaksAConstraint,
    /// Makes a job under an id that is taken.
    TakesAnId(JobId),
    /// Always needs to see one thing more.
    Insatiable,
    /// Needs to see the same thing for ever.
    Stubborn,
}

impl Command for Bad {
    type Out = ();
    type No = Never;

    fn org(&self) -> &OrgId {
        org()
    }

    fn reads(&self, _: &Definitions) -> Reads {
        assert!(*self != Self::PanicsEarly, "this command panics on purpose");
        Reads::none()
    }

    fn decide(&self, view: &View<'_>, cx: &mut Ctx<'_>) -> Decision<(), Never> {
        let (good, cold) = made_up(cx.ids.job(), cx.now);
        let event = happened(good.id);
        let changes = Changes::none().job(job::Change::Create(good, cold)).event(event);
        match self {
            Self::Panics | Self::PanicsEarly => panic!("this command panics on purpose"),
            Self::TellsOfAStranger => Decision::Done((), changes.event(happened(nobody()))),
            Self::Peeks => {
                let _ = view.job(nobody());
                Decision::Done((), changes)
            }
            Self::BreaksAConstraint => {
                let (bad, cold) = made_up(cx.ids.job(), cx.now);
                Decision::Done((), changes.job(job::Change::Create(bad, cold)))
            }
            Self::TakesAnId(taken) => {
                let (bad, cold) = made_up(*taken, cx.now);
                let event = happened(*taken);
                Decision::Done((), changes.job(job::Change::Create(bad, cold)).event(event))
            }
            Self::Insatiable => {
                let unseen = (0..u128::MAX).map(|n| Reads::job(JobId(Uuid::from_u128(n))));
                let mut missing = unseen.map(|reads| view.missing(&reads)).filter(|more| *more != Reads::none());
                Decision::Need(missing.next().unwrap_or_default())
            }
            Self::Stubborn => Decision::Need(Reads::job(nobody())),
        }
    }
}

/// Counts a wake-up on two jobs, of which it names the second only after it has seen the first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Both {
    pub first: JobId,
    pub second: JobId,
}

impl Command for Both {
    /// The wake-ups of both, afterwards.
    type Out = (i64, i64);
    type No = WakeError;

    fn org(&self) -> &OrgId {
        org()
    }

    fn reads(&self, _: &Definitions) -> Reads {
        Reads::job(self.first)
    }

    fn decide(&self, view: &View<'_>, _: &mut Ctx<'_>) -> Decision<(i64, i64), WakeError> {
        let Some(first) = view.job(self.first) else { return Decision::Refused(WakeError::NotFound(self.first)) };
        let more = view.missing(&Reads::job(self.second));
        if more != Reads::none() {
            return Decision::Need(more);
        }
        let Some(second) = view.job(self.second) else { return Decision::Refused(WakeError::NotFound(self.second)) };
        let woken = |job: &Job| Job { wakes: job.wakes + 1, ..job.clone() };
        let (first, second) = (woken(first), woken(second));
        let counts = (first.wakes, second.wakes);
        let events = [happened(first.id), happened(second.id)];
        let mut changes = Changes::none().job(job::Change::Put(first)).job(job::Change::Put(second));
        changes.events.extend(events);
        Decision::Done(counts, changes)
    }
}

/// Counts a wake-up on one job, leaves another as it is, and tells no event.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quietly {
    pub woken: JobId,
    pub beside: JobId,
}

impl Command for Quietly {
    type Out = ();
    type No = WakeError;

    fn org(&self) -> &OrgId {
        org()
    }

    fn reads(&self, _: &Definitions) -> Reads {
        Reads::jobs([self.woken, self.beside])
    }

    fn decide(&self, view: &View<'_>, _: &mut Ctx<'_>) -> Decision<(), WakeError> {
        let Some(woken) = view.job(self.woken) else { return Decision::Refused(WakeError::NotFound(self.woken)) };
        let Some(beside) = view.job(self.beside) else { return Decision::Refused(WakeError::NotFound(self.beside)) };
        let woken = Job { wakes: woken.wakes + 1, ..woken.clone() };
        let changes = Changes::none().job(job::Change::Put(woken)).job(job::Change::Put(beside.clone()));
        Decision::Done((), changes)
    }
}

/// Moves a job's deadline, or takes it away.
#[derive(Clone, Copy, Debug)]
pub(super) struct MoveDeadline {
    pub job: JobId,
    pub to: Option<Micros>,
}

impl Command for MoveDeadline {
    type Out = ();
    type No = WakeError;

    fn org(&self) -> &OrgId {
        org()
    }

    fn reads(&self, _: &Definitions) -> Reads {
        Reads::job(self.job)
    }

    fn decide(&self, view: &View<'_>, _: &mut Ctx<'_>) -> Decision<(), WakeError> {
        let Some(job) = view.job(self.job) else { return Decision::Refused(WakeError::NotFound(self.job)) };
        let key = job.deadline_timer();
        let change = match self.to {
            Some(at) => timer::Change::Set { key, at },
            None => timer::Change::Clear { key },
        };
        Decision::Done((), Changes::none().timer(change))
    }
}

/// A command that counts how often it was decided.
#[derive(Clone, Debug)]
pub(super) struct Watched<C> {
    pub command: C,
    pub decided: Arc<AtomicU64>,
}

impl<C: Command> Command for Watched<C> {
    type Out = C::Out;
    type No = C::No;

    fn org(&self) -> &OrgId {
        self.command.org()
    }

    fn reads(&self, defs: &Definitions) -> Reads {
        self.command.reads(defs)
    }

    fn decide(&self, view: &View<'_>, cx: &mut Ctx<'_>) -> Decision<C::Out, C::No> {
        self.decided.fetch_add(1, Ordering::SeqCst);
        self.command.decide(view, cx)
    }
}
