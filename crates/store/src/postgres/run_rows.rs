//! Runs: rows as values, and the part of a group's second round trip that writes them.

use super::rows::{self, Result, garbled, get, parsed};
use super::statements::Statements;
use super::write::{Batch, Param, col, int, params};
use super::write_jobs::told;
use crate::runs::{self, Opened};
use baton_core::ledger::Posting;
use baton_core::run::record::{Record, StepAt, StepRecord};
use baton_core::run::{Agent, Run, StepState};
use baton_core::{AgentId, Json, OrgId, RunId, World};
use tokio_postgres::Row;

pub(super) const RUN: &str = "org, id, body, head_n, head_hash, head_at";
pub(super) const AGENT: &str = "org, id, body, head_n, head_hash, head_at, run";
pub(super) const STEP: &str = "agent, n, run, agent_attempt, task, task_attempt, step, state, ended_at, more, result";

pub(super) fn run(row: &Row) -> Result<Run> {
    let opened = Opened { org: parsed(row, 0)?, body: get(row, 2)?, head: rows::head(row, 3)? };
    runs::run(RunId(get(row, 1)?), opened).map_err(garbled)
}

/// Its columns begin at `i`.
pub(super) fn agent(row: &Row, i: usize) -> Result<Agent> {
    let opened = Opened { org: parsed(row, i)?, body: get(row, i + 2)?, head: rows::head(row, i + 3)? };
    runs::agent(AgentId(get(row, i + 1)?), RunId(get(row, i + 6)?), opened).map_err(garbled)
}

pub(super) fn step(row: &Row) -> Result<StepRecord> {
    let count = |i| rows::count(row, i);
    Ok(StepRecord {
        agent: AgentId(get(row, 0)?),
        n: count(1)?,
        run: RunId(get(row, 2)?),
        at: StepAt { agent_attempt: count(3)?, task: count(4)?, task_attempt: count(5)?, step: count(6)? },
        state: StepState::parse(get(row, 7)?).ok_or_else(|| garbled("not a state of a step"))?,
        ended_at: rows::micros(row, 8)?,
        more: runs::step_more(get(row, 9)?).map_err(garbled)?,
        result: get::<Option<&str>>(row, 10)?.map(Json::stored),
    })
}

/// What steps leave behind in a group.
pub(super) struct Steps<'a> {
    known: Vec<&'a Agent>,
    steps: Vec<(&'a OrgId, &'a StepRecord)>,
    postings: &'a [(OrgId, Posting)],
}

impl<'a> Steps<'a> {
    pub fn of(world: &'a World) -> Self {
        let steps = world.record_writes().iter().filter_map(|(org, record)| match record {
            Record::Step(step) => Some((org, step)),
            _ => None,
        });
        Self {
            known: world.agent_writes().filter(|w| w.found).map(|w| w.agent).collect(),
            steps: steps.collect(),
            postings: world.posting_writes(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.known.is_empty() && self.steps.is_empty() && self.postings.is_empty()
    }
}

impl<'a> Batch<'a> {
    pub(super) fn runs(&mut self, s: &'a Statements, world: &'a World) {
        let (known, fresh): (Vec<_>, Vec<_>) = world.run_writes().partition(|(found, _)| *found);
        for (rows, statement) in [(fresh, &s.insert_runs), (known, &s.update_runs)] {
            let rows: Vec<&Run> = rows.into_iter().map(|(_, run)| run).collect();
            self.add(rows.len(), statement, || {
                params![
                    col(&rows, |r| r.org.as_str()),
                    col(&rows, |r| r.id.0),
                    col(&rows, |r| r.project.as_str()),
                    col(&rows, |r| r.state.as_str()),
                    col(&rows, |r| r.is_deleted()),
                    col(&rows, |r| runs::text(*r)),
                    col(&rows, |r| r.head.n),
                    col(&rows, |r| r.head.hash.0.as_slice()),
                    col(&rows, |r| r.head.at.0),
                ]
            });
        }
        let plans = world.plan_writes();
        self.add(plans.len(), &s.insert_run_plans, || {
            params![
                col(plans, |(org, ..)| org.to_string()),
                col(plans, |(_, id, ..)| id.0),
                col(plans, |(_, _, document, _)| document.as_str().to_owned()),
                col(plans, |(_, _, _, plan)| plan.as_str().to_owned()),
            ]
        });
        let fresh: Vec<&Agent> = world.agent_writes().filter(|w| !w.found).map(|w| w.agent).collect();
        self.new_agents(s, &fresh);
        self.records(s, world.record_writes());
    }

    /// What came of steps, and the events of the group: until the commit, readers wait behind the places that events
    /// take, so this comes late.
    pub(super) fn steps(&mut self, s: &'a Statements, world: &'a World, steps: &Steps<'a>) {
        self.add(usize::from(!steps.is_empty()), &s.put_steps, || {
            let events: Vec<_> = world.events().iter().collect();
            let parts = [agents(&steps.known), of_steps(&steps.steps), ledger(steps.postings), params![told(&events)]];
            parts.into_iter().flatten().collect()
        });
    }

    fn new_agents(&mut self, s: &'a Statements, fresh: &[&'a Agent]) {
        self.add(fresh.len(), &s.insert_agents, || {
            params![
                col(fresh, |a| a.org.as_str()),
                col(fresh, |a| a.id.0),
                col(fresh, |a| a.run.0),
                col(fresh, |a| int(a.run_attempt)),
                col(fresh, |a| int(a.index)),
                col(fresh, |a| a.state.as_str()),
                col(fresh, |a| a.job.map(|job| job.0)),
                col(fresh, |a| runs::text(*a)),
                col(fresh, |a| a.head.n),
                col(fresh, |a| a.head.hash.0.as_slice()),
                col(fresh, |a| a.head.at.0),
            ]
        });
    }

    fn records(&mut self, s: &'a Statements, records: &'a [(OrgId, Record)]) {
        let tasks: Vec<_> = (records.iter())
            .filter_map(|(org, record)| match record {
                Record::Task(task) => Some((org, task)),
                _ => None,
            })
            .collect();
        self.add(tasks.len(), &s.insert_tasks, || {
            params![
                col(&tasks, |(org, _)| org.as_str()),
                col(&tasks, |(_, x)| x.agent.0),
                col(&tasks, |(_, x)| int(x.n)),
                col(&tasks, |(_, x)| x.run.0),
                col(&tasks, |(_, x)| runs::text(*x)),
            ]
        });
        let attempts: Vec<_> = (records.iter())
            .filter_map(|(org, record)| match record {
                Record::Attempt(attempt) => Some((org, attempt)),
                _ => None,
            })
            .collect();
        self.add(attempts.len(), &s.insert_attempts, || {
            params![
                col(&attempts, |(org, _)| org.as_str()),
                col(&attempts, |(_, x)| x.run.0),
                col(&attempts, |(_, x)| int(x.attempt)),
                col(&attempts, |(_, x)| runs::text(*x)),
            ]
        });
    }
}

fn agents<'a>(known: &[&'a Agent]) -> Vec<Param<'a>> {
    params![
        col(known, |a| a.org.as_str()),
        col(known, |a| a.id.0),
        col(known, |a| a.state.as_str()),
        col(known, |a| a.job.map(|job| job.0)),
        col(known, |a| runs::text(*a)),
        col(known, |a| a.head.n),
        col(known, |a| a.head.hash.0.as_slice()),
        col(known, |a| a.head.at.0),
    ]
}

fn of_steps<'a>(steps: &[(&'a OrgId, &'a StepRecord)]) -> Vec<Param<'a>> {
    params![
        col(steps, |(org, _)| org.as_str()),
        col(steps, |(_, x)| x.agent.0),
        col(steps, |(_, x)| int(x.n)),
        col(steps, |(_, x)| x.run.0),
        col(steps, |(_, x)| int(x.at.agent_attempt)),
        col(steps, |(_, x)| int(x.at.task)),
        col(steps, |(_, x)| int(x.at.task_attempt)),
        col(steps, |(_, x)| int(x.at.step)),
        col(steps, |(_, x)| x.state.as_str()),
        col(steps, |(_, x)| x.ended_at.0),
        col(steps, |(_, x)| runs::more(x)),
        col(steps, |(_, x)| x.result.as_ref().map(Json::as_str)),
    ]
}

fn ledger(postings: &[(OrgId, Posting)]) -> Vec<Param<'_>> {
    params![
        col(postings, |(org, _)| org.to_string()),
        col(postings, |(_, p)| p.account.to_string()),
        col(postings, |(_, p)| p.n),
        col(postings, |(_, p)| p.kind.as_str()),
        col(postings, |(_, p)| p.amount.micros()),
        col(postings, |(_, p)| p.balance_after.micros()),
        col(postings, |(_, p)| p.key.clone()),
        col(postings, |(_, p)| p.run.map(|run| run.0)),
        col(postings, |(_, p)| p.at.0),
    ]
}
