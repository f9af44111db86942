//! Verifying runs and money: what the rows of one run come to, held against what must be true.

use crate::runs::LedgerRow;
use baton_core::audit::Report;
use baton_core::canon::Json;
use baton_core::credits::Credits;
use baton_core::decision::{Case, Subject};
use baton_core::doc::Doc;
use baton_core::id::DecisionId;
use baton_core::ledger::{Account, OrgAccount, Posting, Purse};
use baton_core::run::audit::{Facts, Tally, check};
use baton_core::run::record::{AttemptRecord, Record, StepRecord, TaskRecord};
use baton_core::run::{Agent, Run};
use baton_core::{AgentId, JobId, Micros, OrgId, RunId};
use std::collections::{BTreeMap, BTreeSet};

/// Runs whose rows are looked at together.
pub(crate) const RUNS: i64 = 100;

/// Open questions of steps, by run.
pub(crate) type Open = BTreeMap<RunId, BTreeMap<DecisionId, (AgentId, u32, u32)>>;

/// All rows of one run.
pub(crate) struct Rows {
    pub run: Run,
    pub agents: Vec<Agent>,
    pub jobs: BTreeSet<JobId>,
    pub timer: Option<Micros>,
    pub postings: Vec<Posting>,
    pub tally: Tally,
    /// The plan, if it is there.
    pub plan: Option<Json>,
}

impl Rows {
    pub fn new(run: Run) -> Self {
        Self {
            run,
            agents: Vec::new(),
            jobs: BTreeSet::new(),
            timer: None,
            postings: Vec::new(),
            tally: Tally::default(),
            plan: None,
        }
    }

    /// Accounts that belong to the run, once its agents are known.
    pub fn accounts(&self) -> Vec<Account> {
        let attempts = (1..=self.run.attempt).map(|attempt| Account::Run(self.run.id, attempt));
        attempts.chain(self.agents.iter().map(Agent::account)).collect()
    }

    /// Jobs that its rows name.
    pub fn named_jobs(&self) -> Vec<JobId> {
        self.agents.iter().filter_map(|agent| agent.job).chain(self.run.job).collect()
    }

    pub fn step(&mut self, step: StepRecord) {
        self.tally.add(&Record::Step(step));
    }

    pub fn task(&mut self, task: TaskRecord) {
        self.tally.add(&Record::Task(task));
    }

    pub fn attempt(&mut self, attempt: AttemptRecord) {
        self.tally.add(&Record::Attempt(attempt));
    }

    pub fn entry(&mut self, account: Account, row: LedgerRow) {
        let LedgerRow { n, kind, amount, balance_after, key, run, at, .. } = row;
        self.postings.push(Posting { account, n, kind, amount, balance_after, key, run, at });
    }

    pub fn audit(&self, open: &Open, report: &mut Report) {
        let run = &self.run;
        let facts = Facts {
            run,
            agents: self.agents.iter().collect(),
            jobs: self.jobs.clone(),
            timer: self.timer,
            open: open.get(&run.id).cloned().unwrap_or_default(),
            postings: self.postings.iter().collect(),
            tally: self.tally.clone(),
        };
        for wrong in check(&facts) {
            report.add("run_inconsistent", &run.org, run.id, wrong);
        }
        match &self.plan {
            None => report.add("plan_missing", &run.org, run.id, "there is no plan of it"),
            Some(plan) if plan.digest() != run.terms.plan => {
                report.add("body_changed", &run.org, run.id, "its plan is not what it was");
            }
            Some(_) => {}
        }
    }
}

/// Which run and step an open decision is about, if it is about one.
pub(crate) fn add_open(open: &mut Open, doc: &Doc) {
    if let Some(Subject::Step { run, agent, task, step }) = Case::of(doc).map(|case| case.subject) {
        open.entry(run).or_default().insert(DecisionId(doc.id.0), (agent, task, step));
    }
}

/// The entries of an org's account against its balance.
pub(crate) fn org_account(org: &OrgId, account: Option<&Doc>, entries: &[LedgerRow], report: &mut Report) -> Credits {
    let account = account.cloned().map(OrgAccount::from_doc);
    let (said, reserved) = account.map(|account| (account.purse, account.reserved)).unwrap_or_default();
    let mut found = Purse::default();
    for row in entries {
        let signed = if row.kind.is_into() { row.amount.micros() } else { -row.amount.micros() };
        if row.n != found.n + 1 || found.balance.micros() + signed != row.balance_after.micros() {
            let detail = format!("entry {} does not follow from the one before", row.n);
            report.add("ledger_broken", org, "org", detail);
        }
        found = Purse { balance: row.balance_after, n: row.n };
    }
    if found != said {
        let detail = format!("the balance is {}, its entries say {}", said.balance, found.balance);
        report.add("balance_mismatch", org, "org", detail);
    }
    reserved
}

/// What is reserved in all against what the runs say.
pub(crate) fn reserved(org: &OrgId, said: Credits, found: i64, report: &mut Report) {
    if said.micros() != found {
        let detail = format!("{said} are said to be reserved, runs that have not ended say {found} millionths");
        report.add("balance_mismatch", org, "org", detail);
    }
}

/// What is reserved for a run, if it has not ended.
pub(crate) fn reserved_for(run: &Run) -> i64 {
    if run.state.is_ended() { 0 } else { run.money.reserved.micros() }
}
