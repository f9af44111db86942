//! The definitions that a node knows: those of its binary, and those that were registered.

use super::{Hooks, JobType, Shape};
use crate::dedupe;
use crate::job::Kind;
use crate::name::{OrgId, TypeName};
use crate::rules::Rules;
use crate::template::Facts;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Who does the jobs of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Served {
    /// This binary has the code.
    Here,
    /// Whoever leases them over the worker protocol.
    ByWorkers,
    /// Nobody here any more: what is left of it keeps its rules, nothing new is taken in.
    NoMore,
}

/// A job type with its code.
#[derive(Clone)]
pub struct Entry {
    pub job_type: JobType,
    pub served: Served,
    pub hooks: Option<Arc<dyn Hooks>>,
    pub payload: Option<Arc<dyn Shape>>,
    pub result: Option<Arc<dyn Shape>>,
}

impl Entry {
    pub const fn plain(job_type: JobType) -> Self {
        Self { job_type, served: Served::Here, hooks: None, payload: None, result: None }
    }

    /// What duplicates of a job have in common. Of types that people register, jobs of different projects never
    /// are: whoever asks for one of them need not be allowed to see the other.
    pub(crate) fn dedupe_key(&self, facts: &Facts<'_>) -> Option<dedupe::Key> {
        let key = self.job_type.dedupe.key(&self.job_type.name, facts)?;
        match self.served {
            Served::Here => Some(key),
            Served::ByWorkers | Served::NoMore => Some(key.within(facts.project)),
        }
    }
}

/// Types that are named to whoever asked for one that there is not.
const NAMED: usize = 30;

/// Versions by name.
type Types = BTreeMap<TypeName, BTreeMap<u32, Arc<Entry>>>;

/// The definitions a node knows, and the rules it follows; handed to every decision.
///
/// An org's own types come before everybody's of the same name: a name that a later binary takes for
/// itself still means to that org what it registered.
#[derive(Clone, Default)]
pub struct Definitions {
    pub rules: Rules,
    everybodys: Types,
    own: BTreeMap<OrgId, Types>,
}

impl Definitions {
    pub fn of(types: impl IntoIterator<Item = JobType>) -> Self {
        Self::with(types.into_iter().map(Entry::plain), Rules::default())
    }

    pub fn with(entries: impl IntoIterator<Item = Entry>, rules: Rules) -> Self {
        let mut all = Self { rules, everybodys: BTreeMap::new(), own: BTreeMap::new() };
        for entry in entries {
            let (name, version) = (entry.job_type.name.clone(), entry.job_type.version);
            all.everybodys.entry(name).or_default().insert(version, Arc::new(entry));
        }
        all
    }

    /// Adds what an org registered. What this binary brings along stays as it is; other types of everybody's
    /// are those of another binary or an older configuration.
    pub fn learn(&mut self, org: &OrgId, mut entry: Entry) {
        let of = if *org == OrgId::system() {
            entry.served = Served::NoMore;
            &mut self.everybodys
        } else {
            entry.served = Served::ByWorkers;
            self.own.entry(org.clone()).or_default()
        };
        let (name, version) = (entry.job_type.name.clone(), entry.job_type.version);
        of.entry(name).or_default().entry(version).or_insert_with(|| Arc::new(entry));
    }

    /// Adds a type of everybody's that workers serve, as the configuration declares it.
    pub fn declare(&mut self, entry: Entry) {
        let (name, version) = (entry.job_type.name.clone(), entry.job_type.version);
        let entry = Entry { served: Served::ByWorkers, ..entry };
        self.everybodys.entry(name).or_default().insert(version, Arc::new(entry));
    }

    pub fn knows(&self, org: &OrgId, name: &TypeName, version: u32) -> bool {
        let of = if *org == OrgId::system() { Some(&self.everybodys) } else { self.own.get(org) };
        of.and_then(|of| of.get(name)).is_some_and(|versions| versions.contains_key(&version))
    }

    fn versions(&self, org: &OrgId, name: &TypeName) -> Option<&BTreeMap<u32, Arc<Entry>>> {
        self.own.get(org).and_then(|own| own.get(name)).or_else(|| self.everybodys.get(name))
    }

    /// The newest version of a job type that is still taken in.
    pub fn newest(&self, org: &OrgId, name: &TypeName) -> Option<&Entry> {
        self.versions(org, name)?.values().rev().map(Arc::as_ref).find(|entry| entry.served != Served::NoMore)
    }

    pub fn entry(&self, org: &OrgId, kind: &Kind) -> Option<&Entry> {
        self.versions(org, &kind.name)?.get(&kind.version).map(Arc::as_ref)
    }

    pub fn pinned(&self, org: &OrgId, kind: &Kind) -> Option<&JobType> {
        self.entry(org, kind).map(|entry| &entry.job_type)
    }

    /// Everybody's, all versions.
    pub fn job_types(&self) -> impl Iterator<Item = &JobType> {
        self.everybodys.values().flat_map(BTreeMap::values).map(|entry| &entry.job_type)
    }

    /// Whether a type of this name is everybody's, and so no org's to register.
    pub fn is_everybodys(&self, name: &TypeName) -> bool {
        self.everybodys.contains_key(name)
    }

    /// What an org may ask for, the newest version of each, by name.
    pub fn offered(&self, org: &OrgId) -> BTreeMap<&TypeName, &Entry> {
        let own = self.own.get(org).into_iter().flatten();
        let names = self.everybodys.iter().chain(own).map(|(name, _)| name);
        let newest = names.filter_map(|name| Some((name, self.newest(org, name)?)));
        newest.filter(|(_, entry)| !entry.job_type.internal).collect()
    }

    /// How many types an org has registered, and how large all their versions are together.
    pub fn own_size(&self, org: &OrgId) -> (usize, usize) {
        let own = self.own.get(org);
        let versions = own.into_iter().flat_map(BTreeMap::values).flat_map(BTreeMap::values);
        (own.map_or(0, BTreeMap::len), versions.map(|entry| entry.job_type.schema_size()).sum())
    }

    /// All versions of a type, if workers serve it.
    pub fn for_workers(&self, org: &OrgId, name: &TypeName) -> Option<Vec<Kind>> {
        self.newest(org, name).filter(|entry| entry.served == Served::ByWorkers)?;
        let versions = self.versions(org, name)?.values();
        Some(versions.filter(|entry| entry.served != Served::Here).map(|entry| entry.job_type.kind()).collect())
    }

    /// The names of types, for whoever asked for another: the first of them.
    pub fn names(&self, org: &OrgId) -> String {
        let all = self.offered(org);
        let more = if all.len() > NAMED { ", …" } else { "" };
        all.into_keys().take(NAMED).map(TypeName::as_str).collect::<Vec<_>>().join(", ") + more
    }

    /// Whether deciding over a job of this kind needs its payload.
    pub fn wants_payload(&self, org: &OrgId, kind: &Kind) -> bool {
        self.entry(org, kind).is_some_and(|entry| entry.hooks.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(name: &str, version: u32, summary: &str) -> JobType {
        JobType::new(name.parse().unwrap(), version, summary)
    }

    fn name(text: &str) -> TypeName {
        text.parse().unwrap()
    }

    #[test]
    fn an_orgs_types_are_its_own_and_come_first() {
        let (acme, other): (OrgId, OrgId) = ("acme".parse().unwrap(), "other".parse().unwrap());
        let mut defs = Definitions::of([kind("echo", 1, "built in")]);
        defs.learn(&acme, Entry::plain(kind("mail", 1, "old")));
        defs.learn(&acme, Entry::plain(kind("mail", 2, "new")));
        defs.learn(&acme, Entry::plain(kind("echo", 1, "registered before there was one")));
        let summary = |org: &OrgId, of: &str| defs.newest(org, &name(of)).map(|e| e.job_type.summary.clone());
        assert_eq!(summary(&acme, "mail").as_deref(), Some("new"));
        assert_eq!(summary(&other, "mail"), None);
        assert_eq!(summary(&acme, "echo").as_deref(), Some("registered before there was one"));
        assert_eq!(summary(&other, "echo").as_deref(), Some("built in"));
        assert_eq!(defs.pinned(&acme, &Kind { name: name("mail"), version: 1 }).unwrap().summary, "old");
        assert_eq!((defs.names(&acme), defs.names(&other)), ("echo, mail".to_owned(), "echo".to_owned()));
        assert_eq!(defs.for_workers(&acme, &name("mail")).unwrap().len(), 2);
        assert_eq!(defs.for_workers(&other, &name("echo")), None, "this binary does it");
        assert!(defs.knows(&acme, &name("mail"), 2) && !defs.knows(&other, &name("mail"), 2));
    }

    #[test]
    fn what_an_older_configuration_declared_keeps_its_rules_and_takes_nothing_in() {
        let org = OrgId::default();
        let declared = |version| Entry { served: Served::ByWorkers, ..Entry::plain(kind("pdf", version, "declared")) };
        let mut defs = Definitions::with([declared(2)], Rules::default());
        for version in 1..=3 {
            defs.learn(&OrgId::system(), Entry::plain(kind("pdf", version, "stored")));
        }
        defs.learn(&OrgId::system(), Entry::plain(kind("gone", 1, "stored")));
        assert_eq!(defs.newest(&org, &name("pdf")).unwrap().job_type.version, 2);
        assert!(defs.newest(&org, &name("gone")).is_none());
        assert!(defs.pinned(&org, &Kind { name: name("gone"), version: 1 }).is_some());
        assert_eq!(defs.for_workers(&org, &name("pdf")).unwrap().len(), 3, "jobs of every version are handed out");
        assert_eq!(defs.names(&org), "pdf");
    }
}
