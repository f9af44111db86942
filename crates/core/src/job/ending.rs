//! How jobs end: their rows, their event, their sinks, and no timer left behind.

use super::{Change, End, Ending, Failure, Job, Status, state};
use crate::canon::Json;
use crate::changes::Changes;
use crate::dedupe::Mode;
use crate::definition::{Definitions, Moment};
use crate::retry::Class;
use crate::time::Micros;
use crate::timer;
use crate::told::Told;
use serde_json::json;

/// How a job ends, and what its hooks need to hear of it.
pub(super) struct Finish<'a> {
    pub ending: Ending,
    pub kind: &'static str,
    pub more: Told,
    pub defs: &'a Definitions,
    pub payload: Option<&'a Json>,
    pub now: Micros,
}

impl Job {
    /// Ends the job: its rows, its event, its sinks, and no timer left behind.
    pub(super) fn ended(&self, finish: Finish<'_>) -> Result<Changes, state::IllegalMove> {
        let Finish { ending, kind, more, defs, payload, now } = finish;
        let how = match &ending {
            Ending::Result(_) => End::Completed,
            Ending::Error(_) => End::Failed,
            Ending::Cancelled(_) => End::Cancelled,
        };
        // A clock may have jumped back since the last event; a subject's own time does not.
        let at = now.max(self.head.at).max(self.created_at);
        let mut job = self.moved(Status::Ended { how, at })?;
        // Only where a job that has ended still stands for its duplicates does it keep its key.
        let keeps = match defs.pinned(&job.org, &job.kind).map(|kind| kind.dedupe.mode) {
            Some(Mode::DropDuplicate) => how == End::Completed,
            Some(Mode::Once) => true,
            Some(Mode::None | Mode::SingleFlight | Mode::MergeDuplicate) | None => false,
        };
        job.dedupe = job.dedupe.filter(|_| keeps);
        let moment = match &ending {
            Ending::Result(result) => Moment::Completed(result),
            Ending::Error(failure) => Moment::Failed(failure),
            Ending::Cancelled(reason) => Moment::Canceled(reason),
        };
        let mut told = job.tells(kind, more);
        for note in &mut told.notes {
            note.ran = job.started_at.map(|started| at.since(started));
        }
        let mut changes = told.and(job.sinks(defs, payload, moment));
        if job.has_deadline {
            changes = changes.timer(timer::Change::Clear { key: job.deadline_timer() });
        }
        if job.cancel_requested().is_some() {
            changes = changes.timer(timer::Change::Clear { key: job.cancel_timer() });
        }
        Ok(changes.job(Change::End(job, ending)))
    }

    /// Whoever still believes to hold the job is fenced from here on.
    pub(super) fn fenced(&self) -> Self {
        Self { token: self.token + 1, ..self.clone() }
    }
}

/// What deciding about the end of a job needs besides the job.
#[derive(Clone, Copy)]
pub(super) struct Scene<'a> {
    pub defs: &'a Definitions,
    pub payload: Option<&'a Json>,
    pub now: Micros,
}

impl Scene<'_> {
    pub fn fail(self, job: &Job, failure: Failure) -> Result<Changes, state::IllegalMove> {
        let mut job = job.clone();
        if failure.idle {
            job.aside_mut().idle = true;
        }
        if failure.class != Class::of_code(&failure.code) {
            job.aside_mut().class = Some(failure.class);
        }
        let more = json!({ "class": failure.class.as_str(), "failures": job.failures, "reason": failure.code }).into();
        let Scene { defs, payload, now } = self;
        job.ended(Finish { ending: Ending::Error(failure), kind: "job.failed", more, defs, payload, now })
    }

    pub fn cancel(self, job: &Job, reason: &str) -> Result<Changes, state::IllegalMove> {
        let ending = Ending::Cancelled(reason.to_owned());
        let more = json!({ "from": job.status.state().as_str(), "reason": reason }).into();
        let Scene { defs, payload, now } = self;
        job.ended(Finish { ending, kind: "job.cancelled", more, defs, payload, now })
    }
}
