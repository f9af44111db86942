//! Workers: they claim what is due, make the calls that they are told to, and say what came of them.

use super::{Stage, org};
use crate::canon::Json;
use crate::id::{AgentId, JobId};
use crate::job::bench_top::worker;
use crate::job::claim::claim;
use crate::job::recover::{Recover, Why};
use crate::job::settle::{self, Settle};
use crate::job::{Fence, Job};
use crate::plan::Effect;
use crate::run::advance::{Advance, AdvanceError, Ahead, Outcome, Report};
use crate::run::take::{Take, TakeError};
use crate::run::{Call, Errand, Turn};
use crate::time::{Micros, Span};
use crate::world::JobWrite;
use crate::{Actor, OrgId};
use serde_json::json;

/// Turns of [`Stage::play`] before something goes round in circles.
const TURNS: usize = 20_000;

/// A call, with everything that tells it from all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Made {
    pub run_attempt: u32,
    pub agent: u32,
    pub agent_attempt: u32,
    pub task: u32,
    pub task_attempt: u32,
    pub step: u32,
    pub attempt: u32,
}

impl Made {
    pub const fn place(&self) -> (u32, u32, u32) {
        (self.agent, self.task, self.step)
    }
}

/// What one worker holds.
#[derive(Clone, Debug)]
pub struct Hands {
    pub fence: Fence,
    pub agent: AgentId,
    pub index: u32,
    pub calls: Vec<(Call, Made)>,
    pub look_at: Option<Micros>,
}

impl Stage {
    /// Jobs that may be claimed now.
    fn due(&self) -> Vec<(Job, Json)> {
        let org = OrgId::default();
        let all = self.world.job_writes().filter_map(|write| match write {
            JobWrite::Insert(job, cold, _) => Some((job.clone(), cold.payload.clone())),
            _ => None,
        });
        all.filter(|(job, _)| job.claimable(self.now))
            .filter(|(job, _)| {
                let free = self.world.lane(&org, &job.lane.key).and_then(crate::lane::Row::free);
                !job.lane.kept || job.status.holds_slot() || free != Some(0)
            })
            .collect()
    }

    /// Claims one job that is due and takes its agent. Nothing if none is.
    pub fn pick(&mut self) -> Option<Result<Turn, TakeError>> {
        self.pick_nth(0)
    }

    /// The nth of those that are due, counted round and round.
    pub fn pick_nth(&mut self, n: usize) -> Option<Result<Turn, TakeError>> {
        let due = self.due();
        let (job, payload) = due.get(n.checked_rem(due.len())?)?;
        Some(self.pick_job(job, payload))
    }

    fn pick_job(&mut self, job: &Job, payload: &Json) -> Result<Turn, TakeError> {
        let changes = claim(job, payload, &worker(), &self.defs, self.now).expect("claimable");
        self.world.apply(&org(), &Actor::Worker(worker()), self.now, changes);
        let job = self.world.job(&org(), job.id).expect("it was claimed").clone();
        let errand: Errand = serde_json::from_str(payload.as_str()).unwrap();
        let fence = job.fence().unwrap();
        let take = Take { fence: fence.clone(), errand, plan: self.plan.clone(), digest: self.digest, agent: None };
        match self.decide(&take) {
            Ok(turn) => {
                let agent = turn.agent.id;
                let hands = Hands { fence, agent, index: errand.index, calls: Vec::new(), look_at: None };
                self.hands.insert(job.id, hands);
                self.follow(job.id, &turn);
                Ok(turn)
            }
            Err(no) => {
                self.settle(fence, settle::Outcome::Done(Json::of(&json!(null))));
                Err(no)
            }
        }
    }

    pub fn pick_all(&mut self) -> usize {
        let mut picked = 0;
        while self.pick().is_some() {
            picked += 1;
        }
        picked
    }

    fn settle(&mut self, fence: Fence, outcome: settle::Outcome) {
        self.decide(&Settle { fence, outcome }).unwrap();
    }

    /// Makes the calls that are new, stops those that are not wanted, and lets go of what is over.
    fn follow(&mut self, job: JobId, turn: &Turn) {
        let mut hands = self.hands.remove(&job).unwrap();
        let before = std::mem::take(&mut hands.calls);
        for call in &turn.calls {
            let made = Made {
                run_attempt: turn.agent.run_attempt,
                agent: turn.agent.index,
                agent_attempt: turn.agent.attempt,
                task: call.task,
                task_attempt: call.task_attempt,
                step: call.step,
                attempt: call.attempt,
            };
            if !before.iter().any(|(known, _)| known == call) {
                let step = self.plan.step(made.agent, made.task, made.step).unwrap().clone();
                if step.effect == Effect::Unsafe {
                    self.watch.called(&made, step.repeat);
                }
                self.made.push(made);
            }
            hands.calls.push((*call, made));
        }
        hands.look_at = turn.look_at;
        if turn.over {
            assert!(turn.calls.is_empty(), "over, and calls are to be made");
            self.settle(hands.fence, settle::Outcome::Done(Json::of(&json!(null))));
        } else if hands.calls.is_empty() {
            let seen = self.job(job).wakes;
            assert!(hands.look_at.is_some(), "it waits for nothing");
            self.settle(hands.fence, settle::Outcome::Park { until: hands.look_at, seen });
        } else {
            self.hands.insert(job, hands);
        }
    }

    /// Every call that is in flight.
    pub fn in_flight(&self) -> Vec<(JobId, Made)> {
        let calls = self.hands.iter().flat_map(|(job, hands)| hands.calls.iter().map(|(_, made)| (*job, *made)));
        calls.collect()
    }

    /// A worker says what came of some of its calls; none is to look whether something is due.
    pub fn report(&mut self, job: JobId, outcomes: &[(Made, Outcome)]) -> Result<Turn, AdvanceError> {
        for (made, outcome) in outcomes {
            match outcome {
                Outcome::Done(_) => self.watch.reported(made, true),
                Outcome::Failed(failed) if !failed.unknown => self.watch.reported(made, false),
                _ => {}
            }
        }
        self.report_unseen(job, outcomes)
    }

    /// The same from one whose word is not to be taken for what happened.
    pub fn report_unseen(&mut self, job: JobId, outcomes: &[(Made, Outcome)]) -> Result<Turn, AdvanceError> {
        let hands = self.hands.get(&job).unwrap().clone();
        let reports = outcomes.iter().map(|(made, outcome)| Report {
            task: made.task,
            step: made.step,
            attempt: made.attempt,
            outcome: outcome.clone(),
        });
        let advance = Advance {
            leaving: false,
            fence: hands.fence,
            run: self.run,
            agent: hands.agent,
            plan: self.plan.clone(),
            index: hands.index,
            reports: reports.collect(),
            ahead: Ahead::Steps,
        };
        let turn = self.decide(&advance);
        match &turn {
            Ok(turn) => {
                // What was reported is not in flight any more, whatever is told next.
                let hands = self.hands.get_mut(&job).unwrap();
                hands.calls.retain(|(_, made)| !outcomes.iter().any(|(told, _)| told == made));
                self.follow(job, turn);
            }
            Err(_) => {
                self.hands.remove(&job);
            }
        }
        turn
    }

    /// The first call in flight at this place ends so.
    pub fn reply(&mut self, place: (u32, u32, u32), outcome: Outcome) -> Result<Turn, AdvanceError> {
        let (job, made) = *self.in_flight().iter().find(|(_, made)| made.place() == place).expect("in flight");
        self.report(job, &[(made, outcome)])
    }

    /// The worker of this agent dies, and that is found out at once.
    pub fn crash(&mut self, index: u32) {
        let job = *self.hands.iter().find(|(_, hands)| hands.index == index).expect("at work").0;
        assert!(self.crash_job(job), "held");
    }

    /// Whether there was anything to take back.
    pub fn crash_job(&mut self, job: JobId) -> bool {
        let fence = self.hands.remove(&job).unwrap().fence;
        self.decide(&Recover::new(fence, Why::NodeGone)).is_ok()
    }

    /// The next moment at which something is due by itself, as far as workers know.
    pub fn next_due(&self) -> Option<Micros> {
        let jobs = self.jobs().filter(|job| !job.is_ended()).filter_map(|job| job.status.due_at());
        let hands = self.hands.values().filter_map(|hands| hands.look_at);
        let timers = self.world.timer_writes().filter_map(|(_, _, at)| at);
        jobs.chain(hands).chain(timers).filter(|at| *at > self.now).min()
    }

    /// Everybody does what they can until nothing is left to do within ten minutes.
    pub fn play(&mut self) {
        self.play_for(Span::secs(600));
    }

    pub fn play_for(&mut self, span: Span) {
        let until = self.now.plus(span);
        for _ in 0..TURNS {
            if self.pick_all() > 0 || self.speak() || self.look() || self.fire() {
                continue;
            }
            match self.next_due().filter(|at| *at <= until) {
                Some(at) => self.now = at,
                None => return,
            }
        }
        panic!("goes on for ever")
    }

    /// The first call that has an outcome ends.
    fn speak(&mut self) -> bool {
        for (job, made) in self.in_flight() {
            if let Some(outcome) = (self.script)(&made) {
                let _ = self.report(job, &[(made, outcome)]);
                return true;
            }
        }
        false
    }

    /// Workers that hold calls look whether something else has come due, or was woken.
    pub fn look(&mut self) -> bool {
        // A job that somebody ended is not held any more.
        let gone = |stage: &Self, job: &JobId, hands: &Hands| !stage.job(*job).held_by(&hands.fence);
        let lost: Vec<JobId> = self.hands.iter().filter(|(job, h)| gone(self, job, h)).map(|(job, _)| *job).collect();
        for job in &lost {
            self.hands.remove(job);
        }
        let due: Vec<JobId> = (self.hands.iter())
            .filter(|(_, hands)| hands.look_at.is_some_and(|at| at <= self.now))
            .map(|(job, _)| *job)
            .collect();
        for job in &due {
            let _ = self.report(*job, &[]);
        }
        !lost.is_empty() || !due.is_empty()
    }
}
