//! Lanes that jobs move in, as the last commit left them.
//!
//! The one writer is alone, so what it wrote last is what the file holds. What is told before its commit is forgotten if that fails.

use baton_core::lane;
use baton_core::schedule::LaneId;
use baton_core::{OrgId, World, lane::LaneKey};
use std::collections::BTreeMap;

/// Lanes kept in memory, of some hundred bytes each. With more, all are forgotten, and are read again.
const KEPT: usize = 16_384;

#[derive(Default)]
pub struct OpenLanes(BTreeMap<LaneId, lane::Row>);

impl OpenLanes {
    pub(super) fn get(&self, org: &OrgId, key: &LaneKey) -> Option<lane::Row> {
        self.0.get(&(org.clone(), key.clone())).cloned()
    }

    /// What a group has written.
    pub(super) fn learn(&mut self, world: &World) {
        for (org, key, row) in world.lane_writes() {
            let id = (org.clone(), key.clone());
            if self.0.len() >= KEPT && !self.0.contains_key(&id) {
                self.0.clear();
            }
            self.0.insert(id, row.clone());
        }
    }

    /// After a commit that may have removed rows which counted nothing any more.
    pub(super) fn forget(&mut self) {
        self.0.clear();
    }
}
