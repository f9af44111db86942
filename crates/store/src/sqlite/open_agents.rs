//! Agents that are being worked on, as the last commit left them.
//!
//! Every step reads its agent and writes it again. The one writer is alone, so what it wrote last is what the
//! file holds: nothing needs to be read and parsed. What is told before its commit is forgotten if that fails.

use baton_core::run::Agent;
use baton_core::{AgentId, OrgId, World};
use std::collections::BTreeMap;

/// Agents kept in memory, of a kilobyte or so each. With more, all are forgotten, and those that are worked on
/// are soon back.
const KEPT: usize = 1_024;

#[derive(Default)]
pub struct OpenAgents(BTreeMap<(OrgId, AgentId), Agent>);

impl OpenAgents {
    pub(super) fn get(&self, org: &OrgId, id: AgentId) -> Option<&Agent> {
        self.0.get(&(org.clone(), id))
    }

    /// What a group has written.
    pub(super) fn learn(&mut self, world: &World) {
        for write in world.agent_writes() {
            let key = (write.agent.org.clone(), write.agent.id);
            if write.agent.is_ended() {
                self.0.remove(&key);
                continue;
            }
            if self.0.len() >= KEPT && !self.0.contains_key(&key) {
                self.0.clear();
            }
            self.0.insert(key, write.agent.clone());
        }
    }
}
