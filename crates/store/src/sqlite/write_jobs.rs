//! Writing jobs: what is live of them, and what they were born with and ended as.
//!
//! Where something fails the whole group is rolled back, so updates say OR FAIL: SQLite need not be able to undo one
//! statement alone, which costs a copy of every page that it touches.

use super::arrivals::{Arrivals, Arriving, Spot};
use super::many::Many;
use super::ranks::Ranks;
use super::store_error;
use super::write::one;
use super::write_queue;
use crate::error::StoreError;
use crate::phase;
use crate::records::ending_columns;
use baton_core::job::{Aside, Cold, Ending, Job, Status};
use baton_core::world::JobWrite;
use baton_core::{Micros, World};
use rusqlite::{Connection, params};

const INSERT_JOB: &str = "INSERT INTO job (ord, org, id, project, type, version, priority, payload, source_session, \
    deadline_at, created_at, max_attempts, lane, max_failures, dedupe_key, requeued_from, schedule) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)";

const INSERT_LIVE: &str = "INSERT INTO live (ord, org, id, type, priority, phase, state, pause, due_at, worker, \
    lease_until, attempts, max_attempts, token, wakes, started_at, head_n, head_hash, head_at, class, slot, since, late, \
    lane, lane_max, kept, outside, dedupe, failures, aside, head_pos, rank) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, \
    ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32)";

/// What is ready stays ready while its moment is not touched, also if the clock has jumped back.
const UPDATE_LIVE: &str = "UPDATE OR FAIL live SET phase = CASE WHEN phase = 1 AND due_at = ?6 THEN 1 ELSE ?3 END, \
    state = ?4, pause = ?5, due_at = ?6, worker = ?7, lease_until = ?8, attempts = ?9, token = ?10, wakes = ?11, \
    started_at = ?12, head_n = ?13, head_hash = ?14, head_at = ?15, slot = ?16, dedupe = ?17, failures = ?18, \
    aside = ?19, max_attempts = ?20, head_pos = ?21, rank = ?22 WHERE ord = ?1 AND org = ?2";

const DELETE_LIVE: &str = "DELETE FROM live WHERE ord = ?1 AND org = ?2";

const END_JOB: &str = "UPDATE OR FAIL job SET state = ?3, ended_at = ?4, result = ?5, error_code = ?6, error = ?7, \
    attempts = ?8, token = ?9, started_at = ?10, head_n = ?11, head_hash = ?12, head_at = ?13, failures = ?14, \
    aside = ?15, max_attempts = ?16, head_pos = ?17 WHERE ord = ?1 AND org = ?2";

struct Jobs<'c> {
    conn: &'c Connection,
    ranks: &'c mut Ranks,
    insert_job: Many<'c>,
    insert_live: Many<'c>,
    update_live: Many<'c>,
    delete_live: Many<'c>,
    end_job: Many<'c>,
}

/// Finds out where all are that are to be written. Of the new ones, in order, which are late.
pub(super) fn arrive(
    conn: &Connection,
    arriving: &mut Arriving,
    world: &World,
    arrivals: &mut Arrivals,
) -> Result<Vec<bool>, StoreError> {
    let mut late = Vec::new();
    for write in world.job_writes() {
        match write {
            JobWrite::Insert(job, ..) => {
                arrivals.note(&job.org, job.id, Spot { ord: arriving.next_ord, head_pos: 0 });
                late.push(arriving.take(job));
            }
            JobWrite::Update(job) | JobWrite::End(job, _) => {
                arrivals.find(conn, &job.org, job.id).map_err(store_error)?;
            }
        }
    }
    Ok(late)
}

/// Everything but how those have ended that were there before.
pub(super) fn live(
    (conn, ranks): (&Connection, &mut Ranks),
    world: &World,
    arrivals: &Arrivals,
    late: &[bool],
    now: Micros,
) -> Result<(), StoreError> {
    if !late.is_empty() {
        // Otherwise each new job would ask for its own.
        ranks.look(conn).map_err(store_error)?;
    }
    let mut late = late.iter();
    let mut jobs = Jobs {
        conn,
        ranks,
        insert_job: Many::new(conn, INSERT_JOB),
        insert_live: Many::new(conn, INSERT_LIVE),
        update_live: Many::new(conn, UPDATE_LIVE),
        delete_live: Many::new(conn, DELETE_LIVE),
        end_job: Many::new(conn, END_JOB),
    };
    for write in world.job_writes() {
        match write {
            JobWrite::Insert(job, cold, ending) => {
                let (spot, late) = (spot(arrivals, job)?, late.next().is_some_and(|late| *late));
                jobs.insert_job(spot, job, cold, ending).map_err(store_error)?;
                if ending.is_none() {
                    jobs.insert_live(spot, late, job, now).map_err(store_error)?;
                }
            }
            JobWrite::Update(job) => {
                one(jobs.update_live(spot(arrivals, job)?, job, now), "an update of a live job")?;
            }
            JobWrite::End(job, ending) => {
                one(jobs.delete_live(spot(arrivals, job)?, job), "the removal of a live job")?;
                write_queue::ended(conn, job, ending).map_err(store_error)?;
            }
        }
    }
    Ok(())
}

/// How those have ended that were there before.
pub(super) fn ends(conn: &Connection, world: &World, arrivals: &Arrivals) -> Result<(), StoreError> {
    let mut end = Many::new(conn, END_JOB);
    for write in world.job_writes() {
        if let JobWrite::End(job, ending) = write {
            one(end_job(&mut end, spot(arrivals, job)?, job, ending), "the end of a job")?;
        }
    }
    Ok(())
}

fn spot(arrivals: &Arrivals, job: &Job) -> Result<Spot, StoreError> {
    arrivals
        .get(&job.org, job.id)
        .ok_or_else(|| StoreError::Rejected(format!("{} is to be written but is not there", job.id)))
}

impl Jobs<'_> {
    fn insert_job(&mut self, spot: Spot, job: &Job, cold: &Cold, ending: Option<&Ending>) -> rusqlite::Result<()> {
        self.insert_job.get()?.execute(params![
            spot.ord,
            job.org.as_str(),
            job.id.0.as_bytes(),
            job.project.as_str(),
            job.kind.name.as_str(),
            job.kind.version,
            job.priority,
            cold.payload.as_str(),
            cold.source_session.as_ref().map(|s| s.as_str()),
            cold.deadline_at.map(|at| at.0),
            job.created_at.0,
            job.max_attempts,
            job.lane.key.as_str(),
            job.max_failures,
            cold.dedupe_key,
            cold.requeued_from.map(|id| id.0.into_bytes()),
            cold.schedule.map(|id| id.0.into_bytes()),
        ])?;
        if let Some(from) = cold.requeued_from {
            self.conn
                .prepare_cached("DELETE FROM dead_letter WHERE org = ?1 AND id = ?2")?
                .execute((job.org.as_str(), from.0.as_bytes()))?;
        }
        if let Some(ending) = ending {
            end_job(&mut self.end_job, spot, job, ending)?;
            write_queue::ended(self.conn, job, ending)?;
        }
        Ok(())
    }

    fn insert_live(&mut self, spot: Spot, late: bool, job: &Job, now: Micros) -> rusqlite::Result<()> {
        let (lease, rank) = (job.status.lease(), self.rank(job)?);
        self.insert_live.get()?.execute(params![
            spot.ord,
            job.org.as_str(),
            job.id.0.as_bytes(),
            job.kind.name.as_str(),
            job.priority,
            phase::of(&job.status, now),
            job.status.state().as_str(),
            pause(&job.status),
            job.status.due_at().map(|at| at.0),
            lease.map(|l| l.worker.as_str()),
            lease.map(|l| l.until.0),
            job.attempts,
            job.max_attempts,
            job.token,
            job.wakes,
            job.started_at.map(|at| at.0),
            job.head.n,
            job.head.hash.0,
            job.head.at.0,
            job.class().number(),
            phase::slot(&job.status),
            job.since.0,
            late,
            job.lane.key.as_str(),
            job.lane.max,
            job.lane.kept,
            job.outside,
            job.dedupe,
            job.failures,
            Aside::stored(job.aside.as_deref()),
            spot.head_pos,
            rank,
        ])?;
        Ok(())
    }

    fn update_live(&mut self, spot: Spot, job: &Job, now: Micros) -> rusqlite::Result<usize> {
        let (lease, rank) = (job.status.lease(), self.rank(job)?);
        self.update_live.get()?.execute(params![
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

    /// Where it stands, if it can be handed out now or later.
    fn rank(&mut self, job: &Job) -> rusqlite::Result<Option<i64>> {
        job.status.due_at().map(|_| self.ranks.join(self.conn, job)).transpose()
    }

    fn delete_live(&mut self, spot: Spot, job: &Job) -> rusqlite::Result<usize> {
        self.delete_live.get()?.execute((spot.ord, job.org.as_str()))
    }
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

const fn pause(status: &Status) -> Option<&'static str> {
    match status {
        Status::AwaitingTool { pause, .. } => Some(pause.as_str()),
        _ => None,
    }
}
