//! A worker says what came of the calls that it made, and is told what is next. One commit per step.

use super::Fault;
use super::drive::{Drive, Turn};
use super::state::AgentState;
use crate::canon::Json;
use crate::command::{Command, Ctx, Decision, Reads, Refusal};
use crate::definition::Definitions;
use crate::id::{AgentId, RunId};
use crate::job::Fence;
use crate::ledger::OrgAccount;
use crate::name::OrgId;
use crate::plan::Plan;
use crate::time::{Micros, Span};
use crate::world::View;
use std::sync::Arc;

#[derive(Clone, Debug)]
pub struct Advance {
    pub fence: Fence,
    pub run: RunId,
    pub agent: AgentId,
    pub plan: Arc<Plan>,
    /// The agent's place in the plan.
    pub index: u32,
    pub reports: Vec<Report>,
    /// Nothing more is to begin: the worker is about to give the agent back.
    pub leaving: bool,
    /// What is likely to be looked at besides the agent.
    pub ahead: Ahead,
}

/// A guess at what follows, so that what must be seen for it is seen at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ahead {
    /// One more step.
    Steps,
    /// Something failed: the run has a say in what follows.
    Failure,
    /// These were the last steps: the agent ends, and its run with it if it is the last.
    End,
}

/// What came of one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    pub task: u32,
    pub step: u32,
    /// Which call of the step it was.
    pub attempt: u32,
    pub outcome: Outcome,
}

impl Report {
    pub(super) const fn failed(&self) -> bool {
        matches!(self.outcome, Outcome::Failed(_))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Done(Json),
    Failed(Failed),
    /// The step waits until then.
    Sleep(Micros),
    /// The step waits for a signal, at most until then.
    Wait {
        signal: String,
        until: Option<Micros>,
    },
    /// The step asks people.
    Ask(Json),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    pub fault: Fault,
    /// The call was made, and costs what it costs.
    pub called: bool,
    /// It may have done what it does although it failed.
    pub unknown: bool,
    /// Not again before this much time has passed.
    pub retry_after: Option<Span>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AdvanceError {
    #[error("the agent is in other hands, or has ended")]
    Lost,
}

impl Refusal for AdvanceError {
    fn code(&self) -> &'static str {
        "lease_lost"
    }
}

impl Command for Advance {
    type Out = Turn;
    type No = AdvanceError;

    fn org(&self) -> &OrgId {
        &self.fence.org
    }

    fn reads(&self, _: &Definitions) -> Reads {
        let reads = Reads::agent(self.agent);
        match self.ahead {
            Ahead::Steps => reads,
            Ahead::Failure => reads.and(Reads::run(self.run)),
            Ahead::End => reads.and(Reads::run(self.run)).and(OrgAccount::reads()),
        }
    }

    fn decide(&self, view: &View<'_>, cx: &mut Ctx<'_>) -> Decision<Turn, AdvanceError> {
        // The agent's own token is the fence: whoever takes the job over changes it before anything else.
        let held = |agent: &&super::Agent| {
            agent.job == Some(self.fence.job)
                && agent.token == self.fence.token
                && matches!(agent.state, AgentState::Running | AgentState::Paused | AgentState::Pending)
        };
        let Some(agent) = view.agent(self.agent).filter(held) else {
            return Decision::Refused(AdvanceError::Lost);
        };
        let Some(plan) = self.plan.agents.get(self.index as usize).filter(|_| agent.index == self.index) else {
            return Decision::Refused(AdvanceError::Lost);
        };
        let mut agent = agent.clone();
        // It was resumed while this worker still had a call in flight: it simply goes on.
        if agent.state == AgentState::Pending && agent.moved(AgentState::Running).is_err() {
            return Decision::Refused(AdvanceError::Lost);
        }
        let mut drive = Drive::new(*view, cx, plan, agent, None, false);
        drive.leaving = self.leaving;
        let driven = drive.advance(&self.reports).and_then(|()| drive.end());
        match driven {
            Ok((turn, changes)) => Decision::Done(turn, changes),
            Err(unseen) => unseen.into(),
        }
    }
}
