//! A group: commands that wait together, decided over one world and committed at once.
//!
//! What both databases share: who sits in a group, what it must load, and deciding it. Loading
//! and writing are each database's own.

use crate::error::{CommitError, StoreError};
use crate::hand_out::{Found, hand_out, newborn};
use crate::open::OpenOptions;
use crate::stand_by::Place;
use baton_core::canon::{Digest, Json};
use baton_core::command::{Actor, Command, Ctx, Decision, Reads};
use baton_core::definition::{Definitions, Served};
use baton_core::doc;
use baton_core::event::Note;
use baton_core::id::{Ids, Seed};
use baton_core::job::settle::{SettleError, Settled};
use baton_core::job::{Job, Kind};
use baton_core::lane::LaneKey;
use baton_core::name::TypeName;
use baton_core::once::{self, Rendered};
use baton_core::rng::Rng;
use baton_core::schedule::{LaneId, Turns};
use baton_core::world::JobWrite;
use baton_core::{Micros, OrgId, ProjectId, WorkerId, World};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// Commands that are committed together at most.
pub const GROUP_MAX: usize = 512;
/// From so many on, works that were submitted together (or jobs of one batch) are a group of their own: waiting for others
/// gains them nothing, and whoever submitted others does something else meanwhile.
pub(crate) const LARGE: usize = 128;
/// Moves that room is made for at once; for more it grows.
const MOVES_EXPECTED: usize = 2_048;
/// Submissions that may wait at once; whoever comes then waits to be let in.
pub const QUEUE_MAX: usize = 4_096;
/// How often a command may say that it needs to see more.
pub(crate) const NEED_ROUNDS: u32 = 4;
/// How often a group is tried again after a conflict with another node.
pub(crate) const CONFLICT_TRIES: u32 = 8;

/// The idempotency record that commits with the command's effect.
pub struct Once<T> {
    pub key: once::Key,
    /// Over the request, to tell a repetition from another request with the same key.
    pub request: Digest,
    /// The answer as it goes out, kept for repetitions.
    pub render: Box<dyn Fn(&T) -> Rendered + Send>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer<T> {
    Fresh(T),
    /// Said before with the same key: the same answer again, nothing done.
    Replayed(Rendered),
}

pub(crate) type Reply<C> = Result<Answer<<C as Command>::Out>, CommitError<<C as Command>::No>>;

/// A worker asks for jobs.
#[derive(Clone, Debug)]
pub struct Ask {
    pub worker: WorkerId,
    /// What the worker can run, in order.
    pub kinds: Vec<Kind>,
    pub slots: usize,
    /// Whose turn it is, as the last claim left it.
    pub turns: Turns,
    /// What a worker from outside reaches; one of this node's reaches all that its binary can run.
    pub scope: Option<Scope>,
    pub look: Look,
}

/// Where jobs are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    Everywhere,
    /// Only for successors of jobs that the same group moves, in their lanes. Enough for whoever has looked everywhere,
    /// has left nothing behind that could go, and was not told of anything since; far cheaper.
    Successors,
    /// Only among jobs that the same group brings in: see `stand_by`.
    Newborn,
}

/// How far an ask reaches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    pub org: OrgId,
    /// Only these, in their order; any if there are none named.
    pub lanes: Option<BTreeSet<LaneKey>>,
    pub projects: Option<BTreeSet<ProjectId>>,
}

impl Ask {
    pub(crate) fn lanes(&self) -> Option<&BTreeSet<LaneKey>> {
        self.scope.as_ref()?.lanes.as_ref()
    }

    /// A worker from outside always looks everywhere that it reaches.
    pub(crate) fn is_everywhere(&self) -> bool {
        self.look == Look::Everywhere || self.scope.is_some()
    }

    pub(crate) fn org(&self) -> Option<&OrgId> {
        self.scope.as_ref().map(|scope| &scope.org)
    }

    /// Whether a job that was found is one that is asked for.
    pub(crate) fn wants(&self, job: &Job) -> bool {
        let projects = self.scope.as_ref().and_then(|scope| scope.projects.as_ref());
        self.kinds.binary_search(&job.kind).is_ok() && projects.is_none_or(|projects| projects.contains(&job.project))
    }

    /// Whether whoever asks does jobs of this kind: what workers serve is not this node's, and the other way round.
    pub(crate) fn serves(&self, served: Served) -> bool {
        (self.scope.is_none()) == (served == Served::Here)
    }
}

/// A job handed to a worker.
#[derive(Clone, Debug)]
pub struct Leased {
    /// In state executing, with the fence to show. Shared with whoever remembers it for its end.
    pub job: Arc<Job>,
    pub payload: Json,
    /// When it was claimed, by the clock of the commit.
    pub at: Micros,
}

/// What came of settling some jobs and asking for more in the same commit.
#[derive(Debug)]
pub struct Turn {
    pub settled: Vec<Result<Settled, CommitError<SettleError>>>,
    pub leased: Vec<Leased>,
    /// When the next job that is not yet due will be.
    pub next_due: Option<Micros>,
    /// The time of the commit, by the clock that judges what is due.
    pub now: Micros,
    /// For the next claim.
    pub turns: Turns,
    /// Not all that may be due was looked at: it is worth asking again at once.
    pub more: bool,
    /// With more slots there might have been more.
    pub left: bool,
}

/// What a claim came to, before it is part of a turn.
#[derive(Debug, Default)]
pub(crate) struct Claimed {
    /// Of one who stands by: when they were taken along.
    pub asked_at: Option<Instant>,
    pub leased: Vec<Leased>,
    pub next_due: Option<Micros>,
    pub now: Micros,
    pub turns: Turns,
    pub more: bool,
    pub left: bool,
}

/// One who waits for a group's commit.
pub(crate) enum Work {
    Command(Box<dyn Member>),
    Claim(Box<ClaimSeat>),
    Purge(PurgeSeat),
}

/// What the committer is sent.
pub(crate) enum Message {
    /// Sits together in one group.
    Works(Vec<Work>),
    /// Finish what waits, then stop and say so.
    Close(oneshot::Sender<()>),
}

impl Message {
    pub fn is_large(&self) -> bool {
        matches!(self, Self::Works(works) if works.iter().map(Work::weight).sum::<usize>() >= LARGE)
    }
}

/// Rows that no longer speak, so no command is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purge {
    Onces,
    Messages,
    Lanes,
}

pub(crate) struct PurgeSeat {
    pub what: Purge,
    pub limit: usize,
    pub purged: usize,
    pub reply: oneshot::Sender<Result<usize, StoreError>>,
}

pub(crate) struct ClaimSeat {
    pub ask: Ask,
    pub claimed: Claimed,
    pub reply: oneshot::Sender<Result<Claimed, StoreError>>,
    /// Where they stand by otherwise.
    pub place: Option<Place>,
}

impl ClaimSeat {
    fn answer(mut self: Box<Self>) {
        match self.place.take() {
            Some(place) if self.claimed.leased.is_empty() => place.back(self),
            place => {
                let _ = self.reply.send(Ok(self.claimed));
                place.into_iter().for_each(Place::done);
            }
        }
    }

    fn fail(mut self: Box<Self>, why: StoreError) {
        match self.place.take() {
            // It was not they who asked.
            Some(place) => place.back(self),
            None => {
                let _ = self.reply.send(Err(why));
            }
        }
    }
}

/// A command of any type, with its place to answer to.
pub(crate) trait Member: Send {
    fn org(&self) -> &OrgId;
    fn add_reads(&self, defs: &Definitions, all: &mut Reads);
    fn once(&self) -> Option<&once::Key>;
    fn weight(&self) -> usize;
    fn brings_in(&self, such: &dyn Fn(&TypeName) -> bool) -> bool;
    fn decide(&mut self, world: &mut World, env: &Env<'_>) -> Step;
    fn answer(self: Box<Self>);
    fn fail(self: Box<Self>, why: StoreError);
    #[cfg(feature = "faults")]
    fn answer_early(&mut self);
}

pub(crate) struct Env<'a> {
    pub now: Micros,
    pub defs: &'a Definitions,
    /// Lanes that are paused, if somebody stands by.
    pub paused: Option<&'a BTreeSet<LaneId>>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Decided,
    /// Load more and decide the group anew.
    Again,
    /// It asked for more too often.
    TooDeep,
}

pub(crate) struct Seat<C: Command> {
    command: C,
    actor: Actor,
    once: Option<Once<C::Out>>,
    /// Drawn once; deciding again draws the same ids and the same chances.
    seed: Seed,
    /// More than it knew of before it was decided.
    needed: Option<Reads>,
    rounds: u32,
    decided: Option<Reply<C>>,
    reply: Option<oneshot::Sender<Reply<C>>>,
}

impl<C: Command> Seat<C> {
    pub fn new(
        command: C,
        actor: Actor,
        once: Option<Once<C::Out>>,
        seed: Seed,
    ) -> (Self, oneshot::Receiver<Reply<C>>) {
        let (reply, heard) = oneshot::channel();
        let seat = Self { command, actor, once, seed, needed: None, rounds: 0, decided: None, reply: Some(reply) };
        (seat, heard)
    }
}

impl<C: Command> Member for Seat<C> {
    fn org(&self) -> &OrgId {
        self.command.org()
    }

    fn add_reads(&self, defs: &Definitions, all: &mut Reads) {
        self.command.add_reads(defs, all);
        if let Some(needed) = &self.needed {
            all.merge(needed.clone());
        }
    }

    fn once(&self) -> Option<&once::Key> {
        self.once.as_ref().map(|once| &once.key)
    }

    fn weight(&self) -> usize {
        self.command.weight()
    }

    fn brings_in(&self, such: &dyn Fn(&TypeName) -> bool) -> bool {
        self.command.brings_in(such)
    }

    fn decide(&mut self, world: &mut World, env: &Env<'_>) -> Step {
        if let Some(once) = &self.once
            && let Some(record) = world.once(&once.key).filter(|r| r.speaks_at(env.now))
        {
            let same = record.request == once.request;
            self.decided =
                Some(if same { Ok(Answer::Replayed(record.answer.clone())) } else { Err(CommitError::KeyReused) });
            return Step::Decided;
        }
        let mut ids = Ids::new(self.seed);
        let mut rng = Rng::new(self.seed.low ^ self.seed.high.rotate_left(13));
        let mut cx = Ctx { now: env.now, actor: &self.actor, defs: env.defs, ids: &mut ids, rng: &mut rng };
        match self.command.decide(&world.view(self.command.org()), &mut cx) {
            Decision::Done(out, changes) => {
                world.apply(self.command.org(), &self.actor, env.now, changes);
                if let Some(once) = &self.once {
                    let answer = (once.render)(&out);
                    let expires_at = env.now.plus(once::KEPT_FOR);
                    world.put_once(once.key.clone(), once::Record { request: once.request, answer, expires_at });
                }
                self.decided = Some(Ok(Answer::Fresh(out)));
                self.rounds = 0;
                Step::Decided
            }
            Decision::Refused(no) => {
                self.decided = Some(Err(CommitError::Refused(no)));
                Step::Decided
            }
            Decision::Need(reads) => {
                self.rounds += 1;
                self.needed.get_or_insert_default().merge(reads);
                if self.rounds > NEED_ROUNDS { Step::TooDeep } else { Step::Again }
            }
        }
    }

    fn answer(mut self: Box<Self>) {
        // Whoever asked may have gone away meanwhile; what was committed stands.
        if let (Some(reply), Some(decided)) = (self.reply.take(), self.decided.take()) {
            let _ = reply.send(decided);
        }
    }

    fn fail(mut self: Box<Self>, why: StoreError) {
        if let Some(reply) = self.reply.take() {
            let _ = reply.send(Err(CommitError::Store(why)));
        }
    }

    #[cfg(feature = "faults")]
    fn answer_early(&mut self) {
        if let (Some(reply), Some(decided)) = (self.reply.take(), self.decided.take()) {
            let _ = reply.send(decided);
        }
    }
}

impl Work {
    /// Jobs that it may move, about.
    fn moves(&self) -> usize {
        match self {
            Self::Command(member) => member.weight(),
            Self::Claim(seat) if seat.place.is_some() => 0,
            Self::Claim(seat) => seat.ask.slots,
            Self::Purge(_) => 0,
        }
    }

    fn weight(&self) -> usize {
        match self {
            Self::Command(member) => member.weight(),
            Self::Claim(_) | Self::Purge(_) => 1,
        }
    }

    /// Whether new jobs of such a type may come of it.
    pub fn brings_in(&self, such: &dyn Fn(&TypeName) -> bool) -> bool {
        matches!(self, Self::Command(member) if member.brings_in(such))
    }

    pub fn answer(self) {
        match self {
            Self::Command(member) => member.answer(),
            Self::Claim(seat) => seat.answer(),
            Self::Purge(seat) => {
                let _ = seat.reply.send(Ok(seat.purged));
            }
        }
    }

    pub fn fail(self, why: StoreError) {
        match self {
            Self::Command(member) => member.fail(why),
            Self::Claim(seat) => seat.fail(why),
            Self::Purge(seat) => {
                let _ = seat.reply.send(Err(why));
            }
        }
    }
}

/// Those of a group that failed who are to be tried one by one. Whoever only came along goes back to where they stood.
pub(crate) fn alone(works: Vec<Work>) -> Vec<Work> {
    let along = |work: &Work| matches!(work, Work::Claim(seat) if seat.place.is_some());
    let (along, alone): (Vec<_>, Vec<_>) = works.into_iter().partition(along);
    along.into_iter().for_each(|work| work.fail(StoreError::Closed));
    alone
}

/// What a group must see before it can be decided.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub reads: BTreeMap<OrgId, Reads>,
    pub onces: BTreeSet<once::Key>,
    /// Each ask with the number of candidates it needs: those before it may take the best.
    pub asks: Vec<(Ask, usize)>,
    /// New jobs may come of it.
    pub brings_in: bool,
    /// Somebody stands by for them: which lanes are paused must be seen.
    pub stands_by: bool,
}

impl Plan {
    /// There is nothing to be seen but the time: the group makes things that nobody else can know of.
    pub fn is_blind(&self) -> bool {
        self.onces.is_empty() && self.asks.is_empty() && !self.stands_by && self.reads.values().all(Reads::are_none)
    }

    /// Agents are all that is to be seen: the group records what came of steps, and nothing else.
    pub fn only_agents(&self) -> bool {
        let nothing_else = self.onces.is_empty() && self.asks.is_empty() && !self.stands_by;
        nothing_else && !self.reads.is_empty() && self.reads.values().all(Reads::are_agents)
    }
}

/// A panic while naming what to read is the member's own, like one while deciding.
pub(crate) fn plan(works: &[Work], defs: &Definitions) -> Result<Plan, StoreError> {
    catch_unwind(AssertUnwindSafe(|| plan_of(works, defs))).map_err(|panic| StoreError::Panicked(panic_text(&*panic)))
}

fn plan_of(works: &[Work], defs: &Definitions) -> Plan {
    let mut plan = Plan::default();
    let mut slots = 0;
    for work in works {
        plan.brings_in |= work.brings_in(&|_| true);
        match work {
            Work::Command(member) => {
                match plan.reads.get_mut(member.org()) {
                    Some(reads) => member.add_reads(defs, reads),
                    None => member.add_reads(defs, plan.reads.entry(member.org().clone()).or_default()),
                }
                plan.onces.extend(member.once().cloned());
            }
            Work::Claim(seat) if seat.ask.look == Look::Newborn => {
                seat.place.iter().for_each(Place::begins);
                plan.stands_by = true;
            }
            Work::Claim(seat) => {
                slots += seat.ask.slots;
                plan.asks.push((seat.ask.clone(), slots));
            }
            Work::Purge(_) => {}
        }
    }
    plan
}

/// What deciding a whole group came to.
pub(crate) enum Round {
    Ready,
    Again,
    /// The group cannot be committed as it is; run its members one by one.
    Spoiled(StoreError),
}

/// Decides everybody in order: first the commands, then the claims, over one world; those who stand by last.
pub(crate) fn decide(works: &mut [Work], world: &mut World, found: Vec<Found>, env: &Env<'_>) -> Round {
    let decided = catch_unwind(AssertUnwindSafe(|| {
        let mut again = false;
        let moves = works.iter().map(Work::moves).fold(0, usize::saturating_add);
        world.expect(moves.min(MOVES_EXPECTED));
        for work in works.iter_mut() {
            if let Work::Command(member) = work {
                match member.decide(world, env) {
                    Step::Decided => {}
                    Step::Again => again = true,
                    Step::TooDeep => {
                        let text = format!("it asked to see more than {NEED_ROUNDS} times");
                        return Round::Spoiled(StoreError::Rejected(text));
                    }
                }
            }
        }
        if again {
            return Round::Again;
        }
        let seats = works.iter_mut().filter_map(|work| match work {
            Work::Claim(seat) => Some(seat),
            Work::Command(_) | Work::Purge(_) => None,
        });
        let (standing, asking): (Vec<_>, Vec<_>) = seats.partition(|seat| seat.ask.look == Look::Newborn);
        for (seat, found) in asking.into_iter().zip(found) {
            seat.claimed = hand_out(&seat.ask, found, world, env);
        }
        for seat in standing {
            let asked_at = seat.claimed.asked_at;
            let claimed = match env.paused {
                Some(paused) if seat.place.as_ref().is_some_and(Place::takes_part) => {
                    hand_out(&seat.ask, newborn(&seat.ask, world, paused), world, env)
                }
                _ => Claimed::default(),
            };
            seat.claimed = Claimed { asked_at, ..claimed };
        }
        Round::Ready
    }));
    decided.unwrap_or_else(|panic| Round::Spoiled(StoreError::Panicked(panic_text(&*panic))))
}

pub(crate) fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic without words".to_owned())
}

/// What a commit means for those who wait on this node or another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stirred {
    /// Some job became claimable, now or later, for pools of nodes.
    pub jobs: bool,
    /// The same for workers outside.
    pub outside: bool,
    pub timers: bool,
    /// A job that a worker may hold is to end.
    pub leases: bool,
    pub events: bool,
    /// Something was registered.
    pub definitions: bool,
}

pub(crate) fn stirred(world: &World, defs: &Definitions) -> Stirred {
    let (mut jobs, mut outside) = (false, false);
    for write in world.job_writes() {
        let (JobWrite::Insert(job, ..) | JobWrite::Update(job)) = write else { continue };
        if job.status.due_at().is_some() && !(jobs && outside) {
            // Of what is not known here, nobody can say who serves it.
            let served = defs.entry(&job.org, &job.kind).map(|entry| entry.served);
            jobs |= served != Some(Served::ByWorkers);
            outside |= served != Some(Served::Here);
        }
    }
    let freed = world.lane_writes().any(|(_, _, row)| row.waiting > 0 && row.free() != Some(0));
    let resumed = world.doc_writes().any(|(_, key, doc)| key.class == doc::Class::Lane && !doc.flag);
    let fenced = |note: &Note| match note.what {
        "job.cancelled" | "job.cancel_requested" => true,
        "job.failed" => note.reason.as_deref() == Some("deadline_exceeded"),
        _ => false,
    };
    Stirred {
        jobs: jobs || freed || resumed,
        outside: outside || freed || resumed,
        timers: world.timer_writes().any(|(_, _, at)| at.is_some()),
        leases: world.notes().iter().any(fenced),
        events: !world.events().is_empty(),
        definitions: !world.version_writes().is_empty(),
    }
}

/// Tells whoever listens what became of jobs.
pub(crate) fn observe(options: &OpenOptions, world: &World) {
    if let Some(observer) = &options.observer
        && !world.notes().is_empty()
    {
        observer.committed(world.notes());
    }
}
