//! Writing jobs: what is live of them, and what they were born with and ended as.
//!
//! Where something fails the whole group is rolled back, so updates say OR FAIL: SQLite need not be able to undo one
//! statement alone, which costs a copy of every page that it touches.

use super::arrivals::{Arrivals, Arriving, Spot};
use super::births::{self, Birth};
use super::many::Many;
use super::ranks::Ranks;
use super::store_error;
use super::write::one;
use super::write_queue;
use crate::error::StoreError;
use crate::phase;
use crate::records::ending_columns;
use baton_core::job::{Aside, Ending, Job, Status};
use baton_core::world::JobWrite;
use baton_core::{Micros, World};
use rusqlite::{Connection, params};

/// What is ready stays ready while its moment is not touched, also if the clock has jumped back.
const UPDATE_LIVE: &str = "UPDATE OR FAIL live SET phase = CASE WHEN phase = 1 AND due_at = ?6 THEN 1 ELSE ?3 END, \
    state = ?4, pause = ?5, due_at = ?6, worker = ?7, lease_until = ?8, attempts = ?9, token = ?10, wakes = ?11, \
    started_at = ?12, head_n = ?13, head_hash = ?14, head_at = ?15, slot = ?16, dedupe = ?17, failures = ?18, \
    aside = ?19, max_attempts = ?20, head_pos = ?21, rank = ?22 WHERE ord = ?1 AND org = ?2";

const DELETE_LIVE: &str = "DELETE FROM live WHERE ord = ?1 AND org = ?2";

const END_JOB: &str = "UPDATE OR FAIL job SET state = ?3, ended_at = ?4, result = ?5, error_code = ?6, error = ?7, \
    attempts = ?8, token = ?9, started_at = ?10, head_n = ?11, head_hash = ?12, head_at = ?13, failures = ?14, \
    aside = ?15, max_attempts = ?16, head_pos = ?17 WHERE ord = ?1 AND org = ?2";

/// A job that is to be written, and where.
pub(super) struct Move<'w> {
    write: JobWrite<'w>,
    spot: Spot,
    /// It is new, and its number does not tell how long it will have waited.
    late: bool,
}

impl Move<'_> {
    const fn job(&self) -> &Job {
        match self.write {
            JobWrite::Insert(job, ..) | JobWrite::Update(job) | JobWrite::End(job, _) => job,
        }
    }
}

/// Finds out where all are that are to be written.
pub(super) fn arrive<'w>(
    conn: &Connection,
    arriving: &mut Arriving,
    world: &'w World,
    arrivals: &mut Arrivals,
) -> Result<Vec<Move<'w>>, StoreError> {
    let mut moves = Vec::new();
    for write in world.job_writes() {
        let (spot, late) = match write {
            JobWrite::Insert(job, ..) => {
                let spot = Spot { ord: arriving.next_ord, head_pos: 0 };
                arrivals.note(&job.org, job.id, spot);
                (spot, arriving.take(job))
            }
            JobWrite::Update(job) | JobWrite::End(job, _) => {
                let spot = arrivals.find(conn, &job.org, job.id).map_err(store_error)?;
                (
                    spot.ok_or_else(|| StoreError::Rejected(format!("{} is to be written but is not there", job.id)))?,
                    false,
                )
            }
        };
        moves.push(Move { write, spot, late });
    }
    Ok(moves)
}

/// Where their histories end, once all events have their places.
pub(super) fn settle(moves: &mut [Move<'_>], arrivals: &Arrivals) {
    for one in moves {
        one.spot = arrivals.get(&one.job().org, one.job().id).unwrap_or(one.spot);
    }
}

/// Everything but how those have ended that were there before.
pub(super) fn live(
    (conn, ranks): (&Connection, &mut Ranks),
    moves: &[Move<'_>],
    now: Micros,
) -> Result<(), StoreError> {
    let mut births = Vec::new();
    let (mut update, mut delete) = (Many::new(conn, UPDATE_LIVE), Many::new(conn, DELETE_LIVE));
    for Move { write, spot, late } in moves {
        let (spot, late) = (*spot, *late);
        match *write {
            JobWrite::Insert(job, cold, ending) => births.push(Birth { spot, late, job, cold, ending }),
            JobWrite::Update(job) => {
                let moved = update_live((conn, ranks), &mut update, spot, job, now);
                one(moved, "an update of a live job")?;
            }
            JobWrite::End(job, ending) => {
                let left = delete.get().and_then(|row| row.execute((spot.ord, job.org.as_str())));
                one(left, "the removal of a live job")?;
                write_queue::ended(conn, job, ending).map_err(store_error)?;
            }
        }
    }
    if !births.is_empty() {
        // Otherwise each new job would ask for its own.
        ranks.look(conn).map_err(store_error)?;
    }
    births::write(conn, ranks, &births, now).map_err(store_error)?;
    let mut end = Many::new(conn, END_JOB);
    for Birth { spot, job, ending, .. } in births {
        if let Some(ending) = ending {
            one(end_job(&mut end, spot, job, ending), "the end of a new job")?;
            write_queue::ended(conn, job, ending).map_err(store_error)?;
        }
    }
    Ok(())
}

/// How those have ended that were there before.
pub(super) fn ends(conn: &Connection, moves: &[Move<'_>]) -> Result<(), StoreError> {
    let mut end = Many::new(conn, END_JOB);
    for Move { write, spot, .. } in moves {
        if let JobWrite::End(job, ending) = *write {
            one(end_job(&mut end, *spot, job, ending), "the end of a job")?;
        }
    }
    Ok(())
}

fn update_live(
    (conn, ranks): (&Connection, &mut Ranks),
    update: &mut Many<'_>,
    spot: Spot,
    job: &Job,
    now: Micros,
) -> rusqlite::Result<usize> {
    let lease = job.status.lease();
    // Where it stands, if it can be handed out now or later.
    let rank = job.status.due_at().map(|_| ranks.join(conn, job)).transpose()?;
    update.get()?.execute(params![
        spot.ord,
        job.org.as_str(),
        phase::of(&job.status, now),
        job.status.state().as_str(),
        pause(&job.status),
        job.status.due_at().map(|at| at.0),
        lease.map(|l| l.worker.as_str()),
        lease.map(|l| l.until.0),
        job.attempts,
        job.token,
        job.wakes,
        job.started_at.map(|at| at.0),
        job.head.n,
        job.head.hash.0,
        job.head.at.0,
        phase::slot(&job.status),
        job.dedupe,
        job.failures,
        Aside::stored(job.aside.as_deref()),
        job.max_attempts,
        spot.head_pos,
        rank,
    ])
}

fn end_job(end: &mut Many<'_>, spot: Spot, job: &Job, ending: &Ending) -> rusqlite::Result<usize> {
    let at = match job.status {
        Status::Ended { at, .. } => Some(at.0),
        _ => None,
    };
    let (result, code, message) = ending_columns(ending);
    end.get()?.execute(params![
        spot.ord,
        job.org.as_str(),
        job.status.state().as_str(),
        at,
        result,
        code,
        message,
        job.attempts,
        job.token,
        job.started_at.map(|at| at.0),
        job.head.n,
        job.head.hash.0,
        job.head.at.0,
        job.failures,
        Aside::stored(job.aside.as_deref()),
        job.max_attempts,
        spot.head_pos,
    ])
}

pub(super) const fn pause(status: &Status) -> Option<&'static str> {
    match status {
        Status::AwaitingTool { pause, .. } => Some(pause.as_str()),
        _ => None,
    }
}
