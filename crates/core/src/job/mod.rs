//! A job: one piece of queued work, from its request to its end.
//!
//! Invariants
//! - A job moves only along [`state::MOVES`]; an ended job never moves.
//! - A job is claimable exactly when its `due_at` is set and past; the state alone does not say.
//! - Every claim raises the token; whoever writes as a worker must show the current one.
//! - A job holds a slot of its lane while it executes or waits for its tool, and at no other time.
//!
//! Elsewhere: choosing which job is next ([`crate::schedule`]), running it (`baton-engine`).

pub(crate) mod answer;
pub mod batch;
pub mod beat;
pub mod cancel;
pub mod claim;
pub mod deadline;
mod ending;
pub mod enqueue;
pub(crate) mod intake;
pub mod prune;
pub mod recover;
pub mod report;
pub mod requeue;
pub mod settle;
pub mod state;
pub mod wake;

#[cfg(test)]
pub(crate) mod bench_top;

use crate::canon::Json;
use crate::changes::Changes;
use crate::definition::{Definitions, Moment};
use crate::event::{Event, Head, Note, Subject};
use crate::id::{DecisionId, DocId, JobId};
use crate::name::{OrgId, ProjectId, SessionId, TypeName, WorkerId};
use crate::retry::Class;
use crate::schedule;
use crate::time::Micros;
use crate::told::Told;
use crate::{lane, limits, sink, timer};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use ending::{Finish, Scene};
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
    pub lane: lane::Place,
    /// When it could first have been handed out. Trying again does not change it.
    pub since: Micros,
    /// Executions begun, crashes included.
    pub attempts: u32,
    pub max_attempts: u32,
    /// Failures reported.
    pub failures: u32,
    pub max_failures: u32,
    /// Raised by every claim.
    pub token: i64,
    /// Raised by every wake-up; parking compares it with what the handler had seen.
    pub wakes: i64,
    pub created_at: Micros,
    pub started_at: Option<Micros>,
    pub has_deadline: bool,
    /// It was asked for from outside, and so counts among those for whom there is limited room.
    pub outside: bool,
    /// The key by which duplicates are told, while this job is the one they are told by.
    pub dedupe: Option<String>,
    /// What most jobs never have.
    pub aside: Option<Box<Aside>>,
    pub head: Head,
}

/// What most jobs never have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Aside {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancel: Option<CancelRequest>,
    #[serde(skip_serializing_if = "Context::is_empty")]
    pub context: Context,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    /// Why it is tried again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<LastFailure>,
    /// What people are asked, if it waits for that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<DecisionId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<Value>,
    /// It failed, and is known to have done nothing outside.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub idle: bool,
    /// What kind of failure it ended with, where its code does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<Class>,
    /// It may be begun once only.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub once: bool,
}

impl Aside {
    /// As it is stored; nothing if there is nothing.
    pub fn stored(aside: Option<&Self>) -> Option<String> {
        aside.filter(|a| **a != Self::default()).and_then(|a| serde_json::to_string(a).ok())
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastFailure {
    pub code: String,
    pub message: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CancelRequest {
    pub at: Micros,
    pub reason: String,
}

/// What a running job works on outside, so that it can be interrupted there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Context {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<String>,
}

impl Context {
    pub const fn is_empty(&self) -> bool {
        self.thread.is_none() && self.turn.is_none()
    }
}

/// How far a job says it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percent: Option<u8>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The part of a job that is written once and read when it runs or is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cold {
    pub payload: Json,
    pub source_session: Option<SessionId>,
    pub deadline_at: Option<Micros>,
    pub dedupe_key: Option<String>,
    /// The failed job that this one repeats.
    pub requeued_from: Option<JobId>,
    /// The schedule that made it.
    pub schedule: Option<DocId>,
}

/// Where a job stands, with exactly the facts that make sense there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    Queued {
        due_at: Micros,
    },
    Executing {
        lease: Lease,
    },
    AwaitingTool {
        pause: Pause,
        due_at: Option<Micros>,
    },
    /// For a person's answer; due when it is there.
    AwaitingUser {
        due_at: Option<Micros>,
    },
    Ended {
        how: End,
        at: Micros,
    },
}

impl Status {
    pub const fn state(&self) -> State {
        match self {
            Self::Queued { .. } => State::Queued,
            Self::Executing { .. } => State::Executing,
            Self::AwaitingTool { .. } => State::AwaitingTool,
            Self::AwaitingUser { .. } => State::AwaitingUserConfirmation,
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
            Self::AwaitingTool { due_at, .. } | Self::AwaitingUser { due_at } => *due_at,
            Self::Executing { .. } | Self::Ended { .. } => None,
        }
    }

    pub const fn is_ended(&self) -> bool {
        matches!(self, Self::Ended { .. })
    }

    /// Has a slot of its lane, if the lane has a limit.
    pub const fn holds_slot(&self) -> bool {
        matches!(self, Self::Executing { .. } | Self::AwaitingTool { pause: Pause::Tool, .. })
    }

    /// Wants one.
    pub const fn waits(&self) -> bool {
        !self.holds_slot() && !self.is_ended()
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
    pub class: Class,
    /// It is known to have done nothing outside. Only calls of tools are asked.
    pub idle: bool,
}

impl Failure {
    /// Of the class that the code is listed with.
    pub fn new(code: &str, message: &str) -> Self {
        let class = Class::of_code(code);
        let (code, message) = (limits::cut(code, limits::CODE_CHARS), limits::cut(message, limits::ERROR_CHARS));
        Self { code, message, class, idle: false }
    }

    pub fn transient(code: &str, message: &str) -> Self {
        Self { class: Class::Transient, ..Self::new(code, message) }
    }

    pub fn fatal(code: &str, message: &str) -> Self {
        Self { class: Class::Fatal, ..Self::new(code, message) }
    }
}

/// What a job leaves behind when it ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    Result(Json),
    Error(Failure),
    /// Why it was cancelled.
    Cancelled(String),
}

/// A change to one job's rows.
#[derive(Clone, Debug)]
pub enum Change {
    Create(Job, Cold),
    /// The hot part, whole.
    Put(Job),
    /// Another payload for a job that waits.
    Payload(JobId, Json),
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

    /// It was found ready and so has been due: a clock that has jumped back since does not take that away.
    pub fn ready_at(&mut self, now: Micros) {
        if let Status::Queued { due_at }
        | Status::AwaitingTool { due_at: Some(due_at), .. }
        | Status::AwaitingUser { due_at: Some(due_at) } = &mut self.status
        {
            *due_at = now.min(*due_at);
        }
    }

    pub const fn is_ended(&self) -> bool {
        self.status.is_ended()
    }

    /// Whether a slot of its lane must be free before it can be handed out: it is counted there, and holds none yet.
    pub const fn needs_slot(&self) -> bool {
        self.lane.kept && !self.status.holds_slot()
    }

    /// One of all those from outside that stand in project lanes.
    pub fn in_crowd(&self) -> bool {
        self.outside && self.lane.key.is_project()
    }

    pub const fn class(&self) -> schedule::Class {
        schedule::Class::of(self.priority)
    }

    pub fn deadline_timer(&self) -> timer::Key {
        timer::Key { subject: self.id.0, kind: timer::Kind::JobDeadline }
    }

    pub fn cancel_timer(&self) -> timer::Key {
        timer::Key { subject: self.id.0, kind: timer::Kind::JobCancel }
    }

    /// Somebody has asked that it ends, and it has been given time to do so.
    pub fn cancel_requested(&self) -> Option<&CancelRequest> {
        self.aside.as_ref().and_then(|aside| aside.cancel.as_ref())
    }

    /// Nobody can say what an execution of it did that was cut off.
    pub fn is_once(&self) -> bool {
        self.aside.as_ref().is_some_and(|aside| aside.once)
    }

    /// The decision that it waits for.
    pub fn decision(&self) -> Option<DecisionId> {
        let waits = self.status == Status::AwaitingUser { due_at: None };
        self.aside.as_ref().filter(|_| waits).and_then(|aside| aside.decision)
    }

    fn aside_mut(&mut self) -> &mut Aside {
        self.aside.get_or_insert_default()
    }

    /// This job with another status, if the table allows the move.
    fn moved(&self, to: Status) -> Result<Self, state::IllegalMove> {
        self.status.state().check(to.state())?;
        Ok(Self { status: to, ..self.clone() })
    }

    /// A note for logs and counters.
    fn note(&self, what: &'static str, reason: Option<&str>) -> Note {
        Note {
            job: self.id,
            project: self.project.clone(),
            kind: self.kind.name.clone(),
            attempt: self.attempts,
            what,
            reason: reason.map(str::to_owned),
            waited: None,
            ran: None,
            background: self.class() == schedule::Class::Background,
        }
    }

    /// An event of this job's with the facts that every reader wants, and `more`.
    fn tells(&self, kind: &'static str, more: impl Into<Told>) -> Changes {
        let more = more.into();
        let reason = more.word("reason");
        let facts = more
            .unless_told("attempt", &self.attempts)
            .unless_told("project", &self.project)
            .unless_told("state", self.status.state().as_str())
            .unless_told("type", &self.kind.name);
        let mut changes = Changes::none().event(Event::new(Subject::Job(self.id), kind, facts));
        changes.notes.push(self.note(kind, reason.as_deref()));
        changes
    }

    /// What the hooks of the job's type say to a moment of its life.
    ///
    /// A hook can leave rows, but it cannot stop a job from moving: one that panics, or whose rows
    /// do not fit, leaves nothing and is told of.
    fn sinks(&self, defs: &Definitions, payload: Option<&Json>, moment: Moment<'_>) -> Changes {
        let mut changes = Changes::none();
        let hooks = defs.entry(&self.org, &self.kind).and_then(|entry| entry.hooks.as_ref());
        let (Some(hooks), Some(payload)) = (hooks, payload) else { return changes };
        match catch_unwind(AssertUnwindSafe(|| hooks.sink(self, payload, moment))) {
            Ok(rows) if rows.iter().all(sink::Row::fits) => changes.sinks = rows,
            Ok(_) => changes.notes.push(self.note("job.hook_failed", Some("a row does not fit"))),
            Err(_) => changes.notes.push(self.note("job.hook_failed", Some("it panicked"))),
        }
        changes
    }
}
