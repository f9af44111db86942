//! The one door to both databases: an enum, so that nothing above is generic over it.

use crate::cursor::Cursor;
use crate::error::{CommitError, OpenError, StoreError};
use crate::group::{Answer, Ask, ClaimSeat, Claimed, Message, Once, Purge, PurgeSeat, Reply, Seat, Turn, Work};
use crate::open::{Backend, OpenOptions};
use crate::ports;
use crate::records::{
    DeadLetters, Depth, EventRow, JobRecord, LaneRecord, ListDocs, ListJobs, ListLanes, ListOrgs, Page, Prunable,
};
use crate::runs::{LedgerRow, ListLedger, ListRuns};
use crate::stand_by::StandBy;
use crate::{postgres, sqlite};
use baton_core::audit::Report;
use baton_core::command::{Actor, Command};
use baton_core::definition::{Definitions, JobType};
use baton_core::doc::{self, Doc};
use baton_core::id::{DocId, KeyId};
use baton_core::job::Fence;
use baton_core::job::settle::{Settle, SettleError, Settled};
use baton_core::lane::LaneKey;
use baton_core::run::record::{AttemptRecord, StepRecord, TaskRecord};
use baton_core::run::{Agent, Run};
use baton_core::seal::{self, Root, Seal};
use baton_core::timer::Due;
use baton_core::{AgentId, JobId, Json, Micros, OrgId, ProjectId, RunId, WorkerId, sink};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{broadcast, oneshot, watch};

/// How long a submission waits to be let into the queue before it is turned away.
const LET_IN: Duration = Duration::from_secs(5);

/// Commits commands and answers questions. Cheap to clone; all clones are the same store.
#[derive(Clone)]
pub enum Store {
    Sqlite(Arc<sqlite::Db>),
    Postgres(Arc<postgres::Db>),
}

macro_rules! each {
    ($self:ident, $db:ident => $do:expr) => {
        match $self {
            Store::Sqlite($db) => $do,
            Store::Postgres($db) => $do,
        }
    };
}

impl Store {
    pub async fn open(options: OpenOptions) -> Result<Self, OpenError> {
        match options.backend.clone() {
            Backend::Sqlite => Ok(Self::Sqlite(Arc::new(sqlite::Db::open(options)?))),
            Backend::Postgres(url) => Ok(Self::Postgres(Arc::new(postgres::Db::open(&url, options).await?))),
        }
    }

    /// Decides and commits one command.
    pub async fn commit<C: Command>(&self, command: C, actor: Actor) -> Result<C::Out, CommitError<C::No>> {
        match self.submit(command, actor, None).await? {
            Answer::Fresh(out) => Ok(out),
            // Without a key there is nothing to replay.
            Answer::Replayed(_) => Err(CommitError::Store(StoreError::Closed)),
        }
    }

    /// The same under an idempotency key: the record commits with the effect.
    pub async fn commit_once<C: Command>(
        &self,
        command: C,
        actor: Actor,
        once: Once<C::Out>,
    ) -> Result<Answer<C::Out>, CommitError<C::No>> {
        self.submit(command, actor, Some(once)).await
    }

    async fn submit<C: Command>(&self, command: C, actor: Actor, once: Option<Once<C::Out>>) -> Reply<C> {
        let (seat, heard) = self.seat(command, actor, once);
        self.send(vec![seat]).await.map_err(CommitError::Store)?;
        hear::<C>(heard).await
    }

    fn seat<C: Command>(
        &self,
        command: C,
        actor: Actor,
        once: Option<Once<C::Out>>,
    ) -> (Work, oneshot::Receiver<Reply<C>>) {
        let seed = each!(self, db => ports::seed(&*db.options.clock, &*db.options.entropy));
        let (seat, heard) = Seat::new(command, actor, once, seed);
        (Work::Command(Box::new(seat)), heard)
    }

    async fn send(&self, works: Vec<Work>) -> Result<(), StoreError> {
        let queue = each!(self, db => &db.queue);
        match tokio::time::timeout(LET_IN, queue.reserve()).await {
            Ok(Ok(place)) => {
                place.send(Message::Works(works));
                Ok(())
            }
            Ok(Err(_)) => Err(StoreError::Closed),
            Err(_) => Err(StoreError::Overloaded),
        }
    }

    /// Settles jobs and claims the next in one submission, and so, as a rule, in one commit.
    pub async fn turn(&self, settles: Vec<(Settle, Actor)>, ask: Option<Ask>) -> Result<Turn, StoreError> {
        let mut works = Vec::with_capacity(settles.len() + 1);
        let mut answers = Vec::with_capacity(settles.len());
        for (settle, actor) in settles {
            let (work, heard) = self.seat(settle, actor, None);
            works.push(work);
            answers.push(heard);
        }
        let claim = ask.map(|ask| {
            let (reply, heard) = oneshot::channel();
            works.push(Work::Claim(Box::new(ClaimSeat { ask, claimed: Claimed::default(), reply, place: None })));
            heard
        });
        if !works.is_empty() {
            self.send(works).await?;
        }
        // The last of a group is answered last: whoever waits for that first is woken once, not once for each.
        let claimed = match claim {
            Some(heard) => Some(heard.await),
            None => None,
        };
        let mut settled = Vec::with_capacity(answers.len());
        for heard in answers.into_iter().rev() {
            settled.push(settled_of(hear::<Settle>(heard).await));
        }
        settled.reverse();
        let claimed = match claimed {
            Some(heard) => heard.map_err(|_| StoreError::Closed)??,
            None => Claimed::default(),
        };
        let Claimed { leased, next_due, now, turns, more, left, .. } = claimed;
        Ok(Turn { settled, leased, next_due, now, turns, more, left })
    }

    /// Stands by for jobs that come in. For one who has looked everywhere and found nothing else.
    pub fn stand_by(&self, ask: Ask) -> StandBy {
        each!(self, db => db.signals.idle.stand_by(ask))
    }

    /// Claims jobs without settling any.
    pub async fn claim(&self, ask: Ask) -> Result<Turn, StoreError> {
        self.turn(Vec::new(), Some(ask)).await
    }

    pub async fn job(&self, org: &OrgId, id: JobId) -> Result<Option<JobRecord>, StoreError> {
        each!(self, db => db.job(org, id).await)
    }

    pub async fn jobs(&self, ask: ListJobs) -> Result<Page<JobRecord, JobId>, StoreError> {
        each!(self, db => db.jobs(ask).await)
    }

    /// Failed jobs that were not made anew.
    pub async fn dead_letters(&self, ask: DeadLetters) -> Result<Page<JobRecord, JobId>, StoreError> {
        each!(self, db => db.dead_letters(ask).await)
    }

    /// Lanes that count something or are paused, in the order of their keys.
    pub async fn lanes(&self, ask: ListLanes) -> Result<Page<LaneRecord, LaneKey>, StoreError> {
        each!(self, db => db.lanes(ask).await)
    }

    pub async fn lane(&self, org: &OrgId, key: &LaneKey) -> Result<Option<LaneRecord>, StoreError> {
        each!(self, db => db.lane(org, key).await)
    }

    pub async fn doc(&self, org: &OrgId, key: &doc::Key) -> Result<Option<Doc>, StoreError> {
        each!(self, db => db.doc(org, key).await)
    }

    /// Where a document is, by its id.
    pub async fn doc_key(&self, org: &OrgId, id: DocId) -> Result<Option<doc::Key>, StoreError> {
        each!(self, db => db.doc_key(org, id).await)
    }

    /// Documents of a class, in the order of their keys.
    pub async fn docs(&self, ask: ListDocs) -> Result<Page<(doc::Key, Doc), String>, StoreError> {
        each!(self, db => db.docs(ask).await)
    }

    /// A key that somebody shows, and the org that it belongs to: the one question that is asked
    /// before it is known whose.
    pub async fn key(&self, id: KeyId) -> Result<Option<(OrgId, Doc)>, StoreError> {
        each!(self, db => db.key(id).await)
    }

    /// Webhooks of all orgs that are to be told things, in the order of their keys. For the engine,
    /// which tells everybody.
    pub async fn webhooks(
        &self,
        after: Option<String>,
        limit: usize,
    ) -> Result<Vec<(OrgId, doc::Key, Doc)>, StoreError> {
        each!(self, db => db.webhooks(after, limit).await)
    }

    /// What a hook left under a key.
    pub async fn sink(&self, org: &OrgId, key: &sink::Key) -> Result<Option<Json>, StoreError> {
        each!(self, db => db.sink(org, key).await)
    }

    /// Ended jobs beyond the newest `keep` of their projects, all of whose events are sealed. At most
    /// one batch, for the first project that has any after `after`.
    pub async fn prunable(&self, after: Option<(OrgId, ProjectId)>, keep: u32) -> Result<Option<Prunable>, StoreError> {
        each!(self, db => db.prunable(after, keep).await)
    }

    /// Removes the rows of lanes that count nothing any more, and of ranks where nobody stands; how many of the one that
    /// there were more of.
    pub async fn purge_lanes(&self, limit: usize) -> Result<usize, StoreError> {
        self.purge(Purge::Lanes, limit).await
    }

    pub async fn run(&self, org: &OrgId, id: RunId) -> Result<Option<Run>, StoreError> {
        each!(self, db => db.run(org, id).await)
    }

    /// The document and the plan of a run.
    pub async fn run_plan(&self, org: &OrgId, id: RunId) -> Result<Option<(Json, Json)>, StoreError> {
        each!(self, db => db.run_plan(org, id).await)
    }

    /// Runs that were not deleted, by when they were made.
    pub async fn runs(&self, ask: ListRuns) -> Result<Page<Run, RunId>, StoreError> {
        each!(self, db => db.runs(ask).await)
    }

    pub async fn agent(&self, org: &OrgId, id: AgentId) -> Result<Option<Agent>, StoreError> {
        each!(self, db => db.agent(org, id).await)
    }

    /// Agents of one attempt of a run, in the order of the plan, after a place in it.
    pub async fn agents(
        &self,
        org: &OrgId,
        run: RunId,
        attempt: u32,
        after: Option<u32>,
        limit: usize,
    ) -> Result<Vec<Agent>, StoreError> {
        each!(self, db => db.agents(org, run, attempt, after, limit).await)
    }

    /// Steps of an agent that have ended, in that order, after a number.
    pub async fn step_records(
        &self,
        org: &OrgId,
        agent: AgentId,
        after: u32,
        limit: usize,
    ) -> Result<Vec<StepRecord>, StoreError> {
        each!(self, db => db.step_records(org, agent, after, limit).await)
    }

    /// Tasks of an agent that have ended, in that order, after a number.
    pub async fn task_records(
        &self,
        org: &OrgId,
        agent: AgentId,
        after: u32,
        limit: usize,
    ) -> Result<Vec<TaskRecord>, StoreError> {
        each!(self, db => db.task_records(org, agent, after, limit).await)
    }

    /// Attempts of a run that have ended.
    pub async fn attempts(&self, org: &OrgId, run: RunId) -> Result<Vec<AttemptRecord>, StoreError> {
        each!(self, db => db.attempts(org, run).await)
    }

    /// Entries of accounts, account by account.
    pub async fn ledger(&self, ask: ListLedger) -> Result<Page<LedgerRow, (String, i64)>, StoreError> {
        let limit = ask.limit;
        let more = ListLedger { limit: limit + 1, ..ask };
        let found = each!(self, db => db.ledger(more).await)?;
        Ok(Page::cut(found, limit, |row| (row.account.clone(), row.n)))
    }

    /// What happened to a run and its agents, in the order of commits.
    pub async fn run_events(
        &self,
        org: &OrgId,
        run: RunId,
        after: Cursor,
        limit: usize,
    ) -> Result<Page<EventRow, Cursor>, StoreError> {
        each!(self, db => db.run_events(org, run, after, limit).await)
    }

    /// Agents at work whose job is gone, or has been waiting for a worker since this moment.
    pub async fn lost_agents(&self, since: Micros, limit: usize) -> Result<Vec<(OrgId, AgentId)>, StoreError> {
        each!(self, db => db.lost_agents(since, limit).await)
    }

    /// Events of an org after a cursor, in the order of their commits; none is ever skipped.
    pub async fn events(&self, org: &OrgId, after: Cursor, limit: usize) -> Result<Page<EventRow, Cursor>, StoreError> {
        each!(self, db => db.events(org, after, limit).await)
    }

    /// Whether there can have been an event at this place. One that lies further ahead comes from
    /// another database, or from before an older backup was restored: waiting there would skip
    /// what happens until then.
    pub async fn reaches(&self, cursor: Cursor) -> Result<bool, StoreError> {
        // What is told last is true first, but not everything that is true has been told.
        if cursor.0 <= *each!(self, db => db.signals.events.borrow()) {
            return Ok(true);
        }
        each!(self, db => db.reaches(cursor).await)
    }

    /// The place after the last event that readers can see.
    pub fn tail(&self) -> Result<Cursor, StoreError> {
        match *each!(self, db => db.signals.events.borrow()) {
            crate::signals::UNKNOWN => Err(StoreError::Unavailable("the history is not followed yet".to_owned())),
            pos => Ok(Cursor(pos)),
        }
    }

    /// Resolves when nothing can be committed any more: closed, or the disk failed.
    pub async fn closed(&self) {
        each!(self, db => &db.queue).closed().await;
    }

    pub fn is_closed(&self) -> bool {
        each!(self, db => &db.queue).is_closed()
    }

    /// Changes when there are new events to read.
    pub fn watch_events(&self) -> watch::Receiver<i64> {
        each!(self, db => db.signals.events.subscribe())
    }

    /// Changes when jobs may have become claimable for pools of nodes.
    pub fn watch_jobs(&self) -> watch::Receiver<u64> {
        each!(self, db => db.signals.jobs.listen())
    }

    /// Changes when jobs may have become claimable for workers outside.
    pub fn watch_jobs_outside(&self) -> watch::Receiver<u64> {
        each!(self, db => db.signals.outside.listen())
    }

    /// Changes when timers were set.
    pub fn watch_timers(&self) -> watch::Receiver<u64> {
        each!(self, db => db.signals.timers.listen())
    }

    /// Says which calls of workers outside have ended, as far as this node has heard of it.
    pub fn watch_calls(&self) -> broadcast::Receiver<JobId> {
        each!(self, db => db.signals.calls.subscribe())
    }

    /// Leases that have run out, oldest first.
    pub async fn expired(&self, limit: usize) -> Result<Vec<Fence>, StoreError> {
        each!(self, db => db.expired(limit).await)
    }

    /// Every lease that a worker holds, page by page in the order of fences.
    pub async fn held_by(&self, worker: &WorkerId, limit: usize) -> Result<Vec<Fence>, StoreError> {
        each!(self, db => db.held_by(worker, limit).await)
    }

    /// Timers that are due, oldest first, and when the next one after them is.
    pub async fn due_timers(&self, limit: usize) -> Result<(Vec<Due>, Option<Micros>), StoreError> {
        each!(self, db => db.due_timers(limit).await)
    }

    /// Changes when jobs that workers hold are to end.
    pub fn watch_leases(&self) -> watch::Receiver<u64> {
        each!(self, db => db.signals.leases.listen())
    }

    /// Forgets expired idempotency records; how many.
    pub async fn purge_onces(&self, limit: usize) -> Result<usize, StoreError> {
        self.purge(Purge::Onces, limit).await
    }

    /// Forgets messages whose day is over; how many.
    pub async fn purge_messages(&self, limit: usize) -> Result<usize, StoreError> {
        self.purge(Purge::Messages, limit).await
    }

    async fn purge(&self, what: Purge, limit: usize) -> Result<usize, StoreError> {
        let (reply, heard) = oneshot::channel();
        self.send(vec![Work::Purge(PurgeSeat { what, limit, purged: 0, reply })]).await?;
        heard.await.map_err(|_| StoreError::Closed)?
    }

    pub async fn depths(&self) -> Result<Vec<Depth>, StoreError> {
        each!(self, db => db.depths().await)
    }

    /// Every org that has a history.
    pub async fn orgs(&self) -> Result<Vec<OrgId>, StoreError> {
        Ok(self.list_orgs(ListOrgs::ALL).await?.items)
    }

    /// Some of them, in the order of their names.
    pub async fn list_orgs(&self, ask: ListOrgs) -> Result<Page<OrgId, OrgId>, StoreError> {
        each!(self, db => db.orgs(ask).await)
    }

    /// The last seal of an org, and the root over what came after it: at most `limit` events.
    pub async fn unsealed(&self, org: &OrgId, limit: usize) -> Result<Unsealed, StoreError> {
        each!(self, db => db.unsealed(org, limit).await)
    }

    pub async fn seal(&self, org: &OrgId, n: i64) -> Result<Option<Seal>, StoreError> {
        each!(self, db => db.seal(org, n).await)
    }

    /// Verifies the whole history in one snapshot.
    pub async fn audit(&self, key: Option<seal::Key>) -> Result<Report, StoreError> {
        each!(self, db => db.audit(key).await)
    }

    /// The time of commits.
    pub async fn now(&self) -> Result<Micros, StoreError> {
        each!(self, db => db.now().await)
    }

    /// This node's clock, for deciding how long to sleep. Not the time of commits on PostgreSQL.
    pub fn clock_now(&self) -> Micros {
        each!(self, db => db.options.clock.now())
    }

    /// Adds a type of everybody's that workers serve, in a version that was registered.
    pub fn declare(&self, job_type: JobType) {
        each!(self, db => db.known.declare(job_type));
    }

    /// Looks whether another node has registered something.
    pub async fn learn(&self) -> Result<(), StoreError> {
        match self {
            // Whoever registers here is this node.
            Self::Sqlite(_) => Ok(()),
            Self::Postgres(db) => db.learn().await,
        }
    }

    pub fn definitions(&self) -> Arc<Definitions> {
        each!(self, db => db.known.get())
    }

    pub const fn name(&self) -> &'static str {
        match self {
            Self::Sqlite(_) => "sqlite",
            Self::Postgres(_) => "postgres",
        }
    }

    /// Any SQL at all, past every rule: for tests that tamper.
    #[cfg(feature = "faults")]
    pub async fn raw(&self, sql: &str) -> Result<(), StoreError> {
        each!(self, db => db.raw(sql).await)
    }

    /// Says nothing more after this; what was committed stays.
    pub async fn close(&self) {
        let (done, heard) = oneshot::channel();
        let queue = each!(self, db => &db.queue);
        if queue.send(Message::Close(done)).await.is_ok() {
            // An error means that the committer is already gone, which is what was wanted.
            let _ = heard.await;
        }
        each!(self, db => db.released());
    }
}

/// What a sealer needs to make the next seal.
#[derive(Clone)]
pub struct Unsealed {
    /// `None` before the first.
    pub last: Option<Seal>,
    pub to_pos: i64,
    pub root: Root,
}

async fn hear<C: Command>(heard: oneshot::Receiver<Reply<C>>) -> Reply<C> {
    heard.await.unwrap_or(Err(CommitError::Store(StoreError::Closed)))
}

/// A settlement carries no key, so it is never replayed.
fn settled_of(answer: Result<Answer<Settled>, CommitError<SettleError>>) -> Result<Settled, CommitError<SettleError>> {
    match answer? {
        Answer::Fresh(settled) => Ok(settled),
        Answer::Replayed(_) => Ok(Settled::Already),
    }
}
