//! Ranks: where jobs stand that can be handed out. One is of a class, a lane and a type, and its jobs need a slot or do not.
//!
//! The index of ready jobs tells the same, but asking it for lane after lane was a third of what a claim over many lanes
//! cost. The one writer is alone, so it remembers. There may be ranks here that are empty, never one too few: they are
//! added with every commit that may have put a job in, and removed when somebody looks and nobody is there.

use super::rows::parsed;
use baton_core::lane::LaneKey;
use baton_core::name::TypeName;
use baton_core::schedule::{Class, LaneId};
use baton_core::world::JobWrite;
use baton_core::{OrgId, World};
use rusqlite::{Connection, OptionalExtension, Row, ToSql};
use std::collections::BTreeMap;
use std::ops::Bound;

/// Ranks kept in memory, of some hundred bytes each. With more, the index is asked.
const KEPT: usize = 16_384;

/// Looks after which it is seen whether there are fewer.
const COUNT_AGAIN: u32 = 10_000;

/// One of the ranks of a lane and a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rank {
    /// Those in it need a slot of the lane.
    pub needs_slot: bool,
    pub kind: TypeName,
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

    /// The ranks of a lane, if they are known.
    pub fn of(&self, class: Class, (org, lane): &LaneId) -> Option<&[Rank]> {
        let Self::Known(known) = self else { return None };
        let ranks = known.lanes[Known::of(class)].get(org).and_then(|lanes| lanes.get(lane));
        Some(ranks.map_or(&[], Vec::as_slice))
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

    /// After a commit.
    pub fn learn(&mut self, world: &World) {
        for write in world.job_writes() {
            if let JobWrite::Insert(job, ..) | JobWrite::Update(job) = write
                && job.status.due_at().is_some()
            {
                let rank = Rank { needs_slot: job.needs_slot(), kind: job.kind.name.clone() };
                self.put(job.class(), (job.org.clone(), job.lane.key.clone()), rank);
            }
        }
    }
}

pub(super) enum Next {
    Known(Option<LaneId>),
    Unknown,
}

/// All that the index of ready jobs holds; nothing if there are too many. From one to the next, however many jobs stand in
/// each.
fn all(conn: &Connection) -> rusqlite::Result<Option<Known>> {
    let mut known = Known::default();
    for class in Class::ALL {
        let mut at = behind(conn, class, None)?;
        while let Some((lane, rank)) = at {
            at = behind(conn, class, Some((&lane, &rank)))?;
            if !known.put(class, lane, rank) {
                return Ok(None);
            }
        }
    }
    Ok(Some(known))
}

/// The next in the order of the index: another type, else one with another need, else in another lane, else of another org. Not
/// as one comparison of all: SQLite would step over every job that stands in the same.
fn behind(conn: &Connection, class: Class, at: Option<(&LaneId, &Rank)>) -> rusqlite::Result<Option<(LaneId, Rank)>> {
    let class = class.number();
    let find = |which: &str, given: &[&dyn ToSql]| {
        let sql = format!(
            "SELECT org, lane, slot AND kept, type FROM live INDEXED BY live_ready WHERE phase = 1 AND class = ?1 {which}
             ORDER BY class, org, lane, (slot AND kept), type LIMIT 1"
        );
        conn.prepare_cached(&sql)?.query_row(given, rank).optional()
    };
    let Some(((org, lane), rank)) = at else { return find("", &[&class]) };
    let (org, lane, kind) = (org.as_str(), lane.as_str(), rank.kind.as_str());
    let wider: [(&str, &[&dyn ToSql]); 4] = [
        (
            "AND org = ?2 AND lane = ?3 AND (slot AND kept) = ?4 AND type > ?5",
            &[&class, &org, &lane, &rank.needs_slot, &kind],
        ),
        ("AND org = ?2 AND lane = ?3 AND (slot AND kept) > ?4", &[&class, &org, &lane, &rank.needs_slot]),
        ("AND org = ?2 AND lane > ?3", &[&class, &org, &lane]),
        ("AND org > ?2", &[&class, &org]),
    ];
    for (which, given) in wider {
        if let Some(found) = find(which, given)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// From columns that name one.
pub(super) fn rank(row: &Row<'_>) -> rusqlite::Result<(LaneId, Rank)> {
    Ok(((parsed(row, 0)?, parsed(row, 1)?), Rank { needs_slot: row.get(2)?, kind: parsed(row, 3)? }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(org: &str, key: &str) -> LaneId {
        (org.parse().unwrap(), key.parse().unwrap())
    }

    fn rank_of(needs_slot: bool, kind: &str) -> Rank {
        Rank { needs_slot, kind: kind.parse().unwrap() }
    }

    /// Enough of a table to stand in the index.
    fn table(rows: &[(Class, LaneId, Rank)]) -> Connection {
        let conn = Connection::open_in_memory().unwrap();
        conn.execute_batch(
            "CREATE TABLE live (ord INTEGER PRIMARY KEY, phase, class, org, lane, slot, kept, type, priority);
             CREATE INDEX live_ready ON live (class, org, lane, (slot AND kept), type, priority) WHERE phase = 1;",
        )
        .unwrap();
        for (class, (org, key), rank) in rows {
            let put = "INSERT INTO live (phase, class, org, lane, slot, kept, type, priority) VALUES (1, ?1, ?2, ?3, 1, ?4, ?5, ?6)";
            for priority in 0..3 {
                let (org, key, kind) = (org.as_str(), key.as_str(), rank.kind.as_str());
                conn.execute(put, (class.number(), org, key, rank.needs_slot, kind, priority)).unwrap();
            }
        }
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
            (i, lane("acme", "one"), rank_of(true, "echo")),
            (i, lane("acme", "one"), rank_of(true, "noop")),
            (i, lane("acme", "one"), rank_of(false, "noop")),
            (i, lane("acme", "two"), rank_of(true, "echo")),
            (i, lane("blue", "one"), rank_of(true, "echo")),
            (b, lane("acme", "two"), rank_of(false, "echo")),
        ];
        let conn = table(&rows);
        let mut ranks = Ranks::default();
        ranks.look(&conn).unwrap();
        for class in Class::ALL {
            for (_, lane, _) in &rows {
                let there: Vec<&Rank> =
                    rows.iter().filter(|(c, l, _)| *c == class && l == lane).map(|(_, _, rank)| rank).collect();
                let found = ranks.of(class, lane).unwrap();
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
        ranks.remove(b, &two, &rank_of(false, "echo"));
        assert_eq!(next(&ranks, b, None, None), None);
        ranks.put(b, one.clone(), rank_of(true, "noop"));
        assert_eq!(next(&ranks, b, None, None), Some(one));
    }

    #[test]
    fn too_many_are_not_kept() {
        let mut ranks = Ranks::Known(Known::default());
        for n in 0..=KEPT {
            ranks.put(Class::Background, lane("acme", &format!("l{n}")), rank_of(true, "echo"));
        }
        assert!(matches!(ranks, Ranks::TooMany(_)));
        assert!(ranks.of(Class::Background, &lane("acme", "l1")).is_none());
        let conn = table(&[(Class::Background, lane("acme", "l1"), rank_of(true, "echo"))]);
        for _ in 0..COUNT_AGAIN {
            ranks.look(&conn).unwrap();
            assert!(ranks.of(Class::Background, &lane("acme", "l1")).is_none());
        }
        ranks.look(&conn).unwrap();
        assert!(ranks.of(Class::Background, &lane("acme", "l1")).is_some_and(|ranks| ranks.len() == 1));
        let mut again = Ranks::Known(Known::default());
        for _ in 0..3 {
            for n in 0..KEPT {
                again.put(Class::Background, lane("acme", &format!("l{n}")), rank_of(true, "echo"));
                again.remove(Class::Background, &lane("acme", &format!("l{n}")), &rank_of(true, "echo"));
            }
        }
        assert!(next(&again, Class::Background, None, None).is_none());
    }
}
