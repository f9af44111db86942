//! The part of a group's second round trip that writes jobs, and what goes with every move of a job: counts of lanes, how
//! many wait in all, events. One statement for jobs that move and one for jobs that are made; what goes with them is part
//! of the last.

use super::listed::{Listed, Record};
use super::onward::Onward;
use super::statements::Statements;
use super::trusted::Trusted;
use super::write::{Batch, Param, col, int, params};
use crate::phase;
use crate::records::ending_columns;
use baton_core::event::Recorded;
use baton_core::job::{Aside, Cold, Ending, Job, Status};
use baton_core::lane::{self, LaneKey};
use baton_core::world::JobWrite;
use baton_core::{Micros, OrgId, World};

/// What goes with moves of jobs. Taken once; then there is nothing left of it.
#[derive(Default)]
pub(super) struct Beside<'a> {
    lanes: Vec<(&'a OrgId, &'a LaneKey, &'a lane::Row)>,
    crowd: i64,
    events: Vec<&'a Recorded>,
}

impl<'a> Beside<'a> {
    /// Events may be told by another statement.
    pub fn of(world: &'a World, with_events: bool) -> Self {
        Self {
            lanes: world.lane_writes().filter(|(org, key, _)| !world.lane_is_new(org, key)).collect(),
            crowd: world.crowd_delta(),
            events: if with_events { world.events().iter().collect() } else { Vec::new() },
        }
    }

    pub fn is_empty(&self) -> bool {
        self.lanes.is_empty() && self.crowd == 0 && self.events.is_empty()
    }

    pub fn take(&mut self) -> Vec<Param<'a>> {
        let Self { lanes, crowd, events } = std::mem::take(self);
        params![
            Listed::of(&lanes, |(org, key, lane), row| {
                row.put(org.as_str()).put(key.as_str()).put(lane.max.map(int)).put(int(lane.running));
                row.put(int(lane.waiting)).put(int(lane.outside)).put(int(lane.burst));
            }),
            crowd,
            told(&events),
        ]
    }
}

pub(super) fn told(events: &[&Recorded]) -> Listed {
    Listed::of(events, |e, row| {
        row.put(e.org.as_str()).put(e.subject).put(e.n).put(e.at.0).put(e.kind.as_str()).put(e.actor.as_str());
        row.put(e.data.as_str()).put(e.hash.0.as_slice());
    })
}

impl<'a> Batch<'a> {
    pub(super) fn jobs(
        &mut self,
        s: &'a Statements,
        world: &'a World,
        (now, trusted, onward): (Micros, &Trusted, Option<&Onward>),
        beside: &mut Beside<'a>,
    ) {
        let mut born: Vec<(&Job, &Cold)> = Vec::new();
        let mut enter: Vec<&Job> = Vec::new();
        let mut update: Vec<&Job> = Vec::new();
        let mut leave: Vec<(&Job, &Ending)> = Vec::new();
        let mut stillborn: Vec<(&Job, &Ending)> = Vec::new();
        for write in world.job_writes() {
            match write {
                JobWrite::Insert(job, cold, ending) => {
                    born.push((job, cold));
                    match ending {
                        Some(ending) => stillborn.push((job, ending)),
                        None => enter.push(job),
                    }
                }
                JobWrite::Update(job) => update.push(job),
                JobWrite::End(job, ending) => leave.push((job, ending)),
            }
        }
        // First what goes and what changes: a new job may take over a key that another gives up.
        let moves = leave.len() + update.len();
        self.add(moves, if onward.is_some() { &s.put_turn } else { &s.put_moves }, || {
            let lanes = col(&beside.lanes, |(org, key, _)| trusted.lane_left_by(org, key));
            let mut all = params![
                col(&leave, |(j, _)| j.org.as_str()),
                col(&leave, |(j, _)| j.id.0),
                Listed::of(&update, |j, row| moved(j, now, row)),
                Listed::of(&leave, |(j, e), row| ended(j, e, row)),
            ];
            all.extend(if born.is_empty() { beside.take() } else { Beside::default().take() });
            all.extend(params![col(&leave, |(j, _)| trusted.left_by(j)), col(&update, |j| trusted.left_by(j))]);
            if let Some(onward) = onward {
                all.extend(params![lanes]);
                all.extend(onward.params(trusted.whole().is_some()));
            }
            all
        });
        if moves > 0 && onward.is_some() {
            self.wants_answer();
        }
        let open = beside.lanes.is_empty() && beside.crowd == 0;
        self.add(born.len(), if open { &s.put_open_births } else { &s.put_births }, || {
            let mut all = params![
                Listed::of(&born, |(j, c), row| newborn(j, c, row)),
                Listed::of(&enter, |j, row| entered(j, now, row)),
            ];
            // Behind lanes and those who wait.
            all.extend(beside.take().into_iter().skip(if open { 2 } else { 0 }));
            all
        });
        let fresh: Vec<&Job> = enter.into_iter().filter(|job| world.found_free(job)).collect();
        self.add(fresh.len(), &s.still_free, || {
            params![
                col(&fresh, |j| j.org.as_str()),
                col(&fresh, |j| j.kind.name.as_str()),
                col(&fresh, |j| j.dedupe.as_deref()),
            ]
        });
        self.add(stillborn.len(), &s.end_births, || params![Listed::of(&stillborn, |(j, e), row| ended(j, e, row))]);
        leave.extend(stillborn);
        self.remembered(s, &born, &leave);
    }
}

/// The fields of `job_born`.
fn newborn(j: &Job, c: &Cold, row: &mut Record<'_>) {
    row.put(j.org.as_str()).put(j.id.0).put(j.project.as_str()).put(j.kind.name.as_str()).put(int(j.kind.version));
    row.put(j.priority).put(c.payload.as_str()).put(c.source_session.as_ref().map(|x| x.as_str()));
    row.put(c.deadline_at.map(|at| at.0)).put(j.created_at.0).put(int(j.max_attempts)).put(j.lane.key.as_str());
    row.put(int(j.max_failures)).put(c.dedupe_key.as_deref()).put(c.requeued_from.map(|id| id.0));
    row.put(c.schedule.map(|id| id.0));
}

/// The fields of `job_entered`.
fn entered(j: &Job, now: Micros, row: &mut Record<'_>) {
    let lease = j.status.lease();
    row.put(j.org.as_str()).put(j.id.0).put(j.project.as_str()).put(j.kind.name.as_str()).put(int(j.kind.version));
    row.put(j.priority).put(phase::of(&j.status, now)).put(j.status.state().as_str()).put(pause(&j.status));
    row.put(j.status.due_at().map(|at| at.0)).put(lease.map(|l| l.worker.as_str())).put(lease.map(|l| l.until.0));
    row.put(int(j.attempts)).put(int(j.max_attempts)).put(j.token).put(j.wakes).put(j.created_at.0);
    row.put(j.started_at.map(|at| at.0)).put(j.has_deadline);
    row.put(j.head.n).put(j.head.hash.0.as_slice()).put(j.head.at.0);
    row.put(j.class().number()).put(phase::slot(&j.status)).put(j.since.0);
    row.put(j.lane.key.as_str()).put(j.lane.max.map(int)).put(j.lane.kept).put(j.outside).put(j.dedupe.as_deref());
    row.put(int(j.failures)).put(int(j.max_failures)).put(Aside::stored(j.aside.as_deref()).as_deref());
}

/// The fields of `job_moved`.
fn moved(j: &Job, now: Micros, row: &mut Record<'_>) {
    let lease = j.status.lease();
    row.put(j.org.as_str()).put(j.id.0).put(phase::of(&j.status, now)).put(j.status.state().as_str());
    row.put(pause(&j.status)).put(j.status.due_at().map(|at| at.0));
    row.put(lease.map(|l| l.worker.as_str())).put(lease.map(|l| l.until.0));
    row.put(int(j.attempts)).put(j.token).put(j.wakes).put(j.started_at.map(|at| at.0));
    row.put(j.head.n).put(j.head.hash.0.as_slice()).put(j.head.at.0);
    row.put(phase::slot(&j.status)).put(j.dedupe.as_deref()).put(int(j.failures));
    row.put(Aside::stored(j.aside.as_deref()).as_deref()).put(int(j.max_attempts));
}

/// The fields of `job_ended`.
fn ended(j: &Job, ending: &Ending, row: &mut Record<'_>) {
    let (result, code, message) = ending_columns(ending);
    row.put(j.org.as_str()).put(j.id.0).put(j.status.state().as_str()).put(ended_at(&j.status));
    row.put(result).put(code).put(message);
    row.put(int(j.attempts)).put(j.token).put(j.started_at.map(|at| at.0));
    row.put(j.head.n).put(j.head.hash.0.as_slice()).put(j.head.at.0);
    row.put(int(j.failures)).put(Aside::stored(j.aside.as_deref()).as_deref()).put(int(j.max_attempts));
}

const fn pause(status: &Status) -> Option<&'static str> {
    match status {
        Status::AwaitingTool { pause, .. } => Some(pause.as_str()),
        _ => None,
    }
}

const fn ended_at(status: &Status) -> Option<i64> {
    match status {
        Status::Ended { at, .. } => Some(at.0),
        _ => None,
    }
}
