//! Rows of PostgreSQL as values of the core.

use super::statements::{ENDED_LEN, LIVE_LEN};
use crate::error::StoreError;
use crate::records::{JobRecord, failure};
use baton_core::canon::{Digest, Json};
use baton_core::doc::Doc;
use baton_core::event::{Head, Recorded};
use baton_core::id::DocId;
use baton_core::job::{Aside, Cold, End, Face, Job, Kind, Lease, Pause, State, Status};
use baton_core::lane::{LaneKey, Place};
use baton_core::seal::Seal;
use baton_core::{JobId, Micros, ProjectId};
use std::fmt::Display;
use std::str::FromStr;
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;
use uuid::Uuid;

pub(super) type Result<T> = std::result::Result<T, StoreError>;

pub(super) fn garbled(what: impl Display) -> StoreError {
    StoreError::Garbled(what.to_string())
}

pub(super) fn get<'a, T: FromSql<'a>>(row: &'a Row, i: usize) -> Result<T> {
    row.try_get(i).map_err(garbled)
}

pub(super) fn parsed<T: FromStr>(row: &Row, i: usize) -> Result<T>
where
    T::Err: Display,
{
    get::<&str>(row, i)?.parse().map_err(|e: T::Err| garbled(e))
}

pub(super) fn digest(row: &Row, i: usize) -> Result<Digest> {
    Digest::from_slice(get(row, i)?).ok_or_else(|| garbled("not a digest"))
}

/// A state and a pause, as the orchestrator routes name them.
pub(super) fn face(row: &Row, from: usize) -> Result<Face> {
    let state = State::parse(get(row, from)?).ok_or_else(|| garbled("not a state"))?;
    Ok(Face::of(state, get::<Option<&str>>(row, from + 1)?.and_then(Pause::parse)))
}

pub(super) fn micros(row: &Row, i: usize) -> Result<Micros> {
    get(row, i).map(Micros)
}

pub(super) fn maybe_micros(row: &Row, i: usize) -> Result<Option<Micros>> {
    Ok(get::<Option<i64>>(row, i)?.map(Micros))
}

pub(super) fn count(row: &Row, i: usize) -> Result<u32> {
    u32::try_from(get::<i32>(row, i)?).map_err(garbled)
}

pub(super) fn head(row: &Row, i: usize) -> Result<Head> {
    Ok(Head { n: get(row, i)?, hash: digest(row, i + 1)?, at: micros(row, i + 2)? })
}

/// Where the order of arrival stands among the columns of a live job.
pub(super) const LIVE_ORD: usize = 21;
/// The same of its lane.
pub(super) const LIVE_LANE: usize = 23;

pub(super) fn live_job(row: &Row) -> Result<Job> {
    live_job_from(row, 0)
}

/// `from` is where the columns start.
pub(super) fn live_job_from(row: &Row, from: usize) -> Result<Job> {
    let i = |n: usize| from + n;
    let due_at = maybe_micros(row, i(8))?;
    let state = get::<&str>(row, i(6))?;
    let status = match State::parse(state) {
        Some(State::Queued) => Status::Queued { due_at: due_at.ok_or_else(|| garbled("queued but never due"))? },
        Some(State::Executing) => {
            Status::Executing { lease: Lease { worker: parsed(row, i(9))?, until: micros(row, i(10))? } }
        }
        Some(State::AwaitingTool) => {
            let pause = Pause::parse(get(row, i(7))?).ok_or_else(|| garbled("not a pause"))?;
            Status::AwaitingTool { pause, due_at }
        }
        Some(State::AwaitingUserConfirmation) => Status::AwaitingUser { due_at },
        _ => return Err(garbled(format!("{state} is not a live state"))),
    };
    Ok(Job {
        org: parsed(row, i(0))?,
        id: JobId(get(row, i(1))?),
        project: parsed(row, i(2))?,
        kind: Kind { name: parsed(row, i(3))?, version: count(row, i(4))? },
        priority: get(row, i(5))?,
        status,
        lane: Place { key: parsed(row, i(23))?, max: maybe_count(row, i(24))?, kept: get(row, i(25))? },
        since: micros(row, i(22))?,
        attempts: count(row, i(11))?,
        max_attempts: count(row, i(12))?,
        failures: count(row, i(28))?,
        max_failures: count(row, i(29))?,
        token: get(row, i(13))?,
        wakes: get(row, i(14))?,
        created_at: micros(row, i(15))?,
        started_at: maybe_micros(row, i(16))?,
        has_deadline: get(row, i(17))?,
        outside: get(row, i(26))?,
        dedupe: get(row, i(27))?,
        aside: aside(row, i(30))?,
        head: head(row, i(18))?,
    })
}

pub(super) fn maybe_count(row: &Row, i: usize) -> Result<Option<u32>> {
    get::<Option<i32>>(row, i)?.map(|n| u32::try_from(n).map_err(garbled)).transpose()
}

fn aside(row: &Row, i: usize) -> Result<Option<Box<Aside>>> {
    get::<Option<&str>>(row, i)?.map(|text| serde_json::from_str(text).map_err(garbled)).transpose()
}

/// `from` is where the columns start.
pub(super) fn ended_job(row: &Row, from: usize) -> Result<Job> {
    let i = |n: usize| from + n;
    let how = End::parse(get(row, i(6))?).ok_or_else(|| garbled("not an end"))?;
    let project: ProjectId = parsed(row, i(2))?;
    // Jobs that ended before there were lanes say nothing of theirs.
    let lane = match get::<Option<&str>>(row, i(17))? {
        Some(key) => LaneKey::new(key).map_err(garbled)?,
        None => LaneKey::of_project(&project),
    };
    let max_attempts = count(row, i(9))?;
    Ok(Job {
        org: parsed(row, i(0))?,
        id: JobId(get(row, i(1))?),
        project,
        kind: Kind { name: parsed(row, i(3))?, version: count(row, i(4))? },
        priority: get(row, i(5))?,
        status: Status::Ended { how, at: micros(row, i(7))? },
        lane: Place { key: lane, max: None, kept: false },
        since: micros(row, i(11))?,
        attempts: count(row, i(8))?,
        max_attempts,
        failures: maybe_count(row, i(18))?.unwrap_or(0),
        max_failures: maybe_count(row, i(19))?.unwrap_or(max_attempts),
        token: get(row, i(10))?,
        wakes: 0,
        created_at: micros(row, i(11))?,
        started_at: maybe_micros(row, i(12))?,
        has_deadline: get::<Option<i64>>(row, i(13))?.is_some(),
        outside: false,
        dedupe: None,
        aside: aside(row, i(20))?,
        head: head(row, i(14))?,
    })
}

/// `LIVE`, `ENDED` and then these.
pub(super) const COLD: &str = "j.payload, j.source_session, j.deadline_at, j.result, j.error_code, j.error, \
    j.dedupe_key, j.requeued_from, j.schedule, \
    (SELECT r.id FROM job r WHERE r.org = j.org AND r.requeued_from = j.id)";

pub(super) fn record(row: &Row) -> Result<JobRecord> {
    let is_live = get::<Option<&str>>(row, 0)?.is_some();
    let job = if is_live { live_job(row)? } else { ended_job(row, LIVE_LEN)? };
    let i = |n: usize| LIVE_LEN + ENDED_LEN + n;
    let session: Option<&str> = get(row, i(1))?;
    let cold = Cold {
        payload: Json::stored(get::<&str>(row, i(0))?),
        source_session: session.map(|s| s.parse().map_err(|e: baton_core::name::BadName| garbled(e))).transpose()?,
        deadline_at: maybe_micros(row, i(2))?,
        dedupe_key: get(row, i(6))?,
        requeued_from: get::<Option<Uuid>>(row, i(7))?.map(JobId),
        schedule: get::<Option<Uuid>>(row, i(8))?.map(DocId),
    };
    let code: Option<String> = get(row, i(4))?;
    let message: Option<String> = get(row, i(5))?;
    Ok(JobRecord {
        job,
        cold,
        result: get::<Option<&str>>(row, i(3))?.map(Json::stored),
        error: code.map(|code| failure(code, message)),
        requeued_as: get::<Option<Uuid>>(row, i(9))?.map(JobId),
    })
}

pub(super) const DOC: &str = "id, flag, body, head_n, head_hash, head_at";

/// `from` is where the columns start.
pub(super) fn doc(row: &Row, from: usize) -> Result<Doc> {
    let body = Json::stored(get::<&str>(row, from + 2)?);
    Ok(Doc { id: DocId(get(row, from)?), flag: get(row, from + 1)?, body, head: head(row, from + 3)? })
}

pub(super) const EVENT: &str = "e.org, e.pos, e.subject, e.n, e.at, e.kind, e.actor, e.data, e.hash";
pub(super) const EVENT_LEN: usize = 9;

pub(super) fn event(row: &Row) -> Result<(i64, Recorded)> {
    let recorded = Recorded {
        org: parsed(row, 0)?,
        subject: get(row, 2)?,
        n: get(row, 3)?,
        at: micros(row, 4)?,
        kind: get(row, 5)?,
        actor: get(row, 6)?,
        data: Json::stored(get::<&str>(row, 7)?),
        hash: digest(row, 8)?,
    };
    Ok((get(row, 1)?, recorded))
}

pub(super) const SEAL: &str = "s.org, s.n, s.from_pos, s.to_pos, s.count, s.root, s.prev, s.at, s.mac";

pub(super) fn seal(row: &Row) -> Result<Seal> {
    Ok(Seal {
        org: parsed(row, 0)?,
        n: get(row, 1)?,
        from_pos: get(row, 2)?,
        to_pos: get(row, 3)?,
        count: get(row, 4)?,
        root: digest(row, 5)?,
        prev: digest(row, 6)?,
        at: micros(row, 7)?,
        mac: digest(row, 8)?,
    })
}
