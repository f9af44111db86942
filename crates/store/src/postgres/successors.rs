//! Finding successors: the next jobs of lanes in which others of the group end, which is where slots become free. One
//! small statement instead of a walk, and no look at what comes due.

use super::claim::candidate;
use super::load::NOW_LEN;
use super::rows::{Result, get};
use super::statements::LIVE;
use crate::hand_out::Found;
use baton_core::World;
use tokio_postgres::Row;

/// Behind what `now` says, once also if there are none: from each lane with a limit as many jobs as the group moves there,
/// and those background jobs that have waited for longest, if there are interactive ones that they must be guarded from. The
/// lanes are locked by then. $1 and $2 kinds, $3 and $4 jobs, $5 jobs wanted.
pub(super) fn successors_sql() -> String {
    let head = "l.phase = 1 AND l.needs = 1 AND l.type = v.type AND l.version = v.version AND l.org = w.org AND l.lane = w.lane";
    format!(
        "WITH there AS MATERIALIZED (SELECT v.class, k.type, k.version FROM (VALUES (0), (1)) v(class) \
         CROSS JOIN LATERAL (SELECT 1 FROM live s WHERE s.phase = 1 AND s.class = v.class AND s.needs = 1 LIMIT 1) a \
         CROSS JOIN unnest($1::text[], $2::int[]) AS k(type, version) \
         CROSS JOIN LATERAL (SELECT 1 FROM live s WHERE s.phase = 1 AND s.class = v.class AND s.needs = 1 \
         AND s.type = k.type AND s.version = k.version LIMIT 1) s) \
         SELECT n.*, h.* FROM (SELECT baton_now(), pg_current_xact_id()::text OFFSET 0) n \
         LEFT JOIN LATERAL (SELECT l.*, p.payload FROM (SELECT y.org, y.lane, count(*) AS most \
         FROM unnest($3::text[], $4::uuid[]) AS k(org, id) CROSS JOIN LATERAL \
         (SELECT y.org, y.lane FROM live y WHERE y.org = k.org AND y.id = k.id AND y.kept OFFSET 0) y \
         GROUP BY y.org, y.lane HAVING NOT EXISTS (SELECT 1 FROM doc d WHERE d.org = y.org AND d.class = 'lane' \
         AND d.key = y.lane AND d.flag)) w \
         CROSS JOIN LATERAL (SELECT l.* FROM there v CROSS JOIN LATERAL (SELECT {LIVE} FROM live l \
         WHERE l.class = v.class AND {head} ORDER BY l.priority, l.ord LIMIT least(w.most, $5::bigint) FOR UPDATE SKIP LOCKED) l \
         UNION ALL SELECT o.* FROM there v CROSS JOIN LATERAL (SELECT {LIVE} FROM live l \
         WHERE l.slot = 1 AND l.class = 1 AND {head} ORDER BY l.since LIMIT least(w.most, $5::bigint) FOR UPDATE SKIP LOCKED) o \
         WHERE v.class = 1 AND EXISTS (SELECT 1 FROM there i WHERE i.class = 0)) l \
         CROSS JOIN LATERAL (SELECT payload FROM job y WHERE y.org = l.org AND y.id = l.id OFFSET 0) p) h ON true"
    )
}

/// Puts the answer together. Only lanes that were locked may give something.
pub(super) fn found(world: &World, answer: &[Row]) -> Result<Found> {
    let mut found = Found::default();
    for row in answer.iter().filter(|row| matches!(get::<Option<&str>>(row, NOW_LEN), Ok(Some(_)))) {
        let candidate = candidate(row, NOW_LEN)?;
        let id = (candidate.job.org.clone(), candidate.job.lane.key.clone());
        if !world.knows_lane(&id.0, &id.1) {
            continue;
        }
        let heads = found.lanes.entry(id).or_default();
        if !heads.iter().any(|head| head.job.id == candidate.job.id) {
            heads.push(candidate);
        }
    }
    Ok(found)
}
