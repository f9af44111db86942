//! A decision's deadline has come.

use super::resolve::{moved, waiter};
use super::{Breach, Case, Closed, Effect, Happens, How};
use crate::changes::Changes;
use crate::command::{Command, Ctx, Decision, Reads, Refusal};
use crate::definition::Definitions;
use crate::id::DecisionId;
use crate::name::OrgId;
use crate::time::Micros;
use crate::timer;
use crate::world::View;
use serde_json::json;

/// Issued by the timer; several nodes may issue it, one of them finds the timer.
#[derive(Clone, Debug)]
pub struct Expire {
    pub org: OrgId,
    pub id: DecisionId,
    /// The moment the timer stood for when it was found due.
    pub at: Micros,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExpireError {
    #[error("the timer was fired, moved or cleared since it was found due")]
    TimerGone,
}

impl Refusal for ExpireError {
    fn code(&self) -> &'static str {
        "timer_gone"
    }
}

impl Command for Expire {
    type Out = ();
    type No = ExpireError;

    fn org(&self) -> &OrgId {
        &self.org
    }

    fn reads(&self, _: &Definitions) -> Reads {
        Reads::doc(Case::at(self.id)).and_timer(Case::timer(self.id))
    }

    fn decide(&self, view: &View<'_>, cx: &mut Ctx<'_>) -> Decision<(), ExpireError> {
        let key = Case::timer(self.id);
        if view.timer(&key) != Some(self.at) || self.at > cx.now {
            return Decision::Refused(ExpireError::TimerGone);
        }
        let cleared = || Changes::none().timer(timer::Change::Clear { key });
        let open = view.doc(&Case::at(self.id)).filter(|doc| doc.flag);
        let Some((doc, case)) = open.and_then(|doc| Some((doc, Case::of(doc)?))) else {
            return Decision::Done((), cleared());
        };
        let passed = |kind| Happens { at: cx.now, by: None, kind };
        let (effect, option) = match &case.on_breach {
            Breach::Wait => {
                let next = Case { overdue: true, ..case };
                let told = next.put(self.id, doc.head, passed("decision.overdue"), json!({}));
                return Decision::Done((), told.and(cleared()));
            }
            Breach::Escalate(further) => {
                // How long they have was checked when it was asked.
                let within = further.within_ms.and_then(|ms| super::question::span(ms).ok());
                let next = Case {
                    responsibility: Some(further.to.clone()),
                    deadline_at: within.map(|within| cx.now.plus(within)),
                    on_breach: further.then.clone(),
                    ..case.clone()
                };
                let told = json!({ "deadline_at": next.deadline_at, "from": case.responsibility });
                let timer = match next.deadline_at {
                    Some(at) => timer::Change::Set { key, at },
                    None => timer::Change::Clear { key },
                };
                let changes = next.put(self.id, doc.head, passed("decision.escalated"), told).timer(timer);
                return Decision::Done((), changes);
            }
            Breach::Cancel => (Effect::Cancel, None),
            Breach::Fail => (Effect::Fail, None),
            Breach::Choose(name) => (case.option(name).map_or(Effect::Fail, |c| c.effect), Some(name.clone())),
        };
        if let Err(unseen) = waiter(view, &case) {
            return unseen.into();
        }
        let closed = Closed {
            how: How::Expired,
            at: cx.now,
            by: cx.actor.to_string(),
            option,
            comment: None,
            data: None,
            reason: None,
        };
        let moved = moved(view, cx, &case, self.id, effect, &closed).unwrap_or_default();
        Decision::Done((), case.closed(self.id, doc.head, closed).and(moved))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canon::Json;
    use crate::job::State;
    use crate::job::bench_top::BenchTop;
    use crate::job::settle::Outcome;
    use crate::time::Span;
    use serde_json::Value;

    fn asking(breach: Value) -> (BenchTop, Expire) {
        let mut top = BenchTop::new();
        top.enqueue();
        let job = top.claim();
        let question = json!({ "responsibility": "dev", "withinMs": 1_000, "onBreach": breach });
        top.settle(&job, Outcome::Ask(Json::of(&question)));
        let id = top.latest().decision().unwrap();
        let at = top.now.plus(Span::secs(1));
        (top, Expire { org: OrgId::default(), id, at })
    }

    #[test]
    fn what_was_to_happen_at_the_deadline_happens_once() {
        for (breach, state) in [
            (json!("fail"), State::Failed),
            (json!("cancel"), State::Cancelled),
            (json!({ "choose": "decline" }), State::AwaitingUserConfirmation),
            (json!("wait"), State::AwaitingUserConfirmation),
        ] {
            let (mut top, expire) = asking(breach.clone());
            assert_eq!(top.refuse(&expire), ExpireError::TimerGone, "not yet due");
            top.now = expire.at;
            top.done(&expire);
            assert_eq!(top.latest().status.state(), state, "{breach}");
            assert_eq!(top.refuse(&expire), ExpireError::TimerGone);
        }
    }

    #[test]
    fn a_chosen_answer_wakes_and_waiting_on_does_not() {
        let (mut top, expire) = asking(json!({ "choose": "decline" }));
        top.now = expire.at;
        top.done(&expire);
        assert_eq!(top.claim().aside.unwrap().answer.unwrap()["option"], "decline");
        let (mut top, expire) = asking(json!("wait"));
        top.now = expire.at;
        top.done(&expire);
        assert_eq!(top.latest().status.due_at(), None);
        assert!(top.told("decision.overdue"));
    }

    #[test]
    fn an_escalation_asks_somebody_else_and_then_goes_on() {
        let (mut top, expire) = asking(json!({ "escalate": { "to": "cto", "withinMs": 5_000, "then": "cancel" } }));
        top.now = expire.at;
        top.done(&expire);
        assert!(top.told("decision.escalated"));
        let again = Expire { at: expire.at.plus(Span::secs(5)), ..expire };
        top.now = again.at;
        top.done(&again);
        assert_eq!(top.latest().status.state(), State::Cancelled);
        let case = Case::of(&top.doc(&Case::at(again.id))).unwrap();
        let told =
            case.history.iter().map(|turn| (turn.what.as_str(), turn.responsibility.as_ref().map(|r| r.as_str())));
        let expected = [("opened", Some("dev")), ("escalated", Some("cto")), ("expired", Some("cto"))];
        assert_eq!(told.collect::<Vec<_>>(), expected);
    }
}
