//! The one timer of a run: it has waited or run for too long, been paused for too long, not resumed in
//! time, or is to be attempted again.

use super::cancel::{Stop, cancelled};
use super::{Fault, Run, State, ending, hold, job, start};
use crate::changes::Changes;
use crate::command::{Command, Ctx, Decision, Reads, Refusal};
use crate::definition::Definitions;
use crate::id::RunId;
use crate::job::cancel::at_once;
use crate::name::OrgId;
use crate::retry::Class;
use crate::time::{Micros, Span};
use crate::world::View;

/// Issued by the timer; several nodes may issue it, one of them finds the timer.
#[derive(Clone, Debug)]
pub struct Tick {
    pub org: OrgId,
    pub run: RunId,
    /// The moment the timer stood for when it was found due.
    pub at: Micros,
    /// Since when there has been anybody who could have resumed it.
    pub alive_since: Micros,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TickError {
    #[error("the timer was fired, moved or cleared since it was found due")]
    TimerGone,
}

impl Refusal for TickError {
    fn code(&self) -> &'static str {
        "timer_gone"
    }
}

impl Command for Tick {
    type Out = ();
    type No = TickError;

    fn org(&self) -> &OrgId {
        &self.org
    }

    fn reads(&self, _: &Definitions) -> Reads {
        Reads::run(self.run).and_timer(Run::timer(self.run))
    }

    fn decide(&self, view: &View<'_>, cx: &mut Ctx<'_>) -> Decision<(), TickError> {
        if view.timer(&Run::timer(self.run)) != Some(self.at) || self.at > cx.now {
            return Decision::Refused(TickError::TimerGone);
        }
        let cleared = || Changes::none().timer(crate::timer::Change::Clear { key: Run::timer(self.run) });
        let Some(run) = view.run(self.run) else { return Decision::Done((), cleared()) };
        let decided = match run.state {
            State::Pending => failed(run, timed_out("run_timeout", "no worker took the run in time"), view, cx),
            State::Running => failed(run, timed_out("run_timeout", "the run took too long"), view, cx),
            State::Paused => cancelled(run, "pause_timeout", view, cx).map(|(_, changes)| changes),
            State::Resuming => self.not_resumed(run, view, cx),
            State::Retrying => attempt(run, view, cx),
            State::Created | State::Completed | State::Failed | State::Cancelled | State::Skipped => Ok(cleared()),
        };
        match decided {
            Ok(changes) => Decision::Done((), changes),
            // The state was matched, so nothing is refused; a timer that changes nothing is cleared.
            Err(Stop::No(_)) => Decision::Done((), cleared()),
            Err(Stop::Need(unseen)) => unseen.into(),
        }
    }
}

impl Tick {
    /// Time in which nobody could have resumed it does not count. Where a worker still has a call in flight
    /// from before the pause, somebody is at work: it goes on when that call ends.
    fn not_resumed(&self, run: &Run, view: &View<'_>, cx: &mut Ctx<'_>) -> Result<Changes, Stop> {
        let fair = self.alive_since.plus(hold::RESUMING);
        if fair > cx.now {
            return Ok(Changes::none().timer(run.clock(Some(fair))));
        }
        let live = ending::see(run, None, view).map_err(Stop::Need)?;
        let held = |job: crate::JobId| view.job(job).is_some_and(|job| job.status.lease().is_some());
        if live.iter().filter_map(|agent| agent.job).any(held) {
            let mut run = run.clone();
            let resumed = hold::resumed(&mut run, cx.now);
            return Ok(resumed.run(run));
        }
        failed(run, timed_out("resume_timeout", "no worker went on with the run in time"), view, cx)
    }
}

fn timed_out(code: &str, message: &str) -> Fault {
    Fault { class: Class::Transient, ..Fault::new(code, message) }
}

/// The attempt fails from outside, with all its agents.
pub(super) fn failed(run: &Run, fault: Fault, view: &View<'_>, cx: &mut Ctx<'_>) -> Result<Changes, Stop> {
    let mut run = run.clone();
    let live = ending::see(&run, None, view).map_err(Stop::Need)?;
    let mut changes = Changes::none();
    if let Some(job) = run.job.and_then(|job| view.job(job)).filter(|job| !job.is_ended()) {
        changes = changes.and(at_once(job, cx, &fault.code));
    }
    changes = changes.and(ending::cancel_agents(&mut run, live, &fault.code, view, cx));
    changes = changes.and(ending::fail(&mut run, fault, view, cx));
    Ok(changes.run(run))
}

/// When a node does not know how to work on agents.
const LOOK_AGAIN: Span = Span::secs(5);

/// The next attempt waits for a worker.
fn attempt(run: &Run, view: &View<'_>, cx: &mut Ctx<'_>) -> Result<Changes, Stop> {
    let mut run = run.clone();
    if !job::is_known(cx.defs) {
        // Another node knows how to work on agents; somebody looks again soon.
        return Ok(Changes::none().timer(run.clock(Some(cx.now.plus(LOOK_AGAIN)))));
    }
    let reads = job::reads(&run, cx.defs);
    view.see(reads).map_err(Stop::Need)?;
    run.moved(State::Pending).map_err(|illegal| Stop::No(super::RunError::Illegal(illegal)))?;
    let queued = start::queue(&mut run, view, cx);
    Ok(queued.run(run))
}
