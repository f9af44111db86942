//! The end of the history in memory, so that many listeners cost one read.
//!
//! Each org that is listened to has a tail: its last events without a gap, and how far it was looked.
//! Whoever is inside is served from it; the first one at its end reads on for all. Whoever is further
//! back reads for themselves until they have caught up with it. It goes with its last listener.

use super::Told;
use crate::limits::RECENT_BATCH;
use crate::wait;
use baton_core::OrgId;
use baton_store::{Cursor, EventRow, Store, StoreError};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

pub struct Recent {
    bytes: usize,
    /// Tails that there are: what may be kept is divided among them.
    count: Arc<AtomicUsize>,
    tails: Mutex<BTreeMap<OrgId, Weak<Tail>>>,
}

impl Recent {
    pub fn new(bytes: usize) -> Self {
        Self { bytes, count: Arc::default(), tails: Mutex::default() }
    }

    /// The tail of an org; a new one begins where its first listener is.
    pub fn tail(&self, org: &OrgId, after: Cursor) -> Arc<Tail> {
        let mut tails = self.tails.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tail) = tails.get(org).and_then(Weak::upgrade) {
            return tail;
        }
        tails.retain(|_, tail| tail.strong_count() > 0);
        self.count.fetch_add(1, Ordering::Relaxed);
        let tail = Arc::new(Tail {
            bytes: self.bytes,
            count: self.count.clone(),
            ring: tokio::sync::Mutex::new(Ring::at(after)),
        });
        tails.insert(org.clone(), Arc::downgrade(&tail));
        tail
    }
}

/// Where events are read that are not in memory.
pub trait History {
    /// How far it can be read now; `None` if that is not known yet.
    fn mark(&self) -> Option<Cursor>;
    /// The next events, at most [`RECENT_BATCH`].
    fn read(&self, after: Cursor) -> impl Future<Output = Result<Vec<EventRow>, StoreError>> + Send;
}

pub struct OrgHistory<'a> {
    pub store: &'a Store,
    pub org: &'a OrgId,
}

impl History for OrgHistory<'_> {
    fn mark(&self) -> Option<Cursor> {
        self.store.tail().ok()
    }

    async fn read(&self, after: Cursor) -> Result<Vec<EventRow>, StoreError> {
        Ok(wait::read(self.store.events(self.org, after, RECENT_BATCH)).await?.items)
    }
}

pub struct Tail {
    bytes: usize,
    count: Arc<AtomicUsize>,
    /// Held while reading on: whoever comes meanwhile wants the same.
    ring: tokio::sync::Mutex<Ring>,
}

impl Tail {
    /// The next events after a cursor, at most [`RECENT_BATCH`]; none if there are none yet.
    pub async fn after(&self, after: Cursor, history: &impl History) -> Result<Vec<Arc<Told>>, StoreError> {
        // What is told first is there when it is read afterwards.
        let Some(mark) = history.mark() else { return Ok(Vec::new()) };
        let mut ring = self.ring.lock().await;
        loop {
            match ring.look(after, mark) {
                Look::Found(found) => return Ok(found),
                Look::Nothing => return Ok(Vec::new()),
                Look::Behind => {
                    drop(ring);
                    return Ok(history.read(after).await?.into_iter().map(|row| Arc::new(Told::new(row))).collect());
                }
                Look::Read => {
                    let page = history.read(ring.known).await?;
                    let share = self.bytes / self.count.load(Ordering::Relaxed).max(1);
                    ring.extend(page, mark, after, share);
                }
            }
        }
    }
}

impl Drop for Tail {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }
}

/// All events of an org after `from`, up to `known`.
struct Ring {
    from: Cursor,
    known: Cursor,
    told: VecDeque<Arc<Told>>,
    bytes: usize,
}

enum Look {
    Found(Vec<Arc<Told>>),
    /// There is nothing after this cursor yet.
    Nothing,
    /// It begins later; what is missing must be read elsewhere.
    Behind,
    /// There may be more than is known.
    Read,
}

impl Ring {
    const fn at(cursor: Cursor) -> Self {
        Self { from: cursor, known: cursor, told: VecDeque::new(), bytes: 0 }
    }

    fn look(&self, after: Cursor, mark: Cursor) -> Look {
        if after < self.from {
            return Look::Behind;
        }
        let first = self.told.partition_point(|told| told.cursor <= after);
        if first < self.told.len() {
            return Look::Found(self.told.iter().skip(first).take(RECENT_BATCH).cloned().collect());
        }
        // Another node may have shown a cursor that this one has not come to yet.
        if mark <= self.known || mark <= after { Look::Nothing } else { Look::Read }
    }

    /// Adds what was read after `known` when the history went up to `mark`, for somebody at `after`.
    fn extend(&mut self, page: Vec<EventRow>, mark: Cursor, after: Cursor, share: usize) {
        let full = page.len() >= RECENT_BATCH;
        let last = page.last().map_or(self.known, |row| row.cursor);
        if full && last < after {
            // Too far behind for one who listens now: those who are not wait no longer for it.
            *self = Self::at(after);
            return;
        }
        for row in page {
            let told = Told::new(row);
            self.bytes += told.weight();
            self.told.push_back(Arc::new(told));
        }
        self.known = if full { last } else { last.max(mark) };
        while self.bytes > share {
            let Some(old) = self.told.pop_front() else { break };
            self.bytes -= old.weight();
            self.from = old.cursor;
        }
    }
}

#[cfg(test)]
#[path = "recent_tests.rs"]
mod tests;
