//! Runs: loading what is open, writing it, and appending what has ended.

use super::rows::{self, garbled};
use super::store_error;
use super::write::one;
use crate::error::StoreError;
use crate::runs::{self, Opened};
use baton_core::event::Head;
use baton_core::run::record::{Record, StepAt, StepRecord};
use baton_core::run::{Agent, Run, StepState};
use baton_core::world::AgentWrite;
use baton_core::{AgentId, Json, OrgId, RunId, World};
use rusqlite::{Connection, OptionalExtension, Row, params};

pub(super) const RUN: &str = "org, id, body, head_n, head_hash, head_at";
pub(super) const AGENT: &str = "org, id, body, head_n, head_hash, head_at, run";
pub(super) const STEP: &str = "agent, n, run, agent_attempt, task, task_attempt, step, state, ended_at, more, result";

fn head(row: &Row<'_>) -> rusqlite::Result<Head> {
    Ok(Head { n: row.get(3)?, hash: rows::digest(row, 4)?, at: rows::micros(row, 5)? })
}

pub(super) fn run(row: &Row<'_>) -> rusqlite::Result<Run> {
    let opened = Opened { org: rows::parsed(row, 0)?, body: row.get_ref(2)?.as_str()?, head: head(row)? };
    runs::run(RunId(rows::uuid(row, 1)?), opened).map_err(|e| garbled(2, e))
}

pub(super) fn agent(row: &Row<'_>) -> rusqlite::Result<Agent> {
    let opened = Opened { org: rows::parsed(row, 0)?, body: row.get_ref(2)?.as_str()?, head: head(row)? };
    let (id, run) = (AgentId(rows::uuid(row, 1)?), RunId(rows::uuid(row, 6)?));
    runs::agent(id, run, opened).map_err(|e| garbled(2, e))
}

pub(super) fn step(row: &Row<'_>) -> rusqlite::Result<StepRecord> {
    Ok(StepRecord {
        agent: AgentId(rows::uuid(row, 0)?),
        n: row.get(1)?,
        run: RunId(rows::uuid(row, 2)?),
        at: StepAt { agent_attempt: row.get(3)?, task: row.get(4)?, task_attempt: row.get(5)?, step: row.get(6)? },
        state: StepState::parse(row.get_ref(7)?.as_str()?).ok_or_else(|| garbled(7, "not a state of a step"))?,
        ended_at: rows::micros(row, 8)?,
        more: runs::step_more(row.get_ref(9)?.as_str()?).map_err(|e| garbled(9, e))?,
        result: row.get_ref(10)?.as_str_or_null()?.map(Json::stored),
    })
}

pub(super) fn load_run(conn: &Connection, org: &OrgId, id: RunId) -> rusqlite::Result<Option<Run>> {
    conn.prepare_cached(&format!("SELECT {RUN} FROM run WHERE org = ?1 AND id = ?2"))?
        .query_row((org.as_str(), id.0.as_bytes()), run)
        .optional()
}

pub(super) fn load_agent(conn: &Connection, org: &OrgId, id: AgentId) -> rusqlite::Result<Option<Agent>> {
    const SQL: &str = "SELECT org, id, body, head_n, head_hash, head_at, run FROM run_agent WHERE org = ?1 AND id = ?2";
    conn.prepare_cached(SQL)?.query_row((org.as_str(), id.0.as_bytes()), agent).optional()
}

pub(super) fn write(conn: &Connection, world: &World) -> Result<(), StoreError> {
    for (found, run) in world.run_writes() {
        one(write_run(conn, found, run), "the row of a run")?;
    }
    for write in world.agent_writes() {
        one(write_agent(conn, write), "the row of an agent")?;
    }
    append(conn, world).map_err(store_error)
}

fn write_run(conn: &Connection, found: bool, run: &Run) -> rusqlite::Result<usize> {
    let sql = if found {
        "UPDATE run SET state = ?4, deleted = ?5, body = ?6, head_n = ?7, head_hash = ?8, head_at = ?9 \
             WHERE org = ?1 AND id = ?2 AND project = ?3"
    } else {
        "INSERT INTO run (org, id, project, state, deleted, body, head_n, head_hash, head_at) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)"
    };
    conn.prepare_cached(sql)?.execute(params![
        run.org.as_str(),
        run.id.0.as_bytes(),
        run.project.as_str(),
        run.state.as_str(),
        run.is_deleted(),
        runs::text(run),
        run.head.n,
        run.head.hash.0,
        run.head.at.0,
    ])
}

/// What is only ever added to.
fn append(conn: &Connection, world: &World) -> rusqlite::Result<()> {
    for (org, id, document, plan) in world.plan_writes() {
        conn.prepare_cached("INSERT INTO run_plan (org, id, document, plan) VALUES (?1, ?2, ?3, ?4)")?
            .execute(params![org.as_str(), id.0.as_bytes(), document.as_str(), plan.as_str()])?;
    }
    for (org, record) in world.record_writes() {
        write_record(conn, org, record)?;
    }
    for (org, posting) in world.posting_writes() {
        conn.prepare_cached(
            "INSERT INTO ledger (org, account, n, kind, amount, balance_after, key, run, at) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        )?
        .execute(params![
            org.as_str(),
            posting.account.to_string(),
            posting.n,
            posting.kind.as_str(),
            posting.amount.micros(),
            posting.balance_after.micros(),
            posting.key,
            posting.run.map(|run| run.0.into_bytes()),
            posting.at.0,
        ])?;
    }
    Ok(())
}

fn write_agent(conn: &Connection, write: AgentWrite<'_>) -> rusqlite::Result<usize> {
    let AgentWrite { found, moved, agent } = write;
    let (state, job) = (agent.state.as_str(), agent.job.map(|job| job.0.into_bytes()));
    if found {
        // What stays as it is is left alone: an index over it would be written anew.
        let sql = if moved {
            "UPDATE run_agent SET body = ?3, head_n = ?4, head_hash = ?5, head_at = ?6, state = ?7, job = ?8 \
             WHERE org = ?1 AND id = ?2"
        } else {
            "UPDATE run_agent SET body = ?3, head_n = ?4, head_hash = ?5, head_at = ?6 \
             WHERE org = ?1 AND id = ?2 AND state = ?7 AND job IS ?8"
        };
        return conn.prepare_cached(sql)?.execute(params![
            agent.org.as_str(),
            agent.id.0.as_bytes(),
            runs::text(agent),
            agent.head.n,
            agent.head.hash.0,
            agent.head.at.0,
            state,
            job,
        ]);
    }
    conn.prepare_cached(
        "INSERT INTO run_agent (org, id, run, run_attempt, place, state, job, body, head_n, head_hash, head_at) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
    )?
    .execute(params![
        agent.org.as_str(),
        agent.id.0.as_bytes(),
        agent.run.0.as_bytes(),
        agent.run_attempt,
        agent.index,
        state,
        job,
        runs::text(agent),
        agent.head.n,
        agent.head.hash.0,
        agent.head.at.0,
    ])
}

fn write_record(conn: &Connection, org: &OrgId, record: &Record) -> rusqlite::Result<()> {
    match record {
        Record::Step(step) => conn
            .prepare_cached(
                "INSERT INTO run_step (org, agent, n, run, agent_attempt, task, task_attempt, step, state, ended_at, \
                 more, result) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
            )?
            .execute(params![
                org.as_str(),
                step.agent.0.as_bytes(),
                step.n,
                step.run.0.as_bytes(),
                step.at.agent_attempt,
                step.at.task,
                step.at.task_attempt,
                step.at.step,
                step.state.as_str(),
                step.ended_at.0,
                runs::more(step),
                step.result.as_ref().map(Json::as_str),
            ])?,
        Record::Task(task) => conn
            .prepare_cached("INSERT INTO run_task (org, agent, n, run, body) VALUES (?1, ?2, ?3, ?4, ?5)")?
            .execute(params![org.as_str(), task.agent.0.as_bytes(), task.n, task.run.0.as_bytes(), runs::text(task)])?,
        Record::Attempt(attempt) => conn
            .prepare_cached("INSERT INTO run_attempt (org, run, attempt, body) VALUES (?1, ?2, ?3, ?4)")?
            .execute(params![org.as_str(), attempt.run.0.as_bytes(), attempt.attempt, runs::text(attempt)])?,
    };
    Ok(())
}
