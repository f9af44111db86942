//! Background jobs of a lane that have waited for too long, whatever their priority.
//!
//! An index of all ready jobs by how long they have waited would have to be written twice for every job, far apart for
//! every lane, and is needed only beside interactive jobs. Within a type and a priority the order of arrival, by which they
//! stand in the index of ready jobs anyway, tells the same, but for those that are marked as late: these have an index of their own.

use super::arrivals::Arrivals;
use super::claim::candidate;
use super::ranks::Ranks;
use super::rows::{self, live_job};
use super::types::Types;
use crate::group::Ask;
use crate::hand_out::{Candidate, SCAN_MAX};
use crate::records::row_limit;
use baton_core::schedule::{Class, LaneId};
use baton_core::time::Span;
use baton_core::{JobId, Micros};
use rusqlite::{Connection, OptionalExtension, Rows};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

/// Priorities of a type in a lane that are looked at, best first: more than there are numbers.
const PRIORITIES_MAX: usize = 1_000;

const NEXT_PRIORITY: &str = "SELECT priority FROM live INDEXED BY live_ready WHERE rank = ?1 AND phase = 1
     AND priority > ?2 ORDER BY priority LIMIT 1";

/// Those of one rank and priority, in the order of arrival.
static FIRST: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT {}, j.payload, l.late FROM live l INDEXED BY live_ready CROSS JOIN job j ON j.ord = l.ord
         WHERE l.rank = ?1 AND l.phase = 1 AND l.priority = ?2 AND l.slot = 1 ORDER BY l.ord LIMIT ?3",
        rows::LIVE
    )
});

/// Those whose arrival does not tell how long they have waited, longest first.
static LATE: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT {}, j.payload, false FROM live l INDEXED BY live_late CROSS JOIN job j ON j.ord = l.ord
         WHERE l.phase = 1 AND l.slot = 1 AND l.class = 1 AND l.late = 1 AND l.org = ?1 AND l.lane = ?2
         AND (l.slot AND l.kept) = ?4 ORDER BY l.since LIMIT ?3",
        rows::LIVE
    )
});

/// What one lane is asked for.
pub(super) struct Aged<'a> {
    pub conn: &'a Connection,
    pub ranks: &'a Ranks,
    pub ask: &'a Ask,
    pub types: &'a Types<'a>,
    pub lane: &'a LaneId,
    /// As many as the lane could give of those that need no slot, and of those that do.
    pub most: [usize; 2],
    pub now: Micros,
    pub aging: Span,
    pub arrivals: &'a mut Arrivals,
}

impl Aged<'_> {
    /// Adds those that have waited for longest and are not there yet.
    pub fn join(&mut self, heads: &mut Vec<Candidate>) -> rusqlite::Result<()> {
        let (org, lane) = (self.lane.0.as_str(), self.lane.1.as_str());
        let (mut next, mut first) = (self.conn.prepare_cached(NEXT_PRIORITY)?, self.conn.prepare_cached(&FIRST)?);
        let mut late = self.conn.prepare_cached(&LATE)?;
        let there: BTreeSet<JobId> = heads.iter().map(|head| head.job.id).collect();
        let ranks = self.ranks.of(self.conn, Class::Background, self.lane, self.types)?;
        for (needs_slot, most) in [false, true].into_iter().zip(self.most).filter(|(_, most)| *most > 0) {
            let limit = row_limit(SCAN_MAX.max(most));
            let mut longest = BTreeMap::new();
            for rank in ranks.iter().filter(|rank| rank.needs_slot == needs_slot) {
                let mut priority = i32::MIN;
                for _ in 0..PRIORITIES_MAX {
                    let Some(found) = next.query_row((rank.id, priority), |row| row.get(0)).optional()? else { break };
                    priority = found;
                    self.take(first.query((rank.id, priority, limit))?, most, &mut longest)?;
                }
            }
            self.take(late.query((org, lane, limit, needs_slot))?, most, &mut longest)?;
            heads.extend(longest.into_values().filter(|aged| !there.contains(&aged.job.id)));
        }
        Ok(())
    }

    /// Until one comes that has not waited for too long: none behind it has.
    fn take(
        &mut self,
        mut scan: Rows<'_>,
        most: usize,
        longest: &mut BTreeMap<(Micros, i64), Candidate>,
    ) -> rusqlite::Result<()> {
        let mut found = 0;
        while found < most
            && let Some(row) = scan.next()?
        {
            if row.get(rows::LIVE_LEN + 1)? {
                continue;
            }
            if self.now.since(rows::micros(row, rows::LIVE_SINCE)?) <= self.aging {
                return Ok(());
            }
            let job = live_job(row)?;
            if !self.ask.wants(&job) {
                continue;
            }
            found += 1;
            let aged = candidate(row, job, self.arrivals)?;
            longest.insert((aged.job.since, aged.place.order), aged);
            if longest.len() > most {
                longest.pop_last();
            }
        }
        Ok(())
    }
}
