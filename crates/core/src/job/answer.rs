//! What a decision does to the job that waits for it.

use super::{Change, Failure, Job, Scene, Status, settle};
use crate::canon::Json;
use crate::changes::Changes;
use crate::command::Ctx;
use crate::decision::{Closed, Effect, How};
use crate::id::DecisionId;
use crate::world::View;
use serde_json::json;

pub(crate) struct Answer<'a> {
    pub decision: DecisionId,
    pub effect: Effect,
    pub closed: &'a Closed,
}

/// Nothing if the job waits for no answer.
pub(crate) fn answered(view: &View<'_>, cx: &Ctx<'_>, job: &Job, answer: &Answer<'_>) -> Option<Changes> {
    if job.status != (Status::AwaitingUser { due_at: None }) {
        return None;
    }
    let Answer { decision, effect, closed } = answer;
    let option = closed.option.as_ref().map_or("nothing", |option| option.as_str());
    let why = match closed.how {
        How::Expired => "decision_expired",
        How::Resolved | How::Withdrawn => "declined",
    };
    let scene = Scene { defs: cx.defs, payload: view.payload(job.id), now: cx.now };
    match effect {
        Effect::GoOn => {
            let mut next = job.clone();
            next.status = Status::AwaitingUser { due_at: Some(cx.now) };
            let heard = json!({
                "by": closed.by, "comment": closed.comment, "data": closed.data, "decision": decision, "option": option,
            });
            let told = json!({ "answer_sha256": Json::of(&heard).digest(), "decision": decision });
            next.aside_mut().answer = Some(heard);
            Some(next.tells("job.confirmed", told).job(Change::Put(next)))
        }
        Effect::Cancel => scene.cancel(&job.fenced(), why).ok(),
        Effect::Fail => {
            let message = match closed.how {
                How::Expired => "nobody had answered by the deadline of its decision".to_owned(),
                How::Resolved | How::Withdrawn => format!("{option} was decided"),
            };
            settle::fail_outside(job, Failure::new(why, &message), scene).ok()
        }
    }
}
