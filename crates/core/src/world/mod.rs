//! The working set of a group commit: what was loaded, what has been decided so far, and so
//! what must be written.
//!
//! Commands of one group are decided one after another over the same world, so each sees what
//! those before it decided. The store fills it with rows and writes what became of them; it
//! never decides.

mod load;
mod view;
mod writes;

use crate::by_org::ByOrg;
use crate::canon::Json;
use crate::changes::Changes;
use crate::command::Actor;
use crate::definition::{self, Definition};
use crate::doc::{self, Doc};
use crate::event::{Event, Head, Note, Recorded, Subject};
use crate::id::{AgentId, JobId, RunId};
use crate::job::prune::Pruned;
use crate::job::{self, Cold, Ending, Job, Status};
use crate::lane::{self, LaneKey};
use crate::ledger::Posting;
use crate::limits;
use crate::name::OrgId;
use crate::run::record::Record;
use crate::run::{self, Agent, Run};
use crate::seal::{Seal, SealHead};
use crate::time::Micros;
use crate::{dedupe, once, sink, timer};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub use view::View;

/// A row as it was found and as it is now.
#[derive(Clone, Debug)]
struct Entry<T> {
    found: bool,
    now: Option<T>,
    touched: bool,
}

impl<T> Entry<T> {
    fn loaded(row: Option<T>) -> Self {
        Self { found: row.is_some(), now: row, touched: false }
    }

    fn put(&mut self, row: Option<T>) {
        self.now = row;
        self.touched = true;
    }
}

type Rows<K, T> = BTreeMap<(OrgId, K), Entry<T>>;

/// See the module.
#[derive(Debug, Default)]
pub struct World {
    /// Shared, because whoever is handed one, and whoever remembers it, needs it as it is here.
    jobs: ByOrg<JobId, Entry<Arc<Job>>>,
    definitions: Rows<definition::Key, Definition>,
    timers: Rows<timer::Key, Micros>,
    seals: Rows<(), SealHead>,
    onces: BTreeMap<once::Key, Entry<once::Record>>,
    docs: Rows<doc::Key, Doc>,
    runs: Rows<RunId, Run>,
    agents: Rows<AgentId, Agent>,
    /// Agents that are in another state, or in the hands of another job, than they were.
    moved: BTreeSet<AgentId>,
    /// The document and the plan of new runs.
    plans: Vec<(OrgId, RunId, Json, Json)>,
    records: Vec<(OrgId, Record)>,
    postings: Vec<(OrgId, Posting)>,
    lanes: ByOrg<LaneKey, Entry<lane::Row>>,
    /// Whoever last held a key: it may have ended since.
    dedupes: BTreeMap<(OrgId, dedupe::Key), Option<JobId>>,
    /// Keys that nobody stood for when they were looked at.
    free_keys: BTreeSet<(OrgId, dedupe::Key)>,
    messages: Rows<String, Message>,
    requeued: ByOrg<JobId, Option<JobId>>,
    /// Jobs from outside that wait in project lanes, of all orgs.
    crowd: Option<i64>,
    crowd_delta: i64,
    sinks: BTreeMap<(OrgId, sink::Key), Sunk>,
    pruned: Vec<(OrgId, Pruned)>,
    notes: Vec<Note>,
    /// Jobs whose payload is another one than before.
    repaid: ByOrg<JobId, ()>,
    /// Payloads of jobs whose types have hooks.
    payloads: ByOrg<JobId, Json>,
    colds: ByOrg<JobId, Cold>,
    /// In the order of deciding, which is the order of arrival.
    created: Vec<(OrgId, JobId)>,
    endings: ByOrg<JobId, Ending>,
    versions: Vec<(OrgId, definition::Change)>,
    new_seals: Vec<Seal>,
    events: Vec<Recorded>,
}

/// What a message id stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    pub job: JobId,
    pub expires_at: Micros,
}

/// A row that a hook left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sunk {
    pub value: Json,
    pub at: Micros,
}

/// A job's rows after the group.
#[derive(Debug)]
pub enum JobWrite<'a> {
    /// Not there before. It may even have ended within the group.
    Insert(&'a Job, &'a Cold, Option<&'a Ending>),
    Update(&'a Job),
    End(&'a Job, &'a Ending),
}

/// An agent's row after the group.
#[derive(Clone, Copy, Debug)]
pub struct AgentWrite<'a> {
    /// It was there before.
    pub found: bool,
    /// Its state or its job is another one than before.
    pub moved: bool,
    pub agent: &'a Agent,
}

impl World {
    pub fn view<'a>(&'a self, org: &'a OrgId) -> View<'a> {
        View { world: self, org }
    }

    /// The job as decided so far; `None` if it was never loaded or does not exist.
    pub fn job(&self, org: &OrgId, id: JobId) -> Option<&Arc<Job>> {
        self.jobs.get(org, &id).and_then(|entry| entry.now.as_ref())
    }

    pub fn once(&self, key: &once::Key) -> Option<&once::Record> {
        self.onces.get(key).and_then(|entry| entry.now.as_ref())
    }

    pub fn put_once(&mut self, key: once::Key, record: once::Record) {
        self.onces.entry(key).or_insert_with(|| Entry::loaded(None)).put(Some(record));
    }

    /// So many moves are to be decided: what becomes of them is not moved about as it grows.
    pub fn expect(&mut self, moves: usize) {
        self.events.reserve(moves);
        self.notes.reserve(moves);
    }

    /// Applies one command's changes, whole. Events are numbered, dated and chained here.
    pub fn apply(&mut self, org: &OrgId, actor: &Actor, now: Micros, changes: Changes) {
        for change in changes.jobs {
            self.apply_job(org, change);
        }
        for change in changes.definitions {
            let entry =
                self.definitions.entry((org.clone(), change.key.clone())).or_insert_with(|| Entry::loaded(None));
            let mut row = entry.now.take().unwrap_or_else(|| Definition {
                id: change.id,
                versions: BTreeMap::new(),
                head: Head::NONE,
            });
            row.versions.insert(change.version, change.body.digest());
            entry.put(Some(row));
            self.versions.push((org.clone(), change));
        }
        for change in changes.timers {
            let (key, at) = match change {
                timer::Change::Set { key, at } => (key, Some(at)),
                timer::Change::Clear { key } => (key, None),
            };
            self.timers.entry((org.clone(), key)).or_insert_with(|| Entry::loaded(None)).put(at);
        }
        for seal in changes.seals {
            self.seals.entry((org.clone(), ())).or_insert_with(|| Entry::loaded(None)).put(Some(seal.head()));
            self.new_seals.push(seal);
        }
        for doc::Change::Put(key, doc) in changes.docs {
            self.docs.entry((org.clone(), key)).or_insert_with(|| Entry::loaded(None)).put(Some(doc));
        }
        for row in changes.sinks {
            self.sinks.insert((org.clone(), row.key), Sunk { value: row.value, at: now });
        }
        for (id, job) in changes.messages {
            let row = Message { job, expires_at: now.plus(limits::MESSAGE_KEPT) };
            self.messages.entry((org.clone(), id)).or_insert_with(|| Entry::loaded(None)).put(Some(row));
        }
        for pruned in changes.pruned {
            for candidate in &pruned.jobs {
                self.jobs.insert(org, candidate.job, Entry::loaded(None));
            }
            self.pruned.push((org.clone(), pruned));
        }
        self.notes.extend(changes.notes);
        for change in changes.runs {
            let run = match change {
                run::Change::Create(run, document, plan) => {
                    self.plans.push((org.clone(), run.id, document, plan));
                    *run
                }
                run::Change::Put(run) => *run,
            };
            self.runs.entry((org.clone(), run.id)).or_insert_with(|| Entry::loaded(None)).put(Some(run));
        }
        for agent in changes.agents {
            let entry = self.agents.entry((org.clone(), agent.id)).or_insert_with(|| Entry::loaded(None));
            if entry.now.as_ref().is_none_or(|was| (was.state, was.job) != (agent.state, agent.job)) {
                self.moved.insert(agent.id);
            }
            entry.put(Some(agent));
        }
        self.records.extend(changes.records.into_iter().map(|record| (org.clone(), record)));
        self.postings.extend(changes.postings.into_iter().map(|posting| (org.clone(), posting)));
        for event in changes.events {
            self.record(org, actor.text(), now, event);
        }
    }

    fn apply_job(&mut self, org: &OrgId, change: job::Change) {
        let job = match change {
            job::Change::Create(job, cold) => {
                assert!(self.job(org, job.id).is_none(), "{} is created twice", job.id);
                if let Some(from) = cold.requeued_from {
                    self.requeued.insert(org, from, Some(job.id));
                }
                self.colds.insert(org, job.id, cold);
                self.created.push((org.clone(), job.id));
                job
            }
            job::Change::Put(job) => {
                assert!(self.job(org, job.id).is_some(), "{} is changed but was not read", job.id);
                job
            }
            job::Change::End(job, ending) => {
                assert!(self.job(org, job.id).is_some(), "{} ends but was not read", job.id);
                self.endings.insert(org, job.id, ending);
                job
            }
            job::Change::Payload(id, payload) => {
                if let Some(cold) = self.colds.get_mut(org, &id) {
                    cold.payload = payload.clone();
                }
                self.payloads.insert(org, id, payload);
                self.repaid.insert(org, id, ());
                return;
            }
        };
        if let Some(text) = &job.dedupe {
            let dedupe = dedupe::Key { kind: job.kind.name.clone(), text: text.clone() };
            self.dedupes.insert((org.clone(), dedupe), Some(job.id));
        }
        let entry = self.jobs.or_insert_with(org, job.id, || Entry::loaded(None));
        let before = entry.now.as_ref().map(|job| Stand::of(&job.status));
        let after = Stand::of(&job.status);
        if job.in_crowd() {
            self.crowd_delta += i64::from(after.waits) - i64::from(before.is_some_and(|before| before.waits));
        }
        if job.lane.kept && before != Some(after) {
            let lane = self.lanes.get_mut(org, &job.lane.key);
            let Some(lane) = lane else { panic!("{} moves but its lane was not read", job.id) };
            let row = lane.now.take().unwrap_or_default();
            lane.put(Some(count(row, before, after, &job)));
        }
        entry.touched = true;
        // Where nobody else has it, there is no need for room of its own.
        match entry.now.as_mut().and_then(Arc::get_mut) {
            Some(now) => *now = job,
            None => entry.now = Some(Arc::new(job)),
        }
    }

    fn record(&mut self, org: &OrgId, actor: String, now: Micros, event: Event) {
        let head = match event.subject {
            Subject::Job(id) => {
                let job = self.jobs.get_mut(org, &id).and_then(|e| e.now.as_mut());
                job.map(|job| &mut Arc::make_mut(job).head)
            }
            Subject::Definition(id) => self
                .definitions
                .iter_mut()
                .filter(|((o, _), _)| o == org)
                .filter_map(|(_, e)| e.now.as_mut())
                .find(|d| d.id == id)
                .map(|d| &mut d.head),
            Subject::Run(id) => {
                self.runs.get_mut(&(org.clone(), id)).and_then(|e| e.now.as_mut()).map(|run| &mut run.head)
            }
            Subject::Agent(id) => {
                self.agents.get_mut(&(org.clone(), id)).and_then(|e| e.now.as_mut()).map(|agent| &mut agent.head)
            }
            Subject::Doc(class, id) => self
                .docs
                .iter_mut()
                .filter(|((o, key), _)| o == org && key.class == class)
                .filter_map(|(_, e)| e.now.as_mut())
                .find(|d| d.id == id)
                .map(|d| &mut d.head),
        };
        let Some(head) = head else {
            panic!("an event about {} which the command neither read nor created", event.subject);
        };
        let (row, next) = Recorded::append(*head, org, actor, now, event);
        *head = next;
        self.events.push(row);
    }
}

/// How a job counts in its lane.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stand {
    waits: bool,
    holds: bool,
}

impl Stand {
    const fn of(status: &Status) -> Self {
        Self { waits: status.waits(), holds: status.holds_slot() }
    }
}

/// A lane once one of its jobs stands otherwise than before. One that was not there is born.
fn count(mut row: lane::Row, before: Option<Stand>, after: Stand, job: &Job) -> lane::Row {
    if before.is_none() {
        row.max = job.lane.max;
    }
    let (waited, held) = before.map_or((false, false), |before| (before.waits, before.holds));
    let moved = |n: u32, was: bool, is: bool| (n + u32::from(is)).saturating_sub(u32::from(was));
    row.waiting = moved(row.waiting, waited, after.waits);
    if job.outside {
        row.outside = moved(row.outside, waited, after.waits);
    }
    row.running = moved(row.running, held, after.holds);
    row
}
