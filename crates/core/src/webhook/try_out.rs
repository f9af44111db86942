//! Sending an endpoint something, to see whether it arrives.

use super::change::WebhookError;
use super::{Letter, TEST_EVENT, Webhook, deliver, order};
use crate::command::{Command, Ctx, Decision, Reads};
use crate::definition::Definitions;
use crate::id::WebhookId;
use crate::job::Job;
use crate::job::intake::{self, Intake};
use crate::name::OrgId;
use crate::world::View;
use serde_json::json;

/// Also to one that is disabled: that is when one wants to know.
#[derive(Clone, Debug)]
pub struct TryOut {
    pub org: OrgId,
    pub id: WebhookId,
}

impl TryOut {
    fn letter(&self, message: String) -> Letter {
        Letter { message, event: json!({ "data": { "webhook": self.id }, "kind": TEST_EVENT }) }
    }
}

impl Command for TryOut {
    /// The delivery.
    type Out = Job;
    type No = WebhookError;

    fn org(&self) -> &OrgId {
        &self.org
    }

    fn reads(&self, defs: &Definitions) -> Reads {
        let order = order(&self.org, self.id, &deliver(), &self.letter(String::new()));
        let mut reads = Reads::doc(Webhook::at(self.id));
        reads.merge(intake::reads(&order, defs));
        reads
    }

    fn decide(&self, view: &View<'_>, cx: &mut Ctx<'_>) -> Decision<Job, WebhookError> {
        let found = view.doc(&Webhook::at(self.id)).and_then(Webhook::of);
        if found.is_none_or(|webhook| webhook.deleted_at.is_some()) {
            return Decision::Refused(WebhookError::NotFound(self.id));
        }
        let letter = self.letter(format!("test_{}", cx.ids.doc().0.simple()));
        let mut intake = Intake::new(*view, cx.defs);
        match intake.take(&order(&self.org, self.id, &deliver(), &letter), cx) {
            Ok(taken) => Decision::Done(taken.job, intake.finish()),
            Err(_) => Decision::Refused(WebhookError::Invalid("this node cannot deliver".to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Refusal as _;
    use crate::job::bench_top::BenchTop;
    use crate::webhook::change::Act;
    use crate::webhook::change::tests::{ID, change, create};
    use crate::webhook::job_type;

    #[test]
    fn a_disabled_endpoint_can_be_tried_and_a_deleted_one_not() {
        let mut top = BenchTop::of(job_type());
        let try_out = TryOut { org: OrgId::default(), id: ID };
        top.done(&create());
        top.done(&change(Act::Disable));
        assert_eq!(top.done(&try_out).project, Webhook::project(ID));
        top.done(&change(Act::Delete));
        assert_eq!(top.refuse(&try_out).code(), "webhook_not_found");
    }
}
