//! Cancelling a run, and hiding one that nobody wants to see any more.

use super::hold::resumed;
use super::{Run, RunError, State, ending};
use crate::changes::Changes;
use crate::command::{Command, Ctx, Decision, Reads, Unseen};
use crate::definition::Definitions;
use crate::id::RunId;
use crate::job::cancel::{USER_REQUESTED, at_once};
use crate::limits;
use crate::name::OrgId;
use crate::world::View;
use serde_json::json;

#[derive(Clone, Debug)]
pub struct Cancel {
    pub org: OrgId,
    pub run: RunId,
    /// [`USER_REQUESTED`], unless given.
    pub reason: Option<String>,
}

impl Command for Cancel {
    type Out = Run;
    type No = RunError;

    fn org(&self) -> &OrgId {
        &self.org
    }

    fn reads(&self, _: &Definitions) -> Reads {
        Reads::run(self.run)
    }

    fn decide(&self, view: &View<'_>, cx: &mut Ctx<'_>) -> Decision<Run, RunError> {
        let Some(run) = view.run(self.run).filter(|run| !run.is_deleted()) else {
            return Decision::Refused(RunError::NotFound(self.run));
        };
        if run.state == State::Cancelled {
            return Decision::Done(run.clone(), Changes::none());
        }
        let reason = self.reason.as_deref().filter(|r| !r.trim().is_empty()).unwrap_or(USER_REQUESTED);
        match cancelled(run, &limits::cut(reason, limits::REASON_CHARS), view, cx) {
            Ok((run, changes)) => Decision::Done(run, changes),
            Err(Stop::No(no)) => Decision::Refused(no),
            Err(Stop::Need(unseen)) => unseen.into(),
        }
    }
}

pub(super) enum Stop {
    No(RunError),
    Need(Unseen),
}

/// The run and all that is left of it, cancelled.
pub(super) fn cancelled(run: &Run, reason: &str, view: &View<'_>, cx: &mut Ctx<'_>) -> Result<(Run, Changes), Stop> {
    let mut run = run.clone();
    // What was about to happen has happened: resuming ends in running, a retry in waiting for a worker.
    let mut changes = resumed(&mut run, cx.now);
    if run.state == State::Retrying && run.moved(State::Pending).is_ok() {
        changes = changes.event(run.tells("run.pending", json!({ "job": null })));
    }
    run.state.check(State::Cancelled).map_err(|illegal| Stop::No(RunError::Illegal(illegal)))?;
    let live = ending::see(&run, None, view).map_err(Stop::Need)?;
    if let Some(job) = run.job.and_then(|job| view.job(job)).filter(|job| !job.is_ended()) {
        changes = changes.and(at_once(job, cx, reason));
    }
    changes = changes.and(ending::cancel_agents(&mut run, live, reason, view, cx));
    run.reason = Some(reason.to_owned());
    changes = changes.and(ending::finish(&mut run, State::Cancelled, view, cx));
    Ok((run.clone(), changes.run(run)))
}

/// Hides a run from lists. Its rows, its money and its history stay.
#[derive(Clone, Debug)]
pub struct Delete {
    pub org: OrgId,
    pub run: RunId,
}

impl Command for Delete {
    type Out = Run;
    type No = RunError;

    fn org(&self) -> &OrgId {
        &self.org
    }

    fn reads(&self, _: &Definitions) -> Reads {
        Reads::run(self.run)
    }

    fn decide(&self, view: &View<'_>, cx: &mut Ctx<'_>) -> Decision<Run, RunError> {
        let Some(run) = view.run(self.run) else { return Decision::Refused(RunError::NotFound(self.run)) };
        if run.is_deleted() {
            return Decision::Done(run.clone(), Changes::none());
        }
        if !run.state.is_ended() && run.state != State::Created {
            return Decision::Refused(RunError::AtWork(run.state));
        }
        let mut run = run.clone();
        run.deleted_at = Some(cx.now);
        let changes = Changes::none().event(run.tells("run.deleted", json!({})));
        Decision::Done(run.clone(), changes.run(run))
    }
}
