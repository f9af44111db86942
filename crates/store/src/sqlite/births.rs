//! Writing new jobs.

use super::arrivals::Spot;
use super::inserts::Inserts;
use super::ranks::Ranks;
use super::write_jobs::pause;
use crate::phase;
use baton_core::Micros;
use baton_core::job::{Aside, Cold, Ending, Job};
use rusqlite::Connection;
use std::sync::LazyLock;

static JOB: LazyLock<Inserts> = LazyLock::new(|| {
    Inserts::new(
        "job",
        "ord, org, id, project, type, version, priority, payload, source_session, deadline_at, created_at, max_attempts, \
         lane, max_failures, dedupe_key, requeued_from, schedule",
    )
});

static LIVE: LazyLock<Inserts> = LazyLock::new(|| {
    Inserts::new(
        "live",
        "ord, org, id, type, priority, phase, state, pause, due_at, worker, lease_until, attempts, max_attempts, token, \
         wakes, started_at, head_n, head_hash, head_at, class, slot, since, late, lane, lane_max, kept, outside, dedupe, \
         failures, aside, head_pos, rank",
    )
});

/// A new job, and how it has ended if it has already.
pub(super) struct Birth<'w> {
    pub spot: Spot,
    /// Its number does not tell how long it will have waited.
    pub late: bool,
    pub job: &'w Job,
    pub cold: &'w Cold,
    pub ending: Option<&'w Ending>,
}

/// Behind whatever makes room for them: another may just have given up a dedupe key.
pub(super) fn write(conn: &Connection, ranks: &mut Ranks, births: &[Birth<'_>], now: Micros) -> rusqlite::Result<()> {
    jobs(conn, births)?;
    let mut live = Vec::with_capacity(births.len());
    for birth in births.iter().filter(|birth| birth.ending.is_none()) {
        // Where it stands, if it can be handed out now or later.
        let rank = birth.job.status.due_at().map(|_| ranks.join(conn, birth.job)).transpose()?;
        live.push((birth, rank));
    }
    LIVE.bring_in(conn, &live, |(birth, rank), row| {
        let Birth { spot, late, job, .. } = birth;
        let lease = job.status.lease();
        row.put(spot.ord).put(job.org.as_str()).put(job.id.0.as_bytes()).put(job.kind.name.as_str()).put(job.priority);
        row.put(phase::of(&job.status, now)).put(job.status.state().as_str()).put(pause(&job.status));
        row.put(job.status.due_at().map(|at| at.0)).put(lease.map(|l| l.worker.as_str())).put(lease.map(|l| l.until.0));
        row.put(job.attempts).put(job.max_attempts).put(job.token).put(job.wakes);
        row.put(job.started_at.map(|at| at.0)).put(job.head.n).put(job.head.hash.0).put(job.head.at.0);
        row.put(job.class().number()).put(phase::slot(&job.status)).put(job.since.0).put(late);
        row.put(job.lane.key.as_str()).put(job.lane.max).put(job.lane.kept).put(job.outside).put(&job.dedupe);
        row.put(job.failures).put(Aside::stored(job.aside.as_deref())).put(spot.head_pos).put(rank);
    })
}

fn jobs(conn: &Connection, births: &[Birth<'_>]) -> rusqlite::Result<()> {
    JOB.bring_in(conn, births, |Birth { spot, job, cold, .. }, row| {
        row.put(spot.ord).put(job.org.as_str()).put(job.id.0.as_bytes()).put(job.project.as_str());
        row.put(job.kind.name.as_str()).put(job.kind.version).put(job.priority).put(cold.payload.as_str());
        row.put(cold.source_session.as_ref().map(|s| s.as_str())).put(cold.deadline_at.map(|at| at.0));
        row.put(job.created_at.0).put(job.max_attempts).put(job.lane.key.as_str()).put(job.max_failures);
        row.put(&cold.dedupe_key).put(cold.requeued_from.map(|id| id.0.into_bytes()));
        row.put(cold.schedule.map(|id| id.0.into_bytes()));
    })?;
    for from in births.iter().filter_map(|birth| Some((&birth.job.org, birth.cold.requeued_from?))) {
        conn.prepare_cached("DELETE FROM dead_letter WHERE org = ?1 AND id = ?2")?
            .execute((from.0.as_str(), from.1.0.as_bytes()))?;
    }
    Ok(())
}
