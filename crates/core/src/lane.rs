//! Lanes: how many jobs of one key may run at once.
//!
//! A lane is a name, not a task. It has a row while it counts something: one with a limit or a
//! depth. A lane without either costs nothing.
//!
//! Invariants
//! - Never more jobs that a lane counts hold a slot of it than its limit.
//! - Of these, `running` counts those that hold a slot, `waiting` those that want one. Jobs of a type without limit and
//!   depth are counted nowhere, also in a lane that another type gives a limit to.
//!
//! Elsewhere: choosing the next job ([`crate::schedule`]); keeping the counts, which follows from
//! how jobs move ([`crate::world`]).

use crate::canon::{Digest, Json};
use crate::changes::Changes;
use crate::command::{Command, Ctx, Decision, Never, Reads};
use crate::definition::Definitions;
use crate::doc::{self, Doc};
use crate::event::Event;
use crate::id::RunId;
use crate::name::{BadName, OrgId, ProjectId};
use crate::template::{Facts, Template};
use crate::time::Micros;
use crate::world::View;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::fmt;
use std::sync::Arc;

/// How the lanes of projects begin.
const PROJECT: &str = "project:";

/// The name of a lane, such as `project:shop`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LaneKey(Arc<str>);

impl LaneKey {
    pub const MAX: usize = 200;

    pub fn new(text: &str) -> Result<Self, BadName> {
        let plain = !text.is_empty() && text.len() <= Self::MAX && !text.chars().any(char::is_control);
        if plain {
            return Ok(Self(text.into()));
        }
        Err(BadName { what: "a lane", max: Self::MAX, allowed: "printable characters" })
    }

    /// From a template that was filled in: whatever does not fit is replaced by its digest.
    fn filled(text: &str) -> Self {
        Self::new(text).unwrap_or_else(|_| Self(format!("sha256:{}", Digest::of(&[text.as_bytes()])).into()))
    }

    pub fn of_project(project: &ProjectId) -> Self {
        Self::filled(&format!("{PROJECT}{project}"))
    }

    /// The agents of a run.
    pub fn of_run(run: RunId) -> Self {
        Self(format!("run:{run}").into())
    }

    /// The lane of a project, which no job type can claim for itself.
    pub fn is_project(&self) -> bool {
        self.0.starts_with(PROJECT)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for LaneKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for LaneKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::str::FromStr for LaneKey {
    type Err = BadName;

    fn from_str(text: &str) -> Result<Self, BadName> {
        Self::new(text)
    }
}

/// How many jobs may run at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    None,
    At(u32),
}

/// Which lane the jobs of a type go to. The default is the project's own: one at a time, as deep
/// as the configuration says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Rule {
    #[default]
    Project,
    Own {
        key: Template,
        limit: Limit,
        /// Jobs that may wait in it; more are refused.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        depth: Option<u32>,
    },
}

impl Rule {
    pub fn is_default(&self) -> bool {
        *self == Self::Project
    }

    /// The lane of one job, and how deep it may get. An error says why there is none.
    pub fn place(&self, facts: &Facts<'_>, per_project: u32) -> Result<(Place, Option<u32>), String> {
        match self {
            Self::Project => {
                let place = Place { key: LaneKey::of_project(facts.project), max: Some(1), kept: true };
                Ok((place, Some(per_project)))
            }
            Self::Own { key, limit, depth } => {
                let key = LaneKey::filled(&key.fill(facts).map_err(|field| format!("it is named after {field}"))?);
                if key.is_project() {
                    return Err(format!("{key} is a project's own"));
                }
                let max = match limit {
                    Limit::None => None,
                    Limit::At(max) => Some((*max).max(1)),
                };
                Ok((Place { key, max, kept: max.is_some() || depth.is_some() }, *depth))
            }
        }
    }
}

/// Where a job stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub key: LaneKey,
    /// The limit when it was enqueued; `None` has no limit.
    pub max: Option<u32>,
    /// The lane has a row that counts this job.
    pub kept: bool,
}

/// A lane's row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// What the job that was enqueued last said.
    pub max: Option<u32>,
    pub running: u32,
    pub waiting: u32,
    /// Of those who wait, how many were asked for from outside.
    pub outside: u32,
    /// Interactive jobs started since the last background one.
    pub burst: u32,
}

impl Row {
    /// Slots that can be given; `None` has no limit.
    pub fn free(&self) -> Option<u32> {
        self.max.map(|max| max.saturating_sub(self.running))
    }
}

/// Stops or resumes handing out the jobs of a lane. What runs goes on.
#[derive(Clone, Debug)]
pub struct Pause {
    pub org: OrgId,
    pub lane: LaneKey,
    pub paused: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paused {
    pub paused: bool,
    /// It was not so before.
    pub changed: bool,
    pub at: Micros,
}

impl Pause {
    fn key(&self) -> doc::Key {
        doc::Key { class: doc::Class::Lane, key: self.lane.as_str().to_owned() }
    }
}

impl Command for Pause {
    type Out = Paused;
    type No = Never;

    fn org(&self) -> &OrgId {
        &self.org
    }

    fn reads(&self, _: &Definitions) -> Reads {
        Reads::doc(self.key())
    }

    fn decide(&self, view: &View<'_>, cx: &mut Ctx<'_>) -> Decision<Paused, Never> {
        let known = view.doc(&self.key());
        if known.is_some_and(|doc| doc.flag) == self.paused {
            return Decision::Done(Paused { paused: self.paused, changed: false, at: cx.now }, Changes::none());
        }
        let id = known.map_or_else(|| cx.ids.doc(), |doc| doc.id);
        let head = known.map_or(crate::event::Head::NONE, |doc| doc.head);
        let body = Json::of(&json!({ "lane": self.lane.as_str(), "since": cx.now }));
        let kind = if self.paused { "lane.paused" } else { "lane.resumed" };
        let told = match self.lane.as_str().strip_prefix(PROJECT) {
            Some(project) => json!({ "lane": self.lane.as_str(), "project": project }),
            None => json!({ "lane": self.lane.as_str() }),
        };
        let event = Event::new(doc::Class::Lane.subject(id), kind, told);
        let changes =
            Changes::none().doc(doc::Change::Put(self.key(), Doc { id, flag: self.paused, body, head })).event(event);
        Decision::Done(Paused { paused: self.paused, changed: true, at: cx.now }, changes)
    }
}
