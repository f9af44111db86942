//! Finding due jobs for an ask: a walk over lanes, class by class, from where the last one ended.
//!
//! Jobs that need a slot of their lane are found by doors, which only lanes with a free slot have; jobs that bring one, or
//! whose lane does not count, stand apart and are walked by themselves. One statement does all of it.
//!
//! Lanes and jobs in other hands are skipped, never waited for: whoever waits here may hold locks.

use super::link::Link;
use super::rows::{self, Result, get, parsed};
use super::statements::{LIVE, LIVE_LEN};
use super::successors;
use super::write::int;
use crate::group::Ask;
use crate::hand_out::{Candidate, Found, LOOK_MAX, PROBE, SCAN_MAX};
use crate::records::row_limit;
use baton_core::World;
use baton_core::canon::Json;
use baton_core::lane;
use baton_core::schedule::{Class, LaneId, Place};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row};
use uuid::Uuid;

/// Which kinds that are asked for wait at all, in which class, with a slot or needing one: only these are looked for. Once
/// it is known that something waits there, each by its own part of the index, so nobody reads through what others wait for.
/// $1 and $2 kinds, $7 and $8 the first and the last org.
const THERE: &str = "there AS MATERIALIZED (SELECT v.class, v.needs, k.type, k.version \
    FROM (VALUES (0, 0), (0, 1), (1, 0), (1, 1)) v(class, needs) \
    CROSS JOIN LATERAL (SELECT 1 FROM live s WHERE s.phase = 1 AND s.class = v.class AND s.needs = v.needs LIMIT 1) a \
    CROSS JOIN unnest($1::text[], $2::int[]) AS k(type, version) \
    CROSS JOIN LATERAL (SELECT 1 FROM live s WHERE s.phase = 1 AND s.class = v.class AND s.needs = v.needs \
    AND s.type = k.type AND s.version = k.version AND s.org >= $7::text AND s.org <= $8::text LIMIT 1) s)";

/// The lanes of jobs that the group moves: they may be free when it is decided. A lane without a row is never full, so
/// it needs no second look. $5 and $6 jobs, $9 lanes, if not all.
const MOVING: &str = "SELECT DISTINCT -1 AS way, 0 AS class, l.org, l.lane, 0 AS looked, NOT EXISTS (SELECT 1 FROM doc d \
    WHERE d.org = l.org AND d.class = 'lane' AND d.key = l.lane AND d.flag) AS open, true AS has_row \
    FROM unnest($5::text[], $6::uuid[]) AS k(org, id) CROSS JOIN LATERAL \
    (SELECT y.org, y.lane FROM live y WHERE y.org = k.org AND y.id = k.id AND y.kept OFFSET 0) l \
    WHERE l.org >= $7::text AND l.org <= $8::text AND ($9::text[] IS NULL OR l.lane = ANY ($9))";

/// What lanes could give, once it is known which: of each kind as many as fit, because each kind stands by itself. Behind
/// the best jobs come those background jobs that have waited for longest, if there are interactive ones that they must be
/// guarded from. $3 jobs wanted, $4 projects, if not all.
fn heads_sql(lanes: &str) -> String {
    let wanted = wanted("l");
    let given = "w.open AND (k.running IS NOT NULL OR NOT w.has_row)";
    let room = "CASE WHEN k.max IS NULL THEN $3::bigint ELSE least($3::bigint, \
         CASE WHEN w.way < 0 THEN k.max ELSE greatest(k.max - k.running, 0) END) END";
    let most = format!("CASE WHEN v.needs = 0 THEN $3::bigint ELSE {room} END");
    format!(
        "{lanes} \
         SELECT w.way, w.org, w.lane, w.looked, w.open, w.has_row, k.max, k.running, k.waiting, k.outside, k.burst, h.* \
         FROM lanes w \
         LEFT JOIN LATERAL (SELECT max, running, waiting, outside, burst FROM lane x WHERE w.open AND x.org = w.org \
         AND x.key = w.lane OFFSET 0 FOR UPDATE SKIP LOCKED) k ON true \
         LEFT JOIN LATERAL (SELECT l.*, p.payload FROM ( \
         SELECT l.* FROM there v CROSS JOIN LATERAL (SELECT {LIVE} FROM live l WHERE {given} AND v.class >= w.class \
         AND l.phase = 1 AND l.class = v.class AND l.needs = v.needs AND l.type = v.type AND l.version = v.version \
         AND l.org = w.org AND l.lane = w.lane AND {wanted} ORDER BY l.priority, l.ord \
         LIMIT {most} FOR UPDATE SKIP LOCKED) l \
         UNION ALL SELECT o.* FROM (SELECT a.needs, a.type, a.version FROM there a WHERE a.class = 1 \
         AND EXISTS (SELECT 1 FROM there i WHERE i.class = 0)) v \
         CROSS JOIN LATERAL (SELECT {LIVE} FROM live l WHERE {given} AND l.phase = 1 AND l.slot = 1 AND l.class = 1 \
         AND l.needs = v.needs AND l.type = v.type AND l.version = v.version AND l.org = w.org AND l.lane = w.lane \
         AND {wanted} ORDER BY l.since LIMIT {most} FOR UPDATE SKIP LOCKED) o) l \
         CROSS JOIN LATERAL (SELECT payload FROM job y WHERE y.org = l.org AND y.id = l.id OFFSET 0) p) h ON true"
    )
}

/// Whether a row of a kind that is asked for is one that is asked for.
fn wanted(row: &str) -> String {
    format!("($4::text[] IS NULL OR {row}.project = ANY ($4))")
}

/// Whether lane `n` has a ready job of this class that is asked for, with a slot or needing one. Each by its own part of
/// the index: a full lane with a long queue is not read through.
fn has(class: &str, needs: &str) -> String {
    let wanted = wanted("s");
    format!(
        "EXISTS (SELECT 1 FROM there t CROSS JOIN LATERAL (SELECT s.project FROM live s WHERE s.phase = 1 \
         AND s.class = {class} AND s.needs = {needs} AND s.type = t.type AND s.version = t.version \
         AND s.org = n.org AND s.lane = n.lane LIMIT {SCAN_MAX}) s WHERE t.class = {class} AND t.needs = {needs} AND {wanted})"
    )
}

/// Whether lane `n` is paused.
const PAUSED: &str =
    "EXISTS (SELECT 1 FROM doc d WHERE d.org = n.org AND d.class = 'lane' AND d.key = n.lane AND d.flag)";

/// The next lane behind `b` that may give something of the class and the need of `w`: one where jobs wait that need nothing,
/// or the first with a door from where a job waits that needs one. It may turn out that behind that door nobody waits.
const NEXT: &str = "SELECT t.org, t.lane FROM (SELECT r.org, r.lane FROM there v CROSS JOIN LATERAL \
    (SELECT r.org, r.lane FROM live r WHERE r.phase = 1 AND r.class = w.class AND r.needs = w.needs AND r.type = v.type \
    AND r.version = v.version AND (r.org, r.lane) > (b.org, b.lane) AND r.org <= $8::text ORDER BY r.org, r.lane LIMIT 1) r \
    WHERE v.class = w.class AND v.needs = w.needs ORDER BY r.org, r.lane LIMIT 1) r \
    CROSS JOIN LATERAL (SELECT r.org, r.lane WHERE w.needs = 0 UNION ALL (SELECT x.org, x.door FROM lane x \
    WHERE w.needs = 1 AND x.door IS NOT NULL AND (x.org, x.door) >= (r.org, r.lane) AND x.org <= $8::text \
    ORDER BY x.org, x.door LIMIT 1)) t";

/// Up to four walks at once: two classes, with and without need, if anything waits there that is asked for. Each goes once
/// round the lanes, or until enough was found. Behind the parameters above: $10 and $11 the interactive lane to start after,
/// $12 lanes wanted, $13 to $15 the same for the background.
pub(super) fn walk_sql() -> String {
    let has = has("w.class", "w.needs");
    // OFFSET 0 keeps what is asked of a lane from being asked twice.
    heads_sql(&format!(
        "WITH RECURSIVE {THERE}, \
         walk(class, needs, enough, from_org, from_lane, org, lane, wrapped, looked, gave, open, has_row) AS ( \
         SELECT v.class, n.needs, v.enough, v.org, v.lane, coalesce(nullif(v.org, ''), $7::text) COLLATE \"C\", v.lane, \
         v.org = '', 0, 0, false, false FROM \
         (VALUES (0, $10::text COLLATE \"C\", $11::text COLLATE \"C\", $12::int), (1, $13::text, $14::text, $15::int)) \
         v(class, org, lane, enough) CROSS JOIN (VALUES (0), (1)) n(needs) \
         WHERE EXISTS (SELECT 1 FROM there t WHERE t.class = v.class AND t.needs = n.needs) UNION ALL \
         SELECT w.class, w.needs, w.enough, w.from_org, w.from_lane, n.org, n.lane, n.wrapped, w.looked + 1, \
         w.gave + o.open::int, o.open, o.has_row FROM walk w \
         CROSS JOIN LATERAL (SELECT n.org, n.lane, b.wrapped \
             FROM (VALUES (w.org, w.lane, w.wrapped, true), ($7::text, '', true, NOT w.wrapped)) b(org, lane, wrapped, ahead) \
             CROSS JOIN LATERAL ({NEXT}) n WHERE b.ahead LIMIT 1) n \
         CROSS JOIN LATERAL (SELECT {has} AND NOT {PAUSED} AS open, w.needs = 1 OR EXISTS (SELECT 1 FROM lane x \
             WHERE x.org = n.org AND x.key = n.lane) AS has_row OFFSET 0) o \
         WHERE w.looked < {LOOK_MAX} AND w.gave < w.enough AND NOT (n.wrapped AND w.from_org <> '' \
         AND (n.org, n.lane) > (w.from_org, w.from_lane))), \
         lanes AS ({MOVING} UNION ALL SELECT class * 2 + needs, class, org, lane, looked, open, has_row FROM walk WHERE looked > 0)"
    ))
}

/// Lanes that are named, instead of a walk.
pub(super) fn named_sql() -> String {
    let (brings, needs) = (has("v.class", "0"), has("v.class", "1"));
    heads_sql(&format!(
        "WITH {THERE}, lanes AS ({MOVING} UNION ALL SELECT v.class * 2, v.class, n.org, n.lane, n.looked, \
         NOT {PAUSED} AND ({brings} OR NOT c.full AND {needs}), c.has_row \
         FROM (SELECT $7::text COLLATE \"C\" AS org, k.lane COLLATE \"C\" AS lane, k.looked::int \
         FROM unnest($9::text[]) WITH ORDINALITY AS k(lane, looked)) n CROSS JOIN (VALUES (0), (1)) v(class) \
         CROSS JOIN LATERAL (SELECT count(*) > 0 AS has_row, coalesce(bool_or(x.running >= x.max), false) AS full FROM lane x \
         WHERE x.org = n.org AND x.key = n.lane) c)"
    ))
}

/// What an ask sends, in a shape that lives as long as the sending.
pub(super) struct Asking {
    types: Vec<String>,
    versions: Vec<i32>,
    want: i64,
    from: [(String, String); 2],
    enough: [i32; 2],
    /// The first and the last org that is asked about.
    orgs: [String; 2],
    lanes: Option<Vec<String>>,
    projects: Option<Vec<String>>,
    everywhere: bool,
}

/// Greater than the name of every org.
const LAST_ORG: &str = "~";

impl Asking {
    /// Those before this ask in its group may take the best, so `want` may be more than it asks for.
    pub fn new(ask: &Ask, want: usize) -> Self {
        let from = |class| match ask.turns.last(class) {
            Some((org, lane)) => (org.to_string(), lane.to_string()),
            None => (String::new(), String::new()),
        };
        let lanes = |n: usize| i32::try_from(n).unwrap_or(i32::MAX);
        Self {
            types: ask.kinds.iter().map(|kind| kind.name.to_string()).collect(),
            versions: ask.kinds.iter().map(|kind| int(kind.version)).collect(),
            want: row_limit(want),
            from: [from(Class::Interactive), from(Class::Background)],
            enough: [lanes(want), lanes(want.saturating_add(PROBE))],
            orgs: match ask.org() {
                Some(org) => [org.to_string(), org.to_string()],
                None => [String::new(), LAST_ORG.to_owned()],
            },
            lanes: ask.lanes().map(|lanes| lanes.iter().map(ToString::to_string).collect()),
            projects: (ask.scope.as_ref())
                .and_then(|scope| Some(scope.projects.as_ref()?.iter().map(ToString::to_string).collect())),
            everywhere: ask.is_everywhere(),
        }
    }

    /// `jobs` are those that the group's commands move.
    pub async fn send(&self, link: &Link, jobs: &(Vec<&str>, Vec<Uuid>)) -> std::result::Result<Vec<Row>, Error> {
        let s = &link.statements;
        if !self.everywhere {
            let params: [&(dyn ToSql + Sync); 5] = [&self.types, &self.versions, &jobs.0, &jobs.1, &self.want];
            return link.client.query(&s.successors, &params).await;
        }
        let ([first, last], [here, there]) = (&self.orgs, &self.from);
        let heads: [&(dyn ToSql + Sync); 9] =
            [&self.types, &self.versions, &self.want, &self.projects, &jobs.0, &jobs.1, first, last, &self.lanes];
        if self.lanes.is_some() {
            return link.client.query(&s.named, &heads).await;
        }
        let walk: [&(dyn ToSql + Sync); 6] = [&here.0, &here.1, &self.enough[0], &there.0, &there.1, &self.enough[1]];
        let params: Vec<_> = heads.into_iter().chain(walk).collect();
        link.client.query(&s.walk, &params).await
    }
}

/// How far one of the walks went.
#[derive(Clone, Default)]
struct Way {
    /// The last lane that was looked at.
    last: Option<LaneId>,
    looked: i32,
    gave: i32,
}

impl Way {
    fn step(&mut self, lane: &LaneId, looked: i32, open: bool) {
        if self.last.as_ref() != Some(lane) {
            self.gave += i32::from(open);
            self.last = Some(lane.clone());
        }
        self.looked = self.looked.max(looked);
    }

    /// It ended before it was round.
    fn is_cut(&self, enough: i32) -> bool {
        self.gave >= enough || row_limit(LOOK_MAX) <= i64::from(self.looked)
    }
}

/// Puts the answer together. Lanes that could be locked become part of the world.
pub(super) fn found(world: &mut World, asking: &Asking, answer: &[Row]) -> Result<Found> {
    if !asking.everywhere {
        return successors::found(world, answer);
    }
    let mut found = Found::default();
    let mut ways: [Way; 4] = Default::default();
    for row in answer {
        let walked = usize::try_from(get::<i32>(row, 0)?).ok();
        let id: LaneId = (parsed(row, 1)?, parsed(row, 2)?);
        let open: bool = get(row, 4)?;
        if let Some(way) = walked.and_then(|way| ways.get_mut(way)) {
            way.step(&id, get(row, 3)?, open);
        }
        if !open {
            continue;
        }
        let locked = get::<Option<i32>>(row, 7)?.is_some();
        if get(row, 5)? && !locked {
            found.more = true;
            continue;
        }
        let lane_row = if locked { Some(lane_row(row, 6)?) } else { None };
        world.load_lane(&id.0, &id.1, lane_row);
        let heads = found.lanes.entry(id).or_default();
        if get::<Option<&str>>(row, HEAD)?.is_none() {
            // Open, but with nothing to show: somebody else holds it just now.
            found.more |= walked.is_some();
            continue;
        }
        let candidate = candidate(row, HEAD)?;
        if !heads.iter().any(|head| head.job.id == candidate.job.id) {
            heads.push(candidate);
        }
    }
    let [interactive, background] = [&ways[..2], &ways[2..]];
    found.looked.interactive = asking.ended(0, interactive, &mut found.more);
    found.looked.background = asking.ended(1, background, &mut found.more);
    Ok(found)
}

impl Asking {
    /// Where the walks of a class ended: nothing between there and where they began was left out by either.
    fn ended(&self, class: usize, ways: &[Way], more: &mut bool) -> Option<LaneId> {
        let (org, lane) = &self.from[class];
        let distance = |id: &LaneId| ((id.0.as_str(), id.1.as_str()) <= (org.as_str(), lane.as_str()), id.clone());
        let cut: Vec<_> = ways.iter().filter(|way| way.is_cut(self.enough[class])).collect();
        *more |= !cut.is_empty();
        let ends = cut.into_iter().filter_map(|way| way.last.clone()).min_by_key(distance);
        ends.or_else(|| ways.iter().filter_map(|way| way.last.clone()).max_by_key(distance))
    }
}

/// Where a job's columns begin.
const HEAD: usize = 11;

pub(super) fn lane_row(row: &Row, from: usize) -> Result<lane::Row> {
    Ok(lane::Row {
        max: rows::maybe_count(row, from)?,
        running: rows::count(row, from + 1)?,
        waiting: rows::count(row, from + 2)?,
        outside: rows::count(row, from + 3)?,
        burst: rows::count(row, from + 4)?,
    })
}

/// A job whose columns begin there, and behind them its payload.
pub(super) fn candidate(row: &Row, from: usize) -> Result<Candidate> {
    let job = rows::live_job_from(row, from)?;
    let place = Place { priority: job.priority, order: get(row, from + rows::LIVE_ORD)? };
    Ok(Candidate { place, job: job.into(), payload: Json::stored(get::<&str>(row, from + LIVE_LEN)?) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_core::OrgId;
    use baton_core::lane::LaneKey;

    fn lane(key: &str) -> LaneId {
        (OrgId::default(), LaneKey::new(key).unwrap())
    }

    fn way(last: &str, looked: i32, gave: i32) -> Way {
        Way { last: Some(lane(last)), looked, gave }
    }

    #[test]
    fn walks_of_a_class_end_where_the_nearer_one_was_cut() {
        let start = lane("m");
        let asking = Asking {
            types: Vec::new(),
            versions: Vec::new(),
            want: 2,
            from: [(start.0.to_string(), start.1.to_string()), (String::new(), String::new())],
            enough: [2, 6],
            orgs: [String::new(), LAST_ORG.to_owned()],
            lanes: None,
            projects: None,
            everywhere: true,
        };
        let check = |ways: [Way; 2], end: Option<&str>, cut: bool| {
            let mut more = false;
            assert_eq!(asking.ended(0, &ways, &mut more), end.map(lane));
            assert_eq!(more, cut);
        };
        // From m over z to a and on: z is nearer than b.
        check([way("b", 9, 2), way("z", 3, 2)], Some("z"), true);
        // The other went round.
        check([way("b", 9, 2), way("n", 3, 1)], Some("b"), true);
        check([way("b", 9, 1), way("n", 3, 1)], Some("b"), false);
        check([Way::default(), Way::default()], None, false);
    }
}
