//! Settling jobs, handing out those that follow, and seeing who comes next, with one statement: what it shows is kept for the
//! next turn, which then needs to see nothing else.
//!
//! Everything that it shows is as it was before the statement, so those that are handed out with it would be shown too. The
//! only one of its lane is left out there, several are left out here.

use super::claim::candidate;
use super::commit::LITTLE_MS;
use super::open_jobs::LeftBy;
use super::open_lanes::{NEXT_MAX, Next, OpenLane, PAYLOAD_MAX};
use super::rows::{LIVE_LANE, Result, garbled, get, parsed};
use super::statements::{LIVE, LIVE_LEN, beside, exactly, moves};
use super::trusted::Trusted;
use super::write::{Param, col, params};
use crate::group::{Look, Work};
use crate::hand_out::Candidate;
use baton_core::job::Kind;
use baton_core::schedule::LaneId;
use baton_core::world::JobWrite;
use baton_core::{JobId, World};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio_postgres::Row;
use uuid::Uuid;

/// Jobs of one lane that are handed out together and may end together. With more, nobody is shown who follows.
const ENDS_MAX: usize = 8;

/// Behind the parameters of a move: $10 the transactions that have left the lanes, $11 whether it trusts, $12 and $13 lanes in
/// which jobs are handed out, $14 how many to show of each kind and class, $15 and $16 kinds, $17 whom to leave out in each lane.
pub(super) fn put_turn() -> String {
    let (parts, beside, ok) =
        (moves("(SELECT 1 FROM hurry OFFSET 0) h CROSS JOIN "), beside(5, Some(10)), exactly_all());
    let head = "l.phase = 1 AND l.needs = 1 AND l.type = v.type AND l.version = v.version AND l.org = w.org AND l.lane = w.lane \
        AND l.id IS DISTINCT FROM w.but";
    let paused = "EXISTS (SELECT 1 FROM unnest($12::text[], $13::text[]) AS k(org, lane) CROSS JOIN LATERAL \
        (SELECT 1 FROM doc d WHERE d.org = k.org AND d.class = 'lane' AND d.key = k.lane AND d.flag OFFSET 0) d)";
    format!(
        "WITH hurry AS MATERIALIZED (SELECT CASE WHEN $11::bool THEN set_config('lock_timeout', '{LITTLE_MS}ms', true) END OFFSET 0), \
         {parts}, {beside}, \
         ok AS MATERIALIZED (SELECT {ok}, \
         CASE WHEN $11::bool AND {paused} THEN baton_must_be(1, 0, 'handing out in a paused lane') END), \
         there AS MATERIALIZED (SELECT v.class, k.type, k.version FROM (VALUES (0), (1)) v(class) \
         CROSS JOIN unnest($15::text[], $16::int[]) AS k(type, version) \
         CROSS JOIN LATERAL (SELECT 1 FROM live s WHERE s.phase = 1 AND s.class = v.class AND s.needs = 1 \
         AND s.type = k.type AND s.version = k.version LIMIT 1) s) \
         SELECT ok.*, pg_current_xact_id()::text, baton_now(), h.* FROM ok LEFT JOIN LATERAL ( \
         SELECT l.*, p.payload FROM unnest($12::text[], $13::text[], $14::int[], $17::uuid[]) AS w(org, lane, most, but) \
         CROSS JOIN LATERAL (SELECT l.* FROM there v CROSS JOIN LATERAL (SELECT l.xmin::text, {LIVE} FROM live l \
         WHERE l.class = v.class AND {head} ORDER BY l.priority, l.ord LIMIT w.most) l \
         UNION ALL SELECT o.* FROM there v CROSS JOIN LATERAL (SELECT l.xmin::text, {LIVE} FROM live l \
         WHERE l.slot = 1 AND l.class = 1 AND {head} ORDER BY l.since LIMIT w.most) o \
         WHERE v.class = 1 AND EXISTS (SELECT 1 FROM there i WHERE i.class = 0)) l \
         CROSS JOIN LATERAL (SELECT CASE WHEN octet_length(payload) <= {PAYLOAD_MAX} THEN payload END AS payload FROM job y \
         WHERE y.org = l.org AND y.id = l.id OFFSET 0) p) h ON true"
    )
}

/// Whether each part has touched as many rows as it should have.
fn exactly_all() -> String {
    let all = [("d", 1, "a removal of live jobs"), ("u", 3, "an update of live jobs"), ("e", 4, "an end of jobs")];
    let all = all.into_iter().chain([("n", 5, "an update of lanes")]);
    all.map(|(part, n, what)| exactly(part, n, what)).collect::<Vec<_>>().join(", ")
}

/// Where the transaction's id, the time and the jobs stand in what comes back.
const XID: usize = 5;
const NOW: usize = 6;
const LEFT_BY: usize = 7;
const JOB: usize = 8;

/// What is handed out in a lane.
struct Handing {
    count: usize,
    first: JobId,
    /// Who comes next is worth seeing, and what is seen will be so.
    shows: bool,
}

impl Handing {
    /// Jobs to show of each kind and class. Of several that are handed out each may be among those that are shown.
    fn most(&self) -> i32 {
        match self.count {
            _ if !self.shows => 0,
            1 => 1,
            more => i32::try_from(2 * more).unwrap_or(i32::MAX),
        }
    }

    /// Whom to leave out.
    fn but(&self) -> Option<Uuid> {
        (self.count == 1).then_some(self.first.0)
    }
}

/// What to ask along with a turn.
pub(super) struct Onward {
    kinds: Arc<[Kind]>,
    lanes: BTreeMap<LaneId, Handing>,
}

/// What a turn has shown.
pub(super) struct Shown {
    pub xid: String,
    pub now: i64,
    pub lanes: Vec<(LaneId, OpenLane)>,
}

impl Onward {
    /// Nothing if nobody only went on with what follows, or if what is made here could come next.
    pub fn of(works: &[Work], world: &World, trusted: &Trusted, pays: bool) -> Option<Self> {
        let seats = || works.iter().filter_map(|work| if let Work::Claim(seat) = work { Some(seat) } else { None });
        let mut kinds: Option<&[Kind]> = None;
        let mut lanes: BTreeMap<LaneId, Handing> = BTreeMap::new();
        let mut alike = true;
        for seat in seats().filter(|seat| seat.ask.look != Look::Newborn) {
            alike &= !seat.ask.is_everywhere() && kinds.is_none_or(|kinds| kinds == &seat.ask.kinds[..]);
            kinds = Some(&seat.ask.kinds);
            for leased in seat.claimed.leased.iter().filter(|leased| leased.job.lane.kept) {
                let id = (leased.job.org.clone(), leased.job.lane.key.clone());
                lanes.entry(id).or_insert(Handing { count: 0, first: leased.job.id, shows: true }).count += 1;
            }
        }
        for handing in lanes.values_mut() {
            handing.shows = pays && alike && handing.count <= ENDS_MAX;
        }
        for write in world.job_writes() {
            match write {
                JobWrite::Insert(..) => return None,
                // It will come next, or soon.
                JobWrite::Update(job) if job.status.due_at().is_some() => {
                    if let Some(handing) = lanes.get_mut(&(job.org.clone(), job.lane.key.clone())) {
                        handing.shows = false;
                    }
                }
                JobWrite::Update(_) | JobWrite::End(..) => {}
            }
        }
        let kinds = kinds.unwrap_or_default().into();
        let shows = lanes.values().any(|handing| handing.shows);
        (shows || trusted.whole().is_some()).then_some(Self { kinds, lanes })
    }

    pub fn params<'a>(&self, trusts: bool) -> Vec<Param<'a>> {
        let lanes: Vec<_> = self.lanes.iter().collect();
        params![
            trusts,
            col(&lanes, |((org, _), _)| org.to_string()),
            col(&lanes, |((_, key), _)| key.to_string()),
            col(&lanes, |(_, handing)| handing.most()),
            col(&self.kinds, |kind| kind.name.to_string()),
            col(&self.kinds, |kind| kind.version.cast_signed()),
            col(&lanes, |(_, handing)| handing.but()),
        ]
    }

    /// Puts the answer together.
    pub fn shown(self, world: &World, answer: &[Row]) -> Result<Shown> {
        let first = answer.first().ok_or_else(|| garbled("no answer"))?;
        let (xid, now): (String, i64) = (get(first, XID)?, get(first, NOW)?);
        let not_one = || garbled("not a transaction");
        let left_by = LeftBy::transaction(&xid).ok_or_else(not_one)?;
        let mut lanes: BTreeMap<LaneId, OpenLane> = BTreeMap::new();
        let mut jobs: BTreeMap<LaneId, Vec<(Candidate, LeftBy)>> = BTreeMap::new();
        for (id, handing) in self.lanes.into_iter().filter(|(_, handing)| handing.shows) {
            // One that nothing was written of is as somebody else has left it.
            let Some(row) = world.lane_write(&id.0, &id.1) else { continue };
            let next = Next { kinds: self.kinds.clone(), enough_for: handing.count, jobs: Arc::default() };
            jobs.insert(id.clone(), Vec::new());
            lanes.insert(id, OpenLane { row: row.clone(), left_by, next });
        }
        for row in answer.iter().filter(|row| matches!(get::<Option<&str>>(row, JOB), Ok(Some(_)))) {
            let lane = (parsed(row, JOB)?, parsed(row, JOB + LIVE_LANE)?);
            let Some(next) = jobs.get_mut(&lane) else { continue };
            let id = JobId(get(row, JOB + 1)?);
            let is_known = next.iter().any(|(other, _)| other.job.id == id);
            if is_known || world.job(&lane.0, id).is_some_and(|job| job.status.lease().is_some()) {
                continue;
            }
            // Its payload is too long to be kept, or it goes with this very group: it hides who comes behind it.
            let is_hidden = get::<Option<&str>>(row, JOB + LIVE_LEN)?.is_none() || world.changes_job(&lane.0, id);
            if is_hidden || next.len() >= NEXT_MAX {
                jobs.remove(&lane);
                lanes.remove(&lane);
                continue;
            }
            next.push((candidate(row, JOB)?, LeftBy::transaction(get(row, LEFT_BY)?).ok_or_else(not_one)?));
        }
        for (id, jobs) in jobs {
            if let Some(lane) = lanes.get_mut(&id) {
                lane.next.jobs = jobs.into();
            }
        }
        Ok(Shown { xid, now, lanes: lanes.into_iter().collect() })
    }
}
