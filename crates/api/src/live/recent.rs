//! The end of the history in memory, so that many listeners cost one read.

use crate::wait;
use baton_core::OrgId;
use baton_store::{Cursor, EventRow, Store, StoreError};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use tokio::sync::Mutex;

/// Events of one org that are kept.
const KEPT: usize = 2_048;
/// Events that are read at once.
pub const BATCH: usize = 500;
/// Orgs whose events are kept; then all are forgotten.
const ORGS: usize = 1_000;

/// The last events of an org, without a gap: everything after `from`.
struct Tail {
    from: Cursor,
    rows: VecDeque<Arc<EventRow>>,
}

impl Tail {
    fn end(&self) -> Cursor {
        self.rows.back().map_or(self.from, |row| row.cursor)
    }
}

#[derive(Default)]
pub struct Recent {
    tails: Mutex<BTreeMap<OrgId, Arc<Mutex<Tail>>>>,
}

impl Recent {
    /// The next events after a cursor, at most [`BATCH`].
    pub async fn after(&self, store: &Store, org: &OrgId, after: Cursor) -> Result<Vec<Arc<EventRow>>, StoreError> {
        let tail = self.tail(org, after).await;
        let mut tail = tail.lock().await;
        if after < tail.from {
            // Somebody who catches up reads for themselves.
            drop(tail);
            let page = wait::read(store.events(org, after, BATCH)).await?;
            return Ok(page.items.into_iter().map(Arc::new).collect());
        }
        if after > tail.end() {
            // Nobody has listened for a while. Who is further back reads for themselves.
            *tail = Tail { from: after, rows: VecDeque::new() };
        }
        if after == tail.end() {
            let end = tail.end();
            let page = wait::read(store.events(org, end, BATCH)).await?;
            tail.rows.extend(page.items.into_iter().map(Arc::new));
            while tail.rows.len() > KEPT {
                if let Some(row) = tail.rows.pop_front() {
                    tail.from = row.cursor;
                }
            }
        }
        let first = tail.rows.partition_point(|row| row.cursor <= after);
        Ok(tail.rows.iter().skip(first).take(BATCH).cloned().collect())
    }

    /// Begins where the first listener is.
    async fn tail(&self, org: &OrgId, after: Cursor) -> Arc<Mutex<Tail>> {
        let mut tails = self.tails.lock().await;
        if let Some(tail) = tails.get(org) {
            return tail.clone();
        }
        if tails.len() >= ORGS {
            tails.clear();
        }
        let tail = Arc::new(Mutex::new(Tail { from: after, rows: VecDeque::new() }));
        tails.insert(org.clone(), tail.clone());
        tail
    }
}
