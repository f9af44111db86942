//! Lanes that jobs move in, as the last commit left them.
//!
//! The one writer is alone, so what it wrote last is what the file holds. What is told before its commit is forgotten if that fails.

use baton_core::by_org::ByOrg;
use baton_core::lane;
use baton_core::{OrgId, World, lane::LaneKey};

/// Lanes kept in memory, of some hundred bytes each. With more, all are forgotten, and are read again.
const KEPT: usize = 16_384;

#[derive(Default)]
pub struct OpenLanes {
    all: ByOrg<LaneKey, lane::Row>,
    count: usize,
}

impl OpenLanes {
    pub(super) fn get(&self, org: &OrgId, key: &LaneKey) -> Option<lane::Row> {
        self.all.get(org, key).cloned()
    }

    /// What a group has written.
    pub(super) fn learn(&mut self, world: &World) {
        for (org, key, row) in world.lane_writes() {
            if let Some(known) = self.all.get_mut(org, key) {
                known.clone_from(row);
                continue;
            }
            if self.count >= KEPT {
                self.forget();
            }
            self.all.insert(org, key.clone(), row.clone());
            self.count += 1;
        }
    }

    /// After a commit that may have removed rows which counted nothing any more.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }
}
