//! Turning what has happened into deliveries.

use super::{Letter, Webhook, deliver, order};
use crate::changes::Changes;
use crate::command::{Command, Ctx, Decision, Reads, Refusal};
use crate::definition::Definitions;
use crate::id::{JobId, WebhookId};
use crate::job::intake::{self, Intake};
use crate::name::OrgId;
use crate::world::View;

/// Moves an endpoint's place in the history from `from` to `to`, and enqueues a delivery for each
/// wanted event in between. Several nodes may try; one of them finds the place where it was.
#[derive(Clone, Debug)]
pub struct Dispatch {
    pub org: OrgId,
    pub id: WebhookId,
    pub from: String,
    pub to: String,
    pub letters: Vec<Letter>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DispatchError {
    #[error("the webhook is gone, disabled, or was told by somebody else")]
    Moved,
    #[error("this node cannot deliver")]
    NoType,
}

impl Refusal for DispatchError {
    fn code(&self) -> &'static str {
        match self {
            Self::Moved => "webhook_moved",
            Self::NoType => "unknown_job_type",
        }
    }
}

impl Command for Dispatch {
    type Out = Vec<JobId>;
    type No = DispatchError;

    fn org(&self) -> &OrgId {
        &self.org
    }

    fn reads(&self, defs: &Definitions) -> Reads {
        let mut reads = Reads::doc(Webhook::at(self.id));
        // All go to the same lane.
        if let Some(letter) = self.letters.first() {
            reads.merge(intake::reads(&order(&self.org, self.id, &deliver(), letter), defs));
        }
        reads
    }

    fn decide(&self, view: &View<'_>, cx: &mut Ctx<'_>) -> Decision<Vec<JobId>, DispatchError> {
        let found = view.doc(&Webhook::at(self.id)).filter(|doc| doc.flag);
        let found = found.and_then(|doc| Some((doc.head, Webhook::of(doc)?)));
        let Some((head, webhook)) = found.filter(|(_, webhook)| webhook.place == self.from) else {
            return Decision::Refused(DispatchError::Moved);
        };
        let mut intake = Intake::new(*view, cx.defs);
        let mut jobs = Vec::with_capacity(self.letters.len());
        for letter in &self.letters {
            match intake.take(&order(&self.org, self.id, &deliver(), letter), cx) {
                Ok(taken) => jobs.push(taken.job.id),
                // Nothing else can be wrong with what the engine asks for.
                Err(_) => return Decision::Refused(DispatchError::NoType),
            }
        }
        // A place is no news: the deliveries are.
        let moved = Webhook { place: self.to.clone(), ..webhook };
        let changes = intake.finish().and(Changes::none().doc(moved.doc(self.id, head)));
        Decision::Done(jobs, changes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::bench_top::BenchTop;
    use crate::webhook::change::tests::{ID, change, create};
    use crate::webhook::change::{Act, Kept};
    use crate::webhook::job_type;
    use serde_json::json;

    fn dispatch(from: &str, to: &str, letters: usize) -> Dispatch {
        let letter = |n| Letter { message: format!("m{n}"), event: json!({ "n": n }) };
        Dispatch {
            org: OrgId::default(),
            id: ID,
            from: from.to_owned(),
            to: to.to_owned(),
            letters: (0..letters).map(letter).collect(),
        }
    }

    #[test]
    fn a_place_is_moved_once_and_with_its_deliveries() {
        let mut top = BenchTop::of(job_type());
        top.done(&create());
        assert_eq!(top.done(&dispatch("c0", "c5", 3)).len(), 3);
        assert_eq!(top.refuse(&dispatch("c0", "c5", 3)), DispatchError::Moved);
        assert_eq!(top.done(&dispatch("c5", "c9", 0)), []);
        let Kept { webhook, .. } = top.done(&change(Act::Disable));
        assert_eq!(webhook.place, "c9");
        assert_eq!(top.refuse(&dispatch("c9", "c10", 1)), DispatchError::Moved);
    }
}
