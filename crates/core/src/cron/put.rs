//! Making, changing, pausing and deleting a schedule.

use super::{BadWhen, Schedule, Spec};
use crate::canon::Json;
use crate::changes::Changes;
use crate::command::{Command, Ctx, Decision, Reads, Refusal};
use crate::definition::{self, Definitions};
use crate::doc::{self, Doc};
use crate::event::{Event, Head};
use crate::id::DocId;
use crate::limits;
use crate::name::{OrgId, ProjectId, ScheduleName, TypeName};
use crate::template::Facts;
use crate::timer;
use crate::world::View;
use serde_json::json;

/// What to do with a schedule.
#[derive(Clone, Debug)]
pub enum Act {
    /// Make it, or give it another content.
    Put(Box<Spec>),
    Pause,
    Resume,
    Delete,
}

#[derive(Clone, Debug)]
pub struct Put {
    pub org: OrgId,
    pub project: ProjectId,
    pub name: ScheduleName,
    pub act: Act,
}

/// The schedule as it stands now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    pub id: DocId,
    pub schedule: Schedule,
    pub paused: bool,
    /// It was not there before.
    pub made: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PutError {
    #[error("project {project} has no schedule called {name}")]
    NotFound { project: ProjectId, name: ScheduleName },
    #[error(transparent)]
    When(#[from] BadWhen),
    #[error("no job type is called {name}; known types: {known}")]
    UnknownType { name: TypeName, known: String },
    #[error("the payload does not fit its job type: {0}")]
    InvalidPayload(String),
    #[error("the payload has {bytes} bytes as canonical JSON; at most {max} are accepted")]
    PayloadTooLarge { bytes: usize, max: usize },
}

impl Refusal for PutError {
    fn code(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "schedule_not_found",
            Self::When(_) => "invalid_schedule",
            Self::UnknownType { .. } => "unknown_job_type",
            Self::InvalidPayload(_) => "invalid_payload",
            Self::PayloadTooLarge { .. } => "payload_too_large",
        }
    }
}

impl Command for Put {
    type Out = Kept;
    type No = PutError;

    fn org(&self) -> &OrgId {
        &self.org
    }

    fn reads(&self, defs: &Definitions) -> Reads {
        let mut reads = Reads::doc(Schedule::key(&self.project, &self.name));
        if let Act::Put(spec) = &self.act
            && defs.newest(&self.org, &spec.kind).is_none()
        {
            // Another node may have registered it a moment ago: whoever loads this learns what it finds.
            reads.definitions.insert(definition::Key { class: definition::Class::JobType, name: spec.kind.clone() });
        }
        reads
    }

    fn decide(&self, view: &View<'_>, cx: &mut Ctx<'_>) -> Decision<Kept, PutError> {
        match self.decided(view, cx) {
            Ok((out, changes)) => Decision::Done(out, changes),
            Err(no) => Decision::Refused(no),
        }
    }
}

impl Put {
    fn decided(&self, view: &View<'_>, cx: &mut Ctx<'_>) -> Result<(Kept, Changes), PutError> {
        let row = view.doc(&Schedule::key(&self.project, &self.name));
        let known = row.and_then(Schedule::of);
        let was_paused = row.is_some_and(|doc| doc.flag) && known.is_some();
        let none = || PutError::NotFound { project: self.project.clone(), name: self.name.clone() };
        let made = known.is_none();
        let same_moments = match (&self.act, &known) {
            (Act::Put(spec), Some(old)) => spec.when == old.spec.when,
            _ => false,
        };
        let (mut schedule, paused, kind) = match &self.act {
            Act::Put(spec) => {
                check(spec, &self.org, &self.project, cx.defs)?;
                let fresh = Schedule {
                    project: self.project.clone(),
                    name: self.name.clone(),
                    spec: (**spec).clone(),
                    created_at: cx.now,
                    next_at: None,
                    last_at: None,
                    last_job: None,
                    made: 0,
                    deleted: false,
                };
                let kind = if made { "schedule.created" } else { "schedule.changed" };
                (known.map_or(fresh, |old| Schedule { spec: (**spec).clone(), ..old }), was_paused, kind)
            }
            Act::Pause => (known.ok_or_else(none)?, true, "schedule.paused"),
            Act::Resume => (known.ok_or_else(none)?, false, "schedule.resumed"),
            Act::Delete => (Schedule { deleted: true, ..known.ok_or_else(none)? }, false, "schedule.deleted"),
        };
        let id = row.map_or_else(|| cx.ids.doc(), |doc| doc.id);
        let still = matches!(&self.act, Act::Pause | Act::Resume) && paused == was_paused;
        if still {
            return Ok((Kept { id, schedule, paused, made: false }, Changes::none()));
        }
        // Said again, it still owes the moment that has come and was not looked at yet.
        let owed =
            schedule.next_at.filter(|at| *at <= cx.now && !was_paused && same_moments && !paused && !schedule.deleted);
        // Moments that passed while it was paused were not meant to be caught up with.
        schedule.next_at = match owed {
            None if paused || schedule.deleted => None,
            None => Some(schedule.spec.when.next_after(cx.now)?),
            owed => owed,
        };
        let key = Schedule::timer(id);
        let timer = match schedule.next_at {
            Some(at) => timer::Change::Set { key, at },
            None => timer::Change::Clear { key },
        };
        let told = json!({
            "cron": schedule.spec.when.cron,
            "name": self.name,
            "project": self.project,
            "time_zone": schedule.spec.when.time_zone,
            "type": schedule.spec.kind,
        });
        let head = row.map_or(Head::NONE, |doc| doc.head);
        let doc = Doc { id, flag: paused, body: schedule.body(), head };
        let changes = Changes::none()
            .doc(doc::Change::Put(Schedule::key(&self.project, &self.name), doc))
            .timer(timer)
            .event(Event::new(doc::Class::Schedule.subject(id), kind, told));
        Ok((Kept { id, schedule, paused, made }, changes))
    }
}

fn check(spec: &Spec, org: &OrgId, project: &ProjectId, defs: &Definitions) -> Result<(), PutError> {
    spec.when.check()?;
    let unknown = || PutError::UnknownType { name: spec.kind.clone(), known: defs.names(org) };
    let entry = defs.newest(org, &spec.kind).filter(|entry| !entry.job_type.internal).ok_or_else(unknown)?;
    let bytes = Json::of(&spec.payload).len();
    if bytes > limits::PAYLOAD_BYTES {
        return Err(PutError::PayloadTooLarge { bytes, max: limits::PAYLOAD_BYTES });
    }
    if let Some(shape) = &entry.payload {
        shape.check(&spec.payload).map_err(PutError::InvalidPayload)?;
    }
    // What names no lane today would be refused at every moment.
    let facts = Facts { project, session: spec.source_session.as_ref(), payload: &spec.payload };
    let lane = entry.job_type.lane.place(&facts, defs.rules.max_per_project);
    lane.map_err(|why| PutError::InvalidPayload(format!("its lane: {why}")))?;
    Ok(())
}
