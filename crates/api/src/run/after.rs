//! A command about one run, together with what it comes to as it is shown. What is answered, and stored
//! under an idempotency key, is what was committed. No rule lives here.

use baton_core::changes::Changes;
use baton_core::command::{Command, Ctx, Decision, Reads};
use baton_core::definition::Definitions;
use baton_core::run::hold::Hold;
use baton_core::run::{Agent, Run, RunError};
use baton_core::{AgentId, Micros, OrgId, View};
use baton_wire::Live;

/// The run with what its live agents add to it.
pub struct AfterRun<C>(pub C);

#[derive(Clone)]
pub struct Standing {
    pub run: Run,
    pub live: Live,
    pub now: Micros,
}

impl<C: Command<Out = Run, No = RunError>> Command for AfterRun<C> {
    type Out = Standing;
    type No = RunError;

    fn org(&self) -> &OrgId {
        self.0.org()
    }

    fn reads(&self, defs: &Definitions) -> Reads {
        self.0.reads(defs)
    }

    fn decide(&self, view: &View<'_>, cx: &mut Ctx<'_>) -> Decision<Standing, RunError> {
        let (run, changes) = match self.0.decide(view, cx) {
            Decision::Done(run, changes) => (run, changes),
            Decision::Refused(no) => return Decision::Refused(no),
            Decision::Need(reads) => return Decision::Need(reads),
        };
        let mut live = Live::default();
        if run.state.is_at_work() {
            let reads = Reads { agents: run.agents.iter().copied().collect(), ..Reads::none() };
            if let Err(unseen) = view.see(reads) {
                return unseen.into();
            }
            live = Live::of(run.agents.iter().filter_map(|id| agent(*id, view, &changes)));
        }
        Decision::Done(Standing { run, live, now: cx.now }, changes)
    }
}

/// The agent that was held or let go.
pub struct AfterAgent {
    pub hold: Hold,
    pub agent: AgentId,
}

impl Command for AfterAgent {
    type Out = Agent;
    type No = RunError;

    fn org(&self) -> &OrgId {
        self.hold.org()
    }

    fn reads(&self, defs: &Definitions) -> Reads {
        self.hold.reads(defs)
    }

    fn decide(&self, view: &View<'_>, cx: &mut Ctx<'_>) -> Decision<Agent, RunError> {
        match self.hold.decide(view, cx) {
            Decision::Done(_, changes) => match agent(self.agent, view, &changes).cloned() {
                Some(agent) => Decision::Done(agent, changes),
                None => Decision::Refused(RunError::NoAgent(self.agent)),
            },
            Decision::Refused(no) => Decision::Refused(no),
            Decision::Need(reads) => Decision::Need(reads),
        }
    }
}

/// An agent as it stands after these changes.
fn agent<'a>(id: AgentId, view: &View<'a>, changes: &'a Changes) -> Option<&'a Agent> {
    changes.agents.iter().rev().find(|agent| agent.id == id).or_else(|| view.agent(id))
}
