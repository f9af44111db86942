//! What a running job says of itself: how far it is, and what it works on outside.

use super::{Change, Context, Fence, Progress};
use crate::changes::Changes;
use crate::command::{Command, Ctx, Decision, Reads, Refusal};
use crate::definition::Definitions;
use crate::id::JobId;
use crate::limits;
use crate::name::OrgId;
use crate::world::View;
use serde_json::json;

#[derive(Clone, Debug)]
pub struct Report {
    pub fence: Fence,
    pub progress: Option<Progress>,
    pub context: Option<Context>,
}

/// Whether somebody wants the job to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reported {
    pub cancel_requested: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReportError {
    #[error("the lease on job {job} with token {token} is no longer held")]
    LeaseLost { job: JobId, token: i64 },
}

impl Refusal for ReportError {
    fn code(&self) -> &'static str {
        "lease_lost"
    }
}

impl Command for Report {
    type Out = Reported;
    type No = ReportError;

    fn org(&self) -> &OrgId {
        &self.fence.org
    }

    fn reads(&self, _: &Definitions) -> Reads {
        Reads::job(self.fence.job)
    }

    fn decide(&self, view: &View<'_>, _: &mut Ctx<'_>) -> Decision<Reported, ReportError> {
        let Some(job) = view.job(self.fence.job).filter(|job| job.held_by(&self.fence)) else {
            let (job, token) = (self.fence.job, self.fence.token);
            return Decision::Refused(ReportError::LeaseLost { job, token });
        };
        let out = Reported { cancel_requested: job.cancel_requested().is_some() };
        let mut next = job.clone();
        let mut changes = Changes::none();
        let cut = |text: &String| limits::cut(text, limits::NOTE_CHARS);
        if let Some(context) = &self.context {
            let (thread, turn) = (context.thread.as_ref().map(cut), context.turn.as_ref().map(cut));
            next.aside_mut().context = Context { thread, turn };
        }
        if let Some(progress) = &self.progress {
            let percent = progress.percent.map(|p| p.min(100));
            next.aside_mut().progress = Some(Progress { percent, note: progress.note.as_ref().map(cut) });
            changes = changes.and(next.tells("job.progress", json!({ "percent": percent })));
        }
        if next == *job && changes.events.is_empty() {
            return Decision::Done(out, Changes::none());
        }
        Decision::Done(out, changes.job(Change::Put(next)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::bench_top::{BenchTop, done};

    #[test]
    fn progress_is_an_event_and_the_running_context_is_not() {
        let mut top = BenchTop::new();
        top.enqueue();
        let job = top.claim();
        let fence = job.fence().unwrap();
        let context = Context { thread: Some("t1".to_owned()), turn: Some("u1".to_owned()) };
        let said = Report { fence: fence.clone(), progress: None, context: Some(context.clone()) };
        assert_eq!(top.done(&said), Reported { cancel_requested: false });
        assert_eq!(top.kinds(), ["job.queued", "job.started"]);
        let progress = Progress { percent: Some(140), note: Some("x".repeat(999)) };
        top.done(&Report { fence: fence.clone(), progress: Some(progress), context: None });
        let aside = top.latest().aside.unwrap();
        assert_eq!(aside.context, context);
        assert_eq!(aside.progress.as_ref().unwrap().percent, Some(100));
        assert!(aside.progress.unwrap().note.unwrap().chars().count() <= limits::NOTE_CHARS + 1);
        assert_eq!(top.kinds().last(), Some(&"job.progress"));
        top.settle(&job, done());
        assert_eq!(top.refuse(&said).code(), "lease_lost");
    }
}
