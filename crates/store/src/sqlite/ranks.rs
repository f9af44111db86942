//! Ranks: where jobs stand that can be handed out. One is of a class, a lane and a type, and its jobs need a slot or do not.
//!
//! Each has a number, by which it is found in the index of ready jobs. Which ones are not empty the database can tell, but
//! asking it for lane after lane was a third of what a claim over many lanes cost. The one writer is alone, so it remembers.
//! There may be ranks here that are empty, never one too few: they are added when a job is written that may stand in one, and
//! removed when somebody looks and nobody is there.

use super::rows::parsed;
use super::types::Types;
use baton_core::OrgId;
use baton_core::job::Job;
use baton_core::lane::LaneKey;
use baton_core::name::TypeName;
use baton_core::schedule::{Class, LaneId};
use rusqlite::{Connection, OptionalExtension, Row};
use std::collections::BTreeMap;
use std::ops::Bound;

/// Ranks kept in memory, of some hundred bytes each. With more, the database is asked.
const KEPT: usize = 16_384;

/// Looks after which it is seen whether there are fewer.
const COUNT_AGAIN: u32 = 10_000;

/// Types that wait in one lane and are looked at, of those that need a slot and of those that do not.
const TYPES_MAX: u32 = 1_000;

/// One of the ranks of a lane and a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rank {
    /// Those in it need a slot of the lane.
    pub needs_slot: bool,
    pub kind: TypeName,
    pub id: i64,
}

type Lanes = BTreeMap<OrgId, BTreeMap<LaneKey, Vec<Rank>>>;

#[derive(Default)]
pub(super) enum Ranks {
    /// Nobody has looked.
    #[default]
    Unknown,
    Known(Known),
    /// With the looks until somebody counts again.
    TooMany(u32),
}

/// By class, org and lane.
#[derive(Default)]
pub(super) struct Known {
    lanes: [Lanes; 2],
    count: usize,
}

impl Known {
    const fn of(class: Class) -> usize {
        match class {
            Class::Interactive => 0,
            Class::Background => 1,
        }
    }

    fn find(&self, job: &Job) -> Option<i64> {
        let ranks = self.lanes[Self::of(job.class())].get(&job.org)?.get(&job.lane.key)?;
        let needs_slot = job.needs_slot();
        ranks.iter().find(|rank| rank.needs_slot == needs_slot && rank.kind == job.kind.name).map(|rank| rank.id)
    }

    /// False if there are too many.
    fn put(&mut self, class: Class, lane: LaneId, rank: Rank) -> bool {
        let ranks = self.lanes[Self::of(class)].entry(lane.0).or_default().entry(lane.1).or_default();
        if !ranks.contains(&rank) {
            ranks.push(rank);
            self.count += 1;
        }
        self.count <= KEPT
    }

    fn remove(&mut self, class: Class, (org, lane): &LaneId, gone: impl Fn(&Rank) -> bool) {
        let orgs = &mut self.lanes[Self::of(class)];
        let Some(lanes) = orgs.get_mut(org) else { return };
        let Some(ranks) = lanes.get_mut(lane) else { return };
        let before = ranks.len();
        ranks.retain(|rank| !gone(rank));
        self.count -= before - ranks.len();
        if ranks.is_empty() {
            lanes.remove(lane);
        }
        if lanes.is_empty() {
            orgs.remove(org);
        }
    }

    /// The first lane of these behind this one.
    fn next(&self, class: Class, org: &OrgId, after: Option<&LaneKey>) -> Option<LaneId> {
        let lanes = self.lanes[Self::of(class)].get(org)?;
        let behind = (after.map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded);
        lanes.range::<LaneKey, _>(behind).next().map(|(lane, _)| (org.clone(), lane.clone()))
    }

    fn next_of_all(&self, class: Class, after: Option<&LaneId>) -> Option<LaneId> {
        let same = after.and_then(|(org, lane)| self.next(class, org, Some(lane)));
        let behind = (after.map_or(Bound::Unbounded, |(org, _)| Bound::Excluded(org)), Bound::Unbounded);
        let next_org = || self.lanes[Self::of(class)].range::<OrgId, _>(behind).next();
        same.or_else(|| self.next(class, next_org()?.0, None))
    }
}

impl Ranks {
    /// Looks at all of them, if nobody has.
    pub fn look(&mut self, conn: &Connection) -> rusqlite::Result<()> {
        match self {
            Self::Known(_) => {}
            Self::TooMany(looks) if *looks > 0 => *looks -= 1,
            Self::Unknown | Self::TooMany(_) => *self = all(conn)?.map_or(Self::TooMany(COUNT_AGAIN), Self::Known),
        }
        Ok(())
    }

    /// The first lane of a class behind this one that has any; of one org, if one is named.
    pub fn next(&self, class: Class, org: Option<&OrgId>, after: Option<&LaneId>) -> Next {
        let Self::Known(known) = self else { return Next::Unknown };
        Next::Known(match org {
            Some(org) => known.next(class, org, after.map(|(_, lane)| lane)),
            None => known.next_of_all(class, after),
        })
    }

    /// The ranks of a lane that may not be empty, of types that are asked for.
    pub fn of(
        &self,
        conn: &Connection,
        class: Class,
        (org, lane): &LaneId,
        types: &Types<'_>,
    ) -> rusqlite::Result<Vec<Rank>> {
        let asked = |rank: &&Rank| types.includes(rank.kind.as_str());
        if let Self::Known(known) = self {
            let ranks = known.lanes[Known::of(class)].get(org).and_then(|lanes| lanes.get(lane));
            return Ok(ranks.into_iter().flatten().filter(asked).cloned().collect());
        }
        let sql = format!(
            "SELECT id, needs, type FROM rank r WHERE class = ?1 AND org = ?2 AND lane = ?3 AND needs = ?4
             AND (?5 IS NULL OR type = ?5) AND {OCCUPIED} LIMIT ?6"
        );
        let mut there = conn.prepare_cached(&sql)?;
        let mut found = Vec::new();
        for needs_slot in [false, true] {
            let place = (class.number(), org.as_str(), lane.as_str(), needs_slot, types.only(), TYPES_MAX);
            for rank in there.query_map(place, |row| rank(row, 0))? {
                found.extend(Some(rank?).filter(|rank| asked(&rank)));
            }
        }
        Ok(found)
    }

    /// Whether it is known that nobody stands in a lane.
    pub fn nobody_in(&self, class: Class, (org, lane): &LaneId) -> bool {
        let Self::Known(known) = self else { return false };
        known.lanes[Known::of(class)].get(org).and_then(|lanes| lanes.get(lane)).is_none_or(Vec::is_empty)
    }

    /// The number of the rank that a job stands in from now on.
    pub fn join(&mut self, conn: &Connection, job: &Job) -> rusqlite::Result<i64> {
        if let Self::Known(known) = self
            && let Some(id) = known.find(job)
        {
            return Ok(id);
        }
        let (class, needs_slot) = (job.class(), job.needs_slot());
        let (org, lane, kind) = (job.org.as_str(), job.lane.key.as_str(), job.kind.name.as_str());
        let place = (class.number(), org, lane, needs_slot, kind);
        let there = "SELECT id FROM rank WHERE class = ?1 AND org = ?2 AND lane = ?3 AND needs = ?4 AND type = ?5";
        let id = match conn.prepare_cached(there)?.query_row(place, |row| row.get(0)).optional()? {
            Some(id) => id,
            None => {
                let new = "INSERT INTO rank (class, org, lane, needs, type) VALUES (?1, ?2, ?3, ?4, ?5)";
                conn.prepare_cached(new)?.insert(place)?
            }
        };
        let rank = Rank { needs_slot, kind: job.kind.name.clone(), id };
        self.put(class, (job.org.clone(), job.lane.key.clone()), rank);
        Ok(id)
    }

    /// Somebody joins it.
    pub fn put(&mut self, class: Class, lane: LaneId, rank: Rank) {
        if let Self::Known(known) = self
            && !known.put(class, lane, rank)
        {
            *self = Self::TooMany(COUNT_AGAIN);
        }
    }

    /// Nobody stands in it.
    pub fn remove(&mut self, class: Class, lane: &LaneId, rank: &Rank) {
        if let Self::Known(known) = self {
            known.remove(class, lane, |other| other == rank);
        }
    }

    /// Nobody stands in the lane who needs a slot of it.
    pub fn nobody_waits(&mut self, class: Class, lane: &LaneId) {
        if let Self::Known(known) = self {
            known.remove(class, lane, |rank| rank.needs_slot);
        }
    }
}

pub(super) enum Next {
    Known(Option<LaneId>),
    Unknown,
}

/// Where somebody stands who can be handed out now.
pub(super) const OCCUPIED: &str =
    "EXISTS (SELECT 1 FROM live l INDEXED BY live_ready WHERE l.rank = r.id AND l.phase = 1)";

/// All in which somebody stands; nothing if there are too many.
fn all(conn: &Connection) -> rusqlite::Result<Option<Known>> {
    let sql = format!("SELECT id, needs, type, org, lane, class FROM rank r WHERE {OCCUPIED}");
    let mut all = conn.prepare_cached(&sql)?;
    let mut found = all.query([])?;
    let mut known = Known::default();
    while let Some(row) = found.next()? {
        if !known.put(class(row, 5)?, (parsed(row, 3)?, parsed(row, 4)?), rank(row, 0)?) {
            return Ok(None);
        }
    }
    Ok(Some(known))
}

/// From columns that tell of one: its number, its need, its type.
pub(super) fn rank(row: &Row<'_>, from: usize) -> rusqlite::Result<Rank> {
    Ok(Rank { id: row.get(from)?, needs_slot: row.get(from + 1)?, kind: parsed(row, from + 2)? })
}

pub(super) fn class(row: &Row<'_>, i: usize) -> rusqlite::Result<Class> {
    let number: i16 = row.get(i)?;
    let class = Class::ALL.into_iter().find(|class| class.number() == number);
    class.ok_or(rusqlite::Error::IntegralValueOutOfRange(i, number.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(org: &str, key: &str) -> LaneId {
        (org.parse().unwrap(), key.parse().unwrap())
    }

    fn kind(name: &str) -> TypeName {
        name.parse().unwrap()
    }

    fn rank_of(needs_slot: bool, kind: &str, id: i64) -> Rank {
        Rank { needs_slot, kind: kind.parse().unwrap(), id }
    }

    /// Enough of the tables for somebody to stand in these.
    fn table(rows: &[(Class, LaneId, Rank)]) -> Connection {
        let conn = Connection::open_in_memory().unwrap();
        conn.execute_batch(
            "CREATE TABLE rank (id INTEGER PRIMARY KEY, class, org, lane, needs, type);
             CREATE TABLE live (ord INTEGER PRIMARY KEY, phase, rank, priority);
             CREATE INDEX live_ready ON live (rank, phase, priority) WHERE rank IS NOT NULL;",
        )
        .unwrap();
        for (class, (org, key), rank) in rows {
            let (org, key, kind) = (org.as_str(), key.as_str(), rank.kind.as_str());
            let put = "INSERT INTO rank (id, class, org, lane, needs, type) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
            conn.execute(put, (rank.id, class.number(), org, key, rank.needs_slot, kind)).unwrap();
            for priority in 0..3 {
                conn.execute("INSERT INTO live (phase, rank, priority) VALUES (1, ?1, ?2)", (rank.id, priority))
                    .unwrap();
            }
        }
        let later = "INSERT INTO rank (id, class, org, lane, needs, type) VALUES (99, 1, 'acme', 'later', 1, 'echo')";
        conn.execute(later, ()).unwrap();
        conn.execute("INSERT INTO live (phase, rank, priority) VALUES (2, 99, 1)", ()).unwrap();
        conn
    }

    fn next(ranks: &Ranks, class: Class, org: Option<&str>, after: Option<&LaneId>) -> Option<LaneId> {
        let org = org.map(|org| org.parse().unwrap());
        match ranks.next(class, org.as_ref(), after) {
            Next::Known(next) => next,
            Next::Unknown => panic!("they are known"),
        }
    }

    #[test]
    fn what_stands_in_the_index_is_found() {
        let (i, b) = (Class::Interactive, Class::Background);
        let rows = [
            (i, lane("acme", "one"), rank_of(true, "echo", 1)),
            (i, lane("acme", "one"), rank_of(true, "noop", 2)),
            (i, lane("acme", "one"), rank_of(false, "noop", 3)),
            (i, lane("acme", "two"), rank_of(true, "echo", 4)),
            (i, lane("blue", "one"), rank_of(true, "echo", 5)),
            (b, lane("acme", "two"), rank_of(false, "echo", 6)),
        ];
        let conn = table(&rows);
        let (echo, noop) = (kind("echo"), kind("noop"));
        let types = Types::of([&echo, &noop]);
        let one = Ranks::Unknown.of(&conn, i, &lane("acme", "one"), &Types::of([&noop])).unwrap();
        assert_eq!(one, [rank_of(false, "noop", 3), rank_of(true, "noop", 2)]);
        let mut ranks = Ranks::default();
        ranks.look(&conn).unwrap();
        for class in Class::ALL {
            for (_, lane, _) in &rows {
                let there: Vec<&Rank> =
                    rows.iter().filter(|(c, l, _)| *c == class && l == lane).map(|(_, _, rank)| rank).collect();
                let found = ranks.of(&conn, class, lane, &types).unwrap();
                assert_eq!(ranks.nobody_in(class, lane), there.is_empty());
                let asked = Ranks::Unknown.of(&conn, class, lane, &types).unwrap();
                assert!(asked.len() == there.len() && there.iter().all(|rank| asked.contains(rank)), "{asked:?}");
                assert!(found.len() == there.len() && there.iter().all(|rank| found.contains(rank)), "{found:?}");
            }
        }
        let [one, two, other] = [lane("acme", "one"), lane("acme", "two"), lane("blue", "one")];
        assert_eq!(next(&ranks, i, None, None), Some(one.clone()));
        assert_eq!(next(&ranks, i, None, Some(&two)), Some(other.clone()));
        assert_eq!(next(&ranks, i, Some("acme"), Some(&two)), None);
        assert_eq!(next(&ranks, i, Some("blue"), None), Some(other.clone()));
        assert_eq!(next(&ranks, i, Some("aaa"), None), None);
        assert_eq!(next(&ranks, i, None, Some(&other)), None);
        assert_eq!(next(&ranks, b, None, None), Some(two.clone()));
        ranks.remove(b, &two, &rank_of(false, "echo", 6));
        assert_eq!(next(&ranks, b, None, None), None);
        ranks.put(b, one.clone(), rank_of(true, "noop", 7));
        assert_eq!(next(&ranks, b, None, None), Some(one));
    }

    #[test]
    fn too_many_are_not_kept() {
        let mut ranks = Ranks::Known(Known::default());
        for n in 0..=KEPT {
            ranks.put(Class::Background, lane("acme", &format!("l{n}")), rank_of(true, "echo", 1));
        }
        assert!(matches!(ranks, Ranks::TooMany(_)));
        let conn = table(&[(Class::Background, lane("acme", "l1"), rank_of(true, "echo", 1))]);
        let echo = kind("echo");
        let types = Types::of([&echo]);
        for _ in 0..COUNT_AGAIN {
            ranks.look(&conn).unwrap();
            assert!(matches!(ranks, Ranks::TooMany(_)));
        }
        ranks.look(&conn).unwrap();
        assert!(matches!(ranks, Ranks::Known(_)));
        assert_eq!(
            ranks.of(&conn, Class::Background, &lane("acme", "l1"), &types).unwrap(),
            [rank_of(true, "echo", 1)]
        );
        let mut again = Ranks::Known(Known::default());
        for _ in 0..3 {
            for n in 0..KEPT {
                again.put(Class::Background, lane("acme", &format!("l{n}")), rank_of(true, "echo", 1));
                again.remove(Class::Background, &lane("acme", &format!("l{n}")), &rank_of(true, "echo", 1));
            }
        }
        assert!(next(&again, Class::Background, None, None).is_none());
    }
}
