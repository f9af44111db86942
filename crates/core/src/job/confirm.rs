//! A person's answer to a job that asked.

use super::{Change, State, Status};
use crate::canon::Json;
use crate::changes::Changes;
use crate::command::{Command, Ctx, Decision, Reads, Refusal};
use crate::definition::Definitions;
use crate::id::JobId;
use crate::limits;
use crate::name::OrgId;
use crate::world::View;
use serde_json::json;

#[derive(Clone, Debug)]
pub struct Confirm {
    pub org: OrgId,
    pub job: JobId,
    /// Handed to the job as it goes on.
    pub answer: Json,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfirmError {
    #[error("job {0} does not exist")]
    NotFound(JobId),
    #[error("job {job} waits for nobody's answer: it is {state}")]
    NotAsking { job: JobId, state: State },
    #[error("the question of job {0} was answered before")]
    Answered(JobId),
    #[error("the answer has {bytes} bytes as canonical JSON; at most {max} are accepted")]
    TooLarge { bytes: usize, max: usize },
}

impl Refusal for ConfirmError {
    fn code(&self) -> &'static str {
        match self {
            Self::NotFound(_) => "job_not_found",
            Self::NotAsking { .. } => "invalid_transition",
            Self::Answered(_) => "already_answered",
            Self::TooLarge { .. } => "answer_too_large",
        }
    }
}

impl Command for Confirm {
    type Out = ();
    type No = ConfirmError;

    fn org(&self) -> &OrgId {
        &self.org
    }

    fn reads(&self, _: &Definitions) -> Reads {
        Reads::job(self.job)
    }

    fn decide(&self, view: &View<'_>, cx: &mut Ctx<'_>) -> Decision<(), ConfirmError> {
        let Some(job) = view.job(self.job) else {
            return Decision::Refused(ConfirmError::NotFound(self.job));
        };
        if self.answer.len() > limits::QUESTION_BYTES {
            let bytes = self.answer.len();
            return Decision::Refused(ConfirmError::TooLarge { bytes, max: limits::QUESTION_BYTES });
        }
        match &job.status {
            Status::AwaitingUser { due_at: None } => {}
            Status::AwaitingUser { due_at: Some(_) } => return Decision::Refused(ConfirmError::Answered(job.id)),
            other => return Decision::Refused(ConfirmError::NotAsking { job: job.id, state: other.state() }),
        }
        let mut next = job.clone();
        next.status = Status::AwaitingUser { due_at: Some(cx.now) };
        next.aside_mut().answer = Some(self.answer.value());
        let told = json!({ "answer_sha256": self.answer.digest() });
        Decision::Done((), Changes::none().and(next.tells("job.confirmed", told)).job(Change::Put(next)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::bench_top::{BenchTop, NOW, done};
    use crate::job::settle::Outcome;

    #[test]
    fn a_job_that_asks_goes_on_with_the_answer_and_hears_one_only() {
        let mut top = BenchTop::new();
        let id = top.enqueue().id;
        let confirm = Confirm { org: OrgId::default(), job: id, answer: Json::of(&json!({ "confirmed": true })) };
        assert_eq!(top.refuse(&confirm).code(), "invalid_transition");
        let job = top.claim();
        top.settle(&job, Outcome::Ask(Json::of(&json!({ "prompt": "sure?" }))));
        let waiting = top.latest();
        assert_eq!(waiting.status, Status::AwaitingUser { due_at: None });
        assert!(waiting.status.waits(), "its lane is free meanwhile");
        assert_eq!(waiting.aside.unwrap().question.unwrap()["prompt"], "sure?");
        assert!(!top.texts().contains("sure?"), "events carry digests");
        top.done(&confirm);
        assert_eq!(top.latest().status.due_at(), Some(NOW));
        assert_eq!(top.refuse(&confirm).code(), "already_answered");
        let again = top.claim();
        assert_eq!(again.attempts, 1, "going on is not a new attempt");
        assert_eq!(again.aside.as_ref().unwrap().answer.as_ref().unwrap()["confirmed"], true);
        top.settle(&again, done());
        assert_eq!(top.refuse(&confirm).code(), "invalid_transition");
    }
}
