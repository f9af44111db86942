//! Whether links lead from event to event. They are in no hash, so nothing else would notice a wrong one, and retention
//! would find too little to remove.

use baton_core::OrgId;
use baton_core::audit::Report;
use baton_core::event::{Recorded, Subject};
use uuid::Uuid;

/// A link of an event, and what its subject's row says of the last.
pub(super) struct Link {
    pub pos: i64,
    pub prev: Option<i64>,
    /// The number and the place of the last event. Only jobs tell the place.
    pub head: Option<(i64, i64)>,
}

struct Open {
    org: OrgId,
    subject: Uuid,
    n: i64,
    /// The place of the last event that was shown, 0 if it is not linked.
    place: i64,
    head: Option<(i64, i64)>,
}

/// Takes events subject by subject. Where the chain itself has a gap nothing is said: that is told already.
#[derive(Default)]
pub(super) struct Links(Option<Open>);

impl Links {
    pub fn event(&mut self, report: &mut Report, event: &Recorded, link: &Link) {
        if !self.0.as_ref().is_some_and(|open| open.subject == event.subject && open.org == event.org) {
            self.finish(report);
            let (org, subject) = (event.org.clone(), event.subject);
            self.0 = Some(Open { org, subject, n: 0, place: 0, head: link.head });
        }
        let Some(open) = self.0.as_mut() else { return };
        let is_job = matches!(Subject::of(&event.kind, event.subject), Some(Subject::Job(_)));
        let sound = match link.prev {
            None => open.place == 0,
            Some(prev) => is_job && prev == open.place,
        };
        if !sound && event.n == open.n + 1 {
            let what = format!("event {} does not lead to the one before it", event.n);
            report.add("link_broken", &event.org, event.subject.simple(), what);
        }
        open.n = event.n;
        open.place = if link.prev.is_some() { link.pos } else { 0 };
    }

    pub fn finish(&mut self, report: &mut Report) {
        let Some(Open { org, subject, n, place, head: Some((last, at)) }) = self.0.take() else { return };
        if last == n && at != place {
            report.add("link_broken", &org, subject.simple(), "the row does not lead to its last event");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_core::event::{Event, Head};
    use baton_core::{JobId, Micros};

    /// What is said of a job with these links, whose row leads there.
    fn said(kind: &'static str, prevs: &[Option<i64>], head_pos: i64) -> usize {
        let (mut report, mut links, mut head) = (Report::default(), Links::default(), Head::NONE);
        let (org, job) = (OrgId::default(), JobId(Uuid::from_u128(7)));
        let last = prevs.len() as i64;
        for (pos, prev) in (10..).step_by(10).zip(prevs) {
            let event = Event::new(Subject::Job(job), kind, serde_json::json!({}));
            let (event, next) = Recorded::append(head, &org, "api", Micros(1), event);
            links.event(&mut report, &event, &Link { pos, prev: *prev, head: Some((last, head_pos)) });
            head = next;
        }
        links.finish(&mut report);
        report.violations.iter().filter(|v| v.code == "link_broken").count()
    }

    #[test]
    fn links_that_lead_from_event_to_event_are_sound_and_all_others_are_named() {
        assert_eq!(said("job.queued", &[Some(0), Some(10), Some(20)], 30), 0);
        assert_eq!(said("job.queued", &[None, None, Some(0), Some(30)], 40), 0, "half of it from before");
        assert_eq!(said("job.queued", &[None, None], 0), 0, "all of it from before");
        assert_eq!(said("run.created", &[None, None], 0), 0);
        assert_eq!(said("job.queued", &[Some(0), Some(10), Some(10)], 30), 1, "one is left out");
        assert_eq!(said("job.queued", &[Some(0), Some(0), Some(20)], 30), 1);
        assert_eq!(said("job.queued", &[Some(0), None], 0), 1, "not linked any more");
        assert_eq!(said("job.queued", &[Some(0), Some(10)], 10), 1, "the row leads elsewhere");
        assert_eq!(said("job.queued", &[Some(0), Some(30), Some(20)], 30), 1, "a circle");
        assert_eq!(said("run.created", &[None, Some(0)], 0), 2, "of a run nothing is linked");
    }
}
