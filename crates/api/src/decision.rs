//! Decisions: what people are asked, and their answers.

use crate::app::App;
use crate::call::Call;
use crate::cursor;
use crate::door::Caller;
use crate::idempotency::{self, rendered};
use crate::limits;
use crate::problem::Fault;
use crate::query::Params;
use crate::wait;
use axum::Json as Answer;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::Response;
use baton_core::ProjectId;
use baton_core::decision::{Case, resolve};
use baton_core::doc::Class;
use baton_core::id::DecisionId;
use baton_core::name::Responsibility;
use baton_store::ListDocs;
use baton_wire::{Decision, DecisionList, DecisionState, Resolve, limit};

type Id = Result<Path<String>, PathRejection>;

/// Which ones are wanted.
struct Wanted {
    state: Option<DecisionState>,
    project: Option<ProjectId>,
    responsibility: Option<Responsibility>,
    subject: Option<String>,
}

impl Wanted {
    fn read(params: &Params) -> Result<Self, Fault> {
        let states = || DecisionState::ALL.map(DecisionState::as_str).join(", ");
        let state = params.one("state")?.map(|text| {
            let found = DecisionState::ALL.into_iter().find(|state| state.as_str() == text);
            found.ok_or_else(|| Fault::field("state", format!("must be one of {}", states())))
        });
        Ok(Self {
            state: state.transpose()?,
            project: params.parsed("projectId")?,
            responsibility: params.parsed("responsibility")?,
            subject: params.one("subject")?.map(str::to_owned),
        })
    }

    fn matches(&self, decision: &Decision) -> bool {
        self.state.is_none_or(|state| decision.state == state)
            && self.project.as_ref().is_none_or(|project| decision.project_id == *project)
            && (self.responsibility.as_ref()).is_none_or(|name| decision.responsibility.as_ref() == Some(name))
            && self.subject.as_ref().is_none_or(|subject| decision.subject == *subject)
    }
}

pub async fn list(State(app): State<App>, caller: Caller, params: Params) -> Result<Answer<DecisionList>, Fault> {
    let asked = cursor::DECISIONS.asked(&params, &["state", "projectId", "responsibility", "subject"])?;
    let wanted = Wanted::read(&params)?;
    let limit = asked.limit;
    let mut after = asked.after_text()?;
    let mut decisions = Vec::new();
    // Only whether it is open is known to the index; the rest is looked through, a bounded number at
    // a time: a page may be short and still have a cursor.
    for _ in 0..limits::DECISION_ROUNDS {
        let ask = ListDocs {
            org: caller.org.clone(),
            class: Class::Decision,
            prefix: String::new(),
            flag: wanted.state.map(|state| state == DecisionState::Open),
            order: asked.order,
            after,
            limit: limit::NAMES,
        };
        let page = wait::read(app.store().docs(ask)).await?;
        after = page.next;
        for (at, doc) in &page.items {
            let Some((id, case)) = at.key.parse().ok().zip(Case::of(doc)) else { continue };
            let decision = Decision::of(id, &case);
            if case.reached_by(&caller.grant) && wanted.matches(&decision) {
                decisions.push(decision);
            }
            if decisions.len() == limit {
                after = Some(at.key.clone());
                break;
            }
        }
        if after.is_none() || decisions.len() == limit {
            break;
        }
    }
    Ok(Answer(DecisionList { decisions, next_cursor: after.map(|key| asked.next_text(&key)) }))
}

pub async fn get(State(app): State<App>, caller: Caller, id: Id, params: Params) -> Result<Answer<Decision>, Fault> {
    params.allow(&[])?;
    let id = decision_id(id)?;
    Ok(Answer(Decision::of(id, &find(&app, &caller, id).await?)))
}

/// A decision that there is for this caller.
async fn find(app: &App, caller: &Caller, id: DecisionId) -> Result<Case, Fault> {
    let doc = wait::read(app.store().doc(&caller.org, &Case::at(id))).await?;
    let found = doc.as_ref().and_then(Case::of).filter(|case| case.reached_by(&caller.grant));
    found.ok_or_else(|| Fault::new("decision_not_found", format!("decision {id} does not exist")))
}

pub async fn resolve(State(app): State<App>, caller: Caller, id: Id, call: Call) -> Result<Response, Fault> {
    let id = decision_id(id)?;
    let asked: Resolve = call.body.parse()?;
    let keyed = call.keyed("POST /api/v1/decisions/{decisionId}/resolve", &asked)?;
    if keyed.is_some() {
        // What is said again is answered from what was stored: to those only who could have said it.
        let case = find(&app, &caller, id).await?;
        if !caller.grant.may_answer_for(case.responsibility.as_ref()) {
            return Err(Fault::new("not_responsible", format!("decision {id} is for somebody else to answer")));
        }
    }
    let command = resolve::Resolve {
        org: caller.org.clone(),
        id,
        option: asked.option,
        comment: asked.comment,
        data: asked.data,
        grant: (*caller.grant).clone(),
    };
    idempotency::commit(&app, &caller, command, keyed, move |case: &Case| rendered(200, &Decision::of(id, case))).await
}

/// An id that nobody could have been given names no decision.
fn decision_id(path: Id) -> Result<DecisionId, Fault> {
    let text = path.map(|Path(text)| text).unwrap_or_default();
    text.parse().map_err(|error: baton_core::id::BadId| Fault::new("decision_not_found", error.to_string()))
}
