//! A world of one run for the tests: workers that follow what they are told, people who answer, a clock that
//! stands still until it is moved. After every command that was applied, all of [`super::audit`] must hold.

mod plans;
mod watch;
mod workers;

use super::advance::{Failed, Outcome};
use super::cancel::{Cancel, Delete};
use super::clock::Tick;
use super::create::Create;
use super::hold::Hold;
use super::record::{Record, StepRecord, TaskRecord};
use super::retry::Retry;
use super::start::Start;
use super::{AGENT_JOB, Agent, AgentState, Fault, Priority, Run, RunError, State, agent_job_type};
use crate::access::{Grant as Access, Role};
use crate::canon::{Digest, Json};
use crate::command::{Actor, Command, Ctx, Decision, Refusal};
use crate::credits::Credits;
use crate::decision::{self, Case, breach::Expire, resolve::Resolve};
use crate::definition::Definitions;
use crate::id::{AgentId, DecisionId, Ids, JobId, RunId, Seed};
use crate::job::Job;
use crate::ledger::grant::Grant;
use crate::ledger::{Kind, OrgAccount};
use crate::name::{OrgId, TypeName};
use crate::plan::{Compiled, Plan};
use crate::rng::Rng;
use crate::time::{Micros, Span};
use crate::timer;
use crate::world::{JobWrite, World};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;

pub use plans::{agent, costs, parallel, plan, step, task, times, unsafe_step};
pub use workers::{Hands, Made};

pub const NOW: Micros = crate::job::bench_top::NOW;

/// Rounds of asking for more to read before something is wrong.
const ROUNDS: usize = 20;

type Script = Box<dyn FnMut(&Made) -> Option<Outcome>>;

pub struct Stage {
    pub world: World,
    pub now: Micros,
    pub plan: Arc<Plan>,
    pub digest: Digest,
    pub run: RunId,
    /// Every call that a worker made.
    pub made: Vec<Made>,
    /// Jobs that are held, and by whom.
    pub hands: BTreeMap<JobId, Hands>,
    /// Since when there has been anybody at work.
    pub alive_since: Micros,
    watch: watch::Watch,
    defs: Definitions,
    seed: u64,
    script: Script,
}

pub fn org() -> OrgId {
    OrgId::default()
}

pub fn done() -> Outcome {
    Outcome::Done(Json::of(&json!({ "ok": true })))
}

fn fails(fault: Fault) -> Outcome {
    Outcome::Failed(Failed { fault, called: true, unknown: false, retry_after: None })
}

pub fn flaky() -> Outcome {
    fails(Fault::new("timeout", "took too long"))
}

pub fn broken() -> Outcome {
    fails(Fault::new("invalid_output", "no sense in it"))
}

pub fn fatal() -> Outcome {
    fails(Fault::fatal("forbidden", "never"))
}

pub fn doubtful() -> Outcome {
    let fault = Fault::new("connection_reset", "in the middle of it");
    Outcome::Failed(Failed { fault, called: true, unknown: true, retry_after: None })
}

impl Stage {
    /// A run of this plan, with as much as it may need, created and not started.
    pub fn new(plan: Plan) -> Self {
        let budget = plan.estimate().unwrap();
        Self::with(plan, Credits::whole(10_000), budget)
    }

    pub fn with(plan: Plan, granted: Credits, budget: Credits) -> Self {
        Self::seeded(plan, granted, budget, 0)
    }

    pub fn seeded(plan: Plan, granted: Credits, budget: Credits, seed: u64) -> Self {
        let mut stage = Self::empty(plan, seed);
        if !granted.is_zero() {
            let grant = Grant { org: org(), amount: granted, key: "first".to_owned(), note: None };
            stage.decide(&grant).unwrap();
        }
        stage.create(budget).unwrap();
        stage
    }

    /// No run, no credits.
    pub fn empty(plan: Plan, seed: u64) -> Self {
        let digest = Json::of(&serde_json::to_value(&plan).unwrap()).digest();
        Self {
            world: World::default(),
            now: NOW,
            plan: Arc::new(plan),
            digest,
            run: super::no_run(),
            made: Vec::new(),
            hands: BTreeMap::new(),
            alive_since: NOW,
            watch: watch::Watch::default(),
            defs: Definitions::of([agent_job_type(TypeName::new(AGENT_JOB).unwrap())]),
            seed,
            script: Box::new(|_| Some(done())),
        }
    }

    pub fn create(&mut self, budget: Credits) -> Result<Run, RunError> {
        let document = Json::of(&json!({ "agents": [] }));
        let compiled = Compiled {
            plan: Plan::clone(&self.plan),
            budget,
            name: "a run".to_owned(),
            task: String::new(),
            project: "p1".parse().unwrap(),
            priority: Priority::Normal,
            labels: BTreeMap::new(),
        };
        let create = Create::new(org(), document, compiled);
        let run = self.decide(&create)?;
        self.run = run.id;
        Ok(run)
    }

    /// What comes of calls from here on; nothing is a call that goes on for ever.
    pub fn script(&mut self, script: impl FnMut(&Made) -> Option<Outcome> + 'static) {
        self.script = Box::new(script);
    }

    /// Decides and applies as a commit does, then looks whether all is well.
    pub fn decide<C: Command>(&mut self, c: &C) -> Result<C::Out, C::No> {
        let reads = c.reads(&self.defs);
        self.world.load_nothing(c.org(), &reads);
        self.seed += 1;
        let seed = Seed { high: self.seed, low: 9, at: self.now };
        let actor = Actor::Engine;
        for _ in 0..ROUNDS {
            let (mut ids, mut rng) = (Ids::new(seed), Rng::new(self.seed));
            let mut cx = Ctx { now: self.now, actor: &actor, defs: &self.defs, ids: &mut ids, rng: &mut rng };
            match c.decide(&self.world.view(c.org()), &mut cx) {
                Decision::Done(out, changes) => {
                    self.world.apply(c.org(), &actor, self.now, changes);
                    self.check();
                    return Ok(out);
                }
                Decision::Refused(no) => return Err(no),
                Decision::Need(more) => {
                    assert_ne!(self.world.missing(c.org(), &more), crate::Reads::none(), "asks for what it has");
                    self.world.load_nothing(c.org(), &more);
                }
            }
        }
        panic!("never has enough to read")
    }

    fn code<C: Command>(&mut self, c: &C) -> Result<C::Out, &'static str> {
        self.decide(c).map_err(|no| no.code())
    }

    pub fn start(&mut self) -> Result<Run, &'static str> {
        self.code(&Start { org: org(), run: self.run })
    }

    pub fn pause(&mut self) -> Result<Run, &'static str> {
        self.code(&Hold { org: org(), run: self.run, agent: None, pause: true })
    }

    pub fn resume(&mut self) -> Result<Run, &'static str> {
        self.code(&Hold { org: org(), run: self.run, agent: None, pause: false })
    }

    pub fn pause_agent(&mut self, agent: AgentId) -> Result<Run, &'static str> {
        self.code(&Hold { org: org(), run: self.run, agent: Some(agent), pause: true })
    }

    pub fn resume_agent(&mut self, agent: AgentId) -> Result<Run, &'static str> {
        self.code(&Hold { org: org(), run: self.run, agent: Some(agent), pause: false })
    }

    pub fn cancel(&mut self) -> Result<Run, &'static str> {
        self.code(&Cancel { org: org(), run: self.run, reason: None })
    }

    pub fn retry(&mut self) -> Result<Run, &'static str> {
        self.code(&Retry { org: org(), run: self.run })
    }

    pub fn delete(&mut self) -> Result<Run, &'static str> {
        self.code(&Delete { org: org(), run: self.run })
    }

    pub fn answer(&mut self, id: DecisionId, option: &str) -> Result<Case, &'static str> {
        let option = option.parse().unwrap();
        let data = Some(json!({ "said": "so" }));
        let said = Resolve { org: org(), id, option, comment: None, data, grant: Access::of(Role::Admin) };
        let case = self.code(&said)?;
        self.watch.answered(&case, &self.world);
        Ok(case)
    }

    /// Fires the run's timer if it is due.
    pub fn tick(&mut self) -> Result<(), &'static str> {
        let at = self.timer().ok_or("no timer")?;
        self.code(&Tick { org: org(), run: self.run, at, alive_since: self.alive_since })
    }

    /// Fires whatever timers have come due, and says whether there were any.
    pub fn fire(&mut self) -> bool {
        let now = self.now;
        let due: Vec<(timer::Key, Micros)> = (self.world.timer_writes())
            .filter_map(|(_, key, at)| Some((*key, at?)))
            .filter(|(_, at)| *at <= now)
            .collect();
        for (key, at) in &due {
            let _ = match key.kind {
                timer::Kind::Run => self.tick(),
                _ => self.code(&Expire { org: org(), id: DecisionId(key.subject), at: *at }),
            };
        }
        !due.is_empty()
    }

    pub fn get(&self) -> &Run {
        self.world.view_of(self.run)
    }

    pub fn state(&self) -> State {
        self.get().state
    }

    /// The current attempt's agents, in the order of the plan.
    pub fn agents(&self) -> Vec<&Agent> {
        let ids = &self.get().agents;
        ids.iter().map(|id| self.world.agent_writes().map(|w| w.agent).find(|a| a.id == *id).unwrap()).collect()
    }

    pub fn agent_states(&self) -> Vec<AgentState> {
        self.agents().iter().map(|agent| agent.state).collect()
    }

    pub fn steps(&self) -> Vec<&StepRecord> {
        let records = self.world.record_writes().iter();
        records.filter_map(|(_, record)| if let Record::Step(step) = record { Some(step) } else { None }).collect()
    }

    pub fn tasks(&self) -> Vec<&TaskRecord> {
        let records = self.world.record_writes().iter();
        records.filter_map(|(_, record)| if let Record::Task(task) = record { Some(task) } else { None }).collect()
    }

    pub fn job(&self, id: JobId) -> &Job {
        self.jobs().find(|job| job.id == id).unwrap()
    }

    pub fn jobs(&self) -> impl Iterator<Item = &Job> {
        self.world.job_writes().map(|write| match write {
            JobWrite::Insert(job, ..) | JobWrite::Update(job) | JobWrite::End(job, _) => job,
        })
    }

    /// Questions that nobody has answered yet.
    pub fn open(&self) -> Vec<DecisionId> {
        watch::open(&self.world).keys().copied().collect()
    }

    pub fn case(&self, id: DecisionId) -> Case {
        let key = Case::at(id);
        let doc = self.world.doc_writes().find(|(_, k, _)| **k == key).unwrap().2;
        Case::of(doc).unwrap()
    }

    pub fn timer(&self) -> Option<Micros> {
        let key = Run::timer(self.run);
        self.world.timer_writes().find(|(_, k, _)| **k == key).and_then(|(_, _, at)| at)
    }

    pub fn balance(&self) -> Credits {
        let doc = self.world.doc_writes().find(|(_, key, _)| key.class == crate::doc::Class::Account);
        doc.map(|(_, _, doc)| OrgAccount::from_doc(doc.clone()).purse.balance).unwrap_or_default()
    }

    /// Every amount that was charged for calls, in order.
    pub fn charges(&self) -> Vec<Credits> {
        let postings = self.world.posting_writes().iter().map(|(_, posting)| posting);
        postings.filter(|posting| posting.kind == Kind::Charge).map(|posting| posting.amount).collect()
    }

    pub fn told(&self, kind: &str) -> usize {
        self.world.events().iter().filter(|event| event.kind == kind).count()
    }

    /// How much has been written: nothing changes without one of these.
    pub fn written(&self) -> (usize, usize, usize) {
        let (events, records, postings) =
            (self.world.events(), self.world.record_writes(), self.world.posting_writes());
        (events.len(), records.len(), postings.len())
    }

    pub fn error(&self) -> &str {
        self.get().error.as_ref().map_or("", |error| error.code.as_str())
    }

    pub fn wait(&mut self, span: Span) {
        self.now = self.now.plus(span);
    }

    fn check(&mut self) {
        let wrong = self.watch.look(&self.world, &self.plan);
        assert!(wrong.is_empty(), "{wrong:#?}\n{:#?}", self.world.run_writes().collect::<Vec<_>>());
    }
}

impl World {
    fn view_of(&self, id: RunId) -> &Run {
        self.run_writes().map(|(_, run)| run).find(|run| run.id == id).unwrap()
    }
}

/// The kind of a question.
pub const OUTCOME: &str = decision::STEP_OUTCOME;
