//! Another attempt of a run that failed, because somebody asks for it.

use super::{Run, RunError, State, ending};
use crate::changes::Changes;
use crate::command::{Command, Ctx, Decision, Reads};
use crate::definition::Definitions;
use crate::id::RunId;
use crate::ledger::OrgAccount;
use crate::name::OrgId;
use crate::time::Span;
use crate::world::View;

#[derive(Clone, Debug)]
pub struct Retry {
    pub org: OrgId,
    pub run: RunId,
}

impl Command for Retry {
    type Out = Run;
    type No = RunError;

    fn org(&self) -> &OrgId {
        &self.org
    }

    fn reads(&self, _: &Definitions) -> Reads {
        Reads::run(self.run).and(OrgAccount::reads())
    }

    fn decide(&self, view: &View<'_>, cx: &mut Ctx<'_>) -> Decision<Run, RunError> {
        let Some(run) = view.run(self.run).filter(|run| !run.is_deleted()) else {
            return Decision::Refused(RunError::NotFound(self.run));
        };
        // Said before: the attempt that was asked for is on its way.
        if run.state == State::Retrying {
            return Decision::Done(run.clone(), Changes::none());
        }
        if let Err(illegal) = run.state.check(State::Retrying) {
            return Decision::Refused(RunError::Illegal(illegal));
        }
        if run.attempt >= run.terms.max_attempts {
            let (attempt, max) = (run.attempt, run.terms.max_attempts);
            return Decision::Refused(RunError::AttemptsExhausted { run: run.id, attempt, max });
        }
        let mut run = run.clone();
        match ending::again_from(&mut run, None, Span::default(), view, cx) {
            Ok(changes) => Decision::Done(run.clone(), changes.run(run)),
            Err(no) => Decision::Refused(no),
        }
    }
}
