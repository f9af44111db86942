//! What this node's pool holds right now: the fences to beat for, and how to stop each handler.
//!
//! A lease is held from its claim until its settlement is committed, also while the settlement
//! waits for the store to come back: until then nobody else shall begin the job again. A handler
//! that does not stop when it is told to is left behind: its lease is settled without it, and what
//! it says later is nobody's any more.

use crate::registry::Handler;
use baton_core::definition::AtStop;
use baton_core::job::{Context, Fence};
use baton_core::time::Span;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, watch};
use tokio::task::{AbortHandle, Id};
use tokio::time::Instant;

/// How a job is run here.
pub(crate) struct Run {
    pub handler: Arc<dyn Handler>,
    pub task: AbortHandle,
    /// Tells the handler that somebody wants the job to end.
    pub cancel: watch::Sender<bool>,
    /// What it works on outside, as far as it has said.
    pub context: Context,
    /// That was interrupted, once.
    pub interrupted: bool,
    /// This node has told it to end, for reasons of its own.
    pub sent_off: bool,
    /// When it has run long enough.
    pub times_out: Option<Instant>,
}

struct Holding {
    lease: Span,
    /// By our own clock, counted from before the last word that the store heard: past this
    /// moment somebody else may have the job.
    good_until: Instant,
    /// No beat got through in time. What is stopped may need a while to end.
    overdue: bool,
    /// While the handler runs.
    run: Option<Run>,
    /// It waits for somebody outside, and takes no slot meanwhile.
    waits: bool,
    at_stop: AtStop,
}

/// Handlers that wait for somebody outside without taking a slot.
const WAITING_MAX: usize = 10_000;

/// Shared by the pool, which fills it, and by the beater and the sweeper, which look at it.
#[derive(Default)]
pub(crate) struct Held {
    all: Mutex<Holdings>,
    added: watch::Sender<()>,
    /// A handler has left its slot to others.
    vacated: Notify,
}

/// How many handlers there are.
pub(crate) struct Handlers {
    /// Those that take a slot: not those that only wait for somebody, up to a number.
    pub busy: usize,
    /// All whose end is waited for.
    pub awaited: usize,
}

#[derive(Default)]
struct Holdings {
    by_fence: BTreeMap<Fence, Holding>,
    /// How many leases last how long.
    leases: BTreeMap<Span, usize>,
}

impl Holdings {
    /// Whether none that is held lasts as short.
    fn insert(&mut self, fence: Fence, holding: Holding) -> bool {
        let lease = holding.lease;
        let shorter = self.leases.keys().next().is_none_or(|shortest| lease < *shortest);
        *self.leases.entry(lease).or_default() += 1;
        if let Some(before) = self.by_fence.insert(fence, holding) {
            self.uncount(before.lease);
        }
        shorter
    }

    fn remove(&mut self, fence: &Fence) -> Option<Holding> {
        let gone = self.by_fence.remove(fence)?;
        self.uncount(gone.lease);
        Some(gone)
    }

    fn uncount(&mut self, lease: Span) {
        if let Some(count) = self.leases.get_mut(&lease) {
            *count -= 1;
            if *count == 0 {
                self.leases.remove(&lease);
            }
        }
    }
}

/// A handler has ended.
pub(crate) struct Ended {
    pub fence: Fence,
    /// After this node had told it to: if it did not finish then, that is no failure of the job's.
    pub sent_off: bool,
}

impl Held {
    fn all(&self) -> MutexGuard<'_, Holdings> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn add(&self, fence: Fence, lease: Span, asked_at: Instant, run: Run, at_stop: AtStop) {
        let good_until = asked_at + lease.to_std();
        let holding = Holding { lease, good_until, overdue: false, run: Some(run), waits: false, at_stop };
        if self.all().insert(fence, holding) {
            self.added.send_replace(());
        }
    }

    /// Changes when a lease is held that is shorter than all others.
    pub fn watch_added(&self) -> watch::Receiver<()> {
        self.added.subscribe()
    }

    /// Of all leases, how long the shortest lasts without a beat.
    pub fn shortest_lease(&self) -> Option<Span> {
        self.all().leases.keys().next().copied()
    }

    /// What becomes of the job if it is stopped because its node stops.
    pub fn at_stop(&self, fence: &Fence) -> AtStop {
        self.all().by_fence.get(fence).map_or(AtStop::GiveBack, |h| h.at_stop)
    }

    pub fn handlers(&self) -> Handlers {
        let (mut waiting, mut awaited) = (0_usize, 0);
        for holding in self.all().by_fence.values().filter(|h| h.run.is_some()) {
            awaited += 1;
            waiting += usize::from(holding.waits);
        }
        Handlers { busy: awaited - waiting.min(WAITING_MAX), awaited }
    }

    /// The handler waits for somebody outside from now on, or works again.
    pub fn waits(&self, fence: &Fence, waits: bool) {
        if let Some(holding) = self.all().by_fence.get_mut(fence)
            && std::mem::replace(&mut holding.waits, waits) != waits
            && waits
        {
            self.vacated.notify_one();
        }
    }

    /// A handler has left its slot to others since somebody last waited for that.
    pub async fn vacated(&self) {
        self.vacated.notified().await;
    }

    /// A handler has ended: whether it was still waited for. The lease is held on until it is settled.
    pub fn handler_ended(&self, fence: Fence, task: Id) -> Option<Ended> {
        let run = self.all().by_fence.get_mut(&fence)?.run.take_if(|run| run.task.id() == task)?;
        Some(Ended { fence, sent_off: run.sent_off })
    }

    /// The same where it could not say whose it was.
    pub fn handler_gone(&self, task: Id) -> Option<Ended> {
        self.all().by_fence.iter_mut().find_map(|(fence, holding)| {
            let run = holding.run.take_if(|run| run.task.id() == task)?;
            Some(Ended { fence: fence.clone(), sent_off: run.sent_off })
        })
    }

    /// Nothing more will be said about this lease.
    pub fn let_go(&self, fence: &Fence) {
        self.all().remove(fence);
    }

    pub fn fences(&self) -> Vec<Fence> {
        self.all().by_fence.keys().cloned().collect()
    }

    pub fn holds(&self) -> BTreeSet<Fence> {
        self.all().by_fence.keys().cloned().collect()
    }

    /// The store has heard a beat that was sent at `sent_at`.
    pub fn beaten(&self, fences: &[Fence], sent_at: Instant) {
        let mut all = self.all();
        for fence in fences {
            if let Some(holding) = all.by_fence.get_mut(fence) {
                holding.good_until = sent_at + holding.lease.to_std();
                holding.overdue = false;
            }
        }
    }

    /// Somebody wants the job to end: its handler is told, and what it works on is interrupted, as
    /// soon as that is known.
    pub fn cancel(&self, fence: &Fence) {
        if let Some(run) = self.all().by_fence.get_mut(fence).and_then(|h| h.run.as_mut()) {
            run.ask();
        }
    }

    /// The handler says what it works on outside; `cancelled` if somebody wants it to end.
    pub fn works_on(&self, fence: &Fence, context: Context, cancelled: bool) {
        if let Some(run) = self.all().by_fence.get_mut(fence).and_then(|h| h.run.as_mut()) {
            run.interrupted &= run.context == context;
            run.context = context;
            if cancelled || *run.cancel.borrow() {
                run.ask();
            }
        }
    }

    /// Leases that are lost: their handlers are stopped, and nothing more is said about them. How many
    /// of them were still held.
    pub fn lost(&self, lost: &[Fence]) -> usize {
        let mut all = self.all();
        let gone = lost.iter().filter_map(|fence| all.remove(fence)).collect::<Vec<_>>();
        gone.iter().filter_map(|h| h.run.as_ref()).for_each(Run::stop);
        gone.len()
    }

    /// Stops the handlers whose leases may have run out by then because no beat got through. How
    /// many leases that is news of.
    pub fn stop_overdue(&self, by: Instant) -> usize {
        let mut news = 0;
        for holding in self.all().by_fence.values_mut().filter(|h| h.good_until < by) {
            if let Some(run) = &mut holding.run {
                run.send_off();
                run.stop();
                news += usize::from(!holding.overdue);
                holding.overdue = true;
            }
        }
        news
    }

    /// Asks every handler to end, because the node does.
    pub fn ask_all(&self) {
        for run in self.all().by_fence.values_mut().filter_map(|h| h.run.as_mut()) {
            run.send_off();
            run.ask();
        }
    }

    /// Stops every handler, because the node does.
    pub fn stop_all(&self) {
        for run in self.all().by_fence.values_mut().filter_map(|h| h.run.as_mut()) {
            run.send_off();
            run.stop();
        }
    }

    /// When the next handler has run long enough.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.all().by_fence.values().filter_map(|h| h.run.as_ref()?.times_out).min()
    }

    /// Stops the handlers that have run long enough, and waits for them no longer.
    pub fn timed_out(&self, now: Instant) -> Vec<Fence> {
        self.leave_behind(|run| run.times_out.is_some_and(|at| at <= now))
    }

    /// Waits no longer for any handler.
    pub fn leave_all(&self) -> Vec<Fence> {
        self.leave_behind(|_| true)
    }

    fn leave_behind(&self, which: impl Fn(&Run) -> bool) -> Vec<Fence> {
        let mut left = Vec::new();
        for (fence, holding) in &mut self.all().by_fence {
            if let Some(mut run) = holding.run.take_if(|run| which(run)) {
                run.ask();
                run.stop();
                left.push(fence.clone());
            }
        }
        left
    }
}

impl Run {
    /// What has ended before that ended for its own reasons.
    fn send_off(&mut self) {
        self.sent_off |= !self.task.is_finished();
    }

    fn ask(&mut self) {
        self.cancel.send_replace(true);
        if !self.interrupted && !self.context.is_empty() {
            self.interrupted = true;
            tokio::spawn(self.handler.interrupt(self.context.clone()));
        }
    }

    fn stop(&self) {
        self.cancel.send_replace(true);
        self.task.abort();
    }
}
