//! Finding due jobs for an ask: a walk over lanes, class by class, from where the last one ended.

use super::aging::Aged;
use super::arrivals::Arrivals;
use super::load;
use super::open_lanes::OpenLanes;
use super::rows::{self, live_job};
use super::types::Types;
use super::writer::Inner;
use crate::group::Ask;
use crate::hand_out::{Candidate, Found, LOOK_MAX, PROBE, SCAN_MAX};
use crate::phase;
use crate::records::row_limit;
use baton_core::canon::Json;
use baton_core::job::Job;
use baton_core::lane::LaneKey;
use baton_core::schedule::{Class, LaneId, Place};
use baton_core::time::Span;
use baton_core::{Micros, OrgId, World};
use rusqlite::{Connection, OptionalExtension, Row};
use std::collections::BTreeSet;
use std::sync::LazyLock;

/// Scheduled rows that one claim makes ready.
const PROMOTE_MAX: i64 = 1_000;

/// The jobs of a type, of a lane and a class, that can be handed out, best first, with their payloads.
static HEADS: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT {}, j.payload FROM live l INDEXED BY live_ready CROSS JOIN job j ON j.ord = l.ord
         WHERE l.phase = 1 AND l.class = ?1 AND l.org = ?2 AND l.lane = ?3 AND (l.slot AND l.kept) = ?4
         AND l.type = ?5 ORDER BY l.priority, l.ord LIMIT ?6",
        rows::LIVE
    )
});

/// One look for one ask.
struct Look<'a> {
    conn: &'a Connection,
    open_lanes: &'a OpenLanes,
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
}

pub(super) fn find(
    inner: &Inner,
    (world, arrivals): (&mut World, &mut Arrivals),
    (ask, want): &(Ask, usize),
    moving: &BTreeSet<LaneId>,
    (now, aging): (Micros, Span),
) -> rusqlite::Result<Found> {
    let Inner { conn, open_lanes, .. } = inner;
    let promoted = conn
        .prepare_cached(
            "UPDATE live SET phase = ?1 WHERE ord IN (
             SELECT ord FROM live INDEXED BY live_scheduled
             WHERE phase = 2 AND due_at <= ?2 ORDER BY due_at LIMIT ?3)",
        )?
        .execute((phase::READY, now.0, PROMOTE_MAX))?;
    let found = Found { promoted: promoted > 0, ..Found::default() };
    let paused = load::paused_lanes(conn)?;
    let types = Types::asked(ask);
    let (want, competing) = (*want, false);
    let mut look =
        Look { conn, open_lanes, world, ask, want, competing, moving, paused, types, now, aging, arrivals, found };
    look.found.looked.interactive = look.walk(Class::Interactive)?;
    look.competing = !look.found.lanes.is_empty();
    look.found.looked.background = look.walk(Class::Background)?;
    let mut found = look.found;
    found.next_due = conn
        .prepare_cached("SELECT min(due_at) FROM live INDEXED BY live_scheduled WHERE phase = 2")?
        .query_row([], |row| rows::maybe_micros(row, 0))?;
    Ok(found)
}

impl Look<'_> {
    /// Once round the ring of lanes that have ready jobs of a class, or until enough was found. The
    /// last lane looked at.
    fn walk(&mut self, class: Class) -> rusqlite::Result<Option<LaneId>> {
        let start = self.ask.turns.last(class).cloned();
        let enough = match class {
            Class::Interactive => self.want,
            Class::Background => self.want + PROBE,
        };
        let (mut at, mut wrapped, mut gave, mut looked) = (start.clone(), start.is_none(), 0, None);
        for _ in 0..LOOK_MAX {
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
            looked = Some(lane.clone());
            at = Some(lane);
        }
        self.found.more = true;
        Ok(looked)
    }

    fn next_lane(&self, class: Class, after: Option<&LaneId>) -> rusqlite::Result<Option<LaneId>> {
        let Some(org) = self.ask.org() else { return self.next_of_all(class, after) };
        let after = after.map(|(_, lane)| lane);
        if let Some(lanes) = self.ask.lanes() {
            let next = lanes.iter().find(|lane| after.is_none_or(|after| *lane > after));
            return Ok(next.map(|lane| (org.clone(), lane.clone())));
        }
        self.next_of_org(class, org, after.map_or("", LaneKey::as_str))
    }

    fn next_of_all(&self, class: Class, after: Option<&LaneId>) -> rusqlite::Result<Option<LaneId>> {
        if let Some((org, lane)) = after {
            // Not as one comparison of pairs: SQLite would begin it at the pair itself and step over
            // every job that waits in that lane.
            let same_org = self.next_of_org(class, org, lane.as_str())?;
            if same_org.is_some() {
                return Ok(same_org);
            }
        }
        self.conn
            .prepare_cached(
                "SELECT org, lane FROM live INDEXED BY live_ready
                 WHERE phase = 1 AND class = ?1 AND org > ?2 ORDER BY org, lane LIMIT 1",
            )?
            .query_row((class.number(), after.map_or("", |(org, _)| org.as_str())), lane_id)
            .optional()
    }

    fn next_of_org(&self, class: Class, org: &OrgId, after: &str) -> rusqlite::Result<Option<LaneId>> {
        self.conn
            .prepare_cached(
                "SELECT org, lane FROM live INDEXED BY live_ready
                 WHERE phase = 1 AND class = ?1 AND org = ?2 AND lane > ?3 ORDER BY lane LIMIT 1",
            )?
            .query_row((class.number(), org.as_str(), after), lane_id)
            .optional()
    }

    /// Shows what a lane could give of a class; whether it could.
    fn open(&mut self, id: &LaneId, class: Class) -> rusqlite::Result<bool> {
        let (org, lane) = id;
        if self.paused.contains(id) {
            return Ok(false);
        }
        if !self.world.knows_lane(org, lane) {
            self.world.load_lane(org, lane, load::lane(self.conn, self.open_lanes, org, lane)?);
        }
        let moving = self.moving.contains(id);
        let free = self.world.lane(org, lane).and_then(|row| if moving { row.max } else { row.free() });
        let room = free.map_or(self.want, |free| self.want.min(free as usize));
        if class == Class::Background && self.found.lanes.contains_key(id) {
            // What it has of both was shown with its interactive jobs.
            return Ok(true);
        }
        let mut heads = Vec::new();
        self.heads(org, lane, class, 0, self.want, &mut heads)?;
        self.heads(org, lane, class, 1, room, &mut heads)?;
        let gives = !heads.is_empty();
        if gives && class == Class::Interactive {
            // In case it has been giving interactive jobs for too long.
            self.heads(org, lane, Class::Background, 0, self.want, &mut heads)?;
            self.heads(org, lane, Class::Background, 1, room, &mut heads)?;
        }
        if gives && (class == Class::Interactive || self.competing) {
            let Self { conn, ask, want, ref types, now, aging, ref mut arrivals, .. } = *self;
            Aged { conn, ask, types, lane: id, most: [want, room], now, aging, arrivals }.join(&mut heads)?;
        }
        if gives {
            self.found.lanes.insert(id.clone(), heads);
        }
        Ok(gives)
    }

    fn heads(
        &mut self,
        org: &OrgId,
        lane: &LaneKey,
        class: Class,
        needs: i16,
        most: usize,
        heads: &mut Vec<Candidate>,
    ) -> rusqlite::Result<()> {
        if most == 0 {
            return Ok(());
        }
        let limit = row_limit(SCAN_MAX.max(most));
        let mut found = Vec::new();
        for kind in self.types.of(self.conn, (class.number(), org.as_str(), lane.as_str(), needs))? {
            let mut ready = self.conn.prepare_cached(&HEADS)?;
            let mut scan = ready.query((class.number(), org.as_str(), lane.as_str(), needs, &kind, limit))?;
            let before = found.len();
            while found.len() - before < most
                && let Some(row) = scan.next()?
            {
                let job = live_job(row)?;
                if self.ask.wants(&job) {
                    found.push(candidate(row, job, self.arrivals)?);
                }
            }
        }
        // Of several types, the best of all.
        found.sort_unstable_by_key(|head| head.place);
        found.truncate(most);
        heads.append(&mut found);
        Ok(())
    }
}

pub(super) fn candidate(row: &Row<'_>, job: Job, arrivals: &mut Arrivals) -> rusqlite::Result<Candidate> {
    let spot = rows::spot(row)?;
    arrivals.note(&job.org, job.id, spot);
    let place = Place { priority: job.priority, order: spot.ord };
    Ok(Candidate { place, job, payload: Json::stored(row.get::<_, String>(rows::LIVE_LEN)?) })
}

fn lane_id(row: &Row<'_>) -> rusqlite::Result<LaneId> {
    Ok((rows::parsed(row, 0)?, rows::parsed(row, 1)?))
}
