//! The agent has ended: what that does to its run.

use super::super::ending;
use super::super::state::{AgentState, State};
use super::{Drive, Turn};
use crate::changes::Changes;
use crate::command::Unseen;
use crate::plan::FailureMode;
use serde_json::json;

impl Drive<'_, '_> {
    pub(super) fn finish(mut self) -> Result<(Turn, Changes), Unseen> {
        let mut run = self.seen_run()?.clone();
        let mode = run.terms.failure_mode;
        let all_skipped = self.agent.skipped == self.agent.done.len();
        let state = match &self.fell {
            Some(_) if mode == FailureMode::Continue => AgentState::Skipped,
            Some(_) => AgentState::Failed,
            None if all_skipped => AgentState::Skipped,
            None => AgentState::Completed,
        };
        let ends_run = state == AgentState::Failed || run.counts.ended() + 1 >= run.counts.agents;
        // Nobody waits for the others if one failed; if this was the last, there are no others.
        let others = if ends_run { ending::see(&run, Some(self.agent.id), &self.view)? } else { Vec::new() };
        self.name_begun();
        let fell = self.fell.take();
        let settled = ending::settle_agent(&mut run, &mut self.agent, state, fell.clone(), self.cx);
        let kind = match state {
            AgentState::Completed => "agent.completed",
            AgentState::Skipped => "agent.skipped",
            _ => "agent.failed",
        };
        let reason = fell.as_ref().map(|fault| fault.code.clone());
        self.tell(kind, json!({ "charged": self.agent.charged, "reason": reason, "state": state }));
        let mut changes = std::mem::take(&mut self.changes).and(settled);
        changes.agents.push(self.agent.clone());
        if ends_run {
            changes = changes.and(ending::cancel_agents(&mut run, others, "run_over", &self.view, self.cx));
            let ended = match fell.filter(|_| state == AgentState::Failed) {
                Some(fault) => ending::fail(&mut run, fault, &self.view, self.cx),
                None if run.counts.completed == 0 => ending::finish(&mut run, State::Skipped, &self.view, self.cx),
                None => ending::finish(&mut run, State::Completed, &self.view, self.cx),
            };
            changes = changes.and(ended);
        }
        let now = self.cx.now;
        let turn = Turn { calls: Vec::new(), look_at: None, over: true, last: false, agent: self.agent, now };
        Ok((turn, changes.run(run)))
    }
}
