//! A run that nobody works on although somebody could: it fails, and is attempted again if its mode says so.

use super::Fault;
use super::cancel::Stop;
use super::clock::failed;
use super::state::{AgentState, State};
use crate::changes::Changes;
use crate::command::{Command, Ctx, Decision, Reads, Refusal};
use crate::definition::Definitions;
use crate::id::AgentId;
use crate::job::Status;
use crate::name::OrgId;
use crate::retry::Class;
use crate::time::{Micros, Span};
use crate::world::View;

/// How long an agent that was at work may be without a worker.
pub const PATIENCE: Span = Span::secs(60);

#[derive(Clone, Debug)]
pub struct Lost {
    pub org: OrgId,
    pub agent: AgentId,
    /// Since when there has been anybody who could have taken it over.
    pub alive_since: Micros,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LostError {
    #[error("the agent is at work, or there was nobody to take it over")]
    NotLost,
}

impl Refusal for LostError {
    fn code(&self) -> &'static str {
        "agent_not_lost"
    }
}

impl Command for Lost {
    type Out = ();
    type No = LostError;

    fn org(&self) -> &OrgId {
        &self.org
    }

    fn reads(&self, _: &Definitions) -> Reads {
        Reads::agent(self.agent)
    }

    fn decide(&self, view: &View<'_>, cx: &mut Ctx<'_>) -> Decision<(), LostError> {
        let at_work = |agent: &&super::Agent| matches!(agent.state, AgentState::Running | AgentState::Pending);
        let Some(agent) = view.agent(self.agent).filter(at_work) else {
            return Decision::Refused(LostError::NotLost);
        };
        let mut reads = Reads::run(agent.run);
        reads.jobs.extend(agent.job);
        if let Err(unseen) = view.see(reads) {
            return unseen.into();
        }
        let Some(run) = view.run(agent.run).filter(|run| run.state == State::Running) else {
            return Decision::Refused(LostError::NotLost);
        };
        let job = agent.job.and_then(|job| view.job(job)).filter(|job| !job.is_ended());
        // Whoever waits for a place in its lane is not lost: others of the run are at work.
        if job.is_some_and(|job| job.lane.kept && view.lane(&job.lane.key).is_some_and(|row| row.free() == Some(0))) {
            return Decision::Refused(LostError::NotLost);
        }
        // Ready since this moment, and nobody came; a job that is gone has been ready for ever. One that never
        // was at work may wait for a worker as long as its run may.
        let begun = agent.state == AgentState::Running;
        let ready_since = match job.map(|job| &job.status) {
            None => Some(agent.head.at),
            Some(Status::AwaitingTool { due_at: Some(due), .. } | Status::Queued { due_at: due }) if begun => {
                Some(*due)
            }
            Some(_) => None,
        };
        let lost = ready_since.is_some_and(|since| since.max(self.alive_since).plus(PATIENCE) <= cx.now);
        if !lost {
            return Decision::Refused(LostError::NotLost);
        }
        let fault = Fault { class: Class::Transient, ..Fault::new("worker_lost", "worker heartbeat timeout") };
        match failed(run, fault, view, cx) {
            Ok(changes) => Decision::Done((), changes),
            Err(Stop::Need(unseen)) => unseen.into(),
            Err(Stop::No(_)) => Decision::Done((), Changes::none()),
        }
    }
}
