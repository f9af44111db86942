//! The second round trip of a group: one statement per table (one for all tables that steps need) and the commit,
//! sent at once.

use super::link::Link;
use super::statements::Statements;
use crate::phase;
use crate::records::ending_columns;
use baton_core::event::Recorded;
use baton_core::job::{Aside, Cold, Ending, Job, Status};
use baton_core::world::JobWrite;
use baton_core::{Micros, World};
use futures_util::future::join_all;
use std::future::Future;
use std::pin::Pin;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Statement};

pub(super) type Param<'a> = Box<dyn ToSql + Sync + Send + 'a>;

/// Statements with their rows as columns, in the order they will run.
pub(super) struct Batch<'a> {
    statements: Vec<(&'a Statement, Vec<Param<'a>>)>,
}

macro_rules! params {
    ($($p:expr),* $(,)?) => { vec![$(Box::new($p) as $crate::postgres::write::Param<'_>),*] };
}
pub(super) use params;

/// One column of many rows.
pub(super) fn col<'a, R, T: ToSql + Sync + Send + 'a>(rows: &[R], f: impl Fn(&R) -> T) -> Vec<T> {
    rows.iter().map(f).collect()
}

pub(super) const fn int(n: u32) -> i32 {
    // Versions and attempts are small; the columns are integers for the sake of their size.
    n.cast_signed()
}

impl<'a> Batch<'a> {
    pub fn of(s: &'a Statements, world: &'a World, now: Micros) -> Self {
        let mut batch = Self { statements: Vec::new() };
        batch.jobs(s, world, now);
        batch.queue(s, world, now);
        batch.runs(s, world);
        batch.definitions(s, world);
        batch.timers(s, world);
        batch.onces(s, world, now);
        batch.seals(s, world);
        batch.steps_and_events(s, world);
        // After the event that says so.
        batch.prunings(s, world);
        batch
    }

    pub(super) fn add(&mut self, rows: usize, statement: &'a Statement, params: impl FnOnce() -> Vec<Param<'a>>) {
        if rows > 0 {
            self.statements.push((statement, params()));
        }
    }

    fn jobs(&mut self, s: &'a Statements, world: &'a World, now: Micros) {
        let mut born: Vec<(&Job, &Cold)> = Vec::new();
        let mut enter: Vec<&Job> = Vec::new();
        let mut update: Vec<&Job> = Vec::new();
        let mut leave: Vec<&Job> = Vec::new();
        let mut end: Vec<(&Job, &Ending)> = Vec::new();
        for write in world.job_writes() {
            match write {
                JobWrite::Insert(job, cold, ending) => {
                    born.push((job, cold));
                    match ending {
                        Some(ending) => end.push((job, ending)),
                        None => enter.push(job),
                    }
                }
                JobWrite::Update(job) => update.push(job),
                JobWrite::End(job, ending) => {
                    leave.push(job);
                    end.push((job, ending));
                }
            }
        }
        // First what goes and what changes: a new job may take over a key that another gives up.
        self.add(leave.len(), &s.delete_live, || params![col(&leave, |j| j.org.as_str()), col(&leave, |j| j.id.0)]);
        self.updates(s, &update, now);
        self.add(born.len(), &s.insert_jobs, || {
            params![
                col(&born, |(j, _)| j.org.as_str()),
                col(&born, |(j, _)| j.id.0),
                col(&born, |(j, _)| j.project.as_str()),
                col(&born, |(j, _)| j.kind.name.as_str()),
                col(&born, |(j, _)| int(j.kind.version)),
                col(&born, |(j, _)| j.priority),
                col(&born, |(_, c)| c.payload.as_str()),
                col(&born, |(_, c)| c.source_session.as_ref().map(|x| x.as_str())),
                col(&born, |(_, c)| c.deadline_at.map(|at| at.0)),
                col(&born, |(j, _)| j.created_at.0),
                col(&born, |(j, _)| int(j.max_attempts)),
                col(&born, |(j, _)| j.lane.key.as_str()),
                col(&born, |(j, _)| int(j.max_failures)),
                col(&born, |(_, c)| c.dedupe_key.as_deref()),
                col(&born, |(_, c)| c.requeued_from.map(|id| id.0)),
                col(&born, |(_, c)| c.schedule.map(|id| id.0)),
            ]
        });
        self.add(enter.len(), &s.insert_live, || {
            params![
                col(&enter, |j| j.org.as_str()),
                col(&enter, |j| j.id.0),
                col(&enter, |j| j.project.as_str()),
                col(&enter, |j| j.kind.name.as_str()),
                col(&enter, |j| int(j.kind.version)),
                col(&enter, |j| j.priority),
                col(&enter, |j| phase::of(&j.status, now)),
                col(&enter, |j| j.status.state().as_str()),
                col(&enter, |j| pause(&j.status)),
                col(&enter, |j| j.status.due_at().map(|at| at.0)),
                col(&enter, |j| j.status.lease().map(|l| l.worker.as_str())),
                col(&enter, |j| j.status.lease().map(|l| l.until.0)),
                col(&enter, |j| int(j.attempts)),
                col(&enter, |j| int(j.max_attempts)),
                col(&enter, |j| j.token),
                col(&enter, |j| j.wakes),
                col(&enter, |j| j.created_at.0),
                col(&enter, |j| j.started_at.map(|at| at.0)),
                col(&enter, |j| j.has_deadline),
                col(&enter, |j| j.head.n),
                col(&enter, |j| j.head.hash.0.as_slice()),
                col(&enter, |j| j.head.at.0),
                col(&enter, |j| j.class().number()),
                col(&enter, |j| phase::slot(&j.status)),
                col(&enter, |j| j.since.0),
                col(&enter, |j| j.lane.key.as_str()),
                col(&enter, |j| j.lane.max.map(int)),
                col(&enter, |j| j.lane.kept),
                col(&enter, |j| j.outside),
                col(&enter, |j| j.dedupe.as_deref()),
                col(&enter, |j| int(j.failures)),
                col(&enter, |j| int(j.max_failures)),
                col(&enter, |j| Aside::stored(j.aside.as_deref())),
            ]
        });
        let fresh: Vec<&Job> = enter.into_iter().filter(|job| world.found_free(job)).collect();
        self.add(fresh.len(), &s.still_free, || {
            params![
                col(&fresh, |j| j.org.as_str()),
                col(&fresh, |j| j.kind.name.as_str()),
                col(&fresh, |j| j.dedupe.as_deref()),
            ]
        });
        self.add(end.len(), &s.end_jobs, || {
            params![
                col(&end, |(j, _)| j.org.as_str()),
                col(&end, |(j, _)| j.id.0),
                col(&end, |(j, _)| j.status.state().as_str()),
                col(&end, |(j, _)| ended_at(&j.status)),
                col(&end, |(_, e)| ending_columns(e).0),
                col(&end, |(_, e)| ending_columns(e).1),
                col(&end, |(_, e)| ending_columns(e).2),
                col(&end, |(j, _)| int(j.attempts)),
                col(&end, |(j, _)| j.token),
                col(&end, |(j, _)| j.started_at.map(|at| at.0)),
                col(&end, |(j, _)| j.head.n),
                col(&end, |(j, _)| j.head.hash.0.as_slice()),
                col(&end, |(j, _)| j.head.at.0),
                col(&end, |(j, _)| int(j.failures)),
                col(&end, |(j, _)| Aside::stored(j.aside.as_deref())),
                col(&end, |(j, _)| int(j.max_attempts)),
            ]
        });
        self.remembered(s, &born, &end);
    }

    fn updates(&mut self, s: &'a Statements, update: &[&'a Job], now: Micros) {
        self.add(update.len(), &s.update_live, || {
            params![
                col(update, |j| j.org.as_str()),
                col(update, |j| j.id.0),
                col(update, |j| phase::of(&j.status, now)),
                col(update, |j| j.status.state().as_str()),
                col(update, |j| pause(&j.status)),
                col(update, |j| j.status.due_at().map(|at| at.0)),
                col(update, |j| j.status.lease().map(|l| l.worker.as_str())),
                col(update, |j| j.status.lease().map(|l| l.until.0)),
                col(update, |j| int(j.attempts)),
                col(update, |j| j.token),
                col(update, |j| j.wakes),
                col(update, |j| j.started_at.map(|at| at.0)),
                col(update, |j| j.head.n),
                col(update, |j| j.head.hash.0.as_slice()),
                col(update, |j| j.head.at.0),
                col(update, |j| phase::slot(&j.status)),
                col(update, |j| j.dedupe.as_deref()),
                col(update, |j| int(j.failures)),
                col(update, |j| Aside::stored(j.aside.as_deref())),
                col(update, |j| int(j.max_attempts)),
            ]
        });
    }

    fn definitions(&mut self, s: &'a Statements, world: &'a World) {
        let heads: Vec<_> = world.definition_writes().collect();
        self.add(heads.len(), &s.put_definitions, || {
            params![
                col(&heads, |(org, _, _)| org.as_str()),
                col(&heads, |(_, key, _)| key.class.as_str()),
                col(&heads, |(_, key, _)| key.name.as_str()),
                col(&heads, |(_, _, d)| d.id.0),
                col(&heads, |(_, _, d)| d.head.n),
                col(&heads, |(_, _, d)| d.head.hash.0.as_slice()),
                col(&heads, |(_, _, d)| d.head.at.0),
            ]
        });
        let versions = world.version_writes();
        self.add(versions.len(), &s.insert_versions, || {
            params![
                col(versions, |(org, _)| org.to_string()),
                col(versions, |(_, v)| v.id.0),
                col(versions, |(_, v)| int(v.version)),
                col(versions, |(_, v)| v.body.digest().0.to_vec()),
                col(versions, |(_, v)| v.body.as_str().to_owned()),
            ]
        });
    }

    fn timers(&mut self, s: &'a Statements, world: &'a World) {
        let (set, clear): (Vec<_>, Vec<_>) = world.timer_writes().partition(|(_, _, at)| at.is_some());
        self.add(set.len(), &s.put_timers, || {
            params![
                col(&set, |(org, _, _)| org.as_str()),
                col(&set, |(_, key, _)| key.subject),
                col(&set, |(_, key, _)| key.kind.as_str()),
                col(&set, |(_, _, at)| at.map(|at| at.0)),
            ]
        });
        self.add(clear.len(), &s.delete_timers, || {
            params![
                col(&clear, |(org, _, _)| org.as_str()),
                col(&clear, |(_, key, _)| key.subject),
                col(&clear, |(_, key, _)| key.kind.as_str()),
            ]
        });
    }

    fn onces(&mut self, s: &'a Statements, world: &'a World, now: Micros) {
        let all: Vec<_> = world.once_writes().collect();
        self.add(all.len(), &s.put_onces, || {
            params![
                col(&all, |(key, _)| key.org.as_str()),
                col(&all, |(key, _)| key.scope.as_str()),
                col(&all, |(key, _)| key.key.as_str()),
                col(&all, |(_, r)| r.request.0.as_slice()),
                col(&all, |(_, r)| i32::from(r.answer.status)),
                col(&all, |(_, r)| r.answer.body.as_str()),
                col(&all, |(_, r)| r.expires_at.0),
                now.0,
            ]
        });
    }

    fn seals(&mut self, s: &'a Statements, world: &'a World) {
        let all = world.seal_writes();
        self.add(all.len(), &s.insert_seals, || {
            params![
                col(all, |x| x.org.to_string()),
                col(all, |x| x.n),
                col(all, |x| x.from_pos),
                col(all, |x| x.to_pos),
                col(all, |x| x.count),
                col(all, |x| x.root.0.to_vec()),
                col(all, |x| x.prev.0.to_vec()),
                col(all, |x| x.at.0),
                col(all, |x| x.mac.0.to_vec()),
            ]
        });
    }

    /// Sends everything, and the commit if it is wanted, without waiting in between. A commit
    /// behind a failed statement rolls back; the first error says why.
    pub async fn send(self, link: &Link, commit: bool) -> Result<(), Error> {
        let params: Vec<Vec<&(dyn ToSql + Sync)>> = self
            .statements
            .iter()
            .map(|(_, params)| params.iter().map(|p| &**p as &(dyn ToSql + Sync)).collect())
            .collect();
        type Sent<'f> = Pin<Box<dyn Future<Output = Result<(), Error>> + Send + 'f>>;
        let mut sent: Vec<Sent<'_>> = Vec::with_capacity(params.len() + 1);
        for ((statement, _), params) in self.statements.iter().zip(&params) {
            sent.push(Box::pin(async move { link.client.query(*statement, params).await.map(drop) }));
        }
        if commit {
            sent.push(Box::pin(link.client.batch_execute("COMMIT")));
        }
        // Fewer than forty futures: polled in order, and so sent in order.
        join_all(sent).await.into_iter().collect()
    }
}

pub(super) fn events<'a>(all: &[&'a Recorded]) -> Vec<Param<'a>> {
    params![
        col(all, |e| e.org.as_str()),
        col(all, |e| e.subject),
        col(all, |e| e.n),
        col(all, |e| e.at.0),
        col(all, |e| e.kind.as_str()),
        col(all, |e| e.actor.as_str()),
        col(all, |e| e.data.as_str()),
        col(all, |e| e.hash.0.as_slice()),
    ]
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
