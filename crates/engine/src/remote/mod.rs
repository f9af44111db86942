//! Workers outside: they lease jobs, beat for them and settle them, over whatever wire brings them here.
//!
//! Invariants
//! - What is said about a job is said under a fence made of the lease and the key that shows it.
//! - A worker that waits is a place in a line, not a question every moment: of those who ask for the same, one looks.
//! - Whoever hangs up while jobs are claimed for it leaves none of them behind, and neither does one whom they must not
//!   reach: see [`Parcel`].

mod lease;
mod line;
mod parcel;

pub use lease::{BadLease, BadWorker, Lease, Name, Worker};
pub use parcel::Parcel;

use crate::engine::Shared;
use baton_core::command::Actor;
use baton_core::definition::Definitions;
use baton_core::job::beat::{Beat, Beaten};
use baton_core::job::report::{Report, ReportError, Reported};
use baton_core::job::settle::{Outcome, Settle, SettleError, Settled};
use baton_core::job::{Context, Progress};
use baton_core::lane::{self, LaneKey};
use baton_core::run::remote::{Errand, Withdraw, is_tool_type};
use baton_core::{Micros, ProjectId, TypeName};
use baton_store::{Ask, CommitError, Leased, Look, Scope, Store, StoreError, Turn};
use futures_util::future::join_all;
use line::{Line, Lines};
use parcel::give_back;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// The shortest rest between two looks of one who waits.
const REST_MIN: Duration = Duration::from_millis(5);
/// The rest while lanes are in other hands or there was more to look at than one look takes.
const FURTHER: Duration = Duration::from_millis(20);

/// What a worker asks for.
#[derive(Clone, Debug)]
pub struct Wanted {
    pub worker: Worker,
    pub types: BTreeSet<TypeName>,
    pub lanes: Option<BTreeSet<LaneKey>>,
    pub projects: Option<BTreeSet<ProjectId>>,
    pub max: usize,
    /// How long to wait for the first.
    pub wait: Duration,
}

/// A job in the hands of a worker.
#[derive(Clone, Debug)]
pub struct Handed {
    pub lease: Lease,
    pub leased: Leased,
    /// How long the execution may take.
    pub timeout: Option<Duration>,
    /// How long the lease lasts without a beat.
    pub lasts: Duration,
}

/// What settling came to.
pub type Said = Result<Settled, CommitError<SettleError>>;

/// The side of an engine that workers outside see. Cheap to clone.
#[derive(Clone)]
pub struct Workers {
    shared: Arc<Shared>,
    lines: Arc<Lines>,
}

impl Workers {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, lines: Arc::default() }
    }

    /// Settles what is done and takes what comes next, in one commit where there is something to take. If there is
    /// nothing, waits for it.
    pub async fn lease(
        &self,
        wanted: &Wanted,
        settles: Vec<(Lease, Outcome)>,
    ) -> Result<(Vec<Said>, Option<Parcel>), StoreError> {
        let until = Instant::now() + wanted.wait;
        let line = self.lines.line(wanted);
        let (turn, parcel) = self.turn(wanted, &line, settles).await?;
        let settled = turn.settled;
        if !parcel.is_empty() || wanted.wait.is_zero() {
            return Ok((settled, Some(parcel)));
        }
        // What was settled is told even if asking for more fails now.
        let parcel = self.wait(wanted, &line, until).await.unwrap_or_else(|e| {
            self.shared.trouble(&e);
            None
        });
        Ok((settled, parcel))
    }

    /// Stands in line until there is something, it is time to go, or the node stops.
    async fn wait(&self, wanted: &Wanted, line: &Line, until: Instant) -> Result<Option<Parcel>, StoreError> {
        let mut stopping = self.shared.stopping.subscribe();
        let turn = tokio::select! {
            biased;
            _ = stopping.wait_for(Option::is_some) => return Ok(None),
            turn = tokio::time::timeout_at(until, line.first.lock()) => turn,
        };
        let Ok(_first) = turn else { return Ok(None) };
        let mut jobs = self.shared.store.watch_jobs_outside();
        let poll = self.shared.options.poll_every;
        let mut further = FURTHER;
        loop {
            jobs.mark_unchanged();
            let (Turn { next_due, now, more, .. }, parcel) = self.turn(wanted, line, Vec::new()).await?;
            if !parcel.is_empty() || Instant::now() >= until {
                return Ok(Some(parcel));
            }
            let rest = match next_due {
                // Looking on is worth less each time that nothing is found.
                _ if more => further,
                Some(due) => due.since(now).to_std().max(REST_MIN),
                None => poll,
            };
            further = poll.min(further * 2);
            let wake = until.min(Instant::now() + rest.min(poll));
            tokio::select! {
                biased;
                _ = stopping.wait_for(Option::is_some) => return Ok(None),
                Ok(()) = jobs.changed() => {}
                () = tokio::time::sleep_until(wake) => {}
            }
        }
    }

    /// One look, which ends although nobody waits for it any more. What was found is in the parcel alone.
    async fn turn(
        &self,
        wanted: &Wanted,
        line: &Line,
        settles: Vec<(Lease, Outcome)>,
    ) -> Result<(Turn, Parcel), StoreError> {
        let ask = self.ask(wanted, line);
        let actor = Actor::Worker(wanted.worker.id());
        let settles = settles.into_iter().map(|said| settle(&wanted.worker, said)).collect();
        let (store, (tell, heard)) = (self.shared.store.clone(), oneshot::channel());
        tokio::spawn(async move {
            let looked = match store.turn(settles, ask).await {
                Ok(mut turn) => {
                    let leased = still_wanted(&store, std::mem::take(&mut turn.leased), &actor).await;
                    Ok((turn, Parcel::new(store, actor, leased)))
                }
                Err(e) => Err(e),
            };
            let _ = tell.send(looked);
        });
        let (turn, parcel) = heard.await.unwrap_or(Err(StoreError::Closed))?;
        *line.turns.lock().unwrap_or_else(PoisonError::into_inner) = turn.turns.clone();
        Ok((turn, parcel))
    }

    /// While the queue is switched off only what Baton asks for itself is handed out, and nothing when the node stops.
    fn ask(&self, wanted: &Wanted, line: &Line) -> Option<Ask> {
        let defs = self.shared.store.definitions();
        if self.shared.stopping.borrow().is_some() {
            return None;
        }
        let org = &wanted.worker.org;
        let on = |name: &&TypeName| defs.rules.enabled || is_tool_type(name);
        let types = wanted.types.iter().filter(on);
        let kinds = types.filter_map(|name| defs.for_workers(org, name)).flatten().collect::<Vec<_>>();
        if kinds.is_empty() {
            return None;
        }
        let turns = line.turns.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let scope = Scope { org: org.clone(), lanes: lanes(wanted, &defs), projects: wanted.projects.clone() };
        Some(Ask {
            worker: wanted.worker.id(),
            kinds,
            slots: wanted.max,
            turns,
            scope: Some(scope),
            look: Look::Everywhere,
        })
    }

    /// What is in a parcel for whoever wanted it. From here on nobody gives it back.
    pub fn open(&self, wanted: &Wanted, parcel: Option<Parcel>) -> Vec<Handed> {
        let defs = self.shared.store.definitions();
        let handed = parcel.into_iter().flat_map(Parcel::open).map(|leased| {
            let job = &leased.job;
            let kind = defs.pinned(&job.org, &job.kind);
            let timeout = kind.and_then(|kind| kind.timeout(&defs.rules));
            let lasts = job.status.lease().map_or(Duration::ZERO, |lease| lease.until.since(leased.at).to_std());
            let ends = timeout.map(|span| leased.at.plus(span));
            let lease = Lease { job: job.id, token: job.token, ends, name: wanted.worker.name.clone() };
            Handed { lease, timeout: timeout.map(|span| span.to_std()), lasts, leased }
        });
        handed.collect()
    }

    /// Says what came of jobs; each is judged for itself.
    pub async fn settle(&self, worker: &Worker, settles: Vec<(Lease, Outcome)>) -> Result<Vec<Said>, StoreError> {
        let settles = settles.into_iter().map(|said| settle(worker, said)).collect();
        Ok(self.shared.store.turn(settles, None).await?.settled)
    }

    /// Extends leases; those that no longer hold, and those whose job somebody wants to end.
    pub async fn beat(&self, worker: &Worker, leases: &[Lease]) -> Result<(Vec<Lease>, Vec<Lease>), StoreError> {
        let held = leases.iter().map(|lease| lease.fence(&worker.org, worker.key)).collect::<Vec<_>>();
        let ends: BTreeMap<_, Micros> = leases.iter().filter_map(|lease| Some((lease.job, lease.ends?))).collect();
        let beat = Beat { org: worker.org.clone(), held: held.clone(), ends };
        let Beaten { lost, cancelled } = match self.shared.store.commit(beat, Actor::Worker(worker.id())).await {
            Ok(beaten) => beaten,
            Err(CommitError::Store(e)) => return Err(e),
            Err(CommitError::KeyReused) => Beaten::default(),
            Err(CommitError::Refused(never)) => match never {},
        };
        let those = |of: &[baton_core::job::Fence]| {
            leases.iter().zip(&held).filter(|(_, fence)| of.contains(fence)).map(|(lease, _)| lease.clone()).collect()
        };
        Ok((those(&lost), those(&cancelled)))
    }

    /// Says how far a job is.
    pub async fn report(
        &self,
        worker: &Worker,
        lease: &Lease,
        progress: Option<Progress>,
        context: Option<Context>,
    ) -> Result<Reported, CommitError<ReportError>> {
        let fence = lease.fence(&worker.org, worker.key);
        let actor = Actor::Worker(fence.worker.clone());
        self.shared.store.commit(Report { fence, progress, context }, actor).await
    }
}

fn settle(worker: &Worker, (lease, outcome): (Lease, Outcome)) -> (Settle, Actor) {
    let fence = lease.fence(&worker.org, worker.key);
    let actor = Actor::Worker(fence.worker.clone());
    (Settle { fence, outcome }, actor)
}

/// Where projects are named and all that is asked for waits in the lanes of projects, only those are walked over.
fn lanes(wanted: &Wanted, defs: &Definitions) -> Option<BTreeSet<LaneKey>> {
    if wanted.lanes.is_some() {
        return wanted.lanes.clone();
    }
    let projects = wanted.projects.as_ref()?;
    let org = &wanted.worker.org;
    let kinds = wanted.types.iter().filter_map(|name| defs.for_workers(org, name)).flatten();
    let in_projects = kinds
        .into_iter()
        .all(|kind| defs.pinned(org, &kind).is_some_and(|kind| matches!(kind.lane, lane::Rule::Project)));
    in_projects.then(|| projects.iter().map(LaneKey::of_project).collect())
}

/// Of calls of tools, those that somebody still waits for. The others were left behind by a node that died before
/// it could end them, and must not be made any more. Of what cannot be told now, somebody else will be told.
async fn still_wanted(store: &Store, leased: Vec<Leased>, actor: &Actor) -> Vec<Leased> {
    let mut wanted = Vec::with_capacity(leased.len());
    let mut unsure = Vec::new();
    let calls = leased.into_iter().map(|leased| async move {
        let call = is_tool_type(&leased.job.kind.name).then(|| Errand::read(&leased.payload)).flatten();
        let Some(errand) = call else { return (leased, Ok(false)) };
        let withdraw = Withdraw { org: leased.job.org.clone(), job: leased.job.id, errand, anyhow: false };
        let withdrawn = store.commit(withdraw, Actor::Engine).await;
        (leased, withdrawn)
    });
    // At once, so they share a commit.
    for (leased, withdrawn) in join_all(calls).await {
        match withdrawn {
            Ok(false) => wanted.push(leased),
            Ok(true) => tracing::debug!(jobId = %leased.job.id, "a call that nobody waits for was withdrawn"),
            Err(_) => unsure.push(leased),
        }
    }
    give_back(store, unsure, actor).await;
    wanted
}
