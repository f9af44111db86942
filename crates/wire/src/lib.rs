//! The public words: what goes over the wire, as the API says it and the CLI reads it.
//!
//! Shapes only. Field names are a promise: they change by addition, never by renaming.
//!
//! Elsewhere: what the words mean (`baton-core`), routes and status codes (`baton-api`).

mod absent;
mod access;
mod agent_view;
mod audit;
mod decision;
mod envelope;
mod event;
pub mod header;
mod job;
mod job_type;
mod lane;
mod ledger_view;
mod login;
mod number;
mod orchestrator;
mod order;
mod priority;
mod problem;
mod request;
pub mod run;
mod run_view;
mod schedule;
pub mod shape;
pub mod source;
mod state;
mod taken;
mod time;
mod token;
mod tool;
mod webhook;
mod why;
pub mod worker;

pub use access::{FoundedOrg, Key, KeyList, MadeKey, Me, NewKey, NewOrg, OrgList, RotateKey};
pub use agent_view::{Agent, AgentList, Step, StepInHand, StepList, Task, TaskList, WaitKind, WaitsFor};
pub use audit::{Audit, Violation};
pub use decision::{Decision, DecisionList, DecisionState, DecisionTurn, Resolution, Resolve};
pub use envelope::{Envelope, JobNews, JobPayload, LISTENING};
pub use event::{Event, EventList, TAIL};
pub use job::{Job, JobList, Left, Progress, RunningContext, WaitingFor};
pub use job_type::{
    CancelRule, DedupeRule, JobType, JobTypeList, LaneRule, NewJobType, RetryRule, ServedBy, TimeLimit,
};
pub use lane::{Lane, LaneList};
pub use ledger_view::{Balance, Direction, Granted, LedgerEntry, LedgerList, NewGrant};
pub use login::{HandIn, LoggedIn, LoginLink};
pub use orchestrator::{OrchestratorJob, OrchestratorState};
pub use order::{BadOrder, Order};
pub use priority::{BadPriority, Priority, PriorityNumber};
pub use problem::{DocumentProblem, Members, Problem};
pub use request::{Cancel, NewBatch, NewJob, RequeueLetters};
pub use run::RunDocument;
pub use run_view::{Attempt, AttemptList, LastError, Live, Run, RunAction, RunList, RunSource, Signalled};
pub use schedule::{DEFAULT_TIME_ZONE, NewSchedule, Schedule, ScheduleList};
pub use state::JobState;
pub use taken::{BatchTaken, EnqueuedJob, LetterLeft, LettersRequeued, RequeuedLetter, Taken};
pub use time::{BadTime, Time};
pub use token::{BadToken, Token};
pub use tool::{Tool, ToolList};
pub use webhook::{
    Delivery, DeliveryList, EnableWebhook, MadeWebhook, NewWebhook, RotateWebhook, Tried, Webhook, WebhookList,
};

pub use why::{Wait, Why};

/// A JSON object.
pub type Object = serde_json::Map<String, serde_json::Value>;

/// Pages and waits that the API accepts.
pub mod limit {
    /// Jobs in one page.
    pub const JOBS: usize = 200;
    pub const JOBS_DEFAULT: usize = 50;
    /// Lanes, schedules, decisions, keys, orgs, webhooks, runs and their parts, or entries of the ledger in one page.
    pub const NAMES: usize = 200;
    pub const NAMES_DEFAULT: usize = 50;
    /// Events in one page.
    pub const EVENTS: usize = 1_000;
    pub const EVENTS_DEFAULT: usize = 100;
    /// How long a reader may ask to wait for the next event.
    pub const WAIT_MS: u64 = 30_000;
}
