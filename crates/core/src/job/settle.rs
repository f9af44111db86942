//! What a worker says when its handler has ended: done, failed, parked or given back.

use super::state::IllegalMove;
use super::{Change, Ending, Failure, Fence, Finish, Job, LastFailure, Pause, Scene, Status, cancel};
use crate::canon::Json;
use crate::changes::Changes;
use crate::command::{Command, Ctx, Decision, Reads, Refusal};
use crate::decision::{Case, Question};
use crate::definition::Definitions;
use crate::id::{DecisionId, Ids, JobId};
use crate::limits;
use crate::name::OrgId;
use crate::retry::{self, Spent, Verdict};
use crate::rng::Rng;
use crate::time::Micros;
use crate::told::Told;
use crate::world::View;
use serde_json::json;

#[derive(Clone, Debug)]
pub struct Settle {
    pub fence: Fence,
    pub outcome: Outcome,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Done(Json),
    Failed(Failure),
    /// Wait without holding a worker. If something woke the job after `seen`, it is due at once.
    Park {
        until: Option<Micros>,
        seen: i64,
    },
    /// Wait for a person's answer, without holding a worker or a slot.
    Ask(Json),
    /// Not finished, and nobody's fault: the node stops, for instance.
    Release,
    /// It never reached the worker that it was claimed for.
    Undelivered,
    /// The node stops, and the job ends with it.
    Stopped,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    Now,
    /// This very lease was settled before: a repeated call, not an error.
    Already,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettleError {
    #[error("job {0} does not exist")]
    NotFound(JobId),
    #[error("the lease on job {job} with token {token} is no longer held; the outcome was discarded")]
    LeaseLost { job: JobId, token: i64 },
}

impl Refusal for SettleError {
    fn code(&self) -> &'static str {
        match self {
            Self::NotFound(_) => "job_not_found",
            Self::LeaseLost { .. } => "lease_lost",
        }
    }
}

impl Command for Settle {
    type Out = Settled;
    type No = SettleError;

    fn org(&self) -> &OrgId {
        &self.fence.org
    }

    fn reads(&self, _: &Definitions) -> Reads {
        Reads::job(self.fence.job)
    }

    fn add_reads(&self, _: &Definitions, all: &mut Reads) {
        all.jobs.insert(self.fence.job);
    }

    fn decide(&self, view: &View<'_>, cx: &mut Ctx<'_>) -> Decision<Settled, SettleError> {
        let Some(job) = view.job(self.fence.job) else {
            return Decision::Refused(SettleError::NotFound(self.fence.job));
        };
        let lost = || SettleError::LeaseLost { job: job.id, token: self.fence.token };
        // Everybody else who ends a lease raises the token, so it was this very lease.
        if job.token == self.fence.token && job.token > 0 && job.status.lease().is_none() {
            return Decision::Done(Settled::Already, Changes::none());
        }
        if !job.held_by(&self.fence) {
            return Decision::Refused(lost());
        }
        let scene = Scene { defs: cx.defs, payload: view.payload(job.id), now: cx.now };
        match self.changes(job, scene, cx.ids, cx.rng) {
            Ok(changes) => Decision::Done(Settled::Now, changes),
            // The table allows every outcome from `executing`; should it ever not, refuse.
            Err(_) => Decision::Refused(lost()),
        }
    }
}

impl Settle {
    fn changes(&self, job: &Job, scene: Scene<'_>, ids: &mut Ids, rng: &mut Rng) -> Result<Changes, IllegalMove> {
        // Somebody asked that it ends: whatever it came to is discarded.
        if let Some(request) = job.cancel_requested() {
            return scene.cancel(job, &request.reason);
        }
        let Scene { defs, payload, now } = scene;
        match &self.outcome {
            Outcome::Done(result) => match misfit(job, result, defs) {
                Some(failure) => scene.fail(&counted(job), failure),
                None => job.ended(Finish {
                    ending: Ending::Result(result.clone()),
                    kind: "job.completed",
                    more: Told::none().and("result_sha256", &result.digest()).and("token", &job.token),
                    defs,
                    payload,
                    now,
                }),
            },
            Outcome::Failed(failure) => failed(job, failure, scene, rng),
            Outcome::Park { until, seen } => {
                let due_at = if job.wakes == *seen { *until } else { Some(now) };
                let next = job.moved(Status::AwaitingTool { pause: Pause::Tool, due_at })?;
                let told = next.tells("job.parked", json!({ "due_at": due_at, "token": job.token }));
                Ok(told.job(Change::Put(next)))
            }
            Outcome::Ask(question) if question.len() > limits::QUESTION_BYTES => {
                let message =
                    format!("the question has {} bytes; at most {} are kept", question.len(), limits::QUESTION_BYTES);
                scene.fail(&counted(job), Failure::new("question_too_large", &message))
            }
            Outcome::Ask(question) => match Question::of(&question.value()) {
                Ok(asked) => ask(job, question, asked, DecisionId(ids.uuid()), now),
                Err(why) => {
                    let message = format!("the job asked what nobody can answer: {why}");
                    scene.fail(&counted(job), Failure::new("invalid_question", &message))
                }
            },
            // Whoever had it may have acted, and it must not be begun again by somebody else.
            Outcome::Release if job.is_once() => {
                let message = "its worker gave it back, and nobody can say what was done";
                scene.fail(&counted(job), Failure::new("worker_lost", message))
            }
            Outcome::Release | Outcome::Undelivered => {
                let mut next = job.moved(Status::AwaitingTool { pause: Pause::Retry, due_at: Some(now) })?;
                let told = next.tells("job.released", json!({ "reason": "given_back", "token": job.token }));
                // Nobody's fault, so it may be begun once more than it might have been.
                next.max_attempts = next.max_attempts.saturating_add(1);
                Ok(told.job(Change::Put(next)))
            }
            Outcome::Stopped => scene.cancel(job, cancel::SHUTDOWN_TIMEOUT),
        }
    }
}

/// The job waits, and the decision is open, from the same commit on.
fn ask(job: &Job, question: &Json, asked: Question, id: DecisionId, now: Micros) -> Result<Changes, IllegalMove> {
    let mut next = job.moved(Status::AwaitingUser { due_at: None })?;
    let aside = next.aside_mut();
    aside.decision = Some(id);
    aside.question = Some(question.value());
    aside.answer = None;
    let told = json!({ "decision": id, "question_sha256": question.digest(), "token": job.token });
    let opened = Case::of_job(job, asked, now).opened(id);
    Ok(next.tells("job.asked", told).job(Change::Put(next)).and(opened))
}

/// Why a result cannot be kept, if it cannot.
fn misfit(job: &Job, result: &Json, defs: &Definitions) -> Option<Failure> {
    if result.len() > limits::RESULT_BYTES {
        let message = format!("the result has {} bytes; at most {} are kept", result.len(), limits::RESULT_BYTES);
        return Some(Failure::new("result_too_large", &message));
    }
    let shape = defs.entry(&job.org, &job.kind).and_then(|entry| entry.result.as_ref())?;
    let detail = shape.check(&result.value()).err()?;
    Some(Failure::new("invalid_result", &format!("the result does not fit its job type: {detail}")))
}

/// This job with one more failure reported.
fn counted(job: &Job) -> Job {
    Job { failures: job.failures.saturating_add(1), ..job.clone() }
}

fn failed(job: &Job, failure: &Failure, scene: Scene<'_>, rng: &mut Rng) -> Result<Changes, IllegalMove> {
    let job = counted(job);
    let policy = scene.defs.pinned(&job.org, &job.kind).map(|kind| kind.retry.clone()).unwrap_or_default();
    let spent = Spent {
        state: job.status.state(),
        attempts: job.attempts,
        max_attempts: job.max_attempts,
        failures: job.failures,
        max_failures: job.max_failures,
    };
    match retry::decide(&policy, spent, failure.class, rng) {
        Verdict::Retry { after } => {
            let due_at = scene.now.plus(after);
            let mut next = job.moved(Status::AwaitingTool { pause: Pause::Retry, due_at: Some(due_at) })?;
            next.aside_mut().last_failure =
                Some(LastFailure { code: failure.code.clone(), message: failure.message.clone() });
            let told = json!({
                "class": failure.class.as_str(),
                "delay_ms": after.0 / 1_000,
                "due_at": due_at,
                "failures": next.failures,
                "reason": failure.code,
                "token": job.token,
            });
            Ok(next.tells("job.retry_scheduled", told).job(Change::Put(next)))
        }
        Verdict::Final => scene.fail(&job, failure.clone()),
        Verdict::Exhausted(code) => {
            let last = format!("{}: {}", failure.code, failure.message);
            let message = format!(
                "{} of {} attempts and {} of {} failures are used up; the last one was {last}",
                job.attempts, job.max_attempts, job.failures, job.max_failures
            );
            scene.fail(&job, Failure { class: failure.class, idle: failure.idle, ..Failure::new(code, &message) })
        }
    }
}

/// Fails an execution that has taken too long, or has it tried again. Raising the token fences whoever still holds it.
pub(super) fn timed_out(job: &Job, scene: Scene<'_>, rng: &mut Rng) -> Result<Changes, IllegalMove> {
    let failure = Failure::transient("timeout", "it ran longer than its type allows");
    failed(&job.fenced(), &failure, scene, rng)
}

/// Fails a job from outside its lease. Raising the token fences whoever still holds it.
pub(super) fn fail_outside(job: &Job, failure: Failure, scene: Scene<'_>) -> Result<Changes, IllegalMove> {
    scene.fail(&job.fenced(), failure)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::State;
    use crate::job::bench_top::{BenchTop, NOW, done, echo_type};
    use crate::time::Span;

    #[test]
    fn a_done_job_is_completed_and_saying_so_twice_is_fine() {
        let mut top = BenchTop::new();
        top.enqueue();
        let job = top.claim();
        assert_eq!(top.settle(&job, done()), Settled::Now);
        assert_eq!(top.settle(&job, done()), Settled::Already);
        assert_eq!(top.latest().status.state(), State::Completed);
        assert_eq!(top.kinds(), ["job.queued", "job.started", "job.completed"]);
    }

    #[test]
    fn a_late_worker_is_refused_in_every_state() {
        let mut top = BenchTop::new();
        top.enqueue();
        let first = top.claim();
        top.settle(&first, Outcome::Release);
        let late = Settle { fence: first.fence().unwrap(), outcome: done() };
        assert_eq!(top.done(&late), Settled::Already, "it has spoken before");
        assert!(!top.latest().is_ended());
        let second = top.claim();
        assert_eq!(top.refuse(&late).code(), "lease_lost");
        top.settle(&second, done());
        assert_eq!(top.refuse(&late).code(), "lease_lost");
        let mut stolen = Settle { fence: second.fence().unwrap(), outcome: done() };
        stolen.fence.job = crate::id::JobId(uuid::Uuid::from_u128(5));
        assert_eq!(top.refuse(&stolen).code(), "job_not_found");
    }

    #[test]
    fn a_job_that_is_given_back_keeps_its_budget_however_often_its_nodes_stop() {
        let mut top = BenchTop::new();
        top.enqueue();
        for attempt in 1..=5 {
            let job = top.claim();
            assert_eq!(job.attempts, attempt, "it was begun so often");
            top.settle(&job, Outcome::Release);
        }
        for failure in 1..=3 {
            let job = top.claim();
            assert!(job.attempts <= job.max_attempts);
            top.settle(&job, Outcome::Failed(Failure::transient("flaky", "once more")));
            assert_eq!(top.latest().failures, failure);
            top.now = top.now.plus(Span::secs(99));
        }
        assert_eq!(top.latest().status.state(), State::Failed);
    }

    #[test]
    fn another_workers_name_does_not_open_the_fence() {
        let mut top = BenchTop::new();
        top.enqueue();
        let mut fence = top.claim().fence().unwrap();
        fence.worker = "node_other".parse().unwrap();
        assert_eq!(top.refuse(&Settle { fence, outcome: done() }).code(), "lease_lost");
    }

    #[test]
    fn parking_after_a_wake_up_that_was_not_seen_is_due_at_once() {
        let mut top = BenchTop::new();
        top.enqueue();
        let job = top.claim();
        let id = job.id;
        top.done(&crate::job::wake::Wake { org: job.org.clone(), job: id });
        top.settle(&job, Outcome::Park { until: None, seen: 0 });
        assert_eq!(top.latest().status.due_at(), Some(NOW));
        let job = top.claim();
        top.settle(&job, Outcome::Park { until: Some(NOW.plus(Span::secs(9))), seen: 1 });
        assert_eq!(top.latest().status.due_at(), Some(NOW.plus(Span::secs(9))));
    }

    #[test]
    fn a_transient_failure_is_tried_again_later_and_keeps_its_place() {
        let mut top = BenchTop::new();
        let queued = top.enqueue();
        for failures in 1..=2 {
            let job = top.claim();
            top.settle(&job, Outcome::Failed(Failure::transient("flaky", "once more")));
            let waiting = top.latest();
            assert_eq!((waiting.failures, waiting.attempts), (failures, failures));
            let Status::AwaitingTool { pause: Pause::Retry, due_at: Some(due) } = waiting.status else {
                panic!("{:?}", waiting.status)
            };
            assert!(due > top.now, "bounded backoff");
            assert!(waiting.status.waits(), "its lane is free meanwhile");
            assert_eq!(waiting.since, queued.since);
            top.now = due;
        }
        assert!(top.texts().contains("delay_ms"));
        let job = top.claim();
        top.settle(&job, Outcome::Failed(Failure::transient("flaky", "once more")));
        assert_eq!(top.latest().status.state(), State::Failed);
        assert!(top.texts().contains("attempts_exhausted"));
    }

    #[test]
    fn a_failure_budget_smaller_than_the_attempts_is_exhausted_first() {
        let policy = crate::retry::Policy { max_failures: Some(1), ..Default::default() };
        let mut top = BenchTop::of(crate::definition::JobType { retry: policy, ..echo_type() });
        top.enqueue();
        let job = top.claim();
        top.settle(&job, Outcome::Failed(Failure::transient("flaky", "no")));
        assert!(top.texts().contains("failures_exhausted"));
    }

    #[test]
    fn a_failure_that_would_repeat_itself_is_final_at_once() {
        for failure in [Failure::new("invalid_output", "no"), Failure::fatal("forbidden", "never")] {
            let mut top = BenchTop::new();
            top.enqueue();
            let job = top.claim();
            top.settle(&job, Outcome::Failed(failure));
            assert_eq!(top.latest().status.state(), State::Failed);
            assert_eq!(top.latest().attempts, 1);
        }
    }

    #[test]
    fn a_job_that_ends_with_its_node_is_cancelled() {
        let mut top = BenchTop::new();
        top.enqueue();
        let job = top.claim();
        top.settle(&job, Outcome::Stopped);
        assert_eq!(top.latest().status.state(), State::Cancelled);
        assert!(top.texts().contains("shutdown_timeout"));
    }

    #[test]
    fn a_result_that_is_too_large_fails_the_job() {
        let mut top = BenchTop::new();
        top.enqueue();
        let job = top.claim();
        top.settle(&job, Outcome::Done(Json::of(&json!("x".repeat(limits::RESULT_BYTES)))));
        assert_eq!(top.latest().status.state(), State::Failed);
        assert!(top.texts().contains("result_too_large"));
    }
}
