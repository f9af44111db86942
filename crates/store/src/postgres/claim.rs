//! Finding due jobs for an ask: a walk over lanes, class by class, from where the last one ended.
//!
//! Lanes and jobs in other hands are skipped, never waited for: whoever waits here may hold locks.

use super::link::Link;
use super::rows::{self, Result, get, parsed};
use super::statements::LIVE;
use crate::group::Ask;
use crate::hand_out::{Candidate, Found, LOOK_MAX, PROBE, SCAN_MAX};
use crate::records::row_limit;
use baton_core::World;
use baton_core::canon::Json;
use baton_core::lane;
use baton_core::schedule::{Class, LaneId, Place};
use futures_util::join;
use tokio_postgres::{Error, Row};
use uuid::Uuid;

/// What lanes could give, once it is known which. `room` says how many jobs that need a slot. Behind
/// the best jobs come those background jobs that have waited for longest. $1 kinds, $2 class, $3 jobs wanted,
/// $4 projects, if not all.
fn heads_sql(lanes: &str, room: &str) -> String {
    let wanted = wanted("l");
    let given = "w.open AND (k.running IS NOT NULL OR NOT w.has_row)";
    format!(
        "{lanes} SELECT w.org, w.lane, w.looked, w.open, w.has_row, k.max, k.running, k.waiting, k.outside, k.burst, h.* FROM lanes w \
         LEFT JOIN LATERAL (SELECT max, running, waiting, outside, burst FROM lane x WHERE w.open AND x.org = w.org \
         AND x.key = w.lane OFFSET 0 FOR UPDATE SKIP LOCKED) k ON true \
         LEFT JOIN LATERAL (SELECT l.*, p.payload FROM ( \
         SELECT l.* FROM (VALUES (0, 0), (0, 1), (1, 0), (1, 1)) v(class, slot) \
         CROSS JOIN LATERAL (SELECT {LIVE} FROM live l WHERE {given} AND v.class >= $2::int \
         AND l.phase = 1 AND l.class = v.class AND l.org = w.org AND l.lane = w.lane AND l.slot = v.slot \
         AND {wanted} ORDER BY l.priority, l.ord \
         LIMIT CASE WHEN v.slot = 0 OR k.max IS NULL THEN $3::bigint ELSE least($3::bigint, {room}) END FOR UPDATE SKIP LOCKED) l \
         UNION ALL SELECT o.* FROM (SELECT {LIVE} FROM live l WHERE {given} AND l.phase = 1 AND l.slot = 1 AND l.class = 1 \
         AND l.org = w.org AND l.lane = w.lane AND {wanted} ORDER BY l.since \
         LIMIT CASE WHEN k.max IS NULL THEN $3::bigint ELSE least($3::bigint, {room}) END FOR UPDATE SKIP LOCKED) o) l \
         CROSS JOIN LATERAL (SELECT payload FROM job y WHERE y.org = l.org AND y.id = l.id OFFSET 0) p) h ON true \
         ORDER BY w.looked"
    )
}

/// Whether a row is one that is asked for.
fn wanted(row: &str) -> String {
    format!("({row}.type || '@' || {row}.version) = ANY ($1) AND ($4::text[] IS NULL OR {row}.project = ANY ($4))")
}

/// Whether lane `n` has a ready job that is asked for, with a slot or wanting one. Each by its own part of the index: a
/// full lane with a long queue is not read through.
fn has(slot: i16) -> String {
    let wanted = wanted("s");
    format!(
        "EXISTS (SELECT 1 FROM (SELECT s.type, s.version, s.project FROM live s WHERE s.phase = 1 AND s.class = $2::int \
         AND s.org = n.org AND s.lane = n.lane AND s.slot = {slot} ORDER BY s.priority, s.ord LIMIT {SCAN_MAX}) s \
         WHERE {wanted})"
    )
}

/// Behind the parameters of the heads: $5 and $6 the lane to start after, $7 lanes wanted, $8 and $9 the first and
/// the last org.
pub(super) fn walk_sql() -> String {
    let (brings, needs) = (has(0), has(1));
    // OFFSET 0 keeps what is asked of a lane from being asked twice; most lanes are full, so that comes first.
    let lanes = format!(
        "WITH RECURSIVE walk(org, lane, wrapped, looked, gave, open, has_row) AS ( \
         SELECT coalesce(nullif($5::text, ''), $8::text) COLLATE \"C\", $6::text COLLATE \"C\", $5::text = '', 0, 0, false, false UNION ALL \
         SELECT n.org, n.lane, n.wrapped, w.looked + 1, w.gave + o.open::int, o.open, o.has_row FROM walk w \
         CROSS JOIN LATERAL (SELECT * FROM ( \
             (SELECT l.org, l.lane, w.wrapped FROM live l WHERE l.phase = 1 AND l.class = $2::int \
              AND (l.org, l.lane) > (w.org, w.lane) AND l.org <= $9::text ORDER BY l.org, l.lane LIMIT 1) UNION ALL \
             (SELECT l.org, l.lane, true FROM live l WHERE NOT w.wrapped AND l.phase = 1 AND l.class = $2::int \
              AND l.org >= $8::text AND l.org <= $9::text ORDER BY l.org, l.lane LIMIT 1)) a LIMIT 1) n \
         CROSS JOIN LATERAL (SELECT c.has_row, ({brings} OR NOT c.full AND {needs}) AND NOT EXISTS (SELECT 1 FROM doc d \
             WHERE d.org = n.org AND d.class = 'lane' AND d.key = n.lane AND d.flag) AS open FROM ( \
             SELECT count(*) > 0 AS has_row, coalesce(bool_or(x.running >= x.max), false) AS full FROM lane x \
             WHERE x.org = n.org AND x.key = n.lane) c OFFSET 0) o \
         WHERE w.looked < {LOOK_MAX} AND w.gave < $7::int AND NOT (n.wrapped AND $5::text <> '' AND (n.org, n.lane) > \
         ($5::text COLLATE \"C\", $6::text COLLATE \"C\"))), lanes AS (SELECT * FROM walk WHERE looked > 0)"
    );
    heads_sql(&lanes, "greatest(k.max - k.running, 0)")
}

/// Lanes that are named. Behind the parameters of the heads: $5 their org, $6 their keys.
pub(super) fn named_sql() -> String {
    let (brings, needs) = (has(0), has(1));
    let lanes = format!(
        "WITH lanes AS (SELECT n.org, n.lane, n.looked, NOT EXISTS (SELECT 1 FROM doc d WHERE d.org = n.org \
         AND d.class = 'lane' AND d.key = n.lane AND d.flag) AND ({brings} OR NOT c.full AND {needs}) AS open, c.has_row \
         FROM (SELECT $5::text COLLATE \"C\" AS org, k.lane COLLATE \"C\" AS lane, k.looked::int \
         FROM unnest($6::text[]) WITH ORDINALITY AS k(lane, looked)) n CROSS JOIN LATERAL ( \
         SELECT count(*) > 0 AS has_row, coalesce(bool_or(x.running >= x.max), false) AS full FROM lane x \
         WHERE x.org = n.org AND x.key = n.lane) c)"
    );
    heads_sql(&lanes, "greatest(k.max - k.running, 0)")
}

/// Behind the parameters of the heads: $5 and $6 jobs, $7 and $8 the first and the last org, $9 lanes, if not all. A
/// lane without a row is never full, so it needs no second look.
pub(super) fn moving_sql() -> String {
    let lanes = "WITH lanes AS (SELECT DISTINCT l.org, l.lane, 0 AS looked, NOT EXISTS (SELECT 1 FROM doc d \
         WHERE d.org = l.org AND d.class = 'lane' AND d.key = l.lane AND d.flag) AS open, true AS has_row \
         FROM unnest($5::text[], $6::uuid[]) AS k(org, id) CROSS JOIN LATERAL \
         (SELECT y.org, y.lane FROM live y WHERE y.org = k.org AND y.id = k.id AND y.kept OFFSET 0) l \
         WHERE l.org >= $7::text AND l.org <= $8::text AND ($9::text[] IS NULL OR l.lane = ANY ($9)))";
    heads_sql(lanes, "k.max")
}

/// What an ask sends, in a shape that lives as long as the sending.
pub(super) struct Asking {
    kinds: Vec<String>,
    want: i64,
    from: [(String, String); 2],
    enough: [i32; 2],
    /// The first and the last org that is asked about.
    orgs: [String; 2],
    lanes: Option<Vec<String>>,
    projects: Option<Vec<String>>,
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
            kinds: ask.kinds.iter().map(ToString::to_string).collect(),
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
        }
    }

    /// All three questions at once. `jobs` are those that the group's commands move.
    pub async fn send(&self, link: &Link, jobs: &(Vec<&str>, Vec<Uuid>)) -> std::result::Result<[Vec<Row>; 3], Error> {
        let moving = async {
            if jobs.0.is_empty() {
                return Ok(Vec::new());
            }
            let [first, last] = &self.orgs;
            let params: [&(dyn tokio_postgres::types::ToSql + Sync); 9] =
                [&self.kinds, &INTERACTIVE, &self.want, &self.projects, &jobs.0, &jobs.1, first, last, &self.lanes];
            link.client.query(&link.statements.moving, &params).await
        };
        let (moving, interactive, background) = join!(moving, self.walk(link, 0), self.walk(link, 1));
        Ok([moving?, interactive?, background?])
    }

    async fn walk(&self, link: &Link, class: usize) -> std::result::Result<Vec<Row>, Error> {
        let (org, lane) = &self.from[class];
        let [first, last] = &self.orgs;
        let number = if class == 0 { INTERACTIVE } else { BACKGROUND };
        if self.lanes.is_some() {
            let params: [&(dyn tokio_postgres::types::ToSql + Sync); 6] =
                [&self.kinds, &number, &self.want, &self.projects, first, &self.lanes];
            return link.client.query(&link.statements.named, &params).await;
        }
        let params: [&(dyn tokio_postgres::types::ToSql + Sync); 9] =
            [&self.kinds, &number, &self.want, &self.projects, org, lane, &self.enough[class], first, last];
        link.client.query(&link.statements.walk, &params).await
    }
}

const INTERACTIVE: i32 = 0;
const BACKGROUND: i32 = 1;

/// Puts the answers together. Lanes that could be locked become part of the world.
pub(super) fn found(world: &mut World, asking: &Asking, answers: [Vec<Row>; 3]) -> Result<Found> {
    let mut found = Found::default();
    let [moving, interactive, background] = answers;
    take(world, &mut found, &moving, None)?;
    found.looked.interactive = take(world, &mut found, &interactive, Some(asking.enough[0]))?;
    found.looked.background = take(world, &mut found, &background, Some(asking.enough[1]))?;
    Ok(found)
}

/// The last lane that was looked at.
fn take(world: &mut World, found: &mut Found, answer: &[Row], enough: Option<i32>) -> Result<Option<LaneId>> {
    let (mut last, mut looked, mut gave) = (None, 0, 0);
    for row in answer {
        let id: LaneId = (parsed(row, 0)?, parsed(row, 1)?);
        let open: bool = get(row, 3)?;
        let has_row: bool = get(row, 4)?;
        let n: i32 = get(row, 2)?;
        if last.as_ref() != Some(&id) {
            gave += i32::from(open);
        }
        looked = looked.max(n);
        last = Some(id.clone());
        let locked = get::<Option<i32>>(row, 6)?.is_some();
        if !open {
            continue;
        }
        if has_row && !locked {
            found.more = true;
            continue;
        }
        let lane_row = if locked { Some(lane_row(row, 5)?) } else { None };
        world.load_lane(&id.0, &id.1, lane_row);
        let heads = found.lanes.entry(id).or_default();
        // Open, but with nothing to show: somebody else holds it just now.
        found.more |= enough.is_some() && get::<Option<&str>>(row, HEAD)?.is_none();
        if get::<Option<&str>>(row, HEAD)?.is_some() {
            let candidate = candidate(row)?;
            if !heads.iter().any(|head| head.job.id == candidate.job.id) {
                heads.push(candidate);
            }
        }
    }
    if let Some(enough) = enough {
        found.more |= gave >= enough || row_limit(LOOK_MAX) <= i64::from(looked);
    }
    Ok(last)
}

/// Where a job's columns begin.
const HEAD: usize = 10;

pub(super) fn lane_row(row: &Row, from: usize) -> Result<lane::Row> {
    Ok(lane::Row {
        max: rows::maybe_count(row, from)?,
        running: rows::count(row, from + 1)?,
        waiting: rows::count(row, from + 2)?,
        outside: rows::count(row, from + 3)?,
        burst: rows::count(row, from + 4)?,
    })
}

fn candidate(row: &Row) -> Result<Candidate> {
    let job = rows::live_job_from(row, HEAD)?;
    let place = Place { priority: job.priority, order: get(row, HEAD + rows::LIVE_ORD)? };
    Ok(Candidate { place, job, payload: Json::stored(get::<&str>(row, HEAD + super::statements::LIVE_LEN)?) })
}
