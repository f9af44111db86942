//! The worker pool: claims due jobs, runs their handlers, settles what came of them.
//!
//! Settling finished jobs and claiming the next ones is one submission, and so, as a rule, one
//! commit. A settlement that cannot be committed is kept and tried again: saying it twice is
//! harmless, forgetting it is not.

use crate::engine::Shared;
use crate::registry::{JobCx, Outcome};
use baton_core::command::Actor;
use baton_core::job::settle::{self, Settle, Settled};
use baton_core::job::{Failure, Fence};
use baton_store::{Ask, CommitError, Leased, StoreError, Turn};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::Instant;

/// How often a settlement is tried that the database rejects; then the lease is left to expire.
const REJECTED_TRIES: u32 = 20;
/// After trouble with the store.
const TROUBLE_PAUSE: Duration = Duration::from_millis(200);
/// Between two looks at least, however soon the next job is due.
const REST_MIN: Duration = Duration::from_millis(10);

struct Pending {
    settle: Settle,
    tries: u32,
}

pub(crate) struct Pool {
    shared: Arc<Shared>,
    running: JoinSet<Outcome>,
    pending: Vec<Pending>,
}

pub(crate) async fn run(shared: Arc<Shared>) {
    let mut jobs = shared.store.watch_jobs();
    let mut stopping = shared.stopping.subscribe();
    let mut pool = Pool { shared, running: JoinSet::new(), pending: Vec::new() };
    loop {
        let stop = *stopping.borrow_and_update();
        if stop.is_some() && pool.running.is_empty() && pool.pending.is_empty() {
            return;
        }
        // Before claiming, so that what becomes claimable meanwhile is not missed.
        jobs.mark_unchanged();
        let free = pool.shared.options.slots.saturating_sub(pool.running.len());
        let wants = if stop.is_some() { 0 } else { free };
        let next = pool.turn(wants).await;
        let rest = match next {
            // There was as much as fitted, so there may be more; but only when a slot is free.
            Next::More if pool.running.len() < pool.shared.options.slots => Duration::ZERO,
            Next::More => pool.shared.options.poll_every,
            Next::At(rest) => rest.min(pool.shared.options.poll_every),
            Next::Trouble => TROUBLE_PAUSE,
        };
        pool.wait(&mut jobs, &mut stopping, rest, stop).await;
    }
}

enum Next {
    More,
    At(Duration),
    Trouble,
}

impl Pool {
    /// Settles what has ended and claims what fits.
    async fn turn(&mut self, wants: usize) -> Next {
        self.collect();
        if self.pending.is_empty() && wants == 0 {
            return Next::At(self.shared.options.poll_every);
        }
        let node = &self.shared.options.node;
        let actor = Actor::Worker(node.clone());
        let asked_at = Instant::now();
        let settles = self.pending.iter().map(|p| (p.settle.clone(), actor.clone())).collect();
        let ask = (wants > 0).then(|| Ask { worker: node.clone(), kinds: self.shared.registry.kinds(), slots: wants });
        match self.shared.store.turn(settles, ask).await {
            Ok(Turn { settled, leased, next_due, now }) => {
                let trouble = self.settled(settled);
                let filled = leased.len() == wants && wants > 0;
                leased.into_iter().for_each(|job| self.begin(job, asked_at));
                match next_due {
                    _ if trouble => Next::Trouble,
                    _ if filled => Next::More,
                    Some(due) => Next::At(due.since(now).to_std().max(REST_MIN)),
                    None => Next::At(self.shared.options.poll_every),
                }
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
                Ok(_) | Err(CommitError::KeyReused) => self.shared.held.let_go(&pending.settle.fence),
                Err(CommitError::Refused(why)) => {
                    self.shared.held.let_go(&pending.settle.fence);
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
                        self.shared.held.let_go(&pending.settle.fence);
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
        tracing::info!(jobId = %job.id, projectId = %job.project, r#type = %job.kind.name, attempt = job.attempts, "job started");
        let lease =
            self.shared.store.definitions().pinned(&job.kind).map_or(baton_core::time::Span::secs(30), |k| k.lease);
        let kind = job.kind.name.to_string();
        let began = Instant::now();
        let abort = self.running.spawn(async move {
            let outcome = handler.run(JobCx { job, at }, payload).await;
            metrics::histogram!("baton_job_run_seconds", "type" => kind).record(began.elapsed().as_secs_f64());
            outcome
        });
        self.shared.held.add(fence, lease, asked_at, abort);
    }

    /// Everything that has ended so far becomes a settlement.
    fn collect(&mut self) {
        while let Some(ended) = self.running.try_join_next_with_id() {
            self.ended(ended);
        }
    }

    fn ended(&mut self, ended: Result<(Id, Outcome), JoinError>) {
        let (task, outcome) = match ended {
            Ok((task, outcome)) => (task, Some(outcome)),
            Err(e) if e.is_cancelled() => (e.id(), None),
            Err(e) => (e.id(), Some(Outcome::Failed(Failure::new("handler_panicked", "the handler panicked")))),
        };
        let Some(fence) = self.shared.held.handler_ended(task) else { return };
        let outcome = match outcome {
            Some(outcome) => settle_outcome(outcome),
            // Stopped by us: because the lease is lost, then the fence refuses this, or because
            // the engine stops, then the job is given back.
            None => settle::Outcome::Release,
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
    ) {
        if rest.is_zero() {
            return;
        }
        let free = self.running.len() < self.shared.options.slots;
        // When the drain is over, what still runs is told to stop, and told again.
        let over = stop.is_some_and(|at| at <= Instant::now());
        if over {
            self.shared.held.stop_all();
        }
        let rest = match stop {
            Some(at) if !over => rest.min(at - Instant::now()),
            Some(_) => rest.min(TROUBLE_PAUSE),
            None => rest,
        };
        tokio::select! {
            biased;
            Some(ended) = self.running.join_next_with_id() => self.ended(ended),
            Ok(()) = stopping.changed() => {}
            Ok(()) = jobs.changed(), if free && stop.is_none() && self.pending.is_empty() => {}
            () = tokio::time::sleep(rest) => {}
        }
    }
}

fn settle_outcome(outcome: Outcome) -> settle::Outcome {
    match outcome {
        Outcome::Done(result) => settle::Outcome::Done(result),
        Outcome::Failed(failure) => settle::Outcome::Failed(failure),
        Outcome::Park { until, seen } => settle::Outcome::Park { until, seen },
    }
}

fn count(fence: &Fence, outcome: &settle::Outcome) {
    let word = match outcome {
        settle::Outcome::Done(_) => "completed",
        settle::Outcome::Failed(_) => "failed",
        settle::Outcome::Park { .. } => "parked",
        settle::Outcome::Release => "released",
    };
    let reason = match outcome {
        settle::Outcome::Failed(failure) => failure.code.as_str(),
        _ => "",
    };
    metrics::counter!("baton_handlers_ended_total", "outcome" => word).increment(1);
    tracing::info!(jobId = %fence.job, token = fence.token, outcome = word, reason, "job handler ended");
}
