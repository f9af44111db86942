//! The shape of every rule: name what you read, decide, or refuse.

use crate::changes::Changes;
use crate::dedupe;
use crate::definition::{self, Definitions};
use crate::doc;
use crate::id::{AgentId, Ids, JobId, KeyId, RunId};
use crate::lane::LaneKey;
use crate::name::{OrgId, TypeName, WorkerId};
use crate::rng::Rng;
use crate::time::Micros;
use crate::timer;
use crate::world::View;
use std::collections::BTreeSet;
use std::fmt;

/// A value that can be decided. Sync and pure: it may be decided several times (after a
/// deadlock, or alone after its group failed) and must come to the same end each time.
pub trait Command: Send + Sync + 'static {
    type Out: Clone + Send + 'static;
    type No: Refusal;

    fn org(&self) -> &OrgId;

    /// The keys this command must see, as far as they are known before seeing anything.
    fn reads(&self, defs: &Definitions) -> Reads;

    /// Adds them to what others must see. Who comes in great numbers needs no sets of its own for that.
    fn add_reads(&self, defs: &Definitions, all: &mut Reads) {
        all.merge(self.reads(defs));
    }

    fn decide(&self, view: &View<'_>, cx: &mut Ctx<'_>) -> Decision<Self::Out, Self::No>;

    /// How many commands of the small kind this one is worth, for whoever puts groups together.
    fn weight(&self) -> usize {
        1
    }

    /// Whether new jobs of such a type may come of it, for whoever waits for some. Those of others are heard of a little later.
    fn brings_in(&self, such: &dyn Fn(&TypeName) -> bool) -> bool {
        let _ = such;
        false
    }
}

/// A typed reason to do nothing. The code is stable and explained in `docs/errors.md`.
pub trait Refusal: std::error::Error + Clone + Send + 'static {
    fn code(&self) -> &'static str;
}

/// A command that is never refused has this as its refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Never {}

impl Refusal for Never {
    fn code(&self) -> &'static str {
        match *self {}
    }
}

#[derive(Debug)]
pub enum Decision<T, E> {
    /// Do this, all of it or nothing.
    Done(T, Changes),
    /// Write nothing.
    Refused(E),
    /// Cannot tell yet: load these as well and ask again.
    Need(Reads),
}

/// What surrounds a decision: everything that is not a row.
pub struct Ctx<'a> {
    pub now: Micros,
    pub actor: &'a Actor,
    pub defs: &'a Definitions,
    pub ids: &'a mut Ids,
    pub rng: &'a mut Rng,
}

/// Who asked; recorded in the history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Actor {
    /// Somebody over HTTP, before it is known who.
    Api,
    /// Whoever holds a key.
    Key(KeyId),
    /// The engine on its own account: timers, recovery, sealing.
    Engine,
    /// The holder of a lease.
    Worker(WorkerId),
}

impl Actor {
    /// As it is printed, without the machinery for that: there is one for each event.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Worker(id) => ["worker:", id.as_str()].concat(),
            other => other.to_string(),
        }
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Api => f.write_str("api"),
            Self::Key(id) => id.fmt(f),
            Self::Engine => f.write_str("engine"),
            Self::Worker(id) => write!(f, "worker:{id}"),
        }
    }
}

/// Keys to load and lock, of one org.
///
/// The fields stand in the one total order: a commit locks definitions, documents, runs,
/// agents, the count of all that wait, then jobs, then lanes, each in key order. A job comes with its lane. What has no
/// row to lock is guarded otherwise: a timer is only ever touched under the lock of its subject; of
/// two seals, two first registrations or two jobs with one dedupe key, the unique key lets one pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reads {
    pub definitions: BTreeSet<definition::Key>,
    pub docs: BTreeSet<doc::Key>,
    pub runs: BTreeSet<RunId>,
    pub agents: BTreeSet<AgentId>,
    /// How many jobs from outside may come into project lanes: then those who wait there are counted.
    pub crowd: u32,
    pub jobs: BTreeSet<JobId>,
    /// Jobs with all that is known of them: to be shown, merged into or made anew.
    pub records: BTreeSet<JobId>,
    /// Whoever holds the key, with all that is known of it.
    pub dedupes: BTreeSet<dedupe::Key>,
    /// The jobs that messages stand for, likewise.
    pub messages: BTreeSet<String>,
    /// Whether failed jobs have been made anew, and as what.
    pub requeued: BTreeSet<JobId>,
    pub lanes: BTreeSet<LaneKey>,
    pub seal: bool,
    pub timers: BTreeSet<timer::Key>,
}

/// What must be seen before it can be decided: [`Decision::Need`], on its way up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unseen(pub Box<Reads>);

impl<T, E> From<Unseen> for Decision<T, E> {
    fn from(unseen: Unseen) -> Self {
        Self::Need(*unseen.0)
    }
}

impl Reads {
    pub fn none() -> Self {
        Self::default()
    }

    pub fn job(id: JobId) -> Self {
        Self::jobs([id])
    }

    pub fn jobs(ids: impl IntoIterator<Item = JobId>) -> Self {
        Self { jobs: ids.into_iter().collect(), ..Self::default() }
    }

    pub fn definition(key: definition::Key) -> Self {
        Self { definitions: BTreeSet::from([key]), ..Self::default() }
    }

    pub fn doc(key: doc::Key) -> Self {
        Self { docs: BTreeSet::from([key]), ..Self::default() }
    }

    pub fn run(id: RunId) -> Self {
        Self { runs: [id].into(), ..Self::default() }
    }

    pub fn agent(id: AgentId) -> Self {
        Self { agents: [id].into(), ..Self::default() }
    }

    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.merge(other);
        self
    }

    pub fn seal() -> Self {
        Self { seal: true, ..Self::default() }
    }

    #[must_use]
    pub fn and_timer(mut self, key: timer::Key) -> Self {
        self.timers.insert(key);
        self
    }

    /// Nothing at all.
    pub fn are_none(&self) -> bool {
        *self == Self::none()
    }

    /// Agents, and nothing else.
    pub fn are_agents(&self) -> bool {
        let Self {
            definitions,
            docs,
            runs,
            agents,
            crowd,
            jobs,
            records,
            dedupes,
            messages,
            requeued,
            lanes,
            seal,
            timers,
        } = self;
        let rows = definitions.len() + docs.len() + runs.len() + jobs.len() + records.len() + lanes.len();
        let rest = dedupes.len() + messages.len() + requeued.len() + timers.len();
        !agents.is_empty() && rows + rest == 0 && *crowd == 0 && !seal
    }

    /// Jobs with their lanes, and nothing else.
    pub fn are_jobs(&self) -> bool {
        *self == Self::jobs(self.jobs.iter().copied())
    }

    pub fn merge(&mut self, other: Self) {
        self.definitions.extend(other.definitions);
        self.docs.extend(other.docs);
        self.runs.extend(other.runs);
        self.agents.extend(other.agents);
        self.crowd = self.crowd.saturating_add(other.crowd);
        self.jobs.extend(other.jobs);
        self.records.extend(other.records);
        self.dedupes.extend(other.dedupes);
        self.messages.extend(other.messages);
        self.requeued.extend(other.requeued);
        self.lanes.extend(other.lanes);
        self.seal |= other.seal;
        self.timers.extend(other.timers);
    }
}
