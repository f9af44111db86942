//! A person's answer.

use super::{Case, ChoiceName, Closed, Effect, How, Subject};
use crate::access::Grant;
use crate::canon::Json;
use crate::changes::Changes;
use crate::command::{Command, Ctx, Decision, Reads, Refusal, Unseen};
use crate::definition::Definitions;
use crate::doc;
use crate::id::DecisionId;
use crate::job::answer::{self, Answer};
use crate::job::wake;
use crate::limits;
use crate::name::OrgId;
use crate::time::Micros;
use crate::world::View;
use serde_json::Value;

#[derive(Clone, Debug)]
pub struct Resolve {
    pub org: OrgId,
    pub id: DecisionId,
    pub option: ChoiceName,
    pub comment: Option<String>,
    /// Whatever else the one who waits shall know.
    pub data: Option<Value>,
    /// What whoever answers may do.
    pub grant: Grant,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    #[error("decision {0} does not exist")]
    NotFound(DecisionId),
    #[error("decision {id} was {} by {by} before", how.as_str())]
    Closed { id: DecisionId, how: How, by: String, at: Micros },
    #[error("decision {id} is for {whose} to answer, or for an admin")]
    NotYours { id: DecisionId, whose: String },
    #[error("{option} is not among the options: {options}")]
    NoOption { option: ChoiceName, options: String },
    #[error("the answer has {bytes} bytes as canonical JSON; at most {max} are accepted")]
    TooLarge { bytes: usize, max: usize },
    #[error("what decision {0} is about has ended")]
    Over(DecisionId),
}

impl Refusal for ResolveError {
    fn code(&self) -> &'static str {
        match self {
            Self::NotFound(_) => "decision_not_found",
            Self::Closed { .. } | Self::Over(_) => "decision_closed",
            Self::NotYours { .. } => "not_responsible",
            Self::NoOption { .. } => "unknown_option",
            Self::TooLarge { .. } => "answer_too_large",
        }
    }
}

impl Resolve {
    fn checked(&self, view: &View<'_>) -> Result<(Case, crate::event::Head, Effect), ResolveError> {
        let doc = view.doc(&Case::at(self.id));
        let Some((doc, case)) = doc.and_then(|doc| Some((doc, Case::of(doc)?))) else {
            return Err(ResolveError::NotFound(self.id));
        };
        // What a key does not reach is not there for it.
        if !case.reached_by(&self.grant) {
            return Err(ResolveError::NotFound(self.id));
        }
        if !self.grant.may_answer_for(case.responsibility.as_ref()) {
            let whose = case.responsibility.map_or_else(|| "those who decide".to_owned(), |name| name.to_string());
            return Err(ResolveError::NotYours { id: self.id, whose });
        }
        if let Some(closed) = case.closed {
            return Err(ResolveError::Closed { id: self.id, how: closed.how, by: closed.by, at: closed.at });
        }
        let Some(choice) = case.option(&self.option) else {
            let options = case.options.iter().map(|choice| choice.name.as_str()).collect::<Vec<_>>().join(", ");
            return Err(ResolveError::NoOption { option: self.option.clone(), options });
        };
        let effect = choice.effect;
        Ok((case, doc.head, effect))
    }
}

impl Command for Resolve {
    type Out = Case;
    type No = ResolveError;

    fn org(&self) -> &OrgId {
        &self.org
    }

    fn reads(&self, _: &Definitions) -> Reads {
        Reads::doc(Case::at(self.id))
    }

    fn decide(&self, view: &View<'_>, cx: &mut Ctx<'_>) -> Decision<Case, ResolveError> {
        let (case, head, effect) = match self.checked(view) {
            Ok(found) => found,
            Err(no) => return Decision::Refused(no),
        };
        let said = self.comment.as_ref().map_or(0, String::len) + self.data.as_ref().map_or(0, |d| Json::of(d).len());
        if said > limits::QUESTION_BYTES {
            return Decision::Refused(ResolveError::TooLarge { bytes: said, max: limits::QUESTION_BYTES });
        }
        if let Err(unseen) = waiter(view, &case) {
            return unseen.into();
        }
        let closed = Closed {
            how: How::Resolved,
            at: cx.now,
            by: cx.actor.to_string(),
            option: Some(self.option.clone()),
            comment: self.comment.clone(),
            data: self.data.clone(),
            reason: None,
        };
        let Some(moved) = moved(view, cx, &case, self.id, effect, &closed) else {
            return Decision::Refused(ResolveError::Over(self.id));
        };
        let changes = case.closed(self.id, head, closed.clone()).and(moved);
        // As it was written, its history included.
        let written = changes.docs.iter().find_map(|doc::Change::Put(_, doc)| Case::of(doc));
        Decision::Done(written.unwrap_or(Case { closed: Some(closed), ..case }), changes)
    }
}

/// What must be seen of the one that waits.
pub(super) fn waiter(view: &View<'_>, case: &Case) -> Result<(), Unseen> {
    match case.subject {
        Subject::Job(job) => view.see(Reads::job(job)),
        Subject::Step { agent, .. } => {
            view.see(Reads::agent(agent))?;
            match view.agent(agent).and_then(|agent| agent.job) {
                Some(job) => view.see(Reads { jobs: [job].into(), ..Reads::agent(agent) }),
                None => Ok(()),
            }
        }
    }
}

/// What an answer does to the one that waits for it; nothing can be done to one that does not.
pub(super) fn moved(
    view: &View<'_>,
    cx: &Ctx<'_>,
    case: &Case,
    id: DecisionId,
    effect: Effect,
    closed: &Closed,
) -> Option<Changes> {
    match case.subject {
        Subject::Job(job) => {
            let job = view.job(job).filter(|job| job.decision() == Some(id))?;
            answer::answered(view, cx, job, &Answer { decision: id, effect, closed })
        }
        // The agent looks at the answer itself, as soon as it goes on.
        Subject::Step { agent, .. } => {
            let agent = view.agent(agent).filter(|agent| agent.decisions().any(|waits| waits == id))?;
            let job = agent.job.and_then(|job| view.job(job));
            Some(job.and_then(|job| wake::woken(job, cx.now).ok()).map(|(_, changes)| changes).unwrap_or_default())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Role;
    use crate::command::Actor;
    use crate::id::KeyId;
    use crate::job::bench_top::BenchTop;
    use crate::job::settle::Outcome;
    use crate::job::{State, Status};
    use serde_json::json;

    /// A job that asks, and its decision.
    fn asking(question: Value) -> (BenchTop, DecisionId) {
        let mut top = BenchTop::new();
        top.enqueue();
        let job = top.claim();
        top.settle(&job, Outcome::Ask(Json::of(&question)));
        let id = top.latest().decision().unwrap();
        (top, id)
    }

    fn resolve(id: DecisionId, option: &str, grant: Grant) -> Resolve {
        let org = OrgId::default();
        Resolve { org, id, option: option.parse().unwrap(), comment: None, data: None, grant }
    }

    #[test]
    fn an_answer_wakes_the_job_with_it_and_a_second_one_is_refused() {
        let (mut top, id) = asking(json!({ "prompt": "sure?", "card": "canary" }));
        top.actor = Actor::Key(KeyId(uuid::Uuid::from_u128(3)));
        let yes = Resolve {
            comment: Some("fine-canary".to_owned()),
            data: Some(json!({ "n": 1 })),
            ..resolve(id, "confirm", Grant::of(Role::Operator))
        };
        let case = top.done(&yes);
        assert_eq!(case.closed.unwrap().by, "key_00000000000000000000000000000003");
        assert_eq!(top.latest().status, Status::AwaitingUser { due_at: Some(top.now) });
        let job = top.claim();
        let heard = job.aside.unwrap().answer.unwrap();
        assert_eq!(
            (&heard["option"], &heard["comment"], &heard["data"]["n"]),
            (&json!("confirm"), &json!("fine-canary"), &json!(1))
        );
        assert_eq!(top.refuse(&yes).code(), "decision_closed");
        assert!(!top.texts().contains("canary"), "events carry digests");
    }

    #[test]
    fn options_have_effects() {
        let question = json!({ "options": [
            { "name": "stop", "effect": "cancel" }, { "name": "break", "effect": "fail" }, { "name": "go" },
        ] });
        for (option, state) in
            [("stop", State::Cancelled), ("break", State::Failed), ("go", State::AwaitingUserConfirmation)]
        {
            let (mut top, id) = asking(question.clone());
            top.done(&resolve(id, option, Grant::of(Role::Admin)));
            assert_eq!(top.latest().status.state(), state, "{option}");
        }
        let (mut top, id) = asking(question);
        assert_eq!(top.refuse(&resolve(id, "maybe", Grant::of(Role::Admin))).code(), "unknown_option");
    }

    #[test]
    fn only_the_responsible_answer_and_nobody_beyond_their_scope_sees_it() {
        let (mut top, id) = asking(json!({ "responsibility": "cto" }));
        let cto = Grant { responsibilities: ["cto".parse().unwrap()].into(), ..Grant::of(Role::Viewer) };
        assert_eq!(top.refuse(&resolve(id, "confirm", Grant::of(Role::Operator))).code(), "not_responsible");
        let elsewhere = Grant { projects: Some(["other".parse().unwrap()].into()), ..cto.clone() };
        assert_eq!(top.refuse(&resolve(id, "confirm", elsewhere)).code(), "decision_not_found");
        top.done(&resolve(id, "confirm", cto));
        let nobody = DecisionId(uuid::Uuid::from_u128(9));
        assert_eq!(top.refuse(&resolve(nobody, "confirm", Grant::of(Role::Admin))).code(), "decision_not_found");
    }

    #[test]
    fn a_cancelled_job_withdraws_its_decision() {
        let (mut top, id) = asking(json!({ "withinMs": 1_000 }));
        let job = top.latest().id;
        top.done(&crate::job::cancel::Cancel { org: OrgId::default(), job, reason: None });
        assert_eq!(top.refuse(&resolve(id, "confirm", Grant::of(Role::Admin))).code(), "decision_closed");
        assert!(top.told("decision.withdrawn"));
    }

    #[test]
    fn what_is_too_large_to_keep_is_refused() {
        let (mut top, id) = asking(json!({}));
        let comment = Some("x".repeat(limits::QUESTION_BYTES + 1));
        let long = Resolve { comment, ..resolve(id, "confirm", Grant::of(Role::Admin)) };
        assert_eq!(top.refuse(&long).code(), "answer_too_large");
    }
}
