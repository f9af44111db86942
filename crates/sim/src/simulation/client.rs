//! A client: asks any node that is up, again and again under the same key, until it is answered.

use super::clock::SimClock;
use super::life::Fleet;
use super::luck::Luck;
use super::order::Order;
use crate::answers::resolve;
use anyhow::{Result, bail};
use baton_core::command::{Actor, Command, Refusal};
use baton_core::job::batch::Batch;
use baton_core::job::enqueue::{Enqueue, EnqueueError, Enqueued};
use baton_core::job::requeue::{Requeue, RequeueError};
use baton_core::once::{Key, Rendered};
use baton_core::{Digest, JobId, OrgId};
use baton_store::{Answer, CommitError, Once, Store};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// A client waits this long for an answer before it asks again.
const PATIENCE: Duration = Duration::from_secs(7);

pub(super) struct Client<'a> {
    pub fleet: &'a Fleet,
    pub luck: &'a Arc<Luck>,
    pub clocks: &'a [Arc<SimClock>],
    pub book: Book,
}

/// What a client remembers.
#[derive(Default)]
pub(super) struct Book {
    /// Every job that it was told exists, with what it had asked for.
    pub promised: BTreeMap<JobId, Order>,
    /// In the order they were promised.
    pub jobs: Vec<JobId>,
    /// Jobs that it wanted to end.
    pub cancelled: BTreeSet<JobId>,
    /// An endpoint is told whatever completes.
    pub hooked: bool,
}

impl Client<'_> {
    /// Asks until somebody answers; the question must bear repeating. `None` from the question is no
    /// answer.
    pub async fn until_answered<T, F: Future<Output = Option<T>>>(&self, ask: impl Fn(Store) -> F) -> Result<T> {
        for tries in 0..10_000 {
            let stores = self.fleet.stores();
            if let Some(store) = stores.get(tries % stores.len().max(1))
                && let Ok(Some(answer)) = tokio::time::timeout(PATIENCE, ask(store.clone())).await
            {
                return Ok(answer);
            }
            let _ = tokio::time::timeout(PATIENCE, self.fleet.up.notified()).await;
        }
        bail!("nobody ever answers")
    }

    /// Says something once and does not care who hears it.
    pub async fn shout<C: Command>(&self, command: C) {
        if let Some(store) = self.fleet.stores().pop() {
            let _ = tokio::time::timeout(PATIENCE, store.commit(command, Actor::Api)).await;
        }
    }

    /// Answers what a job asks, if it asks anything.
    pub async fn answer(&self, job: JobId, option: &str) {
        let Some(store) = self.fleet.stores().pop() else { return };
        let found = tokio::time::timeout(PATIENCE, store.job(&OrgId::default(), job)).await;
        let Ok(Ok(Some(record))) = found else { return };
        if let Some(decision) = record.job.decision() {
            self.shout(resolve(decision, option, "now")).await;
        }
    }

    fn promised(&mut self, id: JobId, order: Order) -> Result<()> {
        self.luck.promised(id);
        let dedupes = order.dedupes();
        if let Some(before) = self.book.promised.insert(id, order)
            && !dedupes
        {
            bail!("{before:?} and another were answered with one job");
        }
        self.book.jobs.push(id);
        Ok(())
    }

    /// One job, under an idempotency key or a message id.
    pub async fn enqueue(&mut self, order: Order, by_message: bool) -> Result<()> {
        let clocks = self.clocks;
        let answered = if by_message {
            let said = |store: Store| {
                let message_id = Some(format!("message-{}", order.n));
                let order = Enqueue { message_id, ..order.enqueue(clocks) };
                async move { said(store.commit(order, Actor::Api).await) }
            };
            self.until_answered(said).await?
        } else {
            let asked = |store: Store| {
                let render = |out: &Enqueued| vec![out.job.id];
                let (order, once) = (order.enqueue(clocks), once(order.n, render));
                async move { ids(store.commit_once(order, Actor::Api, once).await, |out| vec![out.job.id]) }
            };
            self.until_answered(asked).await?.map(|ids| ids[0])
        };
        match answered {
            Ok(id) => self.promised(id, order),
            Err(why) => {
                self.luck.refused(&why);
                Ok(())
            }
        }
    }

    /// All of them or none.
    pub async fn batch(&mut self, orders: Vec<Order>) -> Result<()> {
        let Some(first) = orders.first().map(|order| order.n) else { return Ok(()) };
        let clocks = self.clocks;
        let list = |out: &Vec<Enqueued>| out.iter().map(|taken| taken.job.id).collect::<Vec<_>>();
        let asked = |store: Store| {
            let jobs = orders.iter().map(|order| order.enqueue(clocks)).collect();
            let (batch, once) = (Batch { org: OrgId::default(), jobs }, once(first, list));
            async move { ids(store.commit_once(batch, Actor::Api, once).await, list) }
        };
        let ids = match self.until_answered(asked).await? {
            Ok(ids) => ids,
            Err(why) => {
                self.luck.refused(&why);
                return Ok(());
            }
        };
        for (id, order) in ids.into_iter().zip(orders) {
            self.promised(id, order)?;
        }
        Ok(())
    }

    /// Makes a job anew that may have failed.
    pub async fn requeue(&mut self, job: JobId) -> Result<()> {
        let Some(order) = self.book.promised.get(&job).cloned() else { return Ok(()) };
        let made = |store: Store| {
            let requeue = Requeue { org: OrgId::default(), jobs: vec![job] };
            async move {
                match store.commit(requeue, Actor::Api).await {
                    Ok(made) => Some(made.first().map(|made| made.job.id)),
                    Err(CommitError::Refused(RequeueError::Before { into, .. })) => Some(Some(into)),
                    Err(CommitError::Refused(_)) => Some(None),
                    Err(_) => None,
                }
            }
        };
        match self.until_answered(made).await? {
            // Said twice, it is one job all the same.
            Some(id) if self.book.promised.contains_key(&id) => Ok(()),
            Some(id) => self.promised(id, order),
            None => Ok(()),
        }
    }
}

/// An answer, or why there is none.
type Said<T> = Result<T, String>;

fn refused(no: &impl Refusal) -> String {
    // There are two kinds of being full, of which each must be met.
    let everywhere = no.to_string().contains("all projects");
    format!("{}{}", no.code(), if everywhere { ", everywhere" } else { "" })
}

/// Which job a message stands for.
fn said(answer: Result<Enqueued, CommitError<EnqueueError>>) -> Option<Said<JobId>> {
    match answer {
        Ok(out) => Some(Ok(out.job.id)),
        Err(CommitError::Refused(EnqueueError::MessageForgotten { job })) => Some(Ok(job)),
        Err(CommitError::Refused(no)) => Some(Err(refused(&no))),
        Err(_) => None,
    }
}

/// Which jobs a request under a key came to.
fn ids<T, No: Refusal>(
    answer: Result<Answer<T>, CommitError<No>>,
    list: impl Fn(&T) -> Vec<JobId>,
) -> Option<Said<Vec<JobId>>> {
    match answer {
        Ok(Answer::Fresh(out)) => Some(Ok(list(&out))),
        Ok(Answer::Replayed(before)) => before.body.split(' ').map(str::parse).collect::<Result<_, _>>().ok().map(Ok),
        Err(CommitError::Refused(no)) => Some(Err(refused(&no))),
        Err(_) => None,
    }
}

fn once<T>(n: u64, list: impl Fn(&T) -> Vec<JobId> + Send + 'static) -> Once<T> {
    let key = format!("key-{n}");
    Once {
        request: Digest::of(&[key.as_bytes()]),
        key: Key { org: OrgId::default(), scope: "sim".to_owned(), key },
        render: Box::new(move |out| {
            let ids = list(out).iter().map(ToString::to_string).collect::<Vec<_>>();
            Rendered { status: 201, body: ids.join(" ") }
        }),
    }
}
