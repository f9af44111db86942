//! Finding due jobs for an ask: a walk over lanes, class by class, from where the last one ended.

use super::aging::Aged;
use super::arrivals::Arrivals;
use super::load;
use super::many::Many;
use super::open_lanes::OpenLanes;
use super::ranks::{self, Next, OCCUPIED, Rank, Ranks};
use super::rows::{self, live_job};
use super::types::Types;
use super::writer::Inner;
use crate::group::Ask;
use crate::hand_out::{Candidate, Found, LOOK_MAX, PROBE, SCAN_MAX};
use crate::phase;
use crate::records::row_limit;
use baton_core::canon::Json;
use baton_core::job::Job;
use baton_core::schedule::{Class, LaneId, Place};
use baton_core::time::Span;
use baton_core::{Micros, OrgId, World};
use rusqlite::{Connection, OptionalExtension, Row};
use std::collections::BTreeSet;
use std::sync::LazyLock;

/// Scheduled rows that one claim makes ready.
const PROMOTE_MAX: i64 = 1_000;

/// The jobs of a rank that can be handed out, best first, with their payloads.
static HEADS: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT {}, j.payload FROM live l INDEXED BY live_ready CROSS JOIN job j ON j.ord = l.ord
         WHERE l.rank = ?1 AND l.phase = 1 ORDER BY l.priority, l.ord LIMIT ?2",
        rows::LIVE
    )
});

/// One look for one ask.
struct Search<'a> {
    conn: &'a Connection,
    open_lanes: &'a OpenLanes,
    ranks: &'a mut Ranks,
    world: &'a mut World,
    ask: &'a Ask,
    /// Those before this ask in its group may take the best.
    want: usize,
    /// Interactive jobs were found: only beside them does it matter how long others have waited.
    competing: bool,
    /// Lanes that commands of this group move jobs in: they may be free when it is decided.
    moving: &'a BTreeSet<LaneId>,
    paused: BTreeSet<LaneId>,
    types: Types<'a>,
    now: Micros,
    /// Who has waited for longer is guarded from interactive jobs.
    aging: Span,
    /// Where those are that were found.
    arrivals: &'a mut Arrivals,
    found: Found,
    ready: Many<'a>,
}

pub(super) fn find(
    inner: &mut Inner,
    (world, arrivals): (&mut World, &mut Arrivals),
    (ask, want): &(Ask, usize),
    moving: &BTreeSet<LaneId>,
    (now, aging): (Micros, Span),
) -> rusqlite::Result<Found> {
    let Inner { conn, open_lanes, ranks, .. } = inner;
    ranks.look(conn)?;
    let found = Found { promoted: ask.is_everywhere() && promote(conn, ranks, now)?, ..Found::default() };
    let paused = load::paused_lanes(conn)?;
    let types = Types::asked(ask);
    let (want, competing) = (*want, false);
    let mut search = Search {
        conn,
        open_lanes,
        ranks,
        world,
        ask,
        want,
        competing,
        moving,
        paused,
        types,
        now,
        aging,
        arrivals,
        found,
        ready: Many::new(conn, &HEADS),
    };
    if !ask.is_everywhere() {
        search.successors()?;
        return Ok(search.found);
    }
    search.found.looked.interactive = search.walk(Class::Interactive)?;
    search.competing = !search.found.lanes.is_empty();
    search.found.looked.background = search.walk(Class::Background)?;
    let mut found = search.found;
    found.next_due = conn
        .prepare_cached("SELECT min(due_at) FROM live INDEXED BY live_scheduled WHERE phase = 2")?
        .query_row([], |row| rows::maybe_micros(row, 0))?;
    Ok(found)
}

/// Scheduled jobs that have come due join the ready ones; whether there were any.
fn promote(conn: &Connection, ranks: &mut Ranks, now: Micros) -> rusqlite::Result<bool> {
    let mut due = conn.prepare_cached(
        "UPDATE live SET phase = ?1 WHERE ord IN (
         SELECT ord FROM live INDEXED BY live_scheduled
         WHERE phase = 2 AND due_at <= ?2 ORDER BY due_at LIMIT ?3) RETURNING rank, slot AND kept, type, org, lane, class",
    )?;
    let mut due = due.query((phase::READY, now.0, PROMOTE_MAX))?;
    let mut promoted = false;
    while let Some(row) = due.next()? {
        promoted = true;
        let lane = (rows::parsed(row, 3)?, rows::parsed(row, 4)?);
        ranks.put(ranks::class(row, 5)?, lane, ranks::rank(row, 0)?);
    }
    Ok(promoted)
}

impl Search<'_> {
    /// What lanes could give in which jobs move.
    fn successors(&mut self) -> rusqlite::Result<()> {
        for class in Class::ALL {
            self.competing = !self.found.lanes.is_empty();
            for lane in self.moving {
                self.open(lane, class)?;
            }
        }
        Ok(())
    }

    /// Once round the ring of lanes that have ready jobs of a class, or until enough was found. The
    /// last lane looked at.
    fn walk(&mut self, class: Class) -> rusqlite::Result<Option<LaneId>> {
        let start = self.ask.turns.last(class).cloned();
        let enough = match class {
            Class::Interactive => self.want,
            Class::Background => self.want + PROBE,
        };
        let (mut at, mut wrapped, mut gave, mut looked) = (start.clone(), start.is_none(), 0, None);
        let mut looks = 0;
        while looks < LOOK_MAX {
            if gave >= enough {
                self.found.more = true;
                return Ok(looked);
            }
            let next = self.next_lane(class, at.as_ref())?;
            let Some(lane) = next.filter(|lane| !wrapped || start.is_none() || Some(lane) <= start.as_ref()) else {
                if wrapped {
                    return Ok(looked);
                }
                (wrapped, at) = (true, None);
                continue;
            };
            gave += usize::from(self.open(&lane, class)?);
            // Where nobody stands there was nothing to look at, and nobody looks there again.
            looks += usize::from(!self.ranks.nobody_in(class, &lane));
            looked = Some(lane.clone());
            at = Some(lane);
        }
        self.found.more = true;
        Ok(looked)
    }

    fn next_lane(&self, class: Class, after: Option<&LaneId>) -> rusqlite::Result<Option<LaneId>> {
        let org = self.ask.org();
        if let (Some(org), Some(lanes)) = (org, self.ask.lanes()) {
            let next = lanes.iter().find(|lane| after.is_none_or(|(_, after)| *lane > after));
            return Ok(next.map(|lane| (org.clone(), lane.clone())));
        }
        match (self.ranks.next(class, org, after), org) {
            (Next::Known(next), _) => Ok(next),
            (Next::Unknown, Some(org)) => self.next_of_org(class, org, after.map_or("", |(_, lane)| lane.as_str())),
            (Next::Unknown, None) => self.next_of_all(class, after),
        }
    }

    fn next_of_all(&self, class: Class, after: Option<&LaneId>) -> rusqlite::Result<Option<LaneId>> {
        if let Some((org, lane)) = after {
            // Not as one comparison of pairs: SQLite would begin it at the first lane of the org.
            let same_org = self.next_of_org(class, org, lane.as_str())?;
            if same_org.is_some() {
                return Ok(same_org);
            }
        }
        let sql = format!(
            "SELECT org, lane FROM rank r WHERE class = ?1 AND org > ?2 AND {OCCUPIED} ORDER BY org, lane LIMIT 1"
        );
        self.conn
            .prepare_cached(&sql)?
            .query_row((class.number(), after.map_or("", |(org, _)| org.as_str())), lane_id)
            .optional()
    }

    fn next_of_org(&self, class: Class, org: &OrgId, after: &str) -> rusqlite::Result<Option<LaneId>> {
        let sql = format!(
            "SELECT org, lane FROM rank r WHERE class = ?1 AND org = ?2 AND lane > ?3 AND {OCCUPIED} ORDER BY lane LIMIT 1"
        );
        self.conn.prepare_cached(&sql)?.query_row((class.number(), org.as_str(), after), lane_id).optional()
    }

    /// Shows what a lane could give of a class; whether it could.
    fn open(&mut self, id: &LaneId, class: Class) -> rusqlite::Result<bool> {
        let (org, lane) = id;
        if self.paused.contains(id) {
            return Ok(false);
        }
        let row = match self.world.known_lane(org, lane) {
            Some(known) => known,
            None => {
                self.world.load_lane(org, lane, load::lane(self.conn, self.open_lanes, org, lane)?);
                self.world.lane(org, lane)
            }
        };
        let moving = self.moving.contains(id);
        let free = row.and_then(|row| if moving { row.max } else { row.free() });
        let room = free.map_or(self.want, |free| self.want.min(free as usize));
        if row.is_some_and(|row| row.waiting == 0) {
            // A full lane is not asked for those who need a slot, so nobody would find out that there are none.
            self.ranks.nobody_waits(class, id);
        }
        if class == Class::Background && self.found.lanes.contains_key(id) {
            // What it has of both was shown with its interactive jobs.
            return Ok(true);
        }
        let mut heads = Vec::new();
        self.heads(id, class, [self.want, room], &mut heads)?;
        let gives = !heads.is_empty();
        if gives && class == Class::Interactive {
            // In case it has been giving interactive jobs for too long.
            self.heads(id, Class::Background, [self.want, room], &mut heads)?;
        }
        if gives && (class == Class::Interactive || self.competing) {
            let Self { conn, ref ranks, ask, want, ref types, now, aging, ref mut arrivals, .. } = *self;
            Aged { conn, ranks, ask, types, lane: id, most: [want, room], now, aging, arrivals }.join(&mut heads)?;
        }
        if gives {
            self.found.lanes.insert(id.clone(), heads);
        }
        Ok(gives)
    }

    /// The best of a class in a lane: so many of those that need no slot, and of those that do.
    fn heads(
        &mut self,
        id: &LaneId,
        class: Class,
        most: [usize; 2],
        heads: &mut Vec<Candidate>,
    ) -> rusqlite::Result<()> {
        let ranks = self.ranks.of(self.conn, class, id, &self.types)?;
        for (needs_slot, most) in [false, true].into_iter().zip(most).filter(|(_, most)| *most > 0) {
            let mut found = Vec::new();
            for rank in ranks.iter().filter(|rank| rank.needs_slot == needs_slot) {
                self.take(id, class, rank, most, &mut found)?;
            }
            // Of several types, the best of all.
            found.sort_unstable_by_key(|head| head.place);
            found.truncate(most);
            heads.append(&mut found);
        }
        Ok(())
    }

    /// The best of one rank.
    fn take(
        &mut self,
        id: &LaneId,
        class: Class,
        rank: &Rank,
        most: usize,
        found: &mut Vec<Candidate>,
    ) -> rusqlite::Result<()> {
        let limit = row_limit(SCAN_MAX.max(most));
        let mut scan = self.ready.get()?.query((rank.id, limit))?;
        let (before, mut empty) = (found.len(), true);
        while found.len() - before < most
            && let Some(row) = scan.next()?
        {
            empty = false;
            let job = live_job(row)?;
            if self.ask.wants(&job) {
                found.push(candidate(row, job, self.arrivals)?);
            }
        }
        if empty {
            self.ranks.remove(class, id, rank);
        }
        Ok(())
    }
}

pub(super) fn candidate(row: &Row<'_>, job: Job, arrivals: &mut Arrivals) -> rusqlite::Result<Candidate> {
    let spot = rows::spot(row)?;
    arrivals.note(&job.org, job.id, spot);
    let place = Place { priority: job.priority, order: spot.ord };
    Ok(Candidate { place, job: job.into(), payload: Json::stored(row.get::<_, String>(rows::LIVE_LEN)?) })
}

fn lane_id(row: &Row<'_>) -> rusqlite::Result<LaneId> {
    Ok((rows::parsed(row, 0)?, rows::parsed(row, 1)?))
}
