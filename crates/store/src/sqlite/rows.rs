//! Rows of SQLite as values of the core, and back.

use baton_core::canon::{Digest, Json};
use baton_core::doc::Doc;
use baton_core::event::{Head, Recorded};
use baton_core::id::DocId;
use baton_core::job::{Aside, Cold, End, Face, Job, Kind, Lease, Pause, State, Status};
use baton_core::lane::{LaneKey, Place};
use baton_core::seal::Seal;
use baton_core::{JobId, Micros, ProjectId};
use rusqlite::Row;
use rusqlite::types::Type;
use uuid::Uuid;

use super::arrivals::Spot;
use crate::records::{JobRecord, failure};

/// What stands in a column cannot be what should stand there.
pub(super) fn garbled(column: usize, what: impl ToString) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, what.to_string().into())
}

pub(super) fn parsed<T: std::str::FromStr>(row: &Row<'_>, i: usize) -> rusqlite::Result<T>
where
    T::Err: std::fmt::Display,
{
    row.get_ref(i)?.as_str()?.parse().map_err(|e: T::Err| garbled(i, e))
}

pub(super) fn uuid(row: &Row<'_>, i: usize) -> rusqlite::Result<Uuid> {
    Uuid::from_slice(row.get_ref(i)?.as_blob()?).map_err(|e| garbled(i, e))
}

pub(super) fn digest(row: &Row<'_>, i: usize) -> rusqlite::Result<Digest> {
    Digest::from_slice(row.get_ref(i)?.as_blob()?).ok_or_else(|| garbled(i, "not a digest"))
}

/// A state and a pause, as the orchestrator routes name them.
pub(super) fn face(row: &Row<'_>, from: usize) -> rusqlite::Result<Face> {
    let state = State::parse(row.get_ref(from)?.as_str()?).ok_or_else(|| garbled(from, "not a state"))?;
    Ok(Face::of(state, row.get_ref(from + 1)?.as_str_or_null()?.and_then(Pause::parse)))
}

pub(super) fn micros(row: &Row<'_>, i: usize) -> rusqlite::Result<Micros> {
    row.get(i).map(Micros)
}

pub(super) fn maybe_micros(row: &Row<'_>, i: usize) -> rusqlite::Result<Option<Micros>> {
    Ok(row.get::<_, Option<i64>>(i)?.map(Micros))
}

fn head(row: &Row<'_>, i: usize) -> rusqlite::Result<Head> {
    Ok(Head { n: row.get(i)?, hash: digest(row, i + 1)?, at: micros(row, i + 2)? })
}

/// The columns of `live` and `job` that make a live job, in the order [`live_job`] reads them.
pub(super) const LIVE: &str = "l.org, l.id, j.project, l.type, j.version, l.priority, l.state, l.pause, l.due_at, \
    l.worker, l.lease_until, l.attempts, l.max_attempts, l.token, l.wakes, j.created_at, l.started_at, \
    j.deadline_at IS NOT NULL, l.head_n, l.head_hash, l.head_at, l.ord, l.since, l.lane, l.lane_max, l.kept, l.outside, \
    l.dedupe, l.failures, j.max_failures, l.aside, l.head_pos";
const LIVE_ORD: usize = 21;
pub(super) const LIVE_SINCE: usize = 22;
const LIVE_HEAD_POS: usize = 31;
pub(super) const LIVE_LEN: usize = 32;

pub(super) fn spot(row: &Row<'_>) -> rusqlite::Result<Spot> {
    Ok(Spot { ord: row.get(LIVE_ORD)?, head_pos: row.get(LIVE_HEAD_POS)? })
}

pub(super) fn live_job(row: &Row<'_>) -> rusqlite::Result<Job> {
    let due_at = maybe_micros(row, 8)?;
    let state = row.get_ref(6)?.as_str()?;
    let status = match State::parse(state) {
        Some(State::Queued) => Status::Queued { due_at: due_at.ok_or_else(|| garbled(8, "queued but never due"))? },
        Some(State::Executing) => {
            Status::Executing { lease: Lease { worker: parsed(row, 9)?, until: micros(row, 10)? } }
        }
        Some(State::AwaitingTool) => {
            let pause = Pause::parse(row.get_ref(7)?.as_str()?).ok_or_else(|| garbled(7, "not a pause"))?;
            Status::AwaitingTool { pause, due_at }
        }
        Some(State::AwaitingUserConfirmation) => Status::AwaitingUser { due_at },
        _ => return Err(garbled(6, format!("{state} is not a live state"))),
    };
    Ok(Job {
        org: parsed(row, 0)?,
        id: JobId(uuid(row, 1)?),
        project: parsed(row, 2)?,
        kind: Kind { name: parsed(row, 3)?, version: row.get(4)? },
        priority: row.get(5)?,
        status,
        lane: Place { key: parsed(row, 23)?, max: row.get(24)?, kept: row.get(25)? },
        since: micros(row, 22)?,
        attempts: row.get(11)?,
        max_attempts: row.get(12)?,
        failures: row.get(28)?,
        max_failures: row.get(29)?,
        token: row.get(13)?,
        wakes: row.get(14)?,
        created_at: micros(row, 15)?,
        started_at: maybe_micros(row, 16)?,
        has_deadline: row.get(17)?,
        outside: row.get(26)?,
        dedupe: row.get(27)?,
        aside: aside(row, 30)?,
        head: head(row, 18)?,
    })
}

fn aside(row: &Row<'_>, i: usize) -> rusqlite::Result<Option<Box<Aside>>> {
    let text = row.get_ref(i)?.as_str_or_null()?;
    text.map(|text| serde_json::from_str(text).map_err(|e| garbled(i, e))).transpose()
}

/// The columns of `job` that make an ended job, in the order [`ended_job`] reads them.
pub(super) const ENDED: &str = "j.org, j.id, j.project, j.type, j.version, j.priority, j.state, j.ended_at, j.attempts, \
    j.max_attempts, j.token, j.created_at, j.started_at, j.deadline_at, j.head_n, j.head_hash, j.head_at, j.lane, \
    j.failures, j.max_failures, j.aside";
pub(super) const ENDED_LEN: usize = 21;

/// `from` is where the columns start.
pub(super) fn ended_job(row: &Row<'_>, from: usize) -> rusqlite::Result<Job> {
    let i = |n: usize| from + n;
    let how = End::parse(row.get_ref(i(6))?.as_str()?).ok_or_else(|| garbled(i(6), "not an end"))?;
    let project: ProjectId = parsed(row, i(2))?;
    // Jobs that ended before there were lanes say nothing of theirs.
    let lane = match row.get_ref(i(17))?.as_str_or_null()? {
        Some(key) => LaneKey::new(key).map_err(|e| garbled(i(17), e))?,
        None => LaneKey::of_project(&project),
    };
    let max_attempts = row.get(i(9))?;
    Ok(Job {
        org: parsed(row, i(0))?,
        id: JobId(uuid(row, i(1))?),
        project,
        kind: Kind { name: parsed(row, i(3))?, version: row.get(i(4))? },
        priority: row.get(i(5))?,
        status: Status::Ended { how, at: micros(row, i(7))? },
        lane: Place { key: lane, max: None, kept: false },
        since: micros(row, i(11))?,
        attempts: row.get(i(8))?,
        max_attempts,
        failures: row.get::<_, Option<u32>>(i(18))?.unwrap_or(0),
        max_failures: row.get::<_, Option<u32>>(i(19))?.unwrap_or(max_attempts),
        token: row.get(i(10))?,
        wakes: 0,
        created_at: micros(row, i(11))?,
        started_at: maybe_micros(row, i(12))?,
        has_deadline: row.get::<_, Option<i64>>(i(13))?.is_some(),
        outside: false,
        dedupe: None,
        aside: aside(row, i(20))?,
        head: head(row, i(14))?,
    })
}

fn maybe_uuid(row: &Row<'_>, i: usize) -> rusqlite::Result<Option<Uuid>> {
    let bytes = row.get_ref(i)?.as_blob_or_null()?;
    bytes.map(|bytes| Uuid::from_slice(bytes).map_err(|e| garbled(i, e))).transpose()
}

/// `LIVE`, `ENDED` and then these.
pub(super) const COLD: &str = "j.payload, j.source_session, j.deadline_at, j.result, j.error_code, j.error, \
    j.dedupe_key, j.requeued_from, j.schedule, \
    (SELECT r.id FROM job r WHERE r.org = j.org AND r.requeued_from = j.id)";

pub(super) fn record(row: &Row<'_>) -> rusqlite::Result<JobRecord> {
    let is_live = row.get_ref(0)? != rusqlite::types::ValueRef::Null;
    let job = if is_live { live_job(row)? } else { ended_job(row, LIVE_LEN)? };
    let i = |n: usize| LIVE_LEN + ENDED_LEN + n;
    let session: Option<String> = row.get(i(1))?;
    let cold = Cold {
        payload: Json::stored(row.get::<_, String>(i(0))?),
        source_session: session.map(|s| s.parse().map_err(|e| garbled(i(1), e))).transpose()?,
        deadline_at: maybe_micros(row, i(2))?,
        dedupe_key: row.get(i(6))?,
        requeued_from: maybe_uuid(row, i(7))?.map(JobId),
        schedule: maybe_uuid(row, i(8))?.map(DocId),
    };
    let code: Option<String> = row.get(i(4))?;
    let message: Option<String> = row.get(i(5))?;
    Ok(JobRecord {
        job,
        cold,
        result: row.get::<_, Option<String>>(i(3))?.map(Json::stored),
        error: code.map(|code| failure(code, message)),
        requeued_as: maybe_uuid(row, i(9))?.map(JobId),
    })
}

pub(super) const DOC: &str = "id, flag, body, head_n, head_hash, head_at";

/// `from` is where the columns start.
pub(super) fn doc(row: &Row<'_>, from: usize) -> rusqlite::Result<Doc> {
    let body = Json::stored(row.get::<_, String>(from + 2)?);
    Ok(Doc { id: DocId(uuid(row, from)?), flag: row.get(from + 1)?, body, head: head(row, from + 3)? })
}

pub(super) const EVENT: &str = "e.org, e.pos, e.subject, e.n, e.at, e.kind, e.actor, e.data, e.hash";
pub(super) const EVENT_LEN: usize = 9;

pub(super) fn event(row: &Row<'_>) -> rusqlite::Result<(i64, Recorded)> {
    let recorded = Recorded {
        org: parsed(row, 0)?,
        subject: uuid(row, 2)?,
        n: row.get(3)?,
        at: micros(row, 4)?,
        kind: row.get(5)?,
        actor: row.get(6)?,
        data: Json::stored(row.get::<_, String>(7)?),
        hash: digest(row, 8)?,
    };
    Ok((row.get(1)?, recorded))
}

pub(super) const SEAL: &str = "s.org, s.n, s.from_pos, s.to_pos, s.count, s.root, s.prev, s.at, s.mac";

pub(super) fn seal(row: &Row<'_>) -> rusqlite::Result<Seal> {
    Ok(Seal {
        org: parsed(row, 0)?,
        n: row.get(1)?,
        from_pos: row.get(2)?,
        to_pos: row.get(3)?,
        count: row.get(4)?,
        root: digest(row, 5)?,
        prev: digest(row, 6)?,
        at: micros(row, 7)?,
        mac: digest(row, 8)?,
    })
}
