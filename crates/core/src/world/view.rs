//! What one command may look at.

use super::{Entry, World};
use crate::canon::Json;
use crate::command::{Reads, Unseen};
use crate::definition::{self, Definition};
use crate::doc::{self, Doc};
use crate::id::{AgentId, JobId, RunId};
use crate::job::{Cold, End, Ending, Job, Status};
use crate::lane::{self, LaneKey};
use crate::name::OrgId;
use crate::run::{Agent, Run};
use crate::seal::SealHead;
use crate::time::Micros;
use crate::{dedupe, timer};

/// What one command may look at: the rows of its own org that it named.
#[derive(Clone, Copy)]
pub struct View<'a> {
    pub(super) world: &'a World,
    pub(super) org: &'a OrgId,
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

    /// Refuses to go on until all of this can be looked at.
    pub fn see(&self, reads: Reads) -> Result<(), Unseen> {
        if self.missing(&reads) == Reads::none() { Ok(()) } else { Err(Unseen(Box::new(reads))) }
    }

    #[track_caller]
    pub fn job(&self, id: JobId) -> Option<&'a Job> {
        named(self.world.jobs.get(self.org, &id), "this job").map(AsRef::as_ref)
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
    pub fn run(&self, id: RunId) -> Option<&'a Run> {
        named(self.world.runs.get(&(self.org.clone(), id)), "this run")
    }

    #[track_caller]
    pub fn agent(&self, id: AgentId) -> Option<&'a Agent> {
        named(self.world.agents.get(&(self.org.clone(), id)), "this agent")
    }

    #[track_caller]
    pub fn lane(&self, key: &LaneKey) -> Option<&'a lane::Row> {
        named(self.world.lanes.get(self.org, key), "this lane")
    }

    /// Jobs from outside that wait in project lanes.
    #[track_caller]
    pub fn crowd(&self) -> u32 {
        let Some(before) = self.world.crowd else { panic!("the crowd is not among what the command said it reads") };
        u32::try_from((before + self.world.crowd_delta).max(0)).unwrap_or(u32::MAX)
    }

    /// A job with all that is known of it; `None` if it does not exist.
    pub fn record(&self, id: JobId) -> Option<(&'a Job, &'a Cold, Option<&'a Ending>)> {
        let job = self.world.job(self.org, id)?;
        Some((job, self.world.colds.get(self.org, &id)?, self.world.endings.get(self.org, &id)))
    }

    /// Whoever holds a dedupe key, or held it when it completed.
    #[track_caller]
    pub fn dedupe(&self, key: &dedupe::Key) -> Option<&'a Job> {
        let Some(holder) = self.world.dedupes.get(&(self.org.clone(), key.clone())) else {
            panic!("this dedupe key is not among what the command said it reads")
        };
        let job = self.world.job(self.org, (*holder)?)?;
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
        match self.world.requeued.get(self.org, &id) {
            Some(into) => *into,
            None => panic!("whether this job was requeued is not among what the command said it reads"),
        }
    }

    /// The payload of a job whose type has hooks.
    pub fn payload(&self, id: JobId) -> Option<&'a Json> {
        let cold = || self.world.colds.get(self.org, &id).map(|cold| &cold.payload);
        self.world.payloads.get(self.org, &id).or_else(cold)
    }

    #[track_caller]
    pub fn seal(&self) -> Option<&'a SealHead> {
        named(self.world.seals.get(&(self.org.clone(), ())), "the seal")
    }
}
