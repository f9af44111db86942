//! What a history says about jobs and lanes, event by event.
//!
//! Nothing here looks at rows: counters may be wrong, but a job that began while its lane was full
//! has said so, in the order of commits.

use anyhow::{Context, Result, bail, ensure};
use baton_core::event::Recorded;
use baton_core::job::State;
use baton_core::{JobId, Micros, OrgId};
use serde_json::Value;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// How many jobs of a lane may hold a slot at once, by the lane's name.
pub type Limits = fn(&str) -> Option<u32>;

pub struct Replay {
    limits: Limits,
    lives: BTreeMap<JobId, Life>,
    running: BTreeMap<(OrgId, String), u32>,
}

/// A job's way through its states, as its own events tell it.
#[derive(Clone, Debug)]
pub struct Life {
    pub state: State,
    /// Events so far.
    pub events: i64,
    pub lane: String,
    /// Of its lane.
    pub holds_slot: bool,
    token: i64,
    attempt: u64,
    at: Micros,
}

impl Life {
    fn new(event: &Recorded) -> Result<Self> {
        ensure!(event.kind == "job.queued", "it begins in the middle");
        let lane = event.data.value()["lane"].as_str().context("a queued job names its lane")?.to_owned();
        Ok(Self { state: State::Received, events: 0, lane, holds_slot: false, token: 0, attempt: 0, at: event.at })
    }

    /// It wants a slot, now or later.
    pub const fn waits(&self) -> bool {
        !self.holds_slot && !self.state.is_ended()
    }

    fn step(&mut self, event: &Recorded) -> Result<()> {
        let data = event.data.value();
        let state = data["state"].as_str().and_then(State::parse).context("an event names the state")?;
        ensure!(!self.state.is_ended(), "it had ended as {}", self.state);
        self.state.check(state)?;
        ensure!(event.at >= self.at, "time goes backwards");
        self.events += 1;
        ensure!(event.n == self.events, "event {} follows {} others", event.n, self.events - 1);
        self.kind(event.kind.as_str(), &data)?;
        (self.state, self.at) = (state, event.at);
        Ok(())
    }

    fn kind(&mut self, kind: &str, data: &Value) -> Result<()> {
        let attempt = data["attempt"].as_u64().context("an event names the attempt")?;
        let begun = u64::from(kind == "job.started");
        ensure!(attempt == self.attempt + begun, "attempt {attempt} follows attempt {}", self.attempt);
        self.attempt = attempt;
        match kind {
            "job.started" | "job.resumed" => {
                ensure!(self.state != State::Executing, "it is executed twice at once");
                let token = data["token"].as_i64().context("a start names its token")?;
                ensure!(token > self.token, "the token does not rise");
                self.token = token;
                self.holds_slot = true;
            }
            // Waiting for its tool it keeps its slot.
            "job.parked" => self.written(data)?,
            "job.completed" | "job.asked" | "job.released" | "job.retry_scheduled" | "job.recovered" => {
                self.written(data)?;
                self.holds_slot = false;
                // Whoever may still run it is fenced: the next token is beyond the next.
                self.token += i64::from(kind == "job.recovered");
            }
            "job.failed" | "job.cancelled" => self.holds_slot = false,
            "job.cancel_requested" | "job.progress" => ensure!(self.state == State::Executing, "nobody runs it"),
            "job.merged" => ensure!(!self.holds_slot, "it has begun"),
            "job.confirmed" => ensure!(self.state == State::AwaitingUserConfirmation, "it asked nothing"),
            "job.queued" | "job.woken" => {}
            other => bail!("{other} is not known here"),
        }
        Ok(())
    }

    /// A worker wrote this, or somebody on its behalf.
    fn written(&self, data: &Value) -> Result<()> {
        let token = data["token"].as_i64();
        ensure!(self.state == State::Executing, "nobody runs it");
        ensure!(token == Some(self.token), "a late worker wrote: {token:?} while {} holds", self.token);
        Ok(())
    }
}

impl Replay {
    pub const fn new(limits: Limits) -> Self {
        Self { limits, lives: BTreeMap::new(), running: BTreeMap::new() }
    }

    pub fn life(&self, job: JobId) -> Option<&Life> {
        self.lives.get(&job)
    }

    /// In the order of commits.
    pub fn step(&mut self, event: &Recorded) -> Result<()> {
        if !event.kind.starts_with("job.") {
            return Ok(());
        }
        let job = JobId(event.subject);
        self.stepped(job, event).with_context(|| format!("{} of {job}", event.kind))
    }

    fn stepped(&mut self, job: JobId, event: &Recorded) -> Result<()> {
        let life = match self.lives.entry(job) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(Life::new(event)?),
        };
        let held = life.holds_slot;
        life.step(event)?;
        let lane = self.running.entry((event.org.clone(), life.lane.clone())).or_default();
        match (held, life.holds_slot) {
            (false, true) => *lane += 1,
            (true, false) => *lane -= 1,
            _ => return Ok(()),
        }
        if let Some(limit) = (self.limits)(&life.lane) {
            ensure!(*lane <= limit, "{lane} jobs run in lane {}, at most {limit} may", life.lane);
        }
        Ok(())
    }
}
