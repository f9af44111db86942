//! The working set of a group commit: what was loaded, what has been decided so far, and so
//! what must be written.
//!
//! Commands of one group are decided one after another over the same world, so each sees what
//! those before it decided. The store fills it with rows and writes what became of them; it
//! never decides.

use crate::canon::Json;
use crate::changes::Changes;
use crate::command::{Actor, Reads};
use crate::definition::{self, Definition};
use crate::doc::{self, Doc};
use crate::event::{Event, Head, Note, Recorded, Subject};
use crate::id::JobId;
use crate::job::prune::Pruned;
use crate::job::{self, Cold, End, Ending, Job, Status};
use crate::lane::{self, LaneKey};
use crate::limits;
use crate::name::OrgId;
use crate::seal::{Seal, SealHead};
use crate::time::Micros;
use crate::{dedupe, once, sink, timer};
use std::collections::{BTreeMap, BTreeSet};

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
    jobs: Rows<JobId, Job>,
    definitions: Rows<definition::Key, Definition>,
    timers: Rows<timer::Key, Micros>,
    seals: Rows<(), SealHead>,
    onces: BTreeMap<once::Key, Entry<once::Record>>,
    docs: Rows<doc::Key, Doc>,
    lanes: Rows<LaneKey, lane::Row>,
    /// Whoever last held a key: it may have ended since.
    dedupes: BTreeMap<(OrgId, dedupe::Key), Option<JobId>>,
    messages: Rows<String, Message>,
    requeued: BTreeMap<(OrgId, JobId), Option<JobId>>,
    /// Jobs from outside that wait in project lanes, of all orgs.
    crowd: Option<i64>,
    crowd_delta: i64,
    sinks: BTreeMap<(OrgId, sink::Key), Sunk>,
    pruned: Vec<(OrgId, Pruned)>,
    notes: Vec<Note>,
    /// Jobs whose payload is another one than before.
    repaid: BTreeSet<(OrgId, JobId)>,
    /// Payloads of jobs whose types have hooks.
    payloads: BTreeMap<(OrgId, JobId), Json>,
    colds: BTreeMap<(OrgId, JobId), Cold>,
    /// In the order of deciding, which is the order of arrival.
    created: Vec<(OrgId, JobId)>,
    endings: BTreeMap<(OrgId, JobId), Ending>,
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

impl World {
    pub fn load_job(&mut self, org: &OrgId, id: JobId, row: Option<Job>) {
        self.jobs.entry((org.clone(), id)).or_insert_with(|| Entry::loaded(row));
    }

    pub fn load_definition(&mut self, org: &OrgId, key: definition::Key, row: Option<Definition>) {
        self.definitions.entry((org.clone(), key)).or_insert_with(|| Entry::loaded(row));
    }

    pub fn load_timer(&mut self, org: &OrgId, key: timer::Key, at: Option<Micros>) {
        self.timers.entry((org.clone(), key)).or_insert_with(|| Entry::loaded(at));
    }

    pub fn load_seal(&mut self, org: &OrgId, row: Option<SealHead>) {
        self.seals.entry((org.clone(), ())).or_insert_with(|| Entry::loaded(row));
    }

    pub fn load_once(&mut self, key: once::Key, row: Option<once::Record>) {
        self.onces.entry(key).or_insert_with(|| Entry::loaded(row));
    }

    pub fn load_doc(&mut self, org: &OrgId, key: doc::Key, row: Option<Doc>) {
        self.docs.entry((org.clone(), key)).or_insert_with(|| Entry::loaded(row));
    }

    pub fn load_lane(&mut self, org: &OrgId, key: &LaneKey, row: Option<lane::Row>) {
        self.lanes.entry((org.clone(), key.clone())).or_insert_with(|| Entry::loaded(row));
    }

    /// Whoever holds the key, or did when it completed. Its job must be loaded too.
    pub fn load_dedupe(&mut self, org: &OrgId, key: dedupe::Key, holder: Option<JobId>) {
        self.dedupes.entry((org.clone(), key)).or_insert(holder);
    }

    pub fn load_message(&mut self, org: &OrgId, id: String, row: Option<Message>) {
        self.messages.entry((org.clone(), id)).or_insert_with(|| Entry::loaded(row));
    }

    pub fn load_requeued(&mut self, org: &OrgId, id: JobId, into: Option<JobId>) {
        self.requeued.entry((org.clone(), id)).or_insert(into);
    }

    pub fn load_crowd(&mut self, waiting: i64) {
        self.crowd.get_or_insert(waiting);
    }

    /// All that is known of a job beside its hot part.
    pub fn load_record(&mut self, org: &OrgId, id: JobId, cold: Cold, ending: Option<Ending>) {
        let key = (org.clone(), id);
        if let Some(ending) = ending {
            self.endings.entry(key.clone()).or_insert(ending);
        }
        self.colds.entry(key).or_insert(cold);
    }

    pub fn load_payload(&mut self, org: &OrgId, id: JobId, payload: Json) {
        self.payloads.entry((org.clone(), id)).or_insert(payload);
    }

    /// What was asked for and is not loaded by now is known not to exist.
    pub fn load_nothing(&mut self, org: &OrgId, reads: &Reads) {
        for key in &reads.definitions {
            self.load_definition(org, key.clone(), None);
        }
        for key in &reads.docs {
            self.load_doc(org, key.clone(), None);
        }
        for id in reads.jobs.iter().chain(&reads.records) {
            self.load_job(org, *id, None);
        }
        for key in &reads.dedupes {
            self.load_dedupe(org, key.clone(), None);
        }
        for id in &reads.messages {
            self.load_message(org, id.clone(), None);
        }
        for id in &reads.requeued {
            self.load_requeued(org, *id, None);
        }
        for key in &reads.lanes {
            self.load_lane(org, key, None);
        }
        for key in &reads.timers {
            self.load_timer(org, *key, None);
        }
        if reads.crowd {
            self.load_crowd(0);
        }
        if reads.seal {
            self.load_seal(org, None);
        }
    }

    pub fn lane(&self, org: &OrgId, key: &LaneKey) -> Option<&lane::Row> {
        self.lanes.get(&(org.clone(), key.clone())).and_then(|entry| entry.now.as_ref())
    }

    /// Every lane that was loaded so far.
    pub fn lanes(&self) -> impl Iterator<Item = &(OrgId, LaneKey)> {
        self.lanes.keys()
    }

    /// What a lane remembers of the jobs that were handed out.
    pub fn set_burst(&mut self, org: &OrgId, key: &LaneKey, burst: u32) {
        if let Some(entry) = self.lanes.get_mut(&(org.clone(), key.clone()))
            && let Some(row) = &mut entry.now
            && row.burst != burst
        {
            row.burst = burst;
            entry.touched = true;
        }
    }

    pub fn view<'a>(&'a self, org: &'a OrgId) -> View<'a> {
        View { world: self, org }
    }

    /// The job as decided so far; `None` if it was never loaded or does not exist.
    pub fn job(&self, org: &OrgId, id: JobId) -> Option<&Job> {
        self.jobs.get(&(org.clone(), id)).and_then(|entry| entry.now.as_ref())
    }

    pub fn once(&self, key: &once::Key) -> Option<&once::Record> {
        self.onces.get(key).and_then(|entry| entry.now.as_ref())
    }

    pub fn put_once(&mut self, key: once::Key, record: once::Record) {
        self.onces.entry(key).or_insert_with(|| Entry::loaded(None)).put(Some(record));
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
                self.jobs.insert((org.clone(), candidate.job), Entry::loaded(None));
            }
            self.pruned.push((org.clone(), pruned));
        }
        self.notes.extend(changes.notes);
        let actor = actor.to_string();
        for event in changes.events {
            self.record(org, &actor, now, event);
        }
    }

    fn apply_job(&mut self, org: &OrgId, change: job::Change) {
        let key = |id| (org.clone(), id);
        let job = match change {
            job::Change::Create(job, cold) => {
                assert!(self.job(org, job.id).is_none(), "{} is created twice", job.id);
                if let Some(from) = cold.requeued_from {
                    self.requeued.insert(key(from), Some(job.id));
                }
                self.colds.insert(key(job.id), cold);
                self.created.push(key(job.id));
                job
            }
            job::Change::Put(job) => {
                assert!(self.job(org, job.id).is_some(), "{} is changed but was not read", job.id);
                job
            }
            job::Change::End(job, ending) => {
                assert!(self.job(org, job.id).is_some(), "{} ends but was not read", job.id);
                self.endings.insert(key(job.id), ending);
                job
            }
            job::Change::Payload(id, payload) => {
                if let Some(cold) = self.colds.get_mut(&key(id)) {
                    cold.payload = payload.clone();
                }
                self.payloads.insert(key(id), payload);
                self.repaid.insert(key(id));
                return;
            }
        };
        self.count(org, &job);
        if let Some(text) = &job.dedupe {
            let dedupe = dedupe::Key { kind: job.kind.name.clone(), text: text.clone() };
            self.dedupes.insert((org.clone(), dedupe), Some(job.id));
        }
        self.jobs.entry(key(job.id)).or_insert_with(|| Entry::loaded(None)).put(Some(job));
    }

    /// Keeps the counts that follow from how jobs stand: a lane's, and that of all who wait.
    fn count(&mut self, org: &OrgId, after: &Job) {
        let before = self.jobs.get(&(org.clone(), after.id)).and_then(|entry| entry.now.as_ref());
        let waited = before.is_some_and(|job| job.status.waits());
        let held = before.is_some_and(|job| job.status.holds_slot());
        let born = before.is_none();
        let (waits, holds) = (after.status.waits(), after.status.holds_slot());
        if after.counted {
            self.crowd_delta += i64::from(waits) - i64::from(waited);
        }
        if !after.lane.kept || (!born && waits == waited && holds == held) {
            return;
        }
        let entry = self.lanes.get_mut(&(org.clone(), after.lane.key.clone()));
        let Some(entry) = entry else { panic!("{} moves but its lane was not read", after.id) };
        let mut row = entry.now.take().unwrap_or_default();
        if born {
            row.max = after.lane.max;
        }
        let moved = |n: u32, was: bool, is: bool| (n + u32::from(is)).saturating_sub(u32::from(was));
        row.waiting = moved(row.waiting, waited, waits);
        row.running = moved(row.running, held, holds);
        entry.put(Some(row));
    }

    fn record(&mut self, org: &OrgId, actor: &str, now: Micros, event: Event) {
        let head = match event.subject {
            Subject::Job(id) => {
                self.jobs.get_mut(&(org.clone(), id)).and_then(|e| e.now.as_mut()).map(|job| &mut job.head)
            }
            Subject::Definition(id) => self
                .definitions
                .iter_mut()
                .filter(|((o, _), _)| o == org)
                .filter_map(|(_, e)| e.now.as_mut())
                .find(|d| d.id == id)
                .map(|d| &mut d.head),
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

    pub fn is_clean(&self) -> bool {
        self.events.is_empty()
            && self.new_seals.is_empty()
            && self.versions.is_empty()
            && !self.jobs.values().any(|e| e.touched)
            && !self.timers.values().any(|e| e.touched)
            && !self.onces.values().any(|e| e.touched)
            && !self.lanes.values().any(|e| e.touched)
            && !self.messages.values().any(|e| e.touched)
            && self.sinks.is_empty()
    }

    /// New jobs last, in the order they came: one may take over a key that another gives up.
    pub fn job_writes(&self) -> impl Iterator<Item = JobWrite<'_>> {
        let created = self.created.iter().filter_map(|key| {
            let job = self.jobs.get(key)?.now.as_ref()?;
            Some(JobWrite::Insert(job, self.colds.get(key)?, self.endings.get(key)))
        });
        let touched = self.jobs.iter().filter(|(_, e)| e.touched && e.found).filter_map(|(key, e)| {
            let job = e.now.as_ref()?;
            Some(match self.endings.get(key) {
                Some(ending) => JobWrite::End(job, ending),
                None => JobWrite::Update(job),
            })
        });
        touched.chain(created)
    }

    pub fn definition_writes(&self) -> impl Iterator<Item = (&OrgId, &definition::Key, &Definition)> {
        let touched = self.definitions.iter().filter(|(_, e)| e.touched);
        touched.filter_map(|((org, key), e)| Some((org, key, e.now.as_ref()?)))
    }

    pub fn version_writes(&self) -> &[(OrgId, definition::Change)] {
        &self.versions
    }

    /// `None` is a timer to delete.
    pub fn timer_writes(&self) -> impl Iterator<Item = (&OrgId, &timer::Key, Option<Micros>)> {
        self.timers.iter().filter(|(_, e)| e.touched).map(|((org, key), e)| (org, key, e.now))
    }

    pub fn once_writes(&self) -> impl Iterator<Item = (&once::Key, &once::Record)> {
        self.onces.iter().filter(|(_, e)| e.touched).filter_map(|(key, e)| Some((key, e.now.as_ref()?)))
    }

    /// Jobs that were there before and have another payload now.
    pub fn payload_writes(&self) -> impl Iterator<Item = (&OrgId, JobId, &Json)> {
        let old = self.repaid.iter().filter(|key| !self.created.contains(key));
        old.filter_map(|key| Some((&key.0, key.1, self.payloads.get(key)?)))
    }

    pub fn lane_writes(&self) -> impl Iterator<Item = (&OrgId, &LaneKey, &lane::Row)> {
        let touched = self.lanes.iter().filter(|(_, e)| e.touched);
        touched.filter_map(|((org, key), e)| Some((org, key, e.now.as_ref()?)))
    }

    /// Lanes that had no row before.
    pub fn lane_is_new(&self, org: &OrgId, key: &LaneKey) -> bool {
        self.lanes.get(&(org.clone(), key.clone())).is_some_and(|entry| !entry.found)
    }

    /// By how much the number of those who wait has changed.
    pub const fn crowd_delta(&self) -> i64 {
        self.crowd_delta
    }

    pub fn doc_writes(&self) -> impl Iterator<Item = (&OrgId, &doc::Key, &Doc)> {
        let touched = self.docs.iter().filter(|(_, e)| e.touched);
        touched.filter_map(|((org, key), e)| Some((org, key, e.now.as_ref()?)))
    }

    pub fn message_writes(&self) -> impl Iterator<Item = (&OrgId, &str, Message)> {
        let touched = self.messages.iter().filter(|(_, e)| e.touched);
        touched.filter_map(|((org, id), e)| Some((org, id.as_str(), e.now?)))
    }

    pub fn sink_writes(&self) -> impl Iterator<Item = (&OrgId, &sink::Key, &Sunk)> {
        self.sinks.iter().map(|((org, key), row)| (org, key, row))
    }

    pub fn prune_writes(&self) -> &[(OrgId, Pruned)] {
        &self.pruned
    }

    /// For logs and counters, once it is committed.
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    pub fn seal_writes(&self) -> &[Seal] {
        &self.new_seals
    }

    pub fn events(&self) -> &[Recorded] {
        &self.events
    }

    /// What of `reads` is not loaded yet.
    pub fn missing(&self, org: &OrgId, reads: &Reads) -> Reads {
        let has_job = |id: &JobId| self.jobs.contains_key(&(org.clone(), *id));
        let has_def = |key: &definition::Key| self.definitions.contains_key(&(org.clone(), key.clone()));
        let has_timer = |key: &timer::Key| self.timers.contains_key(&(org.clone(), *key));
        let has_record = |id: &JobId| {
            let entry = self.jobs.get(&(org.clone(), *id));
            entry.is_some_and(|e| e.now.is_none()) || self.colds.contains_key(&(org.clone(), *id))
        };
        Reads {
            definitions: reads.definitions.iter().filter(|k| !has_def(k)).cloned().collect(),
            docs: reads
                .docs
                .iter()
                .filter(|k| !self.docs.contains_key(&(org.clone(), (*k).clone())))
                .cloned()
                .collect(),
            crowd: reads.crowd && self.crowd.is_none(),
            jobs: reads.jobs.iter().filter(|id| !has_job(id)).copied().collect(),
            records: reads.records.iter().filter(|id| !has_record(id)).copied().collect(),
            dedupes: (reads.dedupes.iter())
                .filter(|k| !self.dedupes.contains_key(&(org.clone(), (*k).clone())))
                .cloned()
                .collect(),
            messages: (reads.messages.iter())
                .filter(|id| !self.messages.contains_key(&(org.clone(), (*id).clone())))
                .cloned()
                .collect(),
            requeued: (reads.requeued.iter())
                .filter(|id| !self.requeued.contains_key(&(org.clone(), **id)))
                .copied()
                .collect(),
            lanes: (reads.lanes.iter())
                .filter(|k| !self.lanes.contains_key(&(org.clone(), (*k).clone())))
                .cloned()
                .collect(),
            seal: reads.seal && !self.seals.contains_key(&(org.clone(), ())),
            timers: reads.timers.iter().filter(|k| !has_timer(k)).copied().collect::<BTreeSet<_>>(),
        }
    }
}

/// What one command may look at: the rows of its own org that it named.
#[derive(Clone, Copy)]
pub struct View<'a> {
    world: &'a World,
    org: &'a OrgId,
}

/// Reading what was not named would be a decision over an unlocked row.
#[track_caller]
fn named<'a, T>(entry: Option<&'a Entry<T>>, what: &str) -> Option<&'a T> {
    match entry {
        Some(entry) => entry.now.as_ref(),
        None => panic!("{what} is not among what the command said it reads"),
    }
}

impl<'a> View<'a> {
    /// What of `reads` cannot be looked at yet. A command that must see it answers with
    /// [`crate::Decision::Need`].
    pub fn missing(&self, reads: &Reads) -> Reads {
        self.world.missing(self.org, reads)
    }

    #[track_caller]
    pub fn job(&self, id: JobId) -> Option<&'a Job> {
        named(self.world.jobs.get(&(self.org.clone(), id)), "this job")
    }

    #[track_caller]
    pub fn definition(&self, key: &definition::Key) -> Option<&'a Definition> {
        named(self.world.definitions.get(&(self.org.clone(), key.clone())), "this definition")
    }

    #[track_caller]
    pub fn timer(&self, key: &timer::Key) -> Option<Micros> {
        named(self.world.timers.get(&(self.org.clone(), *key)), "this timer").copied()
    }

    #[track_caller]
    pub fn doc(&self, key: &doc::Key) -> Option<&'a Doc> {
        named(self.world.docs.get(&(self.org.clone(), key.clone())), "this document")
    }

    #[track_caller]
    pub fn lane(&self, key: &LaneKey) -> Option<&'a lane::Row> {
        named(self.world.lanes.get(&(self.org.clone(), key.clone())), "this lane")
    }

    /// Jobs from outside that wait in project lanes.
    #[track_caller]
    pub fn crowd(&self) -> u32 {
        let Some(before) = self.world.crowd else { panic!("the crowd is not among what the command said it reads") };
        u32::try_from((before + self.world.crowd_delta).max(0)).unwrap_or(u32::MAX)
    }

    /// A job with all that is known of it; `None` if it does not exist.
    pub fn record(&self, id: JobId) -> Option<(&'a Job, &'a Cold, Option<&'a Ending>)> {
        let key = (self.org.clone(), id);
        let job = self.world.jobs.get(&key)?.now.as_ref()?;
        Some((job, self.world.colds.get(&key)?, self.world.endings.get(&key)))
    }

    /// Whoever holds a dedupe key, or held it when it completed.
    #[track_caller]
    pub fn dedupe(&self, key: &dedupe::Key) -> Option<&'a Job> {
        let Some(holder) = self.world.dedupes.get(&(self.org.clone(), key.clone())) else {
            panic!("this dedupe key is not among what the command said it reads")
        };
        let job = self.world.jobs.get(&(self.org.clone(), (*holder)?))?.now.as_ref()?;
        let speaks = matches!(job.status, Status::Ended { how: End::Completed, .. }) || !job.is_ended();
        speaks.then_some(job)
    }

    /// The job that a message stands for.
    #[track_caller]
    pub fn message(&self, id: &str, now: Micros) -> Option<JobId> {
        let row = named(self.world.messages.get(&(self.org.clone(), id.to_owned())), "this message");
        row.filter(|message| now < message.expires_at).map(|message| message.job)
    }

    /// What a failed job was made anew as.
    #[track_caller]
    pub fn requeued(&self, id: JobId) -> Option<JobId> {
        match self.world.requeued.get(&(self.org.clone(), id)) {
            Some(into) => *into,
            None => panic!("whether this job was requeued is not among what the command said it reads"),
        }
    }

    /// The payload of a job whose type has hooks.
    pub fn payload(&self, id: JobId) -> Option<&'a Json> {
        let key = (self.org.clone(), id);
        self.world.payloads.get(&key).or_else(|| self.world.colds.get(&key).map(|cold| &cold.payload))
    }

    #[track_caller]
    pub fn seal(&self) -> Option<&'a SealHead> {
        named(self.world.seals.get(&(self.org.clone(), ())), "the seal")
    }
}
