//! Forgetting ended jobs: a job goes with its whole history.
//!
//! What seals say must stay true: the hash of every removed event is kept in its place, and one
//! event says which were removed, under a digest. So removing can be told from losing.

use crate::canon::{Digest, Json};
use crate::changes::Changes;
use crate::command::{Command, Ctx, Decision, Reads, Refusal};
use crate::definition::Definitions;
use crate::doc::{self, Doc};
use crate::event::{Event, Head};
use crate::id::{DocId, JobId};
use crate::limits;
use crate::name::{OrgId, ProjectId};
use crate::world::View;
use serde_json::json;

/// An event's place and hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stub {
    pub pos: i64,
    pub hash: [u8; 32],
}

/// A job to forget, with all its events in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    pub job: JobId,
    pub events: Vec<Stub>,
}

/// What is removed in one commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pruned {
    pub jobs: Vec<Candidate>,
    /// The chain whose event says so, and which one.
    pub by: DocId,
    pub n: i64,
}

/// Forgets ended jobs of a project. The engine says which: the oldest beyond what is kept, all of
/// whose events are sealed.
#[derive(Clone, Debug)]
pub struct Prune {
    pub org: OrgId,
    pub project: ProjectId,
    pub jobs: Vec<Candidate>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PruneError {
    #[error("job {0} has not ended, or its history is not what was looked at")]
    NotAsSeen(JobId),
    #[error("1 to {max} jobs can be forgotten at once, not {jobs}", max = limits::PRUNE_JOBS)]
    Size { jobs: usize },
}

impl Refusal for PruneError {
    fn code(&self) -> &'static str {
        "not_prunable"
    }
}

/// Over everything that is removed, in the order of places.
pub fn digest<'a>(stubs: impl Iterator<Item = &'a Stub>) -> (u64, Digest) {
    let mut count = 0;
    let mut text = Vec::new();
    for stub in stubs {
        count += 1;
        text.extend_from_slice(&stub.pos.to_be_bytes());
        text.extend_from_slice(&stub.hash);
    }
    (count, Digest::of(&[&text]))
}

impl Prune {
    fn key(&self) -> doc::Key {
        doc::Key { class: doc::Class::Retention, key: self.project.as_str().to_owned() }
    }
}

impl Command for Prune {
    type Out = usize;
    type No = PruneError;

    fn org(&self) -> &OrgId {
        &self.org
    }

    fn reads(&self, _: &Definitions) -> Reads {
        let mut reads = Reads::doc(self.key());
        reads.jobs.extend(self.jobs.iter().take(limits::PRUNE_JOBS).map(|c| c.job));
        reads
    }

    fn decide(&self, view: &View<'_>, cx: &mut Ctx<'_>) -> Decision<usize, PruneError> {
        if self.jobs.is_empty() || self.jobs.len() > limits::PRUNE_JOBS {
            return Decision::Refused(PruneError::Size { jobs: self.jobs.len() });
        }
        for candidate in &self.jobs {
            let as_seen = view.job(candidate.job).is_some_and(|job| {
                job.is_ended()
                    && job.project == self.project
                    && i64::try_from(candidate.events.len()) == Ok(job.head.n)
                    && candidate.events.last().is_some_and(|stub| stub.hash == job.head.hash.0)
                    && candidate.events.is_sorted_by(|a, b| a.pos < b.pos)
            });
            if !as_seen {
                return Decision::Refused(PruneError::NotAsSeen(candidate.job));
            }
        }
        let known = view.doc(&self.key());
        let id = known.map_or_else(|| cx.ids.doc(), |doc| doc.id);
        let head = known.map_or(Head::NONE, |doc| doc.head);
        let mut stubs: Vec<Stub> = self.jobs.iter().flat_map(|c| c.events.iter().copied()).collect();
        stubs.sort_unstable();
        let (events, sha256) = digest(stubs.iter());
        let data = json!({ "events": events, "jobs": self.jobs.len(), "project": self.project, "sha256": sha256 });
        let body = Json::of(&json!({ "project": self.project }));
        let mut changes = Changes::none()
            .doc(doc::Change::Put(self.key(), Doc { id, flag: false, body, head }))
            .event(Event::new(doc::Class::Retention.subject(id), "retention.pruned", data));
        changes.pruned.push(Pruned { jobs: self.jobs.clone(), by: id, n: head.n + 1 });
        Decision::Done(self.jobs.len(), changes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::bench_top::{BenchTop, done};

    fn candidate(top: &BenchTop, job: JobId) -> Candidate {
        let events = top.world.events().iter().enumerate().filter(|(_, e)| e.subject == job.0);
        let stub = |(i, e): (usize, &crate::event::Recorded)| Stub { pos: i64::try_from(i).unwrap(), hash: e.hash.0 };
        Candidate { job, events: events.map(stub).collect() }
    }

    #[test]
    fn an_ended_job_goes_with_its_whole_history_and_one_event_says_so() {
        let mut top = BenchTop::new();
        let id = top.enqueue().id;
        let prune = |top: &BenchTop| Prune {
            org: OrgId::default(),
            project: "p1".parse().unwrap(),
            jobs: vec![candidate(top, id)],
        };
        assert_eq!(top.refuse(&prune(&top)), PruneError::NotAsSeen(id), "it has not ended");
        let job = top.claim();
        top.settle(&job, done());
        let mut partial = prune(&top);
        partial.jobs[0].events.pop();
        assert_eq!(top.refuse(&partial), PruneError::NotAsSeen(id));
        let whole = prune(&top);
        assert_eq!(top.done(&whole), 1);
        assert_eq!(top.kinds().last(), Some(&"retention.pruned"));
        assert_eq!(top.refuse(&whole), PruneError::NotAsSeen(id), "only once");
        assert_eq!(top.refuse(&Prune { jobs: vec![], ..whole }), PruneError::Size { jobs: 0 });
    }
}
