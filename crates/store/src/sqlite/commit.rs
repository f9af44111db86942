//! One group in one transaction.

use super::arrivals::Arrivals;
use super::ranks::Ranks;
use super::writer::{Inner, Writer};
use super::{claim, load, store_error, write};
use crate::error::StoreError;
use crate::group::{self, CONFLICT_TRIES, Env, NEED_ROUNDS, Round, Work};
use baton_core::World;
use baton_core::event::Recorded;
use rusqlite::Connection;
use std::collections::BTreeSet;

/// Whether the writer lives on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Alive,
    Dead,
}

pub(super) enum Failed {
    /// This group cannot be committed as it is; one of its members may be to blame.
    Spoiled(StoreError),
    /// The database cannot be written to at the moment; nothing was.
    Down(StoreError),
    /// Certainly not committed; try again.
    Again,
    /// Nobody can say what is on the disk any more.
    Unknown,
    /// The process is to be taken for dead.
    #[cfg(feature = "faults")]
    Crashed,
}

impl Failed {
    /// It may have been committed all the same, so what was numbered stays numbered.
    const fn may_stand(&self) -> bool {
        match self {
            Self::Spoiled(_) | Self::Down(_) | Self::Again => false,
            Self::Unknown => true,
            #[cfg(feature = "faults")]
            Self::Crashed => true,
        }
    }
}

/// Runs a group, and its members one by one if the group as a whole fails.
pub(super) fn run(writer: &Writer, inner: &mut Inner, mut works: Vec<Work>) -> Fate {
    if works.is_empty() {
        return Fate::Alive;
    }
    match tries(writer, inner, &mut works) {
        Ok(()) => {
            works.into_iter().for_each(Work::answer);
            Fate::Alive
        }
        Err(Failed::Spoiled(_)) => {
            for work in works {
                let mut alone = vec![work];
                let fate = match tries(writer, inner, &mut alone) {
                    Ok(()) => {
                        alone.into_iter().for_each(Work::answer);
                        Fate::Alive
                    }
                    Err(failed) => fail(writer, alone, failed),
                };
                if fate == Fate::Dead {
                    return Fate::Dead;
                }
            }
            Fate::Alive
        }
        Err(failed) => fail(writer, works, failed),
    }
}

fn fail(writer: &Writer, works: Vec<Work>, failed: Failed) -> Fate {
    #[cfg(feature = "faults")]
    if let (Failed::Spoiled(why), Some(faults)) = (&failed, &writer.options.faults) {
        faults.spoiled(why);
    }
    let _ = writer;
    let (why, fate) = match failed {
        Failed::Spoiled(why) | Failed::Down(why) => (why, Fate::Alive),
        Failed::Again => (StoreError::Unavailable("the commit did not go through, repeatedly".to_owned()), Fate::Alive),
        // After a failed fsync the kernel may show what the disk does not hold: only a restart,
        // which reads the disk, can be trusted. Writing stops until then.
        Failed::Unknown => (StoreError::OutcomeUnknown, Fate::Dead),
        #[cfg(feature = "faults")]
        Failed::Crashed => {
            // A dead process answers nobody, not even by hanging up.
            std::mem::forget(works);
            return Fate::Dead;
        }
    };
    tracing::error!(%why, "commands could not be committed");
    works.into_iter().for_each(|work| work.fail(why.clone()));
    fate
}

fn tries(writer: &Writer, inner: &mut Inner, works: &mut [Work]) -> Result<(), Failed> {
    for _ in 0..CONFLICT_TRIES {
        match attempt(writer, inner, works) {
            Err(Failed::Again) => {}
            other => return other,
        }
    }
    Err(Failed::Again)
}

fn attempt(writer: &Writer, inner: &mut Inner, works: &mut [Work]) -> Result<(), Failed> {
    // Groups with many needs settle in few rounds; one round more finds who exceeds his share.
    for _ in 0..=NEED_ROUNDS + 1 {
        begin(inner)?;
        let numbered = (inner.next_pos, inner.arriving);
        let outcome = in_transaction(writer, inner, works);
        let ended = match outcome {
            Ok(Some(Decided { world, busy: false, .. })) if world.is_clean() => {
                group::observe(&writer.options, &world);
                Some(Ok(()))
            }
            Ok(Some(decided)) => match finish(writer, inner, works, decided) {
                Ok(()) => return Ok(()),
                Err(failed) => Some(Err(failed)),
            },
            Ok(None) => None,
            Err(failed) => Some(Err(failed)),
        };
        rollback(inner);
        if let Some(Err(failed)) = &ended {
            inner.forget();
            // Otherwise none is missing among them: of what was rolled back, nobody stands anywhere.
            if failed.may_stand() {
                inner.ranks = Ranks::default();
            }
        }
        if !matches!(&ended, Some(Err(failed)) if failed.may_stand()) {
            (inner.next_pos, inner.arriving) = numbered;
        }
        if let Some(ended) = ended {
            return ended;
        }
    }
    Err(Failed::Spoiled(StoreError::Rejected("the group kept asking to see more".to_owned())))
}

fn begin(inner: &Inner) -> Result<(), Failed> {
    if !inner.conn.is_autocommit() {
        rollback(inner);
    }
    run_cached(&inner.conn, "BEGIN IMMEDIATE").map_err(|e| Failed::Down(store_error(e)))
}

/// A statement without values or rows, parsed once.
fn run_cached(conn: &Connection, sql: &str) -> rusqlite::Result<()> {
    conn.prepare_cached(sql)?.execute([]).map(drop)
}

fn rollback(inner: &Inner) {
    if !inner.conn.is_autocommit()
        && let Err(e) = inner.conn.execute_batch("ROLLBACK")
    {
        tracing::error!(%e, "a rollback failed");
    }
}

struct Decided {
    world: World,
    arrivals: Arrivals,
    /// Something was written that the world does not know of.
    busy: bool,
}

/// Loads, decides and writes; `None` if somebody needs to see more first.
fn in_transaction(writer: &Writer, inner: &mut Inner, works: &mut [Work]) -> Result<Option<Decided>, Failed> {
    let now = super::writer::now(&writer.options);
    let defs = &*writer.known.get();
    let plan = group::plan(works, defs).map_err(Failed::Spoiled)?;
    let mut arrivals = Arrivals::default();
    let mut world = load::world(inner, &plan, defs, &mut arrivals).map_err(|e| spoiled(store_error(e)))?;
    let moving = if plan.asks.is_empty() { BTreeSet::new() } else { world.lanes().cloned().collect() };
    let mut found = Vec::with_capacity(plan.asks.len());
    for ask in &plan.asks {
        found.push(
            claim::find(inner, (&mut world, &mut arrivals), ask, &moving, (now, defs.rules.aging))
                .map_err(|e| spoiled(store_error(e)))?,
        );
    }
    let mut busy = found.iter().any(|found| found.promoted);
    let env = Env { now, defs };
    match group::decide(works, &mut world, found, &env) {
        Round::Ready => {}
        Round::Again => return Ok(None),
        Round::Spoiled(why) => return Err(Failed::Spoiled(why)),
    }
    write::world(inner, &world, &mut arrivals, now).map_err(spoiled)?;
    for work in works.iter_mut() {
        if let Work::Purge(seat) = work {
            busy = true;
            seat.purged = write::purge(&inner.conn, seat.what, seat.limit, now).map_err(|e| spoiled(store_error(e)))?;
        }
    }
    Ok(Some(Decided { world, arrivals, busy }))
}

/// A disk that is full or gone is nobody's fault; anything else may be one member's.
fn spoiled(why: StoreError) -> Failed {
    match why {
        StoreError::Unavailable(_) => Failed::Down(why),
        other => Failed::Spoiled(other),
    }
}

fn finish(writer: &Writer, inner: &mut Inner, works: &mut [Work], decided: Decided) -> Result<(), Failed> {
    let Decided { world, arrivals, .. } = decided;
    let purges = works.iter().any(|work| matches!(work, Work::Purge(_)));
    let witness = witness(inner, &world).map_err(|e| spoiled(store_error(e)))?;
    #[cfg(feature = "faults")]
    let committed = super::mishap::commit(writer, inner, works);
    #[cfg(not(feature = "faults"))]
    let committed = {
        let _ = works;
        commit(inner)
    };
    match committed {
        Committed::Yes => {}
        Committed::No(failed) => return Err(failed),
        Committed::Ask => match stands(inner, &witness) {
            Ok(true) => {}
            Ok(false) => return Err(Failed::Again),
            Err(e) => {
                tracing::error!(%e, "nobody can say whether a commit took place");
                return Err(Failed::Unknown);
            }
        },
    }
    inner.open_agents.learn(&world);
    inner.open_lanes.learn(&world);
    inner.ranks.learn(&world);
    if purges {
        inner.open_lanes.forget();
    }
    writer.known.learn_from(&world);
    writer.signals.stir(group::stirred(&world, &writer.known.get()));
    writer.signals.publish(inner.next_pos - 1);
    writer.signals.tell_calls(world.notes());
    group::observe(&writer.options, &world);
    inner.open_jobs.learn(world, &arrivals);
    Ok(())
}

pub(super) enum Committed {
    Yes,
    No(Failed),
    /// An error came back, but the transaction is over: look for what it wrote.
    Ask,
}

pub(super) fn commit(inner: &Inner) -> Committed {
    let Err(e) = run_cached(&inner.conn, "COMMIT") else { return Committed::Yes };
    let disk_failed = matches!(e.sqlite_error_code(), Some(rusqlite::ErrorCode::SystemIoFailure));
    if disk_failed {
        tracing::error!(%e, "the disk failed during a commit");
        return Committed::No(Failed::Unknown);
    }
    if inner.conn.is_autocommit() { Committed::Ask } else { Committed::No(Failed::Down(store_error(e))) }
}

/// Something that stands in the database exactly if the group was committed.
enum Witness<'a> {
    /// Its hash covers everything before it. With its place.
    Event(&'a Recorded, i64),
    /// For a group that tells no event: a number in the header of the file, raised with it.
    Mark(i32),
}

fn witness<'a>(inner: &Inner, world: &'a World) -> rusqlite::Result<Witness<'a>> {
    if let Some(event) = world.events().last() {
        return Ok(Witness::Event(event, inner.next_pos - 1));
    }
    let next = mark(inner)?.wrapping_add(1);
    inner.conn.pragma_update(None, MARK, next)?;
    Ok(Witness::Mark(next))
}

/// SQLite keeps it for whoever uses the file, inside transactions like any row.
const MARK: &str = "user_version";

fn mark(inner: &Inner) -> rusqlite::Result<i32> {
    inner.conn.pragma_query_value(None, MARK, |row| row.get(0))
}

fn stands(inner: &Inner, witness: &Witness<'_>) -> rusqlite::Result<bool> {
    match witness {
        Witness::Event(event, pos) => {
            let sql = "SELECT 1 FROM event WHERE org = ?1 AND pos = ?2 AND hash = ?3";
            inner.conn.prepare_cached(sql)?.exists((event.org.as_str(), pos, event.hash.0))
        }
        Witness::Mark(was) => Ok(mark(inner)? == *was),
    }
}
