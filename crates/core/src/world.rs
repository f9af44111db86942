//! The working set of a group commit: what was loaded, what has been decided so far, and so
//! what must be written.
//!
//! Commands of one group are decided one after another over the same world, so each sees what
//! those before it decided. The store fills it with rows and writes what became of them; it
//! never decides.

use crate::changes::Changes;
use crate::command::{Actor, Reads};
use crate::definition::{self, Definition};
use crate::event::{Event, Head, Recorded, Subject};
use crate::id::JobId;
use crate::job::{self, Cold, Ending, Job};
use crate::name::OrgId;
use crate::once;
use crate::seal::{Seal, SealHead};
use crate::time::Micros;
use crate::timer;
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
    colds: BTreeMap<(OrgId, JobId), Cold>,
    /// In the order of deciding, which is the order of arrival.
    created: Vec<(OrgId, JobId)>,
    endings: BTreeMap<(OrgId, JobId), Ending>,
    versions: Vec<(OrgId, definition::Change)>,
    new_seals: Vec<Seal>,
    events: Vec<Recorded>,
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
            let job = match change {
                job::Change::Create(job, cold) => {
                    assert!(self.job(org, job.id).is_none(), "{} is created twice", job.id);
                    self.colds.insert((org.clone(), job.id), cold);
                    self.created.push((org.clone(), job.id));
                    job
                }
                job::Change::Put(job) => {
                    assert!(self.job(org, job.id).is_some(), "{} is changed but was not read", job.id);
                    job
                }
                job::Change::End(job, ending) => {
                    assert!(self.job(org, job.id).is_some(), "{} ends but was not read", job.id);
                    self.endings.insert((org.clone(), job.id), ending);
                    job
                }
            };
            self.jobs.entry((org.clone(), job.id)).or_insert_with(|| Entry::loaded(None)).put(Some(job));
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
        let actor = actor.to_string();
        for event in changes.events {
            self.record(org, &actor, now, event);
        }
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
    }

    /// New jobs first, in the order they came.
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
        created.chain(touched)
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
        Reads {
            definitions: reads.definitions.iter().filter(|k| !has_def(k)).cloned().collect(),
            jobs: reads.jobs.iter().filter(|id| !has_job(id)).copied().collect(),
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
    pub fn seal(&self) -> Option<&'a SealHead> {
        named(self.world.seals.get(&(self.org.clone(), ())), "the seal")
    }
}
