//! A job: one piece of queued work, from its request to its end.
//!
//! Invariants
//! - A job moves only along [`state::MOVES`]; an ended job never moves.
//! - A job is claimable exactly when its `due_at` is set and past; the state alone does not say.
//! - Every claim raises the token; whoever writes as a worker must show the current one.
//!
//! Elsewhere: choosing which job is next ([`crate::schedule`]), running it (`baton-engine`).

pub mod beat;
pub mod claim;
pub mod deadline;
pub mod enqueue;
pub mod recover;
pub mod settle;
pub mod state;
pub mod wake;

#[cfg(test)]
pub(crate) mod bench_top;

use crate::canon::Json;
use crate::event::{Event, Head, Subject};
use crate::id::JobId;
use crate::limits;
use crate::name::{OrgId, ProjectId, SessionId, TypeName, WorkerId};
use crate::time::Micros;
use crate::timer;
use serde_json::{Value, json};
use std::fmt;

pub use state::{End, Face, Move, State};

/// Jobs that a person waits for.
pub const INTERACTIVE: i32 = 100;
/// Jobs that nobody waits for; this and above counts as background.
pub const BACKGROUND: i32 = 200;

/// A job type with the version that a job pins.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kind {
    pub name: TypeName,
    pub version: u32,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.name, self.version)
    }
}

/// The part of a job that decisions look at. Small, and locked while they do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    pub org: OrgId,
    pub id: JobId,
    pub project: ProjectId,
    pub kind: Kind,
    pub priority: i32,
    pub status: Status,
    /// Executions begun, crashes included.
    pub attempts: u32,
    pub max_attempts: u32,
    /// Raised by every claim.
    pub token: i64,
    /// Raised by every wake-up; parking compares it with what the handler had seen.
    pub wakes: i64,
    pub created_at: Micros,
    pub started_at: Option<Micros>,
    pub has_deadline: bool,
    pub head: Head,
}

/// The part of a job that is written once and read when it runs or is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cold {
    pub payload: Json,
    pub source_session: Option<SessionId>,
    pub deadline_at: Option<Micros>,
}

/// Where a job stands, with exactly the facts that make sense there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    Queued { due_at: Micros },
    Executing { lease: Lease },
    AwaitingTool { pause: Pause, due_at: Option<Micros> },
    Ended { how: End, at: Micros },
}

impl Status {
    pub const fn state(&self) -> State {
        match self {
            Self::Queued { .. } => State::Queued,
            Self::Executing { .. } => State::Executing,
            Self::AwaitingTool { .. } => State::AwaitingTool,
            Self::Ended { how, .. } => how.state(),
        }
    }

    /// How the orchestrator routes name it.
    pub const fn face(&self) -> Face {
        match self {
            Self::AwaitingTool { pause, .. } => Face::of(State::AwaitingTool, Some(*pause)),
            other => Face::of(other.state(), None),
        }
    }

    pub const fn due_at(&self) -> Option<Micros> {
        match self {
            Self::Queued { due_at } => Some(*due_at),
            Self::AwaitingTool { due_at, .. } => *due_at,
            Self::Executing { .. } | Self::Ended { .. } => None,
        }
    }

    pub const fn lease(&self) -> Option<&Lease> {
        match self {
            Self::Executing { lease } => Some(lease),
            _ => None,
        }
    }
}

/// Why a job is in `awaiting_tool`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// Its handler parked it: something outside will wake it.
    Tool,
    /// It will be executed again.
    Retry,
}

impl Pause {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Retry => "retry",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::Tool, Self::Retry].into_iter().find(|p| p.as_str() == text)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    pub worker: WorkerId,
    pub until: Micros,
}

/// What a worker shows to prove that a job is still its own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fence {
    pub org: OrgId,
    pub job: JobId,
    pub token: i64,
    pub worker: WorkerId,
}

/// Why a job ended badly. The code is stable, the message is for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub code: String,
    pub message: String,
}

impl Failure {
    pub fn new(code: &str, message: &str) -> Self {
        Self { code: limits::cut(code, 64), message: limits::cut(message, limits::ERROR_CHARS) }
    }
}

/// What a job leaves behind when it ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    Result(Json),
    Error(Failure),
}

/// A change to one job's rows.
#[derive(Clone, Debug)]
pub enum Change {
    Create(Job, Cold),
    /// The hot part, whole.
    Put(Job),
    End(Job, Ending),
}

impl Job {
    /// Holds if `fence` is the current lease's.
    pub fn held_by(&self, fence: &Fence) -> bool {
        self.token == fence.token && self.status.lease().is_some_and(|lease| lease.worker == fence.worker)
    }

    pub fn fence(&self) -> Option<Fence> {
        self.status.lease().map(|lease| Fence {
            org: self.org.clone(),
            job: self.id,
            token: self.token,
            worker: lease.worker.clone(),
        })
    }

    pub fn claimable(&self, now: Micros) -> bool {
        self.status.due_at().is_some_and(|due| due <= now)
    }

    /// This job, which was found ready and so has been due: a clock that has jumped back since
    /// does not take that away.
    #[must_use]
    pub fn ready_at(mut self, now: Micros) -> Self {
        if let Status::Queued { due_at } | Status::AwaitingTool { due_at: Some(due_at), .. } = &mut self.status {
            *due_at = now.min(*due_at);
        }
        self
    }

    pub const fn is_ended(&self) -> bool {
        matches!(self.status, Status::Ended { .. })
    }

    pub fn deadline_timer(&self) -> timer::Key {
        timer::Key { subject: self.id.0, kind: timer::Kind::JobDeadline }
    }

    /// This job with another status, if the table allows the move.
    fn moved(&self, to: Status) -> Result<Self, state::IllegalMove> {
        self.status.state().check(to.state())?;
        Ok(Self { status: to, ..self.clone() })
    }

    /// An event of this job's with the facts that every reader wants, and `more`.
    fn event(&self, kind: &'static str, more: Value) -> Event {
        let mut data = json!({
            "attempt": self.attempts,
            "project": self.project,
            "state": self.status.state().as_str(),
            "type": self.kind.name,
        });
        if let (Value::Object(data), Value::Object(more)) = (&mut data, more) {
            data.extend(more);
        }
        Event { subject: Subject::Job(self.id), kind, data: Json::of(&data) }
    }

    /// Ends the job: its rows, its event, and no timer left behind.
    fn ended(
        &self,
        how: End,
        at: Micros,
        ending: Ending,
        kind: &'static str,
        more: Value,
    ) -> Result<crate::Changes, state::IllegalMove> {
        // A clock may have jumped back since the last event; a subject's own time does not.
        let at = at.max(self.head.at).max(self.created_at);
        let job = self.moved(Status::Ended { how, at })?;
        let mut changes = crate::Changes::none().event(job.event(kind, more));
        if job.has_deadline {
            changes = changes.timer(timer::Change::Clear { key: job.deadline_timer() });
        }
        Ok(changes.job(Change::End(job, ending)))
    }
}
