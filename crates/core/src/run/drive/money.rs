//! What calls cost: set aside before they are made, spent when they have ended.

use super::super::{Agent, Run};
use super::Drive;
use crate::command::Unseen;
use crate::credits::Credits;
use crate::ledger::{Kind, Posting};
use crate::time::Micros;

/// Moves an amount from a run's attempt to one of its agents, as far as it is there.
pub(in super::super) fn allocate(run: &mut Run, agent: &mut Agent, amount: Credits, now: Micros) -> Vec<Posting> {
    let key = format!("{}.{}", agent.id, agent.purse.n + 1);
    let Ok(out) = run.post(Kind::Allocate, amount, key.clone(), now) else { return Vec::new() };
    let Ok(into) = agent.post(Kind::Allocated, amount, key, now) else { return Vec::new() };
    out.into_iter().chain(into).collect()
}

impl Drive<'_, '_> {
    /// Sets the price of a call aside. False if there is not that much, neither with the agent nor with
    /// the run.
    pub(super) fn hold(&mut self, at: (u32, u32), price: Credits) -> Result<bool, Unseen> {
        if price.is_zero() {
            return Ok(true);
        }
        let free = self.agent.purse.balance.minus(self.agent.held()).unwrap_or_default();
        if let Some(lacking) = price.minus(free).filter(|lacking| !lacking.is_zero()) {
            if self.seen_run()?.money.purse.balance < lacking {
                return Ok(false);
            }
            let now = self.cx.now;
            let mut agent = self.agent.clone();
            let posted = allocate(self.run_mut()?, &mut agent, lacking, now);
            self.agent = agent;
            self.changes.postings.extend(posted);
        }
        if let Some(step) = self.step_mut(at) {
            step.held = price;
        }
        Ok(true)
    }

    /// The call has ended: what was set aside for it is spent.
    pub(super) fn charge(&mut self, at: (u32, u32)) {
        let posting = self.agent.charge(at, self.cx.now);
        self.changes.postings.extend(posting);
    }

    /// The call was not made: what was set aside for it is free again.
    pub(super) fn release(&mut self, at: (u32, u32)) {
        if let Some(step) = self.step_mut(at) {
            step.held = Credits::ZERO;
        }
    }
}
