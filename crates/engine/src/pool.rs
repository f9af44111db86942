//! The worker pool: claims due jobs, runs their handlers, settles what came of them.
//!
//! Settling finished jobs and claiming the next ones is one submission, and so, as a rule, one
//! commit. A settlement that cannot be committed is kept and tried again: saying it twice is
//! harmless, forgetting it is not.

use crate::crew::Crew;
use crate::engine::Shared;
use crate::held::{Ended, Handlers, Run};
use crate::job_cx::{JobCx, Line};
use crate::registry::Outcome;
use baton_core::command::Actor;
use baton_core::definition::AtStop;
use baton_core::job::settle::{self, Settle, Settled};
use baton_core::job::{Failure, Fence};
use baton_core::schedule::Turns;
use baton_core::time::Span;
use baton_store::{Ask, CommitError, Handed, Leased, Look, StoreError, Turn, step_back};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{oneshot, watch};
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::Instant;

/// How often a settlement is tried that the database rejects; then the lease is left to expire.
const REJECTED_TRIES: u32 = 20;
/// After trouble with the store.
const TROUBLE_PAUSE: Duration = Duration::from_millis(200);
/// Between two looks at least, however soon the next job is due.
const REST_MIN: Duration = Duration::from_millis(10);
/// Looks in a row that found nothing though there may be more, before the pool rests between them.
const FRUITLESS_MAX: u32 = 8;
/// How often the pool steps back while handlers end one after the other; each time only for those that could go on at once.
const GATHER_MAX: u32 = 32;
/// Handlers that were left behind because they do not stop; with more, nothing new is begun.
const LEFT_BEHIND_MAX: usize = 64;
/// After the drain: how long handlers have to end when they are asked to; then they are stopped.
const STOP_WINDOW: Duration = Duration::from_secs(1);
/// How long those that were stopped are waited for; then they are left behind.
const ABORT_WINDOW: Duration = Duration::from_millis(500);

struct Pending {
    settle: Settle,
    tries: u32,
}

pub(crate) struct Pool {
    shared: Arc<Shared>,
    crew: Arc<Crew>,
    running: JoinSet<(Fence, Outcome)>,
    pending: Vec<Pending>,
    turns: Turns,
    fruitless: u32,
    /// Until then nothing is expected but successors of jobs that run here: the last look everywhere left nothing behind
    /// that could go, and nobody has rung since.
    calm_until: Option<Instant>,
}

pub(crate) async fn run(shared: Arc<Shared>, crew: Arc<Crew>) {
    let mut jobs = shared.store.watch_jobs();
    let mut stopping = shared.stopping.subscribe();
    let mut leases = shared.store.watch_leases();
    let mut pool = Pool {
        shared,
        crew,
        running: JoinSet::new(),
        pending: Vec::new(),
        turns: Turns::default(),
        fruitless: 0,
        calm_until: None,
    };
    loop {
        // Before what is free is counted: whose handler has ended makes room in the same commit that settles it.
        pool.collect();
        let stop = *stopping.borrow_and_update();
        if stop.is_some() && pool.crew.held.handlers().awaited == 0 && pool.pending.is_empty() {
            return;
        }
        // Before claiming, so that what becomes claimable meanwhile is not missed.
        if jobs.borrow_and_update().has_changed() {
            pool.calm_until = None;
        }
        leases.mark_unchanged();
        let wants = if stop.is_some() { 0 } else { pool.free() };
        let next = pool.turn(wants).await;
        if leases.has_changed().unwrap_or(false) {
            // It may be about what was claimed in that turn, which no beat knew of yet.
            pool.crew.beat_again.notify_one();
        }
        let mut rest = match next {
            // There was more than fitted; but only when a slot is free.
            Next::More if pool.free() > 0 => Duration::ZERO,
            Next::More => pool.shared.options.poll_every,
            Next::Further if pool.fruitless <= FRUITLESS_MAX => Duration::ZERO,
            Next::Further => TROUBLE_PAUSE,
            Next::At(rest) => rest,
            Next::Trouble => TROUBLE_PAUSE,
        };
        // Whoever was handed what came in has nothing else to look for.
        while pool.wait(&mut jobs, &mut stopping, rest, stop).await == Waited::Handed {
            rest = pool.calm_for();
        }
    }
}

/// What ended a wait.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waited {
    /// A job came in and was begun; nothing else has happened.
    Handed,
    Else,
}

enum Next {
    More,
    /// Nothing was found where this look ended.
    Further,
    At(Duration),
    Trouble,
}

impl Pool {
    /// Jobs that may be begun now.
    fn free(&self) -> usize {
        if self.crew.switched && !self.shared.store.definitions().rules.enabled {
            return 0;
        }
        let Handlers { busy, awaited } = self.crew.held.handlers();
        let left_behind = self.running.len().saturating_sub(awaited);
        if left_behind >= LEFT_BEHIND_MAX {
            return 0;
        }
        self.crew.slots.saturating_sub(busy)
    }

    fn ask(&self, slots: usize, look: Look) -> Ask {
        let (worker, kinds) = (self.shared.options.node.clone(), self.crew.kinds.clone());
        Ask { worker, kinds, slots, turns: self.turns.clone(), scope: None, look }
    }

    /// How long nothing is expected but successors and what comes in.
    fn calm_for(&self) -> Duration {
        self.calm_until.map_or(Duration::ZERO, |until| until.saturating_duration_since(Instant::now()))
    }

    /// Settles what has ended and claims what fits.
    async fn turn(&mut self, wants: usize) -> Next {
        if self.pending.is_empty() && wants == 0 {
            return Next::At(self.shared.options.poll_every);
        }
        let node = &self.shared.options.node;
        let actor = Actor::Worker(node.clone());
        let asked_at = Instant::now();
        let calm_until = self.calm_until.filter(|until| *until > asked_at && !self.pending.is_empty());
        let settles = self.pending.iter().map(|p| (p.settle.clone(), actor.clone())).collect();
        let look = if calm_until.is_some() { Look::Successors } else { Look::Everywhere };
        let ask = (wants > 0).then(|| self.ask(wants, look));
        self.calm_until = None;
        match self.shared.store.turn(settles, ask).await {
            Ok(Turn { settled, leased, next_due, now, turns, more, left }) => {
                let trouble = self.settled(settled);
                if wants > 0 {
                    self.turns = turns;
                }
                self.fruitless = if more && leased.is_empty() { self.fruitless.saturating_add(1) } else { 0 };
                leased.into_iter().for_each(|job| self.begin(job, asked_at));
                if trouble {
                    return Next::Trouble;
                } else if left {
                    return Next::More;
                } else if more {
                    return Next::Further;
                } else if wants == 0 {
                    return Next::At(self.shared.options.poll_every);
                }
                let rest = match (calm_until, next_due) {
                    (Some(until), _) => until - asked_at,
                    (None, Some(due)) => due.since(now).to_std().max(REST_MIN).min(self.shared.options.poll_every),
                    (None, None) => self.shared.options.poll_every,
                };
                self.calm_until = Some(asked_at + rest);
                Next::At(rest)
            }
            Err(e) => {
                self.shared.trouble(&e);
                Next::Trouble
            }
        }
    }

    /// Keeps the settlements that must be tried again; whether there are any.
    fn settled(&mut self, answers: Vec<Result<Settled, CommitError<settle::SettleError>>>) -> bool {
        let mut kept = Vec::new();
        let pending = std::mem::take(&mut self.pending);
        for (mut pending, answer) in pending.into_iter().zip(answers) {
            let job = pending.settle.fence.job;
            match answer {
                Ok(_) | Err(CommitError::KeyReused) => self.crew.held.let_go(&pending.settle.fence),
                Err(CommitError::Refused(why)) => {
                    self.crew.held.let_go(&pending.settle.fence);
                    metrics::counter!("baton_outcomes_discarded_total").increment(1);
                    tracing::warn!(jobId = %job, %why, "an outcome came too late");
                }
                Err(CommitError::Store(
                    StoreError::Rejected(why)
                    | StoreError::Panicked(why)
                    | StoreError::Garbled(why)
                    | StoreError::Damaged(why),
                )) => {
                    pending.tries += 1;
                    tracing::error!(jobId = %job, %why, tries = pending.tries, "an outcome could not be recorded");
                    if pending.tries < REJECTED_TRIES {
                        kept.push(pending);
                    } else {
                        self.crew.held.let_go(&pending.settle.fence);
                    }
                }
                Err(CommitError::Store(e)) => {
                    self.shared.trouble(&e);
                    kept.push(pending);
                }
            }
        }
        self.pending = kept;
        !self.pending.is_empty()
    }

    fn begin(&mut self, leased: Leased, asked_at: Instant) {
        let Leased { job, payload, at } = leased;
        let Some(fence) = job.fence() else { return };
        let Some(handler) = self.shared.registry.handler(&job.kind) else {
            // The ask named only kinds of the registry.
            let failure = Failure::new("no_handler", &format!("this node cannot run {}", job.kind));
            self.pending
                .push(Pending { settle: Settle { fence, outcome: settle::Outcome::Failed(failure) }, tries: 0 });
            return;
        };
        let defs = self.shared.store.definitions();
        let job_type = defs.pinned(&job.org, &job.kind);
        let lease = job_type.map_or(Span::secs(30), |kind| kind.lease);
        let timeout = job_type.and_then(|kind| kind.timeout(&defs.rules));
        let name = job.kind.name.to_string();
        let at_stop = job_type.map_or(AtStop::GiveBack, |kind| kind.at_stop);
        let (cancel, cancelled) = watch::channel(false);
        let (store, held) = (self.shared.store.clone(), self.crew.held.clone());
        // A job that goes on may work on something already.
        let context = job.aside.as_ref().map(|aside| aside.context.clone()).unwrap_or_default();
        let stopping = self.shared.stopping.subscribe();
        let line = Line { store, fence: fence.clone(), held, cancelled, stopping };
        let cx = JobCx { job, at, line };
        let began = Instant::now();
        let (go, held) = oneshot::channel();
        let runs = handler.clone();
        let whose = fence.clone();
        let task = self.running.spawn(async move {
            // Not before it is among those that are held: whoever wants it to end looks there.
            let _ = held.await;
            let outcome = runs.run(cx, payload).await;
            metrics::histogram!("baton_handler_seconds", "type" => name).record(began.elapsed().as_secs_f64());
            (whose, outcome)
        });
        let times_out = timeout.and_then(|span| began.checked_add(span.to_std()));
        self.crew.held.add(
            fence,
            lease,
            asked_at,
            Run { handler, task, cancel, context, interrupted: false, sent_off: false, times_out },
            at_stop,
        );
        let _ = go.send(());
    }

    /// Handlers that have run long enough are settled without them.
    fn time_out(&mut self) {
        for fence in self.crew.held.timed_out(Instant::now()) {
            tracing::warn!(jobId = %fence.job, "a job ran longer than its type allows; it is stopped");
            let failure = Failure::transient("timeout", "it ran longer than its type allows");
            let settle = Settle { fence, outcome: settle::Outcome::Failed(failure) };
            self.pending.push(Pending { settle, tries: 0 });
        }
    }

    /// The drain is over, and so is the time to stop in: what still runs is settled without it.
    /// Whether there was any.
    fn leave_behind(&mut self) -> bool {
        let left = self.crew.held.leave_all();
        let any = !left.is_empty();
        for fence in left {
            let outcome = self.stopped(&fence);
            tracing::warn!(jobId = %fence.job, ?outcome, "a job did not stop when its node did; it is left behind");
            self.pending.push(Pending { settle: Settle { fence, outcome }, tries: 0 });
        }
        any
    }

    /// What becomes of a job that was stopped by us.
    fn stopped(&self, fence: &Fence) -> settle::Outcome {
        let stopping = self.shared.stopping.borrow().is_some();
        match self.crew.held.at_stop(fence) {
            AtStop::Cancel if stopping => settle::Outcome::Stopped,
            AtStop::Cancel | AtStop::GiveBack => settle::Outcome::Release,
        }
    }

    /// Everything that has ended so far becomes a settlement.
    fn collect(&mut self) {
        while let Some(ended) = self.running.try_join_next_with_id() {
            self.ended(ended);
        }
    }

    /// Those that end at about the same time are settled in the same commit.
    async fn gather(&mut self) {
        for _ in 0..GATHER_MAX {
            if self.running.is_empty() {
                return;
            }
            let before = self.pending.len();
            step_back().await;
            self.collect();
            if self.pending.len() == before {
                return;
            }
        }
    }

    fn ended(&mut self, ended: Result<(Id, (Fence, Outcome)), JoinError>) {
        let held = &self.crew.held;
        let (known, outcome) = match ended {
            Ok((task, (fence, outcome))) => (held.handler_ended(fence, task), Some(outcome)),
            Err(e) if e.is_cancelled() => (held.handler_gone(e.id()), None),
            Err(e) => {
                let failure = Failure::new("handler_panicked", "the handler panicked");
                (held.handler_gone(e.id()), Some(Outcome::Failed(failure)))
            }
        };
        let Some(Ended { fence, sent_off }) = known else {
            // Its lease is lost or was settled without it.
            if outcome.is_some() {
                metrics::counter!("baton_outcomes_discarded_total").increment(1);
            }
            return;
        };
        let outcome = match outcome {
            // It gave up as it was told to. That is not the job's fault.
            Some(Outcome::Failed(_)) if sent_off => self.stopped(&fence),
            Some(outcome) => settle_outcome(outcome),
            // Stopped by us: because the lease may be lost, then the fence refuses this, or because
            // the engine stops.
            None => self.stopped(&fence),
        };
        count(&fence, &outcome);
        self.pending.push(Pending { settle: Settle { fence, outcome }, tries: 0 });
    }

    async fn wait(
        &mut self,
        jobs: &mut watch::Receiver<u64>,
        stopping: &mut watch::Receiver<Option<Instant>>,
        rest: Duration,
        stop: Option<Instant>,
    ) -> Waited {
        if rest.is_zero() {
            return Waited::Else;
        }
        let free = self.free() > 0;
        // When the drain is over, what still runs is asked to end, then stopped, then left behind.
        let past = |window| stop.is_some_and(|at| at + window <= Instant::now());
        // Those that only wait for somebody outside have nothing to finish: others wait as well.
        let over = past(Duration::ZERO) || (stop.is_some() && self.crew.held.handlers().busy == 0);
        if past(STOP_WINDOW + ABORT_WINDOW) && self.leave_behind() {
            return Waited::Else;
        } else if past(STOP_WINDOW) {
            self.crew.held.stop_all();
        } else if over {
            self.crew.held.ask_all();
        }
        let timeout = self.crew.held.next_timeout();
        let rest = timeout.map_or(rest, |at| rest.min(at.saturating_duration_since(Instant::now())));
        let rest = match stop {
            Some(at) if !over => rest.min(at - Instant::now()),
            Some(_) => rest.min(TROUBLE_PAUSE),
            None => rest,
        };
        let idle = stop.is_none() && self.pending.is_empty() && !self.calm_for().is_zero();
        let mut standing = (idle && free).then(|| self.shared.store.stand_by(self.ask(self.free(), Look::Newborn)));
        let mut handed = None;
        let mut waited = Waited::Else;
        tokio::select! {
            biased;
            Some(ended) = self.running.join_next_with_id() => {
                self.ended(ended);
                self.gather().await;
            }
            Ok(()) = stopping.changed() => {}
            came = async { standing.as_mut()?.handed().await }, if standing.is_some() => {
                waited = if came.is_some() { Waited::Handed } else { Waited::Else };
                (handed, standing) = (came, None);
            }
            // Somebody may end before the next turn: it must look for more than successors all the same.
            Ok(()) = jobs.changed(), if free && stop.is_none() && self.pending.is_empty() => self.calm_until = None,
            // Also if some are free by now, because one may have been left since they were counted; and also at a stop, because
            // whoever left it may be the last that is waited for.
            () = self.crew.held.vacated() => {}
            () = tokio::time::sleep(rest) => {}
        }
        if let Some(standing) = standing {
            handed = standing.leave().await;
        }
        if let Some(Handed { leased, turns, asked_at }) = handed {
            self.turns = turns;
            leased.into_iter().for_each(|job| self.begin(job, asked_at));
            // It may be wanted to end already, which no beat knew of yet.
            self.crew.beat_again.notify_one();
        }
        self.time_out();
        if self.pending.is_empty() { waited } else { Waited::Else }
    }
}

fn settle_outcome(outcome: Outcome) -> settle::Outcome {
    match outcome {
        Outcome::Done(result) => settle::Outcome::Done(result),
        Outcome::Failed(failure) => settle::Outcome::Failed(failure),
        Outcome::Park { until, seen } => settle::Outcome::Park { until, seen },
        Outcome::Ask(question) => settle::Outcome::Ask(question),
        Outcome::GiveBack => settle::Outcome::Release,
    }
}

fn count(fence: &Fence, outcome: &settle::Outcome) {
    let word = match outcome {
        settle::Outcome::Done(_) => "completed",
        settle::Outcome::Failed(_) => "failed",
        settle::Outcome::Park { .. } => "parked",
        settle::Outcome::Ask(_) => "asked",
        settle::Outcome::Release | settle::Outcome::Undelivered => "released",
        settle::Outcome::Stopped => "stopped",
    };
    let reason = match outcome {
        settle::Outcome::Failed(failure) => failure.code.as_str(),
        _ => "",
    };
    metrics::counter!("baton_handlers_ended_total", "outcome" => word).increment(1);
    tracing::debug!(jobId = %fence.job, token = fence.token, outcome = word, reason, "job handler ended");
}
