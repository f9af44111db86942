//! What came of an attempt, as far as the endpoint is concerned.

use super::{Disabled, Webhook, Why};
use crate::changes::Changes;
use crate::command::{Command, Ctx, Decision, Never, Reads};
use crate::definition::Definitions;
use crate::id::WebhookId;
use crate::name::OrgId;
use crate::time::Span;
use crate::world::View;

/// An endpoint that has failed as often as this in a row ...
pub const FAILURES: u32 = 20;
/// ... and for as long as this is told nothing more until somebody says so. Both, because a short
/// outage fails many deliveries, and a rare event one at a time.
pub const FAILING: Span = Span::secs(6 * 60 * 60);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    Delivered,
    Failed,
    /// It says that it wants nothing more.
    Gone,
}

#[derive(Clone, Debug)]
pub struct Report {
    pub org: OrgId,
    pub id: WebhookId,
    /// Where it was sent: what came from there says nothing about another address.
    pub url: String,
    pub how: How,
}

impl Command for Report {
    type Out = ();
    type No = Never;

    fn org(&self) -> &OrgId {
        &self.org
    }

    fn reads(&self, _: &Definitions) -> Reads {
        Reads::doc(Webhook::at(self.id))
    }

    fn decide(&self, view: &View<'_>, cx: &mut Ctx<'_>) -> Decision<(), Never> {
        let found = view.doc(&Webhook::at(self.id)).and_then(|doc| Some((doc.head, Webhook::of(doc)?)));
        let Some((head, known)) = found.filter(|(_, known)| known.is_live() && known.url == self.url) else {
            return Decision::Done((), Changes::none());
        };
        let off = |why| Some(Disabled { at: cx.now, why });
        let next = match self.how {
            How::Delivered => Webhook { failures: 0, failing_since: None, ..known.clone() },
            How::Gone => Webhook { disabled: off(Why::Gone), ..known.clone() },
            How::Failed => {
                let failures = known.failures.saturating_add(1);
                let since = known.failing_since.unwrap_or(cx.now);
                let hopeless = failures >= FAILURES && cx.now.since(since) >= FAILING;
                let disabled = if hopeless { off(Why::Failing) } else { None };
                Webhook { failures, failing_since: Some(since), disabled, ..known.clone() }
            }
        };
        let changes = match (next == known, next.is_live()) {
            (true, _) => Changes::none(),
            // A count is no news.
            (false, true) => Changes::none().doc(next.doc(self.id, head)),
            (false, false) => next.put(self.id, head, "webhook.disabled"),
        };
        Decision::Done((), changes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::bench_top::BenchTop;
    use crate::webhook::change::Act;
    use crate::webhook::change::tests::{ID, change, create};

    fn report(how: How) -> Report {
        Report { org: OrgId::default(), id: ID, url: crate::webhook::change::tests::spec().url, how }
    }

    fn disabled(top: &mut BenchTop) -> Option<Why> {
        top.done(&change(Act::Update(crate::webhook::change::tests::spec()))).webhook.disabled.map(|off| off.why)
    }

    #[test]
    fn gone_is_gone_at_once() {
        let mut top = BenchTop::new();
        top.done(&create());
        top.done(&report(How::Gone));
        assert_eq!(disabled(&mut top), Some(Why::Gone));
        assert!(top.told("webhook.disabled"));
    }

    #[test]
    fn what_came_from_another_address_does_not_count() {
        let mut top = BenchTop::new();
        top.done(&create());
        top.done(&Report { url: "https://example.com/before".to_owned(), ..report(How::Gone) });
        assert_eq!(disabled(&mut top), None);
    }

    #[test]
    fn failing_is_told_by_number_and_by_time() {
        for (times, over, off) in
            [(FAILURES, FAILING, true), (FAILURES - 1, FAILING, false), (FAILURES, Span(FAILING.0 - 1), false)]
        {
            let mut top = BenchTop::new();
            top.done(&create());
            for n in 1..=times {
                if n == times {
                    top.now = top.now.plus(over);
                }
                top.done(&report(How::Failed));
            }
            assert_eq!(disabled(&mut top).is_some(), off, "{times} over {over:?}");
        }
    }

    #[test]
    fn one_success_makes_up_for_all_failures() {
        let mut top = BenchTop::new();
        top.done(&create());
        (1..FAILURES).for_each(|_| top.done(&report(How::Failed)));
        top.now = top.now.plus(FAILING);
        top.done(&report(How::Delivered));
        top.done(&report(How::Failed));
        assert_eq!(disabled(&mut top), None);
    }
}
