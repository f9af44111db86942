//! A world of one job for the tests of its commands: decides and applies as a commit does.

use super::Job;
use super::claim::claim;
use super::enqueue::Enqueue;
use super::settle::{Outcome, Settle, Settled};
use crate::canon::Json;
use crate::command::{Actor, Command, Ctx, Decision};
use crate::definition::{Definitions, JobType};
use crate::id::{Ids, JobId, Seed};
use crate::name::{OrgId, WorkerId};
use crate::rng::Rng;
use crate::time::{Micros, Span};
use crate::world::World;
use serde_json::json;

pub const NOW: Micros = Micros(1_800_000_000_000_000);
pub const LEASE: Span = Span::secs(30);

pub fn worker() -> WorkerId {
    "node_1".parse().unwrap()
}

pub fn done() -> Outcome {
    Outcome::Done(Json::of(&json!({ "ok": true })))
}

pub fn payload() -> Json {
    Json::of(&json!({ "text": "secret-payload" }))
}

pub fn enqueue() -> Enqueue {
    Enqueue::new(OrgId::default(), "p1".parse().unwrap(), "echo".parse().unwrap(), payload())
}

/// Three attempts, otherwise as plain as can be.
pub fn echo_type() -> JobType {
    JobType { max_attempts: Some(3), lease: LEASE, ..JobType::new("echo".parse().unwrap(), 1, "") }
}

pub fn defs() -> Definitions {
    Definitions::of([echo_type()])
}

pub struct BenchTop {
    pub world: World,
    pub now: Micros,
    pub defs: Definitions,
    pub actor: Actor,
    seed: u64,
    last: Option<JobId>,
}

impl BenchTop {
    pub fn new() -> Self {
        Self::of(echo_type())
    }

    pub fn of(job_type: JobType) -> Self {
        Self::with(Definitions::of([job_type]))
    }

    pub fn with(defs: Definitions) -> Self {
        Self { world: World::default(), now: NOW, defs, actor: Actor::Api, seed: 0, last: None }
    }

    fn decide<C: Command>(&mut self, c: &C) -> Result<C::Out, C::No> {
        let reads = c.reads(&self.defs);
        self.world.load_nothing(c.org(), &reads);
        self.seed += 1;
        let seed = Seed { high: self.seed, low: 9, at: self.now };
        let (mut ids, mut rng) = (Ids::new(seed), Rng::new(self.seed));
        let mut cx = Ctx { now: self.now, actor: &self.actor, defs: &self.defs, ids: &mut ids, rng: &mut rng };
        let mut decision = c.decide(&self.world.view(c.org()), &mut cx);
        if let Decision::Need(more) = &decision {
            self.world.load_nothing(c.org(), more);
            (ids, rng) = (Ids::new(seed), Rng::new(self.seed));
            let mut cx = Ctx { now: self.now, actor: &self.actor, defs: &self.defs, ids: &mut ids, rng: &mut rng };
            decision = c.decide(&self.world.view(c.org()), &mut cx);
        }
        match decision {
            Decision::Done(out, changes) => {
                self.world.apply(c.org(), &self.actor, self.now, changes);
                Ok(out)
            }
            Decision::Refused(no) => Err(no),
            Decision::Need(reads) => panic!("needs {reads:?}"),
        }
    }

    pub fn done<C: Command>(&mut self, c: &C) -> C::Out {
        self.decide(c).unwrap_or_else(|no| panic!("refused: {no}"))
    }

    pub fn refuse<C: Command>(&mut self, c: &C) -> C::No {
        self.decide(c).err().unwrap_or_else(|| panic!("should have been refused"))
    }

    pub fn doc(&self, key: &crate::doc::Key) -> crate::doc::Doc {
        self.world.view(&OrgId::default()).doc(key).unwrap().clone()
    }

    pub fn enqueue(&mut self) -> Job {
        let job = self.done(&enqueue()).job;
        self.last = Some(job.id);
        job
    }

    /// The job that was enqueued last, as it stands.
    pub fn latest(&self) -> Job {
        let writes = self.world.job_writes().map(|w| match w {
            crate::world::JobWrite::Insert(job, ..) => job.clone(),
            other => panic!("{other:?}"),
        });
        let all = writes.collect::<Vec<_>>();
        all.iter().find(|j| Some(j.id) == self.last).or_else(|| all.last()).unwrap().clone()
    }

    pub fn claim(&mut self) -> Job {
        let latest = self.latest();
        let changes = claim(&latest, &payload(), &worker(), &self.defs, self.now).expect("claimable");
        self.world.apply(&latest.org, &Actor::Worker(worker()), self.now, changes);
        self.latest()
    }

    pub fn settle(&mut self, job: &Job, outcome: Outcome) -> Settled {
        self.done(&Settle { fence: job.fence().unwrap(), outcome })
    }

    /// Makes this the job that is claimed next.
    pub const fn track(&mut self, id: JobId) {
        self.last = Some(id);
    }

    pub fn kinds(&self) -> Vec<&str> {
        self.world.events().iter().map(|e| e.kind.as_str()).collect()
    }

    pub fn texts(&self) -> String {
        self.world.events().iter().map(|e| e.data.as_str()).collect()
    }

    pub fn told(&self, kind: &str) -> bool {
        self.world.events().iter().any(|e| e.kind == kind)
    }
}
