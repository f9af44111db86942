//! The last round trip of a group: few statements for many rows each (one for all that moves of jobs need, one for all
//! that steps need) and the commit, sent at once.

use super::link::Link;
use super::onward::Onward;
use super::run_rows::Steps;
use super::statements::Statements;
use super::trusted::Trusted;
use super::write_jobs::Beside;
use baton_core::{Micros, World};
use futures_util::future::join_all;
use std::future::Future;
use std::pin::Pin;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row, Statement};

pub(super) type Param<'a> = Box<dyn ToSql + Sync + Send + 'a>;

/// How a transaction ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ends {
    /// With a commit that is sent along.
    Commit,
    /// None was begun: the one statement is one by itself.
    Alone,
    /// Not yet.
    #[cfg(feature = "faults")]
    Later,
}

/// Statements with their rows, in the order they will run.
pub(super) struct Batch<'a> {
    statements: Vec<(&'a Statement, Vec<Param<'a>>)>,
    /// The place of the one whose answer is wanted.
    answers: Option<usize>,
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
    pub fn of(
        s: &'a Statements,
        world: &'a World,
        now: Micros,
        (trusted, onward): (&Trusted, Option<&Onward>),
    ) -> Self {
        let mut batch = Self { statements: Vec::new(), answers: None };
        let steps = Steps::of(world);
        let mut beside = Beside::of(world, steps.is_empty());
        // First what may have to wait for another node that makes the same thing: until the commit, readers of the
        // history wait behind the places that events take.
        batch.queue(s, world, now);
        batch.definitions(s, world);
        batch.onces(s, world, now);
        batch.timers(s, world);
        batch.seals(s, world);
        batch.runs(s, world);
        batch.jobs(s, world, (now, trusted, onward), &mut beside);
        batch.steps(s, world, &steps);
        batch.add(usize::from(!beside.is_empty()), &s.put_beside, || beside.take());
        // After the event that says so.
        batch.prunings(s, world);
        batch
    }

    pub(super) fn add(&mut self, rows: usize, statement: &'a Statement, params: impl FnOnce() -> Vec<Param<'a>>) {
        if rows > 0 {
            self.statements.push((statement, params()));
        }
    }

    /// The one that was added last tells something.
    pub(super) fn wants_answer(&mut self) {
        self.answers = self.statements.len().checked_sub(1);
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

    /// One statement can be a transaction by itself.
    pub fn is_one(&self) -> bool {
        self.statements.len() == 1
    }

    /// Sends everything, and the commit if that is how it ends, without waiting in between. A commit
    /// behind a failed statement rolls back; the first error says why. With what was answered, if that is wanted.
    pub async fn send(self, link: &Link, ends: Ends) -> Result<Vec<Row>, Error> {
        let params: Vec<Vec<&(dyn ToSql + Sync)>> = self
            .statements
            .iter()
            .map(|(_, params)| params.iter().map(|p| &**p as &(dyn ToSql + Sync)).collect())
            .collect();
        type Sent<'f> = Pin<Box<dyn Future<Output = Result<Vec<Row>, Error>> + Send + 'f>>;
        let mut sent: Vec<Sent<'_>> = Vec::with_capacity(params.len() + 1);
        for ((statement, _), params) in self.statements.iter().zip(&params) {
            sent.push(Box::pin(async move { link.client.query(*statement, params).await }));
        }
        if ends == Ends::Commit {
            sent.push(Box::pin(async { link.client.batch_execute("COMMIT").await.map(|()| Vec::new()) }));
        }
        // Fewer than forty futures: polled in order, and so sent in order.
        let mut answers = join_all(sent).await.into_iter().collect::<Result<Vec<_>, _>>()?;
        Ok(self.answers.map(|at| std::mem::take(&mut answers[at])).unwrap_or_default())
    }
}
