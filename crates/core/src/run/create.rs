//! Making a run. Nothing of it happens until it is started.

use super::{Counts, Money, Priority, Run, RunError, State, Terms};
use crate::canon::{Digest, Json};
use crate::changes::Changes;
use crate::command::{Command, Ctx, Decision, Reads};
use crate::credits::Credits;
use crate::definition::Definitions;
use crate::event::Head;
use crate::id::RunId;
use crate::ledger::OrgAccount;
use crate::name::{OrgId, ProjectId};
use crate::plan::Compiled;
use crate::world::View;
use serde_json::json;
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
pub struct Create {
    pub org: OrgId,
    pub project: ProjectId,
    pub name: String,
    pub labels: BTreeMap<String, String>,
    pub priority: Priority,
    pub budget: Credits,
    /// As it was sent in.
    pub document: Json,
    pub document_sha256: Digest,
    /// What it was understood as.
    pub plan: Json,
    pub terms: Terms,
}

impl Create {
    /// Everything that can be known before deciding is worked out here: whoever decides keeps others waiting.
    pub fn new(org: OrgId, document: Json, compiled: Compiled) -> Self {
        let Compiled { project, name, labels, priority, budget, plan, task: _ } = compiled;
        let text = Json::of(&serde_json::to_value(&plan).unwrap_or_default());
        let (document_sha256, terms) = (document.digest(), Terms::of(&plan, text.digest()));
        Self { org, project, name, labels, priority, budget, document, document_sha256, plan: text, terms }
    }
}

impl Command for Create {
    type Out = Run;
    type No = RunError;

    fn org(&self) -> &OrgId {
        &self.org
    }

    fn reads(&self, _: &Definitions) -> Reads {
        if self.budget.is_zero() { Reads::none() } else { OrgAccount::reads() }
    }

    fn decide(&self, view: &View<'_>, cx: &mut Ctx<'_>) -> Decision<Run, RunError> {
        if !self.budget.is_zero() {
            let available = OrgAccount::of(view).purse.balance;
            if available < self.budget {
                return Decision::Refused(RunError::Short { wanted: self.budget, available });
            }
        }
        let run = Run {
            org: self.org.clone(),
            id: RunId(cx.ids.uuid()),
            project: self.project.clone(),
            name: self.name.clone(),
            labels: self.labels.clone(),
            priority: self.priority,
            terms: self.terms.clone(),
            budget: self.budget,
            state: State::Created,
            attempt: 0,
            failures: 0,
            error: None,
            reason: None,
            created_at: cx.now,
            queued_at: None,
            started_at: None,
            ended_at: None,
            paused_at: None,
            paused_by: None,
            deadline: None,
            money: Money::default(),
            counts: Counts::default(),
            agents: Vec::new(),
            before: Vec::new(),
            signals: 0,
            job: None,
            deleted_at: None,
            head: Head::NONE,
        };
        let told = json!({
            "budget": run.budget,
            "document_sha256": self.document_sha256,
            "name_sha256": Json::of(&json!(run.name)).digest(),
            "plan_sha256": run.terms.plan,
        });
        let mut changes = Changes::none().event(run.tells("run.created", told));
        changes.runs.push(super::Change::Create(Box::new(run.clone()), self.document.clone(), self.plan.clone()));
        Decision::Done(run, changes)
    }
}
