//! Signals: facts that a run is told from outside, under a name. A step may wait for one; it does not
//! matter which comes first. The first signal of a name stands.

use super::hand::Doing;
use super::{Run, RunError, job};
use crate::canon::Json;
use crate::changes::Changes;
use crate::command::{Command, Ctx, Decision, Reads};
use crate::definition::Definitions;
use crate::doc::{self, Doc};
use crate::event::{Event, Head};
use crate::id::RunId;
use crate::job::wake::woken;
use crate::limits;
use crate::name::{OrgId, SignalName};
use crate::world::View;
use serde_json::json;

pub(super) fn at(run: RunId, name: &str) -> doc::Key {
    doc::Key { class: doc::Class::Signal, key: format!("{run}/{name}") }
}

#[derive(Clone, Debug)]
pub struct Signal {
    pub org: OrgId,
    pub run: RunId,
    pub name: SignalName,
    pub data: Json,
}

/// Whether it is news.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signalled {
    Now,
    /// A signal of this name was given before; that one stands.
    Already,
}

impl Command for Signal {
    type Out = (Run, Signalled);
    type No = RunError;

    fn org(&self) -> &OrgId {
        &self.org
    }

    fn reads(&self, _: &Definitions) -> Reads {
        Reads::run(self.run).and(Reads::doc(at(self.run, self.name.as_str())))
    }

    fn decide(&self, view: &View<'_>, cx: &mut Ctx<'_>) -> Decision<(Run, Signalled), RunError> {
        let Some(run) = view.run(self.run).filter(|run| !run.is_deleted()) else {
            return Decision::Refused(RunError::NotFound(self.run));
        };
        let key = at(self.run, self.name.as_str());
        if view.doc(&key).is_some() {
            return Decision::Done((run.clone(), Signalled::Already), Changes::none());
        }
        // An ended run hears nothing any more, unless it may be attempted again.
        if run.state.is_final() {
            let illegal = super::IllegalMove { what: "a run", from: run.state.as_str(), to: "signalled" };
            return Decision::Refused(RunError::Illegal(illegal));
        }
        let reads = Reads { agents: run.agents.iter().copied().collect(), ..Reads::none() };
        if let Err(unseen) = view.see(reads) {
            return unseen.into();
        }
        if run.signals >= limits::SIGNALS {
            return Decision::Refused(RunError::TooManySignals { run: run.id, max: limits::SIGNALS });
        }
        // Also whoever is about to wait: it may have looked for the signal before there was one to lock.
        let waits = |doing: &Doing| match doing {
            Doing::Signal { name, .. } => name == self.name.as_str(),
            doing => *doing == Doing::Call,
        };
        let waiting: Vec<_> = (run.agents.iter().filter_map(|id| view.agent(*id)))
            .filter(|agent| agent.steps().any(|(_, _, step)| waits(&step.doing)))
            .collect();
        let reads = Reads { docs: [].into(), ..job::reads_of(waiting.iter().copied()) };
        if let Err(unseen) = view.see(reads) {
            return unseen.into();
        }
        let id = cx.ids.doc();
        let body = Json::of(&json!({ "at": cx.now, "by": cx.actor.to_string(), "data": self.data.value() }));
        let told = json!({
            "data_sha256": self.data.digest(), "name": self.name, "project": run.project, "run": run.id,
        });
        let mut changes = Changes::none()
            .doc(doc::Change::Put(key, Doc { id, flag: false, body, head: Head::NONE }))
            .event(Event::new(doc::Class::Signal.subject(id), "signal.given", told));
        for job in waiting.iter().filter_map(|agent| agent.job).filter_map(|job| view.job(job)) {
            if let Ok((_, more)) = woken(job, cx.now) {
                changes = changes.and(more);
            }
        }
        let mut run = run.clone();
        run.signals += 1;
        Decision::Done((run.clone(), Signalled::Now), changes.run(run))
    }
}
