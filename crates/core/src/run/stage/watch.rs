//! Looks at the world after each command: everything that the audit knows, the org's account, that runs moved
//! only as their table allows, and that no unsafe call was made twice without a word.

use super::Made;
use crate::decision::{Case, Subject};
use crate::doc;
use crate::id::{AgentId, DecisionId};
use crate::ledger::{Account, OrgAccount};
use crate::plan::{AgentPlan, Plan};
use crate::run::audit::{self, Facts, Tally};
use crate::run::record::Record;
use crate::run::{Agent, Run, State};
use crate::world::AgentWrite;
use crate::world::World;
use std::collections::BTreeMap;

/// What is known of an unsafe step of an agent, by its places in the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    NotDone,
    /// It was called, and nobody has said what came of it.
    InDoubt,
    Done,
}

#[derive(Default)]
pub struct Watch {
    state: BTreeMap<crate::RunId, State>,
    events: usize,
    records: usize,
    tallies: BTreeMap<crate::RunId, Tally>,
    steps: BTreeMap<(u32, u32, u32), Known>,
}

/// Questions that are open, each with its agent, task and step.
pub fn open(world: &World) -> BTreeMap<DecisionId, (AgentId, u32, u32)> {
    let docs = world.doc_writes().filter(|(_, key, doc)| key.class == doc::Class::Decision && doc.flag);
    docs.map(|(_, _, doc)| {
        let Subject::Step { agent, task, step, .. } = Case::of(doc).unwrap().subject else { panic!("of a job") };
        (DecisionId(doc.id.0), (agent, task, step))
    })
    .collect()
}

/// Nothing begins before what it comes after, and never more at once than may.
fn order(agent: &Agent, plan: &AgentPlan, wrong: &mut Vec<String>) {
    let mut wide = agent.tasks.len() > plan.width as usize;
    let mut early = false;
    for (place, task) in &agent.tasks {
        let plan = &plan.tasks[*place as usize];
        early |= !plan.after.iter().all(|before| agent.done.contains(*before));
        wide |= task.steps.len() > plan.width as usize;
        let steps = task.steps.keys().map(|step| &plan.steps[*step as usize]);
        early |= !steps.flat_map(|step| &step.after).all(|before| task.done.contains(*before));
    }
    if wide || early {
        wrong.push(format!("wide: {wide}, early: {early}: {agent:?}"));
    }
}

impl Watch {
    pub fn look(&mut self, world: &World, plan: &Plan) -> Vec<String> {
        let mut wrong = Vec::new();
        for AgentWrite { agent, .. } in world.agent_writes() {
            order(agent, &plan.agents[agent.index as usize], &mut wrong);
        }
        self.moves(world, &mut wrong);
        for (_, record) in &world.record_writes()[self.records..] {
            let run = match record {
                Record::Step(step) => step.run,
                Record::Task(task) => task.run,
                Record::Attempt(attempt) => attempt.run,
            };
            self.tallies.entry(run).or_default().add(record);
        }
        self.records = world.record_writes().len();
        for (_, run) in world.run_writes() {
            wrong.extend(audit::check(&self.facts(run, world)));
        }
        let of_org = world.posting_writes().iter().map(|(_, p)| p).filter(|p| p.account == Account::Org);
        let sum: i64 = of_org.map(|p| if p.kind.is_into() { p.amount.micros() } else { -p.amount.micros() }).sum();
        let account = world.doc_writes().find(|(_, key, _)| key.class == doc::Class::Account);
        let balance = account.map_or(0, |(_, _, doc)| OrgAccount::from_doc(doc.clone()).purse.balance.micros());
        if sum != balance {
            wrong.push(format!("the org has {balance}, its entries say {sum}"));
        }
        wrong
    }

    fn facts<'a>(&self, run: &'a Run, world: &'a World) -> Facts<'a> {
        let agents = world.agent_writes().map(|write| write.agent).filter(|agent| agent.run == run.id);
        let timer = world.timer_writes().find(|(_, key, _)| **key == Run::timer(run.id)).and_then(|(_, _, at)| at);
        let jobs = world.job_writes().filter_map(|write| match write {
            crate::world::JobWrite::Insert(job, ..) => (!job.is_ended()).then_some(job.id),
            other => panic!("{other:?}"),
        });
        let postings = world.posting_writes().iter().map(|(_, posting)| posting);
        Facts {
            run,
            agents: agents.collect(),
            jobs: jobs.collect(),
            timer,
            open: open(world),
            postings: postings.filter(|p| p.account != Account::Org && p.run == Some(run.id)).collect(),
            tally: self.tallies.get(&run.id).cloned().unwrap_or_default(),
        }
    }

    /// Every event of a run says which state it was in: each follows from the one before.
    fn moves(&mut self, world: &World, wrong: &mut Vec<String>) {
        for event in &world.events()[self.events..] {
            if !event.kind.starts_with("run.") {
                continue;
            }
            let id = crate::RunId(event.subject);
            let told = event.data.value();
            let to = State::parse(told["state"].as_str().unwrap()).unwrap();
            let from = self.state.insert(id, to);
            match from {
                None if to == State::Created => {}
                Some(from) if from.check(to).is_ok() => {}
                _ => wrong.push(format!("{}: from {from:?} to {to}", event.kind)),
            }
        }
        self.events = world.events().len();
        for (_, run) in world.run_writes() {
            let told = self.state.get(&run.id);
            if told != Some(&run.state) {
                wrong.push(format!("the run is {} and was told of as {told:?}", run.state));
            }
        }
    }

    /// An unsafe call begins.
    pub fn called(&mut self, made: &Made, repeat: bool) {
        let known = self.steps.entry(made.place()).or_insert(Known::NotDone);
        let may = *known == Known::NotDone || (*known == Known::Done && repeat);
        assert!(may, "{made:?} is made although what came of the one before is {known:?}");
        *known = Known::InDoubt;
    }

    /// Its worker says whether it did what it does.
    pub fn reported(&mut self, made: &Made, done: bool) {
        if let Some(known) = self.steps.get_mut(&made.place()) {
            *known = if done { Known::Done } else { Known::NotDone };
        }
    }

    /// People say so.
    pub fn answered(&mut self, case: &Case, world: &World) {
        let Subject::Step { agent, task, step, .. } = case.subject else { return };
        let index = world.agent_writes().map(|w| w.agent).find(|a| a.id == agent).unwrap().index;
        let said = match case.closed.as_ref().and_then(|closed| closed.option.as_ref()).map(|o| o.as_str()) {
            Some("done") => Known::Done,
            Some("not_done") => Known::NotDone,
            _ => return,
        };
        if case.kind == super::OUTCOME {
            self.steps.insert((index, task, step), said);
        }
    }
}
