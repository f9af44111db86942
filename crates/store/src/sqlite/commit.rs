//! One group in one transaction.

use super::ahead::{Ahead, Decided, Group, Seen};
use super::arrivals::Arrivals;
use super::load::After;
use super::ranks::Ranks;
use super::writer::{Inner, Writer};
use super::{claim, load, store_error, write};
use crate::error::StoreError;
use crate::group::{self, CONFLICT_TRIES, NEED_ROUNDS, Purge, Round, Work};
use crate::open::OpenOptions;
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

/// Runs a group, and its members one by one if the group as a whole fails. `more` are those who wait behind it: if there is
/// enough to write, they are decided meanwhile.
pub(super) fn run(
    writer: &Writer,
    inner: &mut Inner,
    group: Group,
    ahead: &mut Ahead,
    more: &mut dyn FnMut() -> Vec<Work>,
) -> Fate {
    let (mut works, decided) = match group {
        Group::Fresh(works) => (works, None),
        // Several simulated nodes may share a disk.
        Group::Decided(works, decided) => (works, Some(*decided).filter(|decided| decided.after == inner.groups)),
    };
    inner.groups += 1;
    if works.is_empty() {
        return Fate::Alive;
    }
    match tries(writer, inner, &mut works, decided, Some(&mut Behind { ahead, more })) {
        Ok(()) => {
            works.into_iter().for_each(Work::answer);
            Fate::Alive
        }
        Err(Failed::Spoiled(_)) => singly(writer, inner, works, ahead),
        Err(failed) => fail(writer, works, failed, ahead),
    }
}

fn singly(writer: &Writer, inner: &mut Inner, works: Vec<Work>, ahead: &mut Ahead) -> Fate {
    for work in group::alone(works) {
        let mut alone = vec![work];
        let fate = match tries(writer, inner, &mut alone, None, None) {
            Ok(()) => {
                alone.into_iter().for_each(Work::answer);
                Fate::Alive
            }
            Err(failed) => fail(writer, alone, failed, ahead),
        };
        if fate == Fate::Dead {
            return Fate::Dead;
        }
    }
    Fate::Alive
}

/// Who comes behind a group.
struct Behind<'a> {
    ahead: &'a mut Ahead,
    more: &'a mut dyn FnMut() -> Vec<Work>,
}

fn fail(writer: &Writer, works: Vec<Work>, failed: Failed, ahead: &mut Ahead) -> Fate {
    #[cfg(feature = "faults")]
    if let (Failed::Spoiled(why), Some(faults)) = (&failed, &writer.options.faults) {
        faults.spoiled(why);
    }
    let _ = writer;
    // Whoever was to come behind one that nobody can tell of was certainly not committed, and nobody comes any more.
    let behind = if failed.may_stand() { ahead.works() } else { Vec::new() };
    let (why, fate) = match failed {
        Failed::Spoiled(why) | Failed::Down(why) => (why, Fate::Alive),
        Failed::Again => (StoreError::Unavailable("the commit did not go through, repeatedly".to_owned()), Fate::Alive),
        // After a failed fsync the kernel may show what the disk does not hold: only a restart,
        // which reads the disk, can be trusted. Writing stops until then.
        Failed::Unknown => (StoreError::OutcomeUnknown, Fate::Dead),
        #[cfg(feature = "faults")]
        Failed::Crashed => {
            // A dead process answers nobody, not even by hanging up.
            std::mem::forget((works, behind));
            return Fate::Dead;
        }
    };
    tracing::error!(%why, "commands could not be committed");
    works.into_iter().for_each(|work| work.fail(why.clone()));
    behind.into_iter().for_each(|work| work.fail(StoreError::Closed));
    fate
}

fn tries(
    writer: &Writer,
    inner: &mut Inner,
    works: &mut [Work],
    mut decided: Option<Decided>,
    mut behind: Option<&mut Behind<'_>>,
) -> Result<(), Failed> {
    for _ in 0..CONFLICT_TRIES {
        match attempt(writer, inner, works, decided.take(), behind.as_deref_mut()) {
            Err(Failed::Again) => {}
            other => return other,
        }
    }
    Err(Failed::Again)
}

/// What was decided ahead is used once; otherwise it is loaded and decided here.
fn attempt(
    writer: &Writer,
    inner: &mut Inner,
    works: &mut [Work],
    mut decided: Option<Decided>,
    mut behind: Option<&mut Behind<'_>>,
) -> Result<(), Failed> {
    // Groups with many needs settle in few rounds; one round more finds who exceeds his share.
    for _ in 0..=NEED_ROUNDS + 1 {
        begin(inner)?;
        let numbered = (inner.next_pos, inner.arriving);
        let ready = match decided.take() {
            Some(decided) => Ok(decided),
            None => see(writer, inner, works, None).map(|seen| seen.decide(works)),
        };
        let ended = match ready {
            Ok(Decided { round: Round::Again, .. }) => None,
            Ok(Decided { round: Round::Spoiled(why), .. }) => Some(Err(Failed::Spoiled(why))),
            Ok(decided) if decided.world.is_clean() && !decided.busy && !has_purges(works) => {
                group::observe(&writer.options, &decided.world);
                Some(Ok(()))
            }
            Ok(decided) => match write(writer, inner, works, decided, behind.as_deref_mut()) {
                Ok(()) => return Ok(()),
                Err(failed) => Some(Err(failed)),
            },
            Err(failed) => Some(Err(failed)),
        };
        rollback(inner);
        if let Some(Err(failed)) = &ended {
            inner.forget();
            if failed.may_stand() {
                inner.open_jobs.forget();
            }
            if let Some(Behind { ahead, .. }) = &mut behind
                && !keeps_what_rests_on_it(&writer.options)
            {
                ahead.give_up();
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

/// A writer that is broken on purpose.
fn keeps_what_rests_on_it(options: &OpenOptions) -> bool {
    #[cfg(feature = "faults")]
    if let Some(faults) = &options.faults {
        return faults.sabotage() == Some(crate::faults::Sabotage::KeepAhead);
    }
    let _ = options;
    false
}

fn has_purges(works: &[Work]) -> bool {
    works.iter().any(|work| matches!(work, Work::Purge(_)))
}

fn begin(inner: &mut Inner) -> Result<(), Failed> {
    if !inner.conn.is_autocommit() {
        // Somebody panicked in the middle of a group.
        rollback(inner);
        inner.forget();
        inner.open_jobs.forget();
    }
    let begun = run_cached(&inner.conn, "BEGIN IMMEDIATE").and_then(|()| inner.open_jobs.look(&inner.conn));
    begun.map_err(|e| {
        rollback(inner);
        Failed::Down(store_error(e))
    })
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

/// Loads what a group must see; behind what another has written, if it comes after one.
fn see(writer: &Writer, inner: &mut Inner, works: &[Work], after: Option<After<'_>>) -> Result<Seen, Failed> {
    let now = super::writer::now(&writer.options);
    let defs = writer.known.get();
    let plan = group::plan(works, &defs).map_err(Failed::Spoiled)?;
    let mut arrivals = Arrivals::default();
    let mut world = load::world(inner, &plan, &defs, &mut arrivals, after).map_err(|e| spoiled(store_error(e)))?;
    let moving = if plan.asks.is_empty() {
        BTreeSet::new()
    } else {
        world.lanes().map(|(org, key)| (org.clone(), key.clone())).collect()
    };
    let mut found = Vec::with_capacity(plan.asks.len());
    for ask in &plan.asks {
        match claim::find(inner, (&mut world, &mut arrivals), ask, &moving, (now, defs.rules.aging)) {
            Ok(one) => found.push(one),
            Err(e) => {
                // Those that joined one may not have been noted.
                inner.ranks = Ranks::default();
                return Err(spoiled(store_error(e)));
            }
        }
    }
    let paused = plan.stands_by.then(|| load::paused_lanes(&inner.conn)).transpose();
    let paused = paused.map_err(|e| spoiled(store_error(e)))?;
    Ok(Seen { after: inner.groups, world, arrivals, found, paused, now, defs })
}

/// Writes what was decided, and commits it. What is left of it then is of no more use.
fn write(
    writer: &Writer,
    inner: &mut Inner,
    works: &mut [Work],
    decided: Decided,
    mut behind: Option<&mut Behind<'_>>,
) -> Result<(), Failed> {
    let Decided { world, mut arrivals, now, .. } = decided;
    let places = write::what_others_look_at(inner, &world, &mut arrivals, now).map_err(spoiled)?;
    inner.open_agents.learn(&world);
    inner.open_lanes.learn(&world);
    // Whoever comes a little later may still be decided meanwhile.
    behind = behind.filter(|_| leaves_time(&writer.options, &world) && may_be_followed(works, &world));
    let after = After { world: &world, arrivals: &arrivals };
    let mut look = |inner: &mut Inner| behind.as_deref_mut().map_or(Ok(()), |b| look_ahead(writer, inner, b, after));
    look(inner)?;
    write::ends(inner, &places).map_err(spoiled)?;
    look(inner)?;
    write::history(inner, &world, &places).map_err(spoiled)?;
    look(inner)?;
    for work in works.iter_mut() {
        if let Work::Purge(seat) = work {
            seat.purged = write::purge(&inner.conn, seat.what, seat.limit, now).map_err(|e| spoiled(store_error(e)))?;
        }
    }
    let spent = finish(writer, inner, works, world, &arrivals)?;
    if let Some(behind) = behind {
        behind.ahead.put_away(spent);
    }
    Ok(())
}

/// From so many events on, it takes long enough to write them that others may be decided meanwhile.
const AHEAD_FROM: usize = 128;

fn leaves_time(options: &OpenOptions, world: &World) -> bool {
    #[cfg(feature = "faults")]
    if let Some(faults) = &options.faults {
        return world.events().len() >= faults.ahead_from(AHEAD_FROM);
    }
    let _ = options;
    world.events().len() >= AHEAD_FROM
}

/// Whether others can be loaded before the rest of this is written and committed. What is registered is known with the
/// commit; and nobody looks at what is being removed.
fn may_be_followed(works: &[Work], world: &World) -> bool {
    !has_purges(works) && world.version_writes().is_empty() && world.prune_writes().is_empty()
}

/// Has those decided who wait, if there are any.
fn look_ahead(writer: &Writer, inner: &mut Inner, behind: &mut Behind<'_>, after: After<'_>) -> Result<(), Failed> {
    let works = if behind.ahead.is_free() { (behind.more)() } else { Vec::new() };
    if works.is_empty() {
        return Ok(());
    }
    match see(writer, inner, &works, Some(after)) {
        Ok(seen) => behind.ahead.begin(works, seen),
        // Whatever it is, whoever looks after the commit will see.
        Err(_) => behind.ahead.wait(works),
    }
    // There are errors after which SQLite gives up the whole transaction by itself.
    if inner.conn.is_autocommit() { Err(Failed::Again) } else { Ok(()) }
}

/// A disk that is full or gone is nobody's fault; anything else may be one member's.
fn spoiled(why: StoreError) -> Failed {
    match why {
        StoreError::Unavailable(_) => Failed::Down(why),
        other => Failed::Spoiled(other),
    }
}

fn finish(
    writer: &Writer,
    inner: &mut Inner,
    works: &mut [Work],
    mut world: World,
    arrivals: &Arrivals,
) -> Result<World, Failed> {
    let purges =
        works.iter().any(|work| matches!(work, Work::Purge(seat) if seat.what == Purge::Lanes && seat.purged > 0));
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
    if purges {
        // Rows of either may be gone.
        inner.ranks = Ranks::default();
        inner.open_lanes.forget();
    }
    writer.known.learn_from(&world);
    writer.signals.stir(group::stirred(&world, &writer.known.get()));
    writer.signals.publish(inner.next_pos - 1);
    writer.signals.tell_calls(world.notes());
    group::observe(&writer.options, &world);
    inner.open_jobs.learn(&mut world, arrivals);
    Ok(world)
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
