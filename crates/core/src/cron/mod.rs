//! Schedules: jobs that come again and again, by a cron expression in a time zone.
//!
//! A schedule is a document with one timer. Firing makes the jobs that are due and sets the timer
//! anew, in one commit, so a schedule neither forgets nor repeats itself.
//!
//! Elsewhere: what the expressions mean ([`when`]).

pub mod fire;
pub mod put;
mod step;
pub mod when;

use crate::canon::Json;
use crate::doc::{self, Doc};
use crate::id::{DocId, JobId};
use crate::name::{ProjectId, ScheduleName, SessionId, TypeName};
use crate::time::{Micros, Span};
use crate::timer;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use when::{BadWhen, When};

/// A moment that is missed by more than this is caught up with, as the schedule says.
pub const ON_TIME: Span = Span::secs(60);
/// Missed moments that are made up for at once; what is beyond is skipped.
pub const CATCH_UP_MAX: usize = 100;

/// What happens to moments that passed while nobody looked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CatchUp {
    Skip,
    /// One job for all of them.
    #[default]
    One,
    /// A job for each, up to [`CATCH_UP_MAX`].
    All,
}

/// What a schedule makes, and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    #[serde(flatten)]
    pub when: When,
    pub kind: TypeName,
    pub payload: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_session: Option<SessionId>,
    #[serde(default)]
    pub catch_up: CatchUp,
    /// No new job while the last one has not ended.
    #[serde(default)]
    pub single_flight: bool,
}

/// The document of a schedule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedule {
    pub project: ProjectId,
    pub name: ScheduleName,
    pub spec: Spec,
    pub created_at: Micros,
    /// The next moment; none if it never comes again, or while it is paused.
    pub next_at: Option<Micros>,
    pub last_at: Option<Micros>,
    pub last_job: Option<JobId>,
    /// Jobs made so far.
    #[serde(default)]
    pub made: u64,
    #[serde(default)]
    pub deleted: bool,
}

impl Schedule {
    pub fn key(project: &ProjectId, name: &ScheduleName) -> doc::Key {
        doc::Key { class: doc::Class::Schedule, key: format!("{project}/{name}") }
    }

    /// What a document says, if it is a schedule's and not deleted.
    pub fn of(doc: &Doc) -> Option<Self> {
        let schedule: Self = serde_json::from_value(doc.body.value()).ok()?;
        (!schedule.deleted).then_some(schedule)
    }

    fn body(&self) -> Json {
        Json::of(&serde_json::to_value(self).unwrap_or_default())
    }

    pub const fn timer(id: DocId) -> timer::Key {
        timer::Key { subject: id.0, kind: timer::Kind::Schedule }
    }
}
